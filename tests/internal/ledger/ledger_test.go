package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

type (
	event  = Event[int]
	change = Change[int]
	held   = map[string]int
)

func at(step Step, e event) event { e.Step = step; return e }

func TestLedger_Compare(t *testing.T) {
	create := event{Writer: 1, Keys: []string{"a"}, Value: 1}
	update := event{Writer: 1, Keys: []string{"a"}, Value: 2}
	remove := event{Writer: 1, Keys: []string{"a"}}
	createTwo := event{Writer: 1, Keys: []string{"a", "b"}, Value: 1}
	type helds = []held
	tests := map[string]struct {
		events                            []event
		allowed, lost, halves, unexpected []held
	}{
		"created": {
			events:  []event{at(Begin, create), at(Done, create)},
			allowed: helds{{"a": 1}}, lost: helds{{}}, unexpected: helds{{"a": 2}, {"a": 1, "b": 1}},
		},
		"create in flight": {
			events:  []event{at(Begin, create)},
			allowed: helds{{}, {"a": 1}}, unexpected: helds{{"a": 2}},
		},
		"create refused": {
			events:  []event{at(Begin, create), at(Refused, create)},
			allowed: helds{{}}, unexpected: helds{{"a": 1}},
		},
		"updated": {
			events:  []event{at(Begin, create), at(Done, create), at(Begin, update), at(Done, update)},
			allowed: helds{{"a": 2}}, lost: helds{{}, {"a": 1}}, unexpected: helds{{"a": 3}},
		},
		"update of unknown outcome": {
			events:  []event{at(Begin, create), at(Done, create), at(Begin, update), at(Unknown, update)},
			allowed: helds{{"a": 1}, {"a": 2}}, lost: helds{{}}, unexpected: helds{{"a": 3}},
		},
		"deleted": {
			events:  []event{at(Begin, create), at(Done, create), at(Begin, remove), at(Done, remove)},
			allowed: helds{{}}, lost: helds{{"a": 1}},
		},
		"delete in flight": {
			events:  []event{at(Begin, create), at(Done, create), at(Begin, remove)},
			allowed: helds{{}, {"a": 1}}, unexpected: helds{{"a": 2}},
		},
		"create of two in flight": {
			events:  []event{at(Begin, createTwo)},
			allowed: helds{{}, {"a": 1, "b": 1}}, halves: helds{{"a": 1}, {"b": 1}},
		},
	}
	for name, test := range tests {
		l := New[int]()
		for _, e := range test.events {
			l.Note(e)
		}
		l.Interrupt()
		for _, h := range test.allowed {
			if found := l.Compare(h); !found.IsEmpty() {
				t.Errorf("%s: %v is refused: %v", name, h, found)
			}
		}
		for _, h := range test.lost {
			if found := l.Compare(h); !slices.Equal(found.Lost, []string{"a"}) {
				t.Errorf("%s: no loss is found in %v: %v", name, h, found)
			}
		}
		for _, h := range test.halves {
			if found := l.Compare(h); len(found.Halves) != 2 {
				t.Errorf("%s: no half is found in %v: %v", name, h, found)
			}
		}
		for _, h := range test.unexpected {
			if found := l.Compare(h); len(found.Unexpected) != 1 {
				t.Errorf("%s: nothing is unexpected in %v: %v", name, h, found)
			}
		}
	}
}

func TestLedger_CompareHistory(t *testing.T) {
	l := New[int]()
	for i, step := range []Step{Done, Refused, Unknown, Done, Begin} {
		e := event{Writer: i, Keys: []string{string(rune('a' + i))}, Value: i, IsImport: i == 3}
		l.Note(at(Begin, e))
		if step != Begin {
			l.Note(at(step, e))
		}
	}
	l.Interrupt()
	created, refused, unknown, imported, inFlight := change{"a", 0}, change{"b", 1}, change{"c", 2}, change{"d", 3}, change{"e", 4}
	for _, test := range []struct {
		history []change
		held    held
		want    []change // wrong
	}{
		{[]change{created}, nil, nil},
		{[]change{created, unknown}, held{"c": 2}, nil},
		{[]change{created, inFlight}, held{"e": 4}, nil},
		{nil, nil, []change{created}},
		{[]change{created, refused}, nil, []change{refused}},
		{[]change{created, created}, nil, []change{created}},
		{[]change{created, imported}, nil, []change{imported}},
		{[]change{created, {"other", 1}}, nil, []change{{"other", 1}}},
		{[]change{created}, held{"c": 2}, []change{unknown}},
		{[]change{created, unknown}, nil, []change{unknown}},
	} {
		if wrong := l.CompareHistory(test.history, test.held); !slices.Equal(wrong, test.want) {
			t.Errorf("history %v of %v: %v is wrong, want %v", test.history, test.held, wrong, test.want)
		}
	}
	l.Adopt(nil)
	if wrong := l.CompareHistory(nil, nil); len(wrong) > 0 {
		t.Errorf("after adoption: %v is wrong", wrong)
	}
}

func TestLedger_Adopt(t *testing.T) {
	l := New[int]()
	l.Note(event{Step: Begin, Keys: []string{"a"}, Value: 1})
	l.Interrupt()
	if ended := l.Ended(Unknown); len(ended) != 1 || !slices.Equal(ended[0].Keys, []string{"a"}) {
		t.Errorf("ended with an unknown outcome: %v", ended)
	}
	l.Adopt(held{"a": 1})
	if found := l.Compare(held{"a": 1}); !found.IsEmpty() || len(l.Ended(Unknown)) != 0 {
		t.Errorf("after adoption: %v, ended with an unknown outcome: %v", found, l.Ended(Unknown))
	}
	if l.Compare(nil).IsEmpty() {
		t.Error("an adopted key may be absent")
	}
}

func TestLedger_Acknowledged(t *testing.T) {
	l := New[int]()
	l.Add(Done, 1, "a", "b")
	l.Add(Refused, 2, "a")
	l.Add(Unknown, 3, "a")
	l.Add(Done, 4, "a")
	var got []change
	for _, a := range l.Acknowledged() {
		got = append(got, a.Change)
	}
	if want := []change{{"a", 1}, {"b", 1}, {"a", 4}}; !slices.Equal(got, want) || len(l.Ended(Done)) != 2 {
		t.Errorf("acknowledged are %v, want %v", got, want)
	}
	first, last := l.Acknowledged()[0].At, l.Acknowledged()[2].At
	for want, at := range map[int]time.Time{0: first, 1: last, 4: last.Add(1)} {
		if got := l.Before("a", at); got != want {
			t.Errorf("before %v: %d, want %d", at, got, want)
		}
	}
}

func TestStepOf(t *testing.T) {
	for want, err := range map[Step]error{Done: nil, Unknown: relayer.ErrOutcomeUnknown, Refused: relayer.ErrUnavailable} {
		if got := StepOf(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

func TestDifference_IsEmpty(t *testing.T) {
	if (Difference{Lost: []string{"a"}, Halves: []string{"b"}}).IsEmpty() || !(Difference{}).IsEmpty() {
		t.Error("a difference is empty, or none is not")
	}
}
