package sealed_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
)

func TestReseal_OnRotateOff(t *testing.T) {
	db := memory.New()
	var want []string
	for i := range 250 {
		want = append(want, fmt.Sprintf("r%03d", i))
		create(t, db, want[i], clear)
	}
	create(t, db, "without", "")
	for _, step := range []struct {
		name   string
		store  *sealed.Store
		counts string
	}{
		{"on", on(t, db, ringOf(t, "k1")), "0 map[k1:250]"},
		{"rotate", on(t, db, ringOf(t, "m2", "k1")), "0 map[m2:250]"},
		{"off", on(t, db, ringOf(t, "m2"), sealed.Off()), "250 map[]"},
	} {
		before := get(t, db, "r100")
		if got := reseal(t, step.store); !slices.Equal(got, want) {
			t.Errorf("%s: %d relayers were stored, want %d", step.name, len(got), len(want))
		}
		expectCounts(t, step.store, step.counts)
		if again := reseal(t, step.store); again != nil {
			t.Errorf("%s: the second time %d relayers were stored", step.name, len(again))
		}
		after := get(t, db, "r100")
		expectOpens(t, step.store, after, clear)
		if after.Revision <= before.Revision || string(after.Note) != string(before.Note) || string(after.Document) != string(before.Document) {
			t.Errorf("%s: %v replaced %v", step.name, after, before)
		}
	}
	if rec := get(t, db, "r200"); string(rec.Private) != clear {
		t.Errorf("at the end the private part is %q", rec.Private)
	}
}

func TestReseal_ResumesAndWithstandsOneDamagedPart(t *testing.T) {
	db := memory.New()
	for i := range 40 {
		create(t, on(t, db, ringOf(t, "k1")), fmt.Sprintf("r%02d", i), clear)
	}
	damaged := get(t, db, "r01")
	damaged.Private[len(damaged.Private)-1] ^= 1
	mustUpdate(t, db, damaged)
	store := on(t, db, ringOf(t, "m2", "k1"))
	for range store.Reseal(t.Context()) {
		break
	}
	expectCounts(t, store, "0 map[k1:39 m2:1]") // one after the other
	failed := ""
	for id, err := range store.Reseal(t.Context()) {
		if err != nil {
			failed += id
			if !errors.Is(err, relayer.ErrSealed) {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
	if failed != "r01" {
		t.Errorf("resealing failed for %q, want r01", failed)
	}
	expectCounts(t, store, "0 map[k1:1 m2:39]")
}

// oneDamaged is a store that cannot read the record with a sequence number.
type oneDamaged struct {
	relayer.Store
	sequence uint64
}

func (s oneDamaged) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	listing, err := s.Store.List(ctx, query)
	isDamaged := func(rec relayer.Record) bool { return rec.Sequence == s.sequence }
	if at := slices.IndexFunc(listing.Records, isDamaged); at >= 0 {
		listing.Records = listing.Records[:at]
		err = &relayer.CorruptError{Sequence: s.sequence, Err: relayer.ErrUnavailable}
	}
	return listing, err
}

// The damaged record is the first or the last one of a page, or the last one of all.
func TestReseal_DamagedRecord(t *testing.T) {
	for _, sequence := range []uint64{1, 100, 101, 150} {
		db := memory.New()
		for i := range 150 {
			create(t, db, fmt.Sprintf("r%03d", i), clear)
		}
		store := on(t, oneDamaged{db, sequence}, ringOf(t, "k1"))
		if counts, err := store.Count(t.Context()); counts.Clear != 149 || !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("record %d: counted %v, error %v", sequence, counts, err)
		}
		var damage error
		for id, err := range store.Reseal(t.Context()) {
			if damage != nil && err != nil || (id == "") != (err != nil) {
				t.Errorf("record %d: Reseal yielded %q and %v after %v", sequence, id, err, damage)
			}
			damage = cmp.Or(damage, err)
		}
		if !errors.Is(damage, relayer.ErrCorrupt) {
			t.Errorf("record %d: the error is %v", sequence, damage)
		}
		expectCounts(t, on(t, db, ringOf(t, "k1")), "1 map[k1:149]")
	}
}

// failing is a store whose lists fail after the first page.
type failing struct{ relayer.Store }

var errStore = errors.New("the store failed")

func (s failing) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	if query.After > 0 {
		return relayer.Listing{}, errStore
	}
	return s.Store.List(ctx, query)
}

