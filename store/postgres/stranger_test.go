//go:build unix

package postgres_test

import (
	"errors"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestStrangersCreateInBetween makes another record of the id before the create
// of an unknown outcome is made again.
func TestStrangersCreateInBetween(t *testing.T) {
	t.Parallel()
	p, store, witness := behindProxy(t)
	p.obeyTimes(swallow, "COMMIT", 1)
	if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Fatalf("error %v, want ErrOutcomeUnknown", err)
	}
	if _, err := store.Create(t.Context(), with(record("one"), "another", "")); !errors.Is(err, relayer.ErrExists) {
		t.Fatalf("a stranger's: error %v, want ErrExists", err)
	}
	if made := create(t, store, record("one")); !same(made, get(t, witness, "one")) {
		t.Errorf("made %+v", made)
	}
}

// TestCommitThatAPoolerLost has the commit answered as a pooler answers that has
// lost its own connection to the server: with an error like any other.
func TestCommitThatAPoolerLost(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"08P01", "08006", "40003"} {
		name := schemaName()
		pool := newPool(t, server.ConnString())
		store := openOn(t, pool, postgres.WithSchema(name))
		execute(t, pool,
			`CREATE FUNCTION `+name+`.lose() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN RAISE EXCEPTION 'server conn crashed?' USING ERRCODE = '`+code+`'; END $$`,
			`CREATE CONSTRAINT TRIGGER lost AFTER INSERT ON `+name+`.relayers
				DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION `+name+`.lose()`)
		if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Errorf("%s: error %v, want ErrOutcomeUnknown", code, err)
		}
	}
}

// TestSchemaThatIsRaised lets no older version of the package write to what a
// newer one has made of the schema.
func TestSchemaThatIsRaised(t *testing.T) {
	t.Parallel()
	name := schemaName()
	pool := newPool(t, server.ConnString())
	store := openOn(t, pool, postgres.WithSchema(name))
	made := create(t, store, record("one"))
	execute(t, pool, `UPDATE `+name+`.state SET version = version + 1, min_writer_version = version + 1`)
	_, err := store.Update(t.Context(), made)
	if !errors.Is(err, relayer.ErrNewerFormat) || !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("error %v, want relayer.ErrNewerFormat and ErrUnavailable", err)
	}
	if got := get(t, store, "one"); !same(got, made) {
		t.Errorf("there is %+v, want %+v", got, made)
	}
}

// TestCounters_SetBack sets the counters below what is stored, as a partial
// restore does. New records still come after all others.
func TestCounters_SetBack(t *testing.T) {
	t.Parallel()
	name := schemaName()
	pool := newPool(t, server.ConnString())
	store := openOn(t, pool, postgres.WithSchema(name))
	create(t, store, record("one"))
	last := create(t, store, record("two"))
	execute(t, pool, `UPDATE `+name+`.state SET last_position = 0, last_revision = 0`)
	if err := store.Check(t.Context()); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("Check: error %v, want ErrCorrupt", err)
	}
	if made := create(t, store, record("three")); made.Revision <= last.Revision {
		t.Errorf("revision %d after %d", made.Revision, last.Revision)
	}
	recs, _, err := store.List(t.Context(), 0, 3)
	if err != nil || len(recs) != 3 || recs[2].ID != "three" {
		t.Errorf("listed %v, error %v, want the new record last", recs, err)
	}
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSchemaWithoutItsFunctions is opened by nobody: nothing could be read.
func TestSchemaWithoutItsFunctions(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"relayer(text)", "page(bigint, bigint)", "last_change()", "changes_after(bigint, bigint)"} {
		name := schemaName()
		pool := newPool(t, server.ConnString())
		openOn(t, pool, postgres.WithSchema(name))
		execute(t, pool, "DROP FUNCTION "+name+"."+function)
		if _, err := postgres.New(t.Context(), pool, postgres.WithSchema(name)); !errors.Is(err, relayer.ErrUnknownFormat) {
			t.Errorf("without %s: error %v, want relayer.ErrUnknownFormat", function, err)
		}
	}
}
