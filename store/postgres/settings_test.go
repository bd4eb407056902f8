//go:build unix

package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestWritesAreSynced has the database itself note how it would commit.
func TestWritesAreSynced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, want string }{
		{"off", "on"},
		{"on", "on"},
		{"local", "local"},
		{"remote_apply", "remote_apply"},
	} {
		t.Run(c.set, func(t *testing.T) {
			schema := schemaName()
			admin := newPool(t, server.ConnString())
			store := openAt(t, asRole(t, map[string]string{"synchronous_commit": c.set}), postgres.WithSchema(schema))
			execute(t, admin,
				fmt.Sprintf(`CREATE TABLE %s.noted (setting text)`, schema),
				fmt.Sprintf(`CREATE FUNCTION %s.note() RETURNS trigger LANGUAGE plpgsql AS
					$$ BEGIN INSERT INTO %[1]s.noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`, schema),
				fmt.Sprintf(`CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON %s.relayers
					DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %[1]s.note()`, schema))
			rec := create(t, store, record("one"))
			remove(t, store, update(t, store, rec))
			imported := record("two")
			imported.Revision = 7
			if err := store.Import(t.Context(), []relayer.Record{imported}); err != nil {
				t.Fatal(err)
			}
			noted := queryOne[string](t, admin, fmt.Sprintf(`SELECT count(*) || ' ' || string_agg(DISTINCT setting, ' ') FROM %s.noted`, schema))
			if noted != "4 "+c.want {
				t.Errorf("commits noted: %q, want 4 %s", noted, c.want)
			}
		})
	}
}

// TestCommit_NoStatementTimeout: if the server ends the wait for a synchronous
// standby by its timeout, it reports success. Only the Store may give up.
func TestCommit_NoStatementTimeout(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	store := openOn(t, admin, postgres.WithSchema(schema))
	execute(t, admin,
		fmt.Sprintf(`CREATE TABLE %s.noted (setting text)`, schema),
		fmt.Sprintf(`CREATE FUNCTION %s.note() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN INSERT INTO %[1]s.noted VALUES (current_setting('statement_timeout')); RETURN NULL; END $$`, schema),
		fmt.Sprintf(`CREATE CONSTRAINT TRIGGER note AFTER INSERT ON %s.relayers
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %[1]s.note()`, schema))
	create(t, store, record("one"))
	if noted := queryOne[string](t, admin, fmt.Sprintf(`SELECT setting FROM %s.noted`, schema)); noted != "0" {
		t.Errorf("statement_timeout at the commit: %s, want 0", noted)
	}
}

// TestSettingsStayWithTheTransaction: a host's pool has its own settings back.
func TestSettingsStayWithTheTransaction(t *testing.T) {
	t.Parallel()
	pool := newPool(t, asRole(t, map[string]string{"synchronous_commit": "off", "lock_timeout": "12s", "statement_timeout": "13s"}))
	store := openOn(t, pool, newSchema())
	create(t, store, record("one"))
	_, _ = store.Create(t.Context(), record("one"))
	for _, conn := range pool.AcquireAllIdle(t.Context()) {
		var settings string
		err := conn.QueryRow(t.Context(), `SELECT string_agg(current_setting(name), ' ' ORDER BY name) FROM unnest($1::text[]) AS name`,
			[]string{"enable_seqscan", "jit", "lock_timeout", "statement_timeout", "synchronous_commit"}).Scan(&settings)
		conn.Release()
		if want := "on on 12s 13s off"; settings != want || err != nil {
			t.Errorf("settings %q, error %v, want %q", settings, err, want)
		}
	}
}

// TestOldChangesAreForgotten: also where sessions are read-only by default, and
// all of those that are old, in however many steps.
func TestOldChangesAreForgotten(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	store := openAt(t, asRole(t, map[string]string{"default_transaction_read_only": "on", "lock_timeout": "1ms"}),
		postgres.WithSchema(schema), postgres.WithChangeRetention(200*time.Millisecond))
	create(t, store, record("kept"))
	execute(t, admin, fmt.Sprintf(`WITH advanced AS (UPDATE %s.state SET last_revision = 2501)
		INSERT INTO %[1]s.changes (number, kind, id, revision, document, private)
		SELECT 1 + n, 'updated', 'kept', 1, '', '' FROM generate_series(1, 2500) AS n`, schema))
	eventually(t, "all changes are forgotten", func() bool {
		return queryOne[int](t, admin, fmt.Sprintf(`SELECT count(*) FROM %s.changes`, schema)) == 0
	})
	if forgotten := queryOne[int](t, admin, fmt.Sprintf(`SELECT pruned FROM %s.pruning`, schema)); forgotten != 2501 {
		t.Errorf("forgotten up to %d, want 2501", forgotten)
	}
	if rec := get(t, store, "kept"); rec.Revision != 1 {
		t.Errorf("the relayer stands at %d, want 1", rec.Revision)
	}
}

// TestTimeoutsOfTheRoleDoNotCutTurnsShort: how long a turn is waited for is
// WithTimeout's to say.
func TestTimeoutsOfTheRoleDoNotCutTurnsShort(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	store := openAt(t, asRole(t, map[string]string{"statement_timeout": "50ms", "lock_timeout": "50ms"}), postgres.WithSchema(schema))
	release := holdTurn(t, admin, schema)
	created := inBackground(func() error { _, err := store.Create(t.Context(), record("one")); return err })
	time.Sleep(300 * time.Millisecond)
	release()
	if err := <-created; err != nil {
		t.Error(err)
	}
}