// A count of a part of the relayers is an error, before anything is stored.
func TestReseal_StoreFails(t *testing.T) {
	db := memory.New()
	for i := range 150 {
		create(t, db, fmt.Sprintf("r%03d", i), clear)
	}
	store := on(t, failing{db}, ringOf(t, "k1"))
	if counts, err := store.Count(t.Context()); !errors.Is(err, errStore) || counts.Clear != 0 || counts.Keys != nil {
		t.Errorf("counted %v, error %v", counts, err)
	}
	expectOneError(t, store, t.Context(), errStore)
	expectCounts(t, on(t, db, ringOf(t, "k1")), "150 map[]")
}

// expectOneError checks that Reseal yields only an error without an ID.
func expectOneError(t *testing.T, store *sealed.Store, ctx context.Context, want error) {
	t.Helper()
	count := 0
	for id, err := range store.Reseal(ctx) {
		count++
		if id != "" || !errors.Is(err, want) {
			t.Errorf("Reseal yielded %q and %v, want %v", id, err, want)
		}
	}
	if count != 1 {
		t.Errorf("the sequence has %d elements, want 1", count)
	}
}

func TestReseal_CreatedMeanwhile(t *testing.T) {
	db, unchanged := newSealed(t)
	store := on(t, db, ringOf(t, "k2", "k1"))
	for id, err := range store.Reseal(t.Context()) {
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if id == "a" {
			create(t, unchanged, "b", clear)
		}
	}
	expectCounts(t, store, "0 map[k2:2]")
}

func TestReseal_WithoutKeysOrContextDone(t *testing.T) {
	db, _ := newSealed(t)
	expectOneError(t, on(t, db, keyring.Keyring{}), t.Context(), errors.ErrUnsupported)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expectOneError(t, on(t, db, ringOf(t, "m2", "k1")), ctx, context.Canceled)
}

func TestReseal_Only(t *testing.T) {
	db := memory.New()
	create(t, db, "clear", clear)
	create(t, on(t, db, ringOf(t, "k1")), "sealed", clear)
	store := on(t, db, ringOf(t, "k2", "k1"), sealed.Only())
	results := make(map[string]error)
	for id, err := range store.Reseal(t.Context()) {
		results[id] = err
	}
	if len(results) != 2 || results["sealed"] != nil {
		t.Errorf("Reseal yielded %v", results)
	}
	expectCorrupt(t, "Reseal", get(t, db, "clear"), results["clear"])
	expectCounts(t, store, "1 map[k2:1]")
}

// A key file with the right name and the wrong value seals nothing.
func TestReseal_OtherKeyOfTheSameName(t *testing.T) {
	db, right := newSealed(t)
	create(t, db, "clear", clear)
	wrong := otherValue(t, "k1")
	store := on(t, db, wrong)
	_, counting := store.Count(t.Context())
	expectOneError(t, store, t.Context(), relayer.ErrSealed)
	for _, ring := range []keyring.Keyring{wrong, ringOf(t, "k1")} {
		if fingerprint := ring.Keys()[0].Fingerprint; !errors.Is(counting, relayer.ErrSealed) || !strings.Contains(counting.Error(), fingerprint) {
			t.Errorf("Count returned %v, want ErrSealed and the fingerprint %s", counting, fingerprint)
		}
	}
	expectCounts(t, right, "1 map[k1:1]")
	create(t, db, "damaged", clear)
	expectOneError(t, on(t, oneDamaged{db, 3}, wrong), t.Context(), relayer.ErrSealed)

	// The right key under another name resolves it.
	reseal(t, on(t, db, otherValue(t, "k1", "k1")))
	expectOpens(t, store, get(t, db, "a"), clear)
	expectOpens(t, store, get(t, db, "clear"), clear)
}

// A key that is not in the ring, and has a name of its own, is no wrong key file.
func TestCount_UnknownKey(t *testing.T) {
	db, _ := newSealed(t)
	rec := get(t, db, "a")
	rec.ID, rec.Private = "other format", append([]byte{1}, rec.Private[1:]...)
	create(t, db, rec.ID, string(rec.Private))
	expectCounts(t, on(t, db, ringOf(t, "k2")), "0 map[:1 k1:1]")
}

