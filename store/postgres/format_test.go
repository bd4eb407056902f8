//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// The steps of a newer version of the package to the next version of the schema. Both take long
// enough for writers to wait for the write lock.
const (
	compatible = `
		ALTER TABLE $schema.relayers ADD COLUMN remark text;
		UPDATE $schema.state SET version = 2;
		SELECT pg_sleep(0.3)`
	incompatible = `
		ALTER TABLE $schema.relayers ADD COLUMN remark text NOT NULL DEFAULT '';
		UPDATE $schema.state SET version = 2, minimum_writer = 2;
		SELECT pg_sleep(0.3)`
)

// upgradeSchema runs the step of a newer version as that version would, in one
// transaction under the write lock.
func upgradeSchema(t *testing.T, admin *pgxpool.Pool, schema, step string) {
	t.Helper()
	execute(t, admin, strings.ReplaceAll(`BEGIN; SELECT pg_advisory_xact_lock('$schema.state'::regclass::oid::bigint); LOCK TABLE $schema.pruning IN EXCLUSIVE MODE;`+step+`; COMMIT`, "$schema", schema))
}

// writeUntil creates relayers, one after the other, until a write fails or the
// channel is closed. It returns what was acknowledged, and the error.
func writeUntil(stop <-chan struct{}, store *postgres.Store, prefix string) (acknowledged []relayer.Record, err error) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return acknowledged, nil
		default:
		}
		rec, err := store.Create(context.Background(), record(fmt.Sprintf("%s-%d", prefix, i)))
		if err != nil {
			return acknowledged, err
		}
		acknowledged = append(acknowledged, rec)
	}
}

// upgradeUnderWriters upgrades the schema while four writers create relayers through two
// Stores. It returns the errors that ended the writers and fails the test if an
// acknowledged create is missing.
func upgradeUnderWriters(t *testing.T, stores [2]*postgres.Store, upgrade func()) []error {
	t.Helper()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var acknowledged [4][]relayer.Record
	errs := make([]error, 4)
	for i := range acknowledged {
		first := create(t, stores[i%2], record(fmt.Sprint("first of writer", i)))
		writing.Go(func() {
			acknowledged[i], errs[i] = writeUntil(stop, stores[i%2], fmt.Sprint("writer", i))
			acknowledged[i] = append(acknowledged[i], first)
		})
	}
	upgrade()
	close(stop)
	writing.Wait()
	for i := range acknowledged {
		for _, rec := range acknowledged[i] {
			wantStored(t, stores[0], rec)
		}
	}
	return errs
}

func TestNewerSchema_Compatible(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	stores := [2]*postgres.Store{store, openPruner(t, schema)}
	for _, err := range upgradeUnderWriters(t, stores, func() { upgradeSchema(t, admin, schema, compatible) }) {
		if err != nil {
			t.Errorf("a writer: %v", err)
		}
	}
	insertOldChanges(t, admin, schema, 10)
	eventually(t, "the Store prunes", func() bool { return changesIn(t, admin, schema) == 0 })
	if err := stores[1].Close(); err != nil { // or it could prune the change that is watched
		t.Error(err)
	}
	execute(t, admin, `UPDATE `+schema+`.pruning SET feed_age = 600000000`)
	reopened := open(t, postgres.WithSchema(schema))
	changes := watch(t, reopened)
	changes.want(t, relayer.ChangeCreated, create(t, reopened, record("after")))
	wantConsistent(t, reopened)
}

func TestNewerSchema_Incompatible(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	stores := [2]*postgres.Store{store, openPruner(t, schema)}
	upgradeUnderWriters(t, stores, func() { upgradeSchema(t, admin, schema, incompatible) })
	for name, write := range map[string]func() error{
		"Create": func() error { return errorOf(stores[0].Create(t.Context(), record("late"))) },
		"Check":  func() error { return stores[0].Check(t.Context()) },
	} {
		if err := write(); !errors.Is(err, relayer.ErrNewerFormat) {
			t.Errorf("%s: error %v, want ErrNewerFormat", name, err)
		}
	}
	wantError(t, errorOf(stores[0].Create(t.Context(), record("late"))), relayer.ErrUnavailable)
	get(t, stores[0], "first of writer0")
	t.Run("Pruning", func(t *testing.T) {
		insertOldChanges(t, admin, schema, 10)
		time.Sleep(time.Second)
		if count := queryOne[int](t, admin, fmt.Sprintf("SELECT count(*) FROM %s.changes WHERE changed_at = 0", schema)); count != 10 {
			t.Errorf("the Store has left %d of 10 old changes", count)
		}
	})
	t.Run("Open", func(t *testing.T) {
		before := contents(t, admin, schema)
		_, err := postgres.New(t.Context(), admin, longTimeouts, postgres.WithSchema(schema))
		if !errors.Is(err, relayer.ErrNewerFormat) || !strings.Contains(err.Error(), "of version 2") {
			t.Errorf("New: error %v, want ErrNewerFormat and the version", err)
		}
		if after := contents(t, admin, schema); after != before {
			t.Errorf("the schema holds\n%s\nand held\n%s", after, before)
		}
	})
}
