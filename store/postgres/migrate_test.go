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

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// Version 2 exists in these tests only. A compatible one lets writers of version 1
// go on. Both take long enough for writers to wait for the write lock.
var (
	compatible = postgres.WithMigrations(postgres.NewMigration(1, `
		ALTER TABLE $schema.relayers ADD COLUMN note text;
		SELECT pg_sleep(0.3)`))
	incompatible = postgres.WithMigrations(postgres.NewMigration(2, `
		ALTER TABLE $schema.relayers ADD COLUMN note text NOT NULL DEFAULT '';
		SELECT pg_sleep(0.3)`))
	removing = postgres.WithMigrations(postgres.NewMigration(2, `
		DROP FUNCTION $schema.page(bigint, bigint);
		DROP FUNCTION $schema.changes_after(bigint, bigint);
		CREATE FUNCTION $schema.page(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $1'`))
)

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

// upgradeUnderWriters opens a Store of version 2 while four writers create relayers
// through two Stores of version 1. It returns the errors that ended the writers and
// fails the test if an acknowledged create is missing.
func upgradeUnderWriters(t *testing.T, old [2]*postgres.Store, upgrade func() *postgres.Store) []error {
	t.Helper()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var acknowledged [4][]relayer.Record
	errs := make([]error, 4)
	for i := range acknowledged {
		writing.Go(func() { acknowledged[i], errs[i] = writeUntil(stop, old[i%2], fmt.Sprint("writer", i)) })
	}
	time.Sleep(100 * time.Millisecond)
	upgraded := upgrade()
	time.Sleep(100 * time.Millisecond)
	close(stop)
	writing.Wait()
	for i := range acknowledged {
		if len(acknowledged[i]) == 0 {
			t.Errorf("writer %d: nothing was acknowledged, error %v", i, errs[i])
		}
		for _, rec := range acknowledged[i] {
			if got := get(t, upgraded, rec.ID); !same(got, rec) {
				t.Errorf("writer %d: stored %v, acknowledged %v", i, got, rec)
			}
		}
	}
	create(t, upgraded, record("of version 2"))
	wantConsistent(t, upgraded)
	return errs
}

func TestMigration_Compatible(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	old := [2]*postgres.Store{
		open(t, postgres.WithSchema(schema)),
		open(t, postgres.WithSchema(schema), postgres.WithChangeRetention(100*time.Millisecond)),
	}
	for _, err := range upgradeUnderWriters(t, old, func() *postgres.Store { return open(t, postgres.WithSchema(schema), compatible) }) {
		if err != nil {
			t.Errorf("a writer of version 1: %v", err)
		}
	}
	insertOldChanges(t, admin, schema, 10)
	eventually(t, "the Store of version 1 prunes", func() bool { return changesIn(t, admin, schema) == 0 })
	reopened := open(t, postgres.WithSchema(schema))
	changes := watch(t, reopened)
	changes.want(t, relayer.Created, create(t, reopened, record("after")))
	wantConsistent(t, reopened)
}

func TestMigration_Incompatible(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	old := [2]*postgres.Store{
		open(t, postgres.WithSchema(schema)),
		open(t, postgres.WithSchema(schema), postgres.WithChangeRetention(100*time.Millisecond)),
	}
	changes := watch(t, old[0])
	var upgraded *postgres.Store
	errs := upgradeUnderWriters(t, old, func() *postgres.Store {
		upgraded = open(t, postgres.WithSchema(schema), incompatible)
		return upgraded
	})
	for i, err := range errs {
		if !errors.Is(err, relayer.ErrNewerFormat) || !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("writer %d: error %v, want ErrNewerFormat and ErrUnavailable", i, err)
		}
	}
	t.Run("Reads", func(t *testing.T) {
		last := get(t, old[0], "of version 2")
		for changes.next(t).Record.ID != last.ID {
		}
	})
	t.Run("Pruning", func(t *testing.T) {
		insertOldChanges(t, admin, schema, 10)
		time.Sleep(time.Second)
		if count := queryOne[int](t, admin, fmt.Sprintf("SELECT count(*) FROM %s.changes WHERE changed_at = 0", schema)); count != 10 {
			t.Errorf("the Store of version 1 has left %d of 10 old changes", count)
		}
	})
	t.Run("Downgrade", func(t *testing.T) {
		before := contents(t, admin, schema)
		_, err := postgres.New(t.Context(), admin, postgres.WithSchema(schema))
		if !errors.Is(err, relayer.ErrNewerFormat) || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("New: error %v, want ErrNewerFormat and the version", err)
		}
		if err := old[0].Check(t.Context()); !errors.Is(err, relayer.ErrNewerFormat) {
			t.Errorf("Check: error %v, want ErrNewerFormat", err)
		}
		if after := contents(t, admin, schema); after != before {
			t.Errorf("the schema holds\n%s\nand held\n%s", after, before)
		}
	})
}

