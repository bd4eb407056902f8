//go:build unix

package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestSessionsOfOtherFormats has the server write bytes and times in ways of its
// own.
func TestSessionsOfOtherFormats(t *testing.T) {
	t.Parallel()
	escaping := parameter(t, server.ConnString(), "bytea_output", "escape")
	strange := parameter(t, escaping, "datestyle", "SQL,DMY")
	hex := parameter(t, strange, "bytea_output", "hex")
	for mode, connString := range map[string]string{
		"cache_statement": strange, "cache_describe": strange, "describe_exec": strange, "exec": hex, "simple_protocol": hex,
	} {
		t.Run(mode, func(t *testing.T) {
			store := openAt(t, parameter(t, connString, "default_query_exec_mode", mode), newSchema())
			changes := watch(t, store)
			made := create(t, store, record("one"))
			changes.want(t, relayer.Created, made)
			changed := update(t, store, with(made, "another", ""))
			changes.want(t, relayer.Updated, changed)
			if got := get(t, store, "one"); !same(got, changed) {
				t.Errorf("got %+v, want %+v", got, changed)
			}
			if recs, _, err := store.List(t.Context(), 0, 10); err != nil || len(recs) != 1 || !same(recs[0], changed) {
				t.Errorf("listed %+v, error %v", recs, err)
			}
		})
	}
	for _, mode := range []string{"exec", "simple_protocol"} {
		_, err := postgres.Open(t.Context(), parameter(t, escaping, "default_query_exec_mode", mode), newSchema())
		if err == nil || !strings.Contains(err.Error(), "bytea_output") || errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("%s: error %v", mode, err)
		}
	}
}

// TestPasswordsOfTornURLs are those that a person types as they are.
func TestPasswordsOfTornURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://u:Hunter2@Zebra@127.0.0.1:1/d",
		"postgres://u:@Zebra@127.0.0.1:1/d",
		"postgres://u@Zebra@127.0.0.1:1/d",
		"postgres://u:12/Zebra@127.0.0.1:1/d",
		"postgres://u:12?Zebra@127.0.0.1:1/d",
		"postgres://u:12#Zebra@127.0.0.1:1/d",
		"postgres://u:Zebra@one@127.0.0.1:1,127.0.0.1:2/d",
		"postgresql://u:%Zebra@127.0.0.1:1/d",
		"POSTGRES://postgres:Zebra=x@db/d?" + socketQuery(),
		" postgres://postgres:Zebra=x@db/d?" + socketQuery(),
		"host=" + filepath.Dir(server.Socket()) + " user=postgres dbname=postgres password=my Zebra=abc",
	} {
		store, err := postgres.Open(t.Context(), url)
		if err == nil {
			t.Fatalf("%s: opened %v", url, store)
		}
		if strings.Contains(err.Error(), "Zebra") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestTurnThatManyWaitFor has more writers wait than there is room for in a turn:
// none of them waits for the turns of all others to fail.
func TestTurnThatManyWaitFor(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	name := schemaName()
	pool := newPool(t, server.ConnString())
	store := openOn(t, pool, postgres.WithSchema(name), postgres.WithTimeout(timeout))
	release := holdTurn(t, newPool(t, server.ConnString()), name)
	defer release()
	began := time.Now()
	var writers sync.WaitGroup
	for i := range 2000 {
		writers.Go(func() {
			if _, err := store.Create(t.Context(), record(numbered(i))); !errors.Is(err, relayer.ErrUnavailable) {
				t.Errorf("error %v, want ErrUnavailable", err)
			}
		})
	}
	writers.Wait()
	// Eight turns would fail one after the other within six timeouts.
	if took := time.Since(began); took > 4*timeout {
		t.Errorf("the last writer was answered after %v", took)
	}
}

// TestLargeChanges are more than are read at once.
func TestLargeChanges(t *testing.T) {
	t.Parallel()
	store := open(t, newSchema())
	changes := watch(t, store)
	for i := range 12 {
		rec := record(fmt.Sprint(i))
		rec.Private = bytes.Repeat([]byte{byte(i)}, 3<<20)
		changes.want(t, relayer.Created, create(t, store, rec))
	}
	late := store.Watch(t.Context())
	var all []relayer.Record
	for i := range 12 {
		all = append(all, update(t, store, get(t, store, fmt.Sprint(i))))
	}
	for change, err := range late {
		if err != nil || change.Kind != relayer.Updated || !same(change.Record, all[0]) {
			t.Fatalf("%s %q, error %v", change.Kind, change.Record.ID, err)
		}
		if all = all[1:]; len(all) == 0 {
			break
		}
	}
}
