package sealed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
)

const replaced = `{"custom_rpc_urls":["https://rpc.example/v3/fedcba9876543210"]}`

func TestNew_Invalid(t *testing.T) {
	db, ring := memory.New(), ringOf(t, "k1")
	for name, make := range map[string]func() (*sealed.Store, error){
		"nil store":    func() (*sealed.Store, error) { return sealed.New(nil, ring) },
		"nil keys":     func() (*sealed.Store, error) { return sealed.New(db, nil) },
		"nil pointer":  func() (*sealed.Store, error) { return sealed.New(db, (*keyring.Keyring)(nil)) },
		"zero option":  func() (*sealed.Store, error) { return sealed.New(db, ring, sealed.Option{}) },
		"Only and Off": func() (*sealed.Store, error) { return sealed.New(db, ring, sealed.Only(), sealed.Off()) },
		"Off and Only": func() (*sealed.Store, error) { return sealed.New(db, ring, sealed.Off(), sealed.Only()) },
	} {
		if store, err := make(); err == nil || store != nil {
			t.Errorf("%s: New returned %v and %v", name, store, err)
		}
	}
}

func TestKey_String(t *testing.T) {
	for want, key := range map[string]sealed.Key{"k": {ID: "k"}, "k (fingerprint f)": {ID: "k", Fingerprint: "f"}} {
		if got := key.String(); got != want {
			t.Errorf("the key is %q, want %q", got, want)
		}
	}
}

func TestStore_SealsWhatIsClear(t *testing.T) {
	db, store := newSealed(t)
	expectSealed(t, get(t, db, "a"))
	expectSealed(t, get(t, store, "a"))
	expectOpens(t, store, get(t, store, "a"), clear)

	rec := get(t, store, "a")
	rec.Private = []byte(replaced)
	updated := mustUpdate(t, store, rec)
	expectSealed(t, updated)
	expectSealed(t, get(t, db, "a"))
	expectOpens(t, store, get(t, store, "a"), replaced)

	for _, private := range []string{"", clear} { // none, and some in place of none
		rec = get(t, store, "a")
		rec.Private = []byte(private)
		expectOpens(t, store, mustUpdate(t, store, rec), private)
	}
	none := create(t, store, "none", "")
	if stored := get(t, db, "none"); len(none.Private)+len(stored.Private) != 0 {
		t.Errorf("a record without a private part has %q", stored.Private)
	}
}

// forbidden are keys that fail the test if they are used.
type forbidden struct {
	keyring.Keyring
	t *testing.T
}

func (f forbidden) Seal(context.Context, []byte, []byte) ([]byte, error) {
	f.t.Error("Seal was called")
	return nil, errors.New("forbidden")
}

func (f forbidden) Open(context.Context, []byte, []byte) ([]byte, error) {
	f.t.Error("Open was called")
	return nil, errors.New("forbidden")
}

// What is stored already, sealed or in clear, stays as it is, and needs no key.
func TestUpdate_KeepsPrivatePart(t *testing.T) {
	db, _ := newSealed(t)
	create(t, db, "clear", clear)
	for _, options := range [][]sealed.Option{nil, {sealed.Only()}, {sealed.Off()}} {
		store := on(t, db, forbidden{ringOf(t, "k2"), t}, options...)
		for _, id := range []string{"a", "clear"} {
			before, changed := get(t, db, id), get(t, store, id)
			changed.Document = fmt.Appendf(nil, `{"revision":%d}`, before.Revision)
			mustUpdate(t, store, changed)
			after := get(t, db, id)
			if !bytes.Equal(after.Private, before.Private) || !bytes.Equal(after.Document, changed.Document) {
				t.Errorf("%s: the private part is %q, and was %q", id, after.Private, before.Private)
			}
		}
	}
	if err := on(t, db, forbidden{ringOf(t, "k2"), t}).Delete(t.Context(), "a", get(t, db, "a").Revision, nil); err != nil {
		t.Error(err)
	}
}

// A part that is sealed already, such as that of a copy, is stored as it is.
func TestStore_SealedAlready(t *testing.T) {
	db, store := newSealed(t)
	part := string(get(t, db, "a").Private)
	other := on(t, db, forbidden{ringOf(t, "k2"), t})
	create(t, other, "b", part)
	rec := create(t, other, "c", "")
	rec.Private = []byte(part)
	mustUpdate(t, other, rec)
	for _, id := range []string{"b", "c"} {
		if got := get(t, store, id); string(got.Private) != part {
			t.Errorf("%s has the private part %q, want %q", id, got.Private, part)
		}
	}
}