// TestMigration_RemovedFunctions removes functions that version 1 reads through.
func TestMigration_RemovedFunctions(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	old := openOn(t, admin, postgres.WithSchema(schema))
	one := create(t, old, record("one"))
	changes := watch(t, old)
	if _, err := postgres.New(t.Context(), admin, postgres.WithSchema(schema), removing); !errors.Is(err, relayer.ErrUnknownFormat) {
		t.Fatalf("error %v: the tests have no reads for the new functions", err)
	}
	for name, read := range map[string]func(context.Context) error{
		"List": operations(old)["List"], "AppendDocuments": operations(old)["AppendDocuments"],
		"Watch": func(context.Context) error { return changes.next(t).err },
	} {
		if err := read(t.Context()); !errors.Is(err, relayer.ErrNewerFormat) || !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("%s: error %v, want ErrNewerFormat and ErrUnavailable", name, err)
		}
	}
	changes.wantEnd(t)
	if got := get(t, old, "one"); !same(got, one) {
		t.Errorf("got %v, want %v", got, one)
	}
}

// TestMigration_ManyInstances: a step that is made twice would fail.
func TestMigration_ManyInstances(t *testing.T) {
	t.Parallel()
	for name, exists := range map[string]bool{"of version 1": true, "that is missing": false} {
		t.Run("schema "+name, func(t *testing.T) {
			t.Parallel()
			schema := schemaName()
			if exists {
				create(t, open(t, postgres.WithSchema(schema)), record("one"))
			}
			var opening sync.WaitGroup
			for range 8 {
				opening.Go(func() {
					pool := parameter(t, server.ConnString(), "pool_max_conns", "2")
					store, err := postgres.Open(t.Context(), pool, patient, postgres.WithSchema(schema), incompatible)
					if err != nil {
						t.Error(err)
						return
					}
					if err := errors.Join(store.Check(t.Context()), store.Close()); err != nil {
						t.Error(err)
					}
				})
			}
			opening.Wait()
			admin := newPool(t, server.ConnString())
			if got := queryOne[string](t, admin, "SELECT version || ' ' || min_writer_version FROM "+schema+".state"); got != "2 2" {
				t.Errorf("version and minimum writer version: %s, want 2 2", got)
			}
		})
	}
}

// TestMigration_Failure has the second of two steps fail: the first stays, and the
// next attempt goes on from it.
func TestMigration_Failure(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	old := open(t, postgres.WithSchema(schema))
	first := postgres.NewMigration(1, `ALTER TABLE $schema.relayers ADD COLUMN note text`)
	failing := postgres.NewMigration(3, `ALTER TABLE $schema.relayers DROP COLUMN note; SELECT 1/0`)
	_, err := postgres.New(t.Context(), admin, postgres.WithSchema(schema), postgres.WithMigrations(first, failing))
	if err == nil || !strings.Contains(err.Error(), "upgrade from version 2") || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("error %v, want the version and the cause", err)
	}
	wantNoDriver(t, "New", err)
	if version := queryOne[int](t, admin, "SELECT version FROM "+schema+".state"); version != 2 {
		t.Errorf("version %d, want 2", version)
	}
	create(t, old, record("one"))
	mended := postgres.NewMigration(3, `ALTER TABLE $schema.relayers DROP COLUMN note`)
	get(t, open(t, postgres.WithSchema(schema), postgres.WithMigrations(first, mended)), "one")
}

func TestMigration_WithoutSetup(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	pool := newPool(t, server.ConnString())
	old := openOn(t, pool, postgres.WithSchema(schema))
	_, err := postgres.New(t.Context(), pool, postgres.WithSchema(schema), incompatible, postgres.WithoutSetup())
	if !errors.Is(err, postgres.ErrNoSchema) || !strings.Contains(err.Error(), "of version 2: it is of version 1") {
		t.Errorf("error %v, want ErrNoSchema and both versions", err)
	}
	create(t, old, record("one"))
}

// TestMigration_WithoutPrivilege: a role that may use the schema but not change it.
func TestMigration_WithoutPrivilege(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	openOn(t, admin, postgres.WithSchema(schema))
	execute(t, admin,
		"CREATE ROLE "+schema+" LOGIN",
		"GRANT USAGE ON SCHEMA "+schema+" TO "+schema,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+schema+" TO "+schema)
	_, err := postgres.Open(t.Context(), parameter(t, server.ConnString(), "user", schema), postgres.WithSchema(schema), incompatible)
	if err == nil || errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), "upgrade from version 1: ERROR: must be owner") {
		t.Errorf("error %v, want the refusal of the server", err)
	}
}
