package relayer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/memory"
)

func reseal(t *testing.T, m *relayer.Manager) (ids []string) {
	t.Helper()
	for id, err := range m.Reseal(t.Context()) {
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		ids = append(ids, id)
	}
	return ids
}

func expectCounts(t *testing.T, m *relayer.Manager, want string) {
	t.Helper()
	counts, err := m.CountSealed(t.Context())
	ids := make(map[string]int)
	for key, count := range counts.Keys {
		ids[key.ID] += count
	}
	if got := fmt.Sprint(counts.Clear, ids); err != nil || got != want {
		t.Errorf("the counts are %s with error %v, want %s", got, err, want)
	}
}

// A count of a part of the relayers is an error.
func TestCountSealed_StoreFails(t *testing.T) {
	store := memory.New()
	mustCreate(t, managerOn(t, store), withURLs("a", "https://rpc.example/v2/KEY"))
	m := managerOn(t, &failingStore{Store: store}, relayer.WithSealer(ringOf(t, "k1")))
	if counts, err := m.CountSealed(t.Context()); !errors.Is(err, errStore) || counts.Clear != 0 || counts.Keys != nil {
		t.Errorf("counted %v, error %v", counts, err)
	}
}

func TestReseal_OnRotateOff(t *testing.T) {
	store := memory.New()
	clear := managerOn(t, store)
	var want []string
	for i := range 250 {
		id := fmt.Sprintf("r%03d", i)
		mustCreate(t, clear, withURLs(id, firstURL))
		want = append(want, id)
	}
	mustCreate(t, clear, minimal("without"))

	steps := []struct {
		name   string
		option relayer.Option
		counts string
	}{
		{"on", relayer.WithSealer(ringOf(t, "k1")), "0 map[k1:250]"},
		{"rotate", relayer.WithSealer(ringOf(t, "m2", "k1")), "0 map[m2:250]"},
		{"off", relayer.WithUnsealing(ringOf(t, "m2")), "250 map[]"},
	}
	for _, step := range steps {
		m := managerOn(t, store, step.option)
		if got := reseal(t, m); !slices.Equal(got, want) {
			t.Errorf("%s: %d relayers were stored, want %d", step.name, len(got), len(want))
		}
		expectCounts(t, m, step.counts)
		if again := reseal(t, m); again != nil {
			t.Errorf("%s: the second time %d relayers were stored", step.name, len(again))
		}
		expectURLs(t, m, "r100", firstURL)
	}
	if r, err := clear.Get(t.Context(), "r200"); err != nil || r.CustomRPCURLs[0].URL != firstURL {
		t.Errorf("without a sealer Get returned %v and %v", urlsOf(r.CustomRPCURLs), err)
	}
}