// nameless has keys whose texts do not show the fingerprint.
type nameless struct{ keyring.Keyring }

func (k nameless) KeyOf(text []byte) (sealed.Key, error) {
	key, err := k.Keyring.KeyOf(text)
	key.Fingerprint = ""
	return key, err
}

func TestCount_UnknownFingerprint(t *testing.T) {
	db, _ := newSealed(t)
	expectCounts(t, on(t, db, nameless{ringOf(t, "k1")}), "0 map[k1:1]")
}

// stuck is a store whose damaged record has no sequence number.
type stuck struct{ relayer.Store }

func (stuck) List(context.Context, relayer.StoreQuery) (relayer.Listing, error) {
	return relayer.Listing{}, &relayer.CorruptError{Err: errStore}
}

func TestCount_DamageWithoutSequence(t *testing.T) {
	if _, err := on(t, stuck{memory.New()}, ringOf(t, "k1")).Count(t.Context()); !errors.Is(err, errStore) {
		t.Errorf("Count returned %v", err)
	}
}

// racing is a store in which another writer wins before the update of "a".
type racing struct {
	relayer.Store
	races int
	win   func(stored relayer.Record)
}

func (s *racing) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if rec.ID == "a" && s.races > 0 {
		s.races--
		stored, err := s.Store.Get(ctx, rec.ID)
		if err != nil {
			return relayer.Record{}, err
		}
		s.win(stored)
	}
	return s.Store.Update(ctx, rec)
}

// Reseal stores the change of the other writer under the new key, or finds nothing to do.
func TestReseal_ConcurrentWriterWins(t *testing.T) {
	for name, test := range map[string]struct {
		win    func(t *testing.T, db *memory.Store, stored relayer.Record)
		want   string // the private part
		stored []string
	}{
		"new URLs": {func(t *testing.T, db *memory.Store, stored relayer.Record) {
			stored.Private = []byte(replaced)
			mustUpdate(t, on(t, db, ringOf(t, "k1")), stored)
		}, replaced, []string{"a", "b"}},
		"under the new key": {func(t *testing.T, db *memory.Store, stored relayer.Record) {
			stored.Private = []byte(replaced)
			mustUpdate(t, on(t, db, ringOf(t, "m2")), stored)
		}, replaced, []string{"b"}},
		"another field": {func(t *testing.T, db *memory.Store, stored relayer.Record) {
			stored.Document = []byte(`{"changed":true}`)
			mustUpdate(t, db, stored)
		}, clear, []string{"a", "b"}},
		"delete": {func(t *testing.T, db *memory.Store, stored relayer.Record) {
			if err := db.Delete(t.Context(), stored.ID, stored.Revision, nil); err != nil {
				t.Fatal(err)
			}
		}, "", []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			db, store := newSealed(t)
			create(t, store, "b", clear)
			resealing := on(t, &racing{db, 2, func(stored relayer.Record) { test.win(t, db, stored) }}, ringOf(t, "m2", "k1"))
			if name == "under the new key" {
				resealing.Store.(*racing).races = 1
			}
			if got := reseal(t, resealing); !slices.Equal(got, test.stored) {
				t.Errorf("stored %q, want %q", got, test.stored)
			}
			if test.want != "" {
				expectOpens(t, on(t, db, ringOf(t, "m2")), get(t, db, "a"), test.want)
			}
		})
	}
}

// rotating has keys that change. A sealed part of the relayer "held" waits until it is released.
type rotating struct {
	keyring.Keyring
	release <-chan struct{}
}

func (r *rotating) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	part, err := r.Keyring.Seal(ctx, plaintext, associatedData)
	if bytes.HasSuffix(associatedData, []byte("held")) {
		<-r.release
	}
	return part, err
}

// held is a store whose writes wait until they are released.
type held struct {
	relayer.Store
	release chan struct{}
}

func (s held) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if rec.ID == "held" {
		<-s.release
	}
	return s.Store.Create(ctx, rec)
}

func (s held) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if rec.ID == "held" {
		<-s.release
	}
	return s.Store.Update(ctx, rec)
}

