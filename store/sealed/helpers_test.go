package sealed_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
)

// clear is a private part.
const clear = `{"custom_rpc_urls":["https://rpc.example/v3/0123456789abcdef"]}`

// ringOf returns a keyring with these keys. The value of a key depends only on its ID.
func ringOf(t testing.TB, primary string, others ...string) keyring.Keyring {
	t.Helper()
	text := "relayer-keyring 1\nprimary " + primary + "\n"
	for _, id := range append([]string{primary}, others...) {
		text += "key " + id + " " + keyValue(id) + "\n"
	}
	return must(keyring.Parse([]byte(text)))(t)
}

// otherValue returns a keyring whose key has the ID of another key.
func otherValue(t testing.TB, id string, others ...string) keyring.Keyring {
	t.Helper()
	text := "relayer-keyring 1\nprimary " + id + "\nkey " + id + " " + keyValue("other value") + "\n"
	for _, other := range others {
		text += "key renamed-" + other + " " + keyValue(other) + "\n"
	}
	return must(keyring.Parse([]byte(text)))(t)
}

// must returns the first result of a call, or a function that fails the test with its error.
func must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func keyValue(text string) string {
	value := make([]byte, 32)
	copy(value, text)
	return base64.StdEncoding.EncodeToString(value)
}

func on(t testing.TB, db relayer.Store, keys sealed.Keys, options ...sealed.Option) *sealed.Store {
	t.Helper()
	return must(sealed.New(db, keys, options...))(t)
}

func create(t testing.TB, store relayer.Store, id, private string) relayer.Record {
	t.Helper()
	rec := relayer.Record{ID: id, Document: []byte("{}"), Private: []byte(private), Note: []byte("note of " + id)}
	return must(store.Create(context.Background(), rec))(t)
}

func get(t testing.TB, store relayer.Store, id string) relayer.Record {
	t.Helper()
	rec := must(store.Get(context.Background(), id))(t)
	rec.Private = append([]byte(nil), rec.Private...)
	return rec
}

func mustUpdate(t testing.TB, store relayer.Store, rec relayer.Record) relayer.Record {
	t.Helper()
	return must(store.Update(context.Background(), rec))(t)
}

func expectOpens(t testing.TB, store *sealed.Store, rec relayer.Record, want string) {
	t.Helper()
	opened, err := store.Open(context.Background(), rec)
	if err != nil || string(opened.Private) != want {
		t.Errorf("%s: Open returned %q and %v, want %q", rec.ID, opened.Private, err, want)
	}
}

func expectSealed(t testing.TB, rec relayer.Record) {
	t.Helper()
	if len(rec.Private) == 0 || rec.Private[0] == '{' || strings.Contains(string(rec.Private), "rpc.example") {
		t.Errorf("the private part of %s is %q", rec.ID, rec.Private)
	}
}

func reseal(t testing.TB, store *sealed.Store) (ids []string) {
	t.Helper()
	for id, err := range store.Reseal(context.Background()) {
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		ids = append(ids, id)
	}
	return ids
}

func expectCounts(t testing.TB, store *sealed.Store, want string) {
	t.Helper()
	counts, err := store.Count(context.Background())
	ids := make(map[string]int)
	for key, count := range counts.Keys {
		ids[key.ID] += count
	}
	if got := fmt.Sprint(counts.Clear, ids); err != nil || got != want {
		t.Errorf("the counts are %s with error %v, want %s", got, err, want)
	}
}

func expectErrSealed(t testing.TB, operation string, err error) {
	t.Helper()
	if !errors.Is(err, relayer.ErrSealed) || !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("%s returned %v, want ErrSealed and ErrUnavailable", operation, err)
	}
}

// expectCorrupt checks that damage is reported with the ID and the sequence of the record.
func expectCorrupt(t testing.TB, operation string, rec relayer.Record, err error) {
	t.Helper()
	corrupt, ok := errors.AsType[*relayer.CorruptError](err)
	if !ok || corrupt.ID != rec.ID || corrupt.Sequence != rec.Sequence || errors.Is(err, relayer.ErrSealed) || !strings.Contains(err.Error(), rec.ID) {
		t.Errorf("%s returned %v, want a CorruptError of %s and %d", operation, err, rec.ID, rec.Sequence)
	}
}

// newSealed returns a store with the record "a", which is sealed under the key "k1".
func newSealed(t testing.TB) (*memory.Store, *sealed.Store) {
	t.Helper()
	db := memory.New()
	store := on(t, db, ringOf(t, "k1"))
	create(t, store, "a", clear)
	return db, store
}