func TestReseal_ResumesAndWithstandsOneDamagedPart(t *testing.T) {
	store := memory.New()
	m1 := managerOn(t, store, relayer.WithSealer(ringOf(t, "k1")))
	for i := range 40 {
		mustCreate(t, m1, withURLs(fmt.Sprintf("r%02d", i), firstURL))
	}
	damaged := storedRecord(t, store, "r01")
	damaged.Private[len(damaged.Private)-1] ^= 1
	if _, err := store.Update(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	m2 := managerOn(t, store, relayer.WithSealer(ringOf(t, "m2", "k1")))
	for range m2.Reseal(t.Context()) {
		break
	}
	expectCounts(t, m2, "0 map[k1:25 m2:15]") // what has begun at the same time
	failed := ""
	for id, err := range m2.Reseal(t.Context()) {
		if err != nil {
			failed += id
			if !errors.Is(err, keyring.ErrNotAuthentic) {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
	if failed != "r01" {
		t.Errorf("resealing failed for %q, want r01", failed)
	}
	expectCounts(t, m2, "0 map[k1:1 m2:39]")
}

// meeting is a sealer whose calls of Open wait for each other.
type meeting struct {
	keyring.Keyring
	expected sync.WaitGroup
}

func (s *meeting) Open(ctx context.Context, sealed, associatedData []byte) ([]byte, error) {
	s.expected.Done()
	s.expected.Wait()
	return s.Keyring.Open(ctx, sealed, associatedData)
}

// Relayers are sealed at the same time, and yielded in their order.
func TestReseal_Parallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a call that waits for ever fails
		store := memory.New()
		m1 := managerOn(t, store, relayer.WithSealer(ringOf(t, "k1")))
		var want []string
		for i := range 16 {
			want = append(want, fmt.Sprintf("r%02d", i))
			mustCreate(t, m1, withURLs(want[i], firstURL))
		}
		sealer := &meeting{Keyring: ringOf(t, "m2", "k1")}
		sealer.expected.Add(16)
		m2 := managerOn(t, store, relayer.WithSealer(sealer))
		if got := reseal(t, m2); !slices.Equal(got, want) {
			t.Errorf("stored %q, want %q", got, want)
		}
	})
}

// broken is a sealer that panics when it opens.
type broken struct{ keyring.Keyring }

func (broken) Open(context.Context, []byte, []byte) ([]byte, error) { panic("sealer broke") }

func TestReseal_PanicReachesTheCaller(t *testing.T) {
	s := newSealed(t)
	m := managerOn(t, s.store, relayer.WithSealer(broken{ringOf(t, "m2", "k1")}))
	if cause := panicOf(func() { reseal(t, m) }); cause != "sealer broke" {
		t.Errorf("the caller got %v", cause)
	}
}

// oneDamaged is a store that cannot read the record at an offset.
type oneDamaged struct {
	relayer.Store
	offset int
}

func (s oneDamaged) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	damaged, err := s.Store.List(ctx, relayer.StoreQuery{Offset: s.offset, Limit: 1})
	if err != nil {
		return relayer.Listing{}, err
	}
	listing, err := s.Store.List(ctx, query)
	if err != nil || len(damaged.Records) == 0 {
		return listing, err
	}
	sequence := damaged.Records[0].Sequence
	at := slices.IndexFunc(listing.Records, func(rec relayer.Record) bool { return rec.Sequence == sequence })
	if at < 0 {
		return listing, nil
	}
	listing.Records = listing.Records[:at]
	return listing, &relayer.CorruptError{Sequence: sequence, Err: relayer.ErrUnavailable}
}

// The damaged record is the first or the last one of a batch, or the last one of all.
func TestReseal_DamagedRecord(t *testing.T) {
	for _, offset := range []int{0, 99, 100, 149} {
		store := memory.New()
		clear := managerOn(t, store)
		for i := range 150 {
			mustCreate(t, clear, withURLs(fmt.Sprintf("r%03d", i), firstURL))
		}
		sealer := relayer.WithSealer(ringOf(t, "k1"))
		var damage error
		for id, err := range managerOn(t, oneDamaged{store, offset}, sealer).Reseal(t.Context()) {
			if damage != nil || (id == "") != (err != nil) {
				t.Errorf("offset %d: Reseal yielded %q and %v after %v", offset, id, err, damage)
			}
			damage = err
		}
		if !errors.Is(damage, relayer.ErrCorrupt) {
			t.Errorf("offset %d: the last error is %v", offset, damage)
		}
		expectCounts(t, managerOn(t, store, sealer), "1 map[k1:149]")
	}
}

func TestReseal_ConcurrentWriterWins(t *testing.T) {
	store := memory.New()
	m1 := managerOn(t, store, relayer.WithSealer(ringOf(t, "k1")))
	for i := range 16 { // those that are sealed at once
		mustCreate(t, m1, withURLs(fmt.Sprintf("r%02d", i), firstURL))
	}
	for _, id := range []string{"b", "c"} {
		mustCreate(t, m1, withURLs(id, firstURL))
	}
	m2 := managerOn(t, store, relayer.WithSealer(ringOf(t, "m2", "k1")))
	for id, err := range m2.Reseal(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if id == "r00" {
			if err := m1.Delete(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			if _, err := m2.Patch(t.Context(), "c", patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: thirdURL}}})); err != nil {
				t.Fatal(err)
			}
		}
	}
	expectURLs(t, m2, "c", thirdURL)
	expectCounts(t, m2, "0 map[m2:17]")
}

func TestReseal_WithoutSealer(t *testing.T) {
	for _, err := range newManager(t).Reseal(t.Context()) {
		if err == nil {
			t.Error("Reseal without a sealer returned no error")
		}
		return
	}
	t.Error("Reseal without a sealer yielded nothing")
}