// A write that has sealed under the earlier key is stored while Reseal waits for it, wherever the
// write is held. Reseal does not delay other writes.
func TestReseal_AwaitsWritesInProgress(t *testing.T) {
	for name, test := range map[string]struct{ isCreate, isByKeys bool }{
		"create":             {isCreate: true},
		"update":             {},
		"create in its keys": {isCreate: true, isByKeys: true},
		"update in its keys": {isByKeys: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, release, released := memory.New(), make(chan struct{}), make(chan struct{})
				close(released)
				keys, inner := &rotating{ringOf(t, "k1"), released}, held{db, release}
				if test.isByKeys {
					keys.release, inner.release = release, released
				}
				store := on(t, inner, keys)
				rec := relayer.Record{ID: "held", Private: []byte(clear)}
				write := store.Create
				if !test.isCreate {
					rec.Revision = create(t, db, "held", "").Revision
					write = store.Update
				}
				written := make(chan error)
				go func() {
					_, err := write(context.Background(), rec)
					written <- err
				}()
				synctest.Wait()
				keys.Keyring = ringOf(t, "k2", "k1")
				resealed := make(chan error)
				go func() {
					var first error
					for _, err := range store.Reseal(context.Background()) {
						first = cmp.Or(first, err)
					}
					resealed <- first
				}()
				synctest.Wait()
				create(t, store, "other", clear)
				canceled, cancel := context.WithCancel(t.Context())
				cancel()
				expectOneError(t, store, canceled, context.Canceled)
				close(release)
				if err := errors.Join(<-written, <-resealed); err != nil {
					t.Fatal(err)
				}
				expectCounts(t, store, "0 map[k2:2]")
			})
		})
	}
}

// Reseal, writers and readers use a store at the same time.
func TestReseal_UnderWriters(t *testing.T) {
	db := memory.New()
	older, newer := on(t, db, ringOf(t, "k1", "k2")), on(t, db, ringOf(t, "k2", "k1"))
	var writing sync.WaitGroup
	for number := range 8 {
		id := fmt.Sprintf("w%d", number)
		store := []*sealed.Store{older, newer}[number%2]
		create(t, store, id, clear)
		writing.Go(func() {
			for i := range 200 {
				for {
					rec := get(t, store, id)
					rec.Private = fmt.Appendf(nil, `{"custom_rpc_urls":["https://rpc.example/%d"]}`, i)
					_, err := store.Update(context.Background(), rec)
					if err == nil {
						break
					}
					if !errors.Is(err, relayer.ErrConflict) {
						t.Errorf("%s: %v", id, err)
						return
					}
				}
			}
		})
	}
	for range 20 {
		reseal(t, newer)
	}
	writing.Wait()
	reseal(t, newer)
	expectCounts(t, newer, "0 map[k2:8]")
	for number := range 8 {
		expectOpens(t, newer, get(t, db, fmt.Sprintf("w%d", number)), `{"custom_rpc_urls":["https://rpc.example/199"]}`)
	}
}

// TestReseal_HistorySince: resealing repeats old notes, which must not end a history that begins
// after their time.
func TestReseal_HistorySince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := on(t, memory.New(), ringOf(t, "k1"))
		m := must(relayer.New(store))(t)
		req := relayer.CreateRequest{ID: "old", Name: "R", Network: "n", NetworkType: relayer.EVM, SignerID: "s"}
		req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://rpc.example/v3/key"}}
		must(m.Create(t.Context(), req))(t)
		time.Sleep(3 * time.Hour)
		req.ID, req.CustomRPCURLs = "new", nil
		must(m.Create(t.Context(), req))(t)
		if got := reseal(t, on(t, store.Store, ringOf(t, "k2", "k1"))); !slices.Equal(got, []string{"old"}) {
			t.Fatalf("%v were stored", got)
		}
		recent := relayer.HistoryQuery{Since: time.Now().Add(-time.Hour)}
		changes, next, err := m.History(t.Context(), recent)
		if err != nil || len(changes) != 1 || changes[0].ID != "new" || next != 0 {
			t.Errorf("the changes of the last hour are %v, next %d, error %v", changes, next, err)
		}
	})
}
