package joined_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/go-relayer/relayer/internal/joined"
)

// piece returns random documents, some of them empty, in some of the slots.
func piece(random *rand.Rand) (used joined.Set, documents [joined.Slots]*[]byte) {
	for slot := range documents {
		if random.IntN(4) > 0 {
			document := bytes.Repeat([]byte{byte('a' + slot%26)}, random.IntN(6))
			documents[slot] = &document
			used = used.With(slot)
		}
	}
	return used, documents
}

func TestDocuments(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		used, documents := piece(random)
		if used == 0 {
			continue
		}
		var want [][]byte
		slots := used.From(random.IntN(used.Last() + 1)).Take(1 + random.IntN(joined.Slots))
		for slot, document := range documents {
			if slots.Has(slot) {
				want = append(want, append(bytes.Clone(*document), ','))
			}
		}
		var joint joined.Documents
		joint.Join(&documents)
		got := joint.Append([]byte("before"), slots.First(), slots.Last())
		if want := append([]byte("before"), bytes.Join(want, nil)...); !bytes.Equal(got, want) {
			t.Fatalf("slots %b of %b: %q, want %q", slots, used, got, want)
		}
	}
}

// The owner of a document cannot change its neighbors through it.
func TestDocuments_Neighbors(t *testing.T) {
	one, two := []byte("one"), []byte("two")
	var joint joined.Documents
	joint.Join(&[joined.Slots]*[]byte{3: &one, 5: &two})
	_ = append(one, "!!!!"...)
	if got := joint.Append(nil, 3, 5); string(got) != "one,two," || string(two) != "two" {
		t.Errorf("the documents are %q", got)
	}
}

func TestDocuments_Clear(t *testing.T) {
	document := []byte("one")
	var joint joined.Documents
	if joint.AreJoined() {
		t.Error("joined before Join")
	}
	joint.Join(&[joined.Slots]*[]byte{0: &document})
	if !joint.AreJoined() {
		t.Error("not joined after Join")
	}
	if joint.Clear(); joint.AreJoined() || string(document) != "one" {
		t.Errorf("after Clear, joined is %t and the document %q", joint.AreJoined(), document)
	}
}

func TestSet(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		set := joined.Set(random.Uint32() & random.Uint32())
		var slots []int
		for slot := range joined.Slots {
			if set.Has(slot) {
				slots = append(slots, slot)
			}
		}
		if set.Len() != len(slots) {
			t.Fatalf("%b has %d slots, want %d", set, set.Len(), len(slots))
		}
		if len(slots) == 0 {
			continue
		}
		if set.First() != slots[0] || set.Last() != slots[len(slots)-1] {
			t.Fatalf("%b: first %d, last %d, want %v", set, set.First(), set.Last(), slots)
		}
		n := random.IntN(len(slots) + 1)
		for at, slot := range slots {
			if set.Take(n).Has(slot) != (at < n) || set.Skip(n).Has(slot) != (at >= n) || set.From(n).Has(slot) != (slot >= n) {
				t.Fatalf("%b: Take(%d) %b, Skip %b, From %b", set, n, set.Take(n), set.Skip(n), set.From(n))
			}
			if without := set.Without(slot); without.Has(slot) || without.With(slot) != set || !set.Contains(without) || without.Contains(set) {
				t.Fatalf("%b without slot %d is %b", set, slot, without)
			}
		}
	}
}