func TestUpdate_Errors(t *testing.T) {
	_, store := newSealed(t)
	rec := get(t, store, "a")
	rec.Private = []byte(replaced)
	stale, unknown := rec, rec
	stale.Revision--
	unknown.ID = "unknown"
	for want, rec := range map[error]relayer.Record{relayer.ErrConflict: stale, relayer.ErrNotFound: unknown} {
		if _, err := store.Update(t.Context(), rec); !errors.Is(err, want) {
			t.Errorf("Update returned %v, want %v", err, want)
		}
	}
	expectOpens(t, store, get(t, store, "a"), clear)
}

func TestOff(t *testing.T) {
	db, _ := newSealed(t)
	store := on(t, db, ringOf(t, "k1"), sealed.Off())
	expectOpens(t, store, get(t, store, "a"), clear)
	create(t, store, "b", clear)
	rec := get(t, store, "a")
	rec.Private = []byte(replaced)
	mustUpdate(t, store, rec)
	for id, want := range map[string]string{"a": replaced, "b": clear} {
		if got := get(t, db, id); string(got.Private) != want {
			t.Errorf("%s has the private part %q, want %q", id, got.Private, want)
		}
	}
}

func TestOnly_ClearPart(t *testing.T) {
	db, _ := newSealed(t)
	create(t, db, "clear", clear)
	for name, keys := range map[string]keyring.Keyring{"keys": ringOf(t, "k1"), "no keys": {}} {
		store := on(t, db, keys, sealed.Only())
		rec := get(t, store, "clear")
		opened, err := store.Open(t.Context(), rec)
		expectCorrupt(t, name, rec, err)
		if opened.Private != nil || strings.Contains(err.Error(), "rpc.example") {
			t.Errorf("%s: Open returned %q and %v", name, opened.Private, err)
		}
	}
	store := on(t, db, ringOf(t, "k1"), sealed.Only())
	expectOpens(t, store, get(t, store, "a"), clear)
	expectOpens(t, store, create(t, store, "none", ""), "")
	for id, private := range map[string]string{"same URLs": clear, "other URLs": replaced} {
		create(t, db, id, clear)
		rec := get(t, store, id)
		rec.Private = []byte(private)
		expectOpens(t, store, mustUpdate(t, store, rec), private)
		expectSealed(t, get(t, db, id))
	}
}

// flipped is a store that returns another part at each read: a writer without the keys replaces
// it in the database.
type flipped struct {
	relayer.Store
	reads int
}

func (f *flipped) Get(ctx context.Context, id string) (relayer.Record, error) {
	rec, err := f.Store.Get(ctx, id)
	f.reads++
	rec.Private = fmt.Appendf(nil, `{"custom_rpc_urls":["https://rpc.example/%d"]}`, f.reads)
	return rec, err
}

func (f *flipped) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	page, err := f.Store.List(ctx, query)
	for i := range page.Records {
		page.Records[i].Private = []byte(replaced)
	}
	return page, err
}

func TestOnly_PartReplacedDuringChange(t *testing.T) {
	db, _ := newSealed(t)
	store := on(t, &flipped{Store: db}, ringOf(t, "k1"), sealed.Only())
	listed := must(store.List(t.Context(), relayer.StoreQuery{Limit: 1}))(t).Records[0]
	for _, rec := range []relayer.Record{get(t, store, "a"), listed} {
		rec.Revision = get(t, db, "a").Revision
		changed := mustUpdate(t, store, rec)
		if stored := get(t, db, "a"); stored.Private[0] != '{' {
			t.Errorf("a part that was read in clear is stored as %q", stored.Private)
		}
		changed = mustUpdate(t, store, changed)
		_, err := store.Open(t.Context(), changed)
		expectCorrupt(t, "changed", changed, err)
	}
}