func TestReseal_ContextDone(t *testing.T) {
	s := newSealed(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := managerOn(t, s.store, relayer.WithSealer(ringOf(t, "m2", "k1")))
	count := 0
	for _, err := range m.Reseal(ctx) {
		count++
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	}
	if count != 1 {
		t.Errorf("the sequence has %d elements, want 1", count)
	}
}

func TestSealedOnly_Reseal(t *testing.T) {
	store := memory.New()
	mustCreate(t, managerOn(t, store), withURLs("clear", firstURL))
	mustCreate(t, managerOn(t, store, relayer.WithSealer(ringOf(t, "k1"))), withURLs("sealed", firstURL))
	m := managerOn(t, store, relayer.WithSealer(ringOf(t, "k2", "k1")), relayer.WithSealedOnly())
	results := make(map[string]error)
	for id, err := range m.Reseal(t.Context()) {
		results[id] = err
	}
	if len(results) != 2 || results["sealed"] != nil {
		t.Errorf("Reseal yielded %v", results)
	}
	expectCorrupt(t, "Reseal", storedRecord(t, store, "clear"), results["clear"])
	expectCounts(t, m, "1 map[k2:1]")
}

// otherValue returns a keyring whose key has the ID of another key.
func otherValue(t *testing.T, id string, others ...string) keyring.Keyring {
	t.Helper()
	text := "relayer-keyring 1\nprimary " + id + "\nkey " + id + " " + keyValue("other value") + "\n"
	for _, other := range others {
		text += "key renamed-" + other + " " + keyValue(other) + "\n"
	}
	ring, err := keyring.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// A key file with the right name and the wrong value seals nothing.
func TestReseal_OtherKeyOfTheSameName(t *testing.T) {
	s := newSealed(t)
	mustCreate(t, managerOn(t, s.store), withURLs("clear", firstURL))
	wrong := otherValue(t, "k1")
	m := managerOn(t, s.store, relayer.WithSealer(wrong))
	_, counting := m.CountSealed(t.Context())
	var resealing error
	for id, err := range m.Reseal(t.Context()) {
		if id != "" || resealing != nil {
			t.Errorf("Reseal yielded %q and %v", id, err)
		}
		resealing = err
	}
	for name, err := range map[string]error{"CountSealed": counting, "Reseal": resealing} {
		for _, ring := range []keyring.Keyring{wrong, ringOf(t, "k1")} {
			if fingerprint := ring.Keys()[0].Fingerprint; !errors.Is(err, relayer.ErrSealed) || !strings.Contains(err.Error(), fingerprint) {
				t.Errorf("%s returned %v, want ErrSealed and the fingerprint %s", name, err, fingerprint)
			}
		}
	}
	expectCounts(t, s.Manager, "1 map[k1:1]")

	// The right key under another name resolves it.
	reseal(t, managerOn(t, s.store, relayer.WithSealer(otherValue(t, "k1", "k1"))))
	expectURLs(t, managerOn(t, s.store, relayer.WithSealer(wrong)), "a", firstURL, secondURL)
}

// rotating is a sealer whose keys change.
type rotating struct{ keyring.Keyring }

// A write that has sealed under the earlier key is stored while Reseal runs.
func TestReseal_AwaitsWritesInProgress(t *testing.T) {
	for name, write := range map[string]func(context.Context, *relayer.Manager) error{
		"create": func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Create(ctx, withURLs("held", firstURL)))
		},
		"first URLs": func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Patch(ctx, "held", patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: firstURL}}})))
		},
		"create in a view": func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Within(mustParse(t, "network=sepolia")).Create(ctx, withURLs("held", firstURL)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				if name == "first URLs" {
					mustCreate(t, managerOn(t, store), minimal("held"))
				}
				release := make(chan struct{})
				sealer := &rotating{ringOf(t, "k1")}
				m := managerOn(t, store, relayer.WithSealer(sealer), relayer.WithAdmission(func(context.Context, relayer.Operation, *relayer.Relayer, *relayer.Relayer) error {
					<-release
					return nil
				}))
				written := make(chan error)
				go func() { written <- write(context.Background(), m) }()
				synctest.Wait()
				sealer.Keyring = ringOf(t, "k2", "k1")
				resealed := make(chan error)
				go func() {
					var first error
					for _, err := range m.Reseal(context.Background()) {
						first = cmp.Or(first, err)
					}
					resealed <- first
				}()
				synctest.Wait()
				canceled, cancel := context.WithCancel(t.Context())
				cancel()
				for _, err := range m.Reseal(canceled) {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("with a context that is done Reseal returned %v", err)
					}
				}
				close(release)
				if err := errors.Join(<-written, <-resealed); err != nil {
					t.Fatal(err)
				}
				expectCounts(t, m, "0 map[k2:1]")
			})
		})
	}
}