// Parts that a writer without the keys put in place of that of "a".
func TestOpen_Tampered(t *testing.T) {
	db, store := newSealed(t)
	create(t, store, "b", clear)
	for name, tamper := range map[string]func(private []byte) []byte{
		"truncated":                  func(private []byte) []byte { return private[:len(private)-1] },
		"only mark":                  func(private []byte) []byte { return private[:1] },
		"bit changed":                func(private []byte) []byte { private[len(private)/2] ^= 1; return private },
		"moved from another relayer": func([]byte) []byte { return get(t, db, "b").Private },
		"format of another version":  func(private []byte) []byte { private[0] = 1; return private },
		"no format":                  func([]byte) []byte { return []byte("x") },
	} {
		rec := get(t, store, "a")
		rec.Private = tamper(rec.Private)
		opened, err := store.Open(t.Context(), rec)
		expectErrSealed(t, name, err)
		if opened.Private != nil || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: Open returned %q and %v", name, opened.Private, err)
		}
		if isFormat := name == "format of another version" || name == "no format"; isFormat != strings.Contains(err.Error(), "another version of this library has sealed them") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestStore_MissingKey(t *testing.T) {
	db, _ := newSealed(t)
	for name, keys := range map[string]keyring.Keyring{"no keys": {}, "another key": ringOf(t, "k2")} {
		store := on(t, db, keys)
		_, err := store.Open(t.Context(), get(t, store, "a"))
		expectErrSealed(t, name, err)
		if errors.Is(err, errors.ErrUnsupported) != (name == "no keys") || !strings.Contains(err.Error(), "k1") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	store := on(t, db, keyring.Keyring{})
	_, err := store.Create(t.Context(), relayer.Record{ID: "b", Private: []byte(clear)})
	expectErrSealed(t, "Create", err)
	rec := get(t, store, "a")
	rec.Private = []byte(replaced)
	_, updating := store.Update(t.Context(), rec)
	expectErrSealed(t, "Update", updating)
	if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(updating, errors.ErrUnsupported) {
		t.Errorf("without keys Create returned %v and Update %v", err, updating)
	}
	expectCounts(t, store, "0 map[k1:1]")
}

// brokenKeys are keys that fail.
type brokenKeys struct {
	keyring.Keyring
	err error
}

func (k brokenKeys) Seal(context.Context, []byte, []byte) ([]byte, error) { return nil, k.err }

func (k brokenKeys) Open(context.Context, []byte, []byte) ([]byte, error) { return nil, k.err }

// The error of a key service says nothing about the relayer, and its URLs are masked.
func TestStore_KeysFail(t *testing.T) {
	db, _ := newSealed(t)
	relayerErrors := []error{
		relayer.ErrNotFound, relayer.ErrExists, relayer.ErrClaimed, relayer.ErrConflict, relayer.ErrNoRevision, relayer.ErrInvalid,
		relayer.ErrUnknownSigner, relayer.ErrOutcomeUnknown, relayer.ErrCorrupt, relayer.ErrUnknownFormat, relayer.ErrNewerFormat, relayer.ErrGap,
	}
	for _, fault := range append(relayerErrors, &relayer.ValidationError{}, &relayer.CorruptError{Err: relayer.ErrGap}, context.DeadlineExceeded) {
		store := on(t, db, brokenKeys{ringOf(t, "k1"), fmt.Errorf("Post https://vault.example/KEY: %w", fault)})
		_, sealing := store.Create(t.Context(), relayer.Record{ID: "b", Private: []byte(clear)})
		_, opening := store.Open(t.Context(), get(t, store, "a"))
		for name, err := range map[string]error{"sealing": sealing, "opening": opening} {
			expectErrSealed(t, name, err)
			_, isInvalid := errors.AsType[*relayer.ValidationError](err)
			_, isCorrupt := errors.AsType[*relayer.CorruptError](err)
			if isInvalid || isCorrupt || strings.Contains(err.Error(), "KEY") || !strings.Contains(err.Error(), "https://vault.example/***") {
				t.Errorf("%s: %v", name, err)
			}
			for _, other := range relayerErrors {
				if errors.Is(err, other) {
					t.Errorf("%s: the error matches %v", name, other)
				}
			}
			if errors.Is(err, context.DeadlineExceeded) != (fault == context.DeadlineExceeded) {
				t.Errorf("%s: %v does not match the error of the context", name, err)
			}
		}
	}
}

// FuzzOpen stores any bytes as the private part.
func FuzzOpen(f *testing.F) {
	db, _ := newSealed(f)
	rec := get(f, db, "a")
	for _, private := range []string{string(rec.Private), "\x02", "{}", clear, "\x01\x03", "x"} {
		f.Add([]byte(private))
	}
	f.Fuzz(func(t *testing.T, private []byte) {
		for _, options := range [][]sealed.Option{nil, {sealed.Only()}, {sealed.Off()}} {
			changed := rec
			changed.ID, changed.Private = "a", private
			opened, err := on(t, db, ringOf(t, "k1"), options...).Open(t.Context(), changed)
			isClear := len(private) == 0 || private[0] == '{'
			if err == nil && !isClear && string(opened.Private) != clear {
				t.Errorf("opened %q, which was never sealed", opened.Private)
			}
			if err == nil && isClear && !bytes.Equal(opened.Private, private) {
				t.Errorf("a part in clear was opened as %q", opened.Private)
			}
			if err != nil && !errors.Is(err, relayer.ErrSealed) && !errors.Is(err, relayer.ErrCorrupt) {
				t.Error(err)
			}
		}
	})
}
