//go:build unix

package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// wantDropped fails the test unless an error is the fault of a write that the server has dropped.
func wantDropped(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), "postgres: PostgreSQL did not store the row: ") || errors.Is(err, relayer.ErrUnavailable) ||
		errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Errorf("%s: error %v, want that PostgreSQL did not store the row", what, err)
	}
}

// TestWrite_DroppedByTrigger: a trigger that drops rows fails the writes, which change nothing. The
// other writes of a batch succeed.
func TestWrite_DroppedByTrigger(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"relayers", "changes"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			store, admin, schema := openWithAdmin(t)
			one, other := create(t, store, record("one")), create(t, store, record("other"))
			execute(t, admin,
				fmt.Sprintf(`CREATE FUNCTION %s.drop_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					RETURN CASE WHEN coalesce(NEW.id, OLD.id) IN ('other', 'kept', '') THEN coalesce(NEW, OLD) END; END $$`, schema),
				fmt.Sprintf(`CREATE TRIGGER drop_row BEFORE INSERT OR UPDATE OR DELETE ON %s.%s FOR EACH ROW EXECUTE FUNCTION %[1]s.drop_row()`, schema, table))
			release := holdWriteLock(t, admin, schema)
			first := inBackground(func() error { return errorOf(store.Update(t.Context(), other)) })
			awaitWaiting(t, admin, schema, 1)
			dropped := inBackground(func() error { return errorOf(store.Create(t.Context(), record("two"))) })
			kept := inBackground(func() error { return errorOf(store.Create(t.Context(), record("kept"))) })
			release()
			must(t, errors.Join(<-first, <-kept))
			wantDropped(t, "Create", <-dropped)
			_, err := store.Update(t.Context(), one)
			wantDropped(t, "Update", err)
			wantDropped(t, "Delete", store.Delete(t.Context(), one.ID, one.Revision, nil))
			imported := record("imported")
			imported.Revision = 100
			if table == "relayers" {
				wantDropped(t, "Import", store.Import(t.Context(), []relayer.Record{imported}))
			} else {
				wantDropped(t, "ImportHistory", store.ImportHistory(t.Context(), []relayer.RecordChange{{Kind: relayer.ChangeCreated, Record: imported}}))
			}
			claiming := record("two")
			claiming.Claim = one.Claim
			wantError(t, errorOf(store.Create(t.Context(), claiming)), relayer.ErrClaimed)
			wantStored(t, store, one)
			wantConsistent(t, store)
		})
	}
}

// TestReady_RowLevelSecurity: a role to which row-level security applies is not ready, and the
// writes that it drops are faults.
func TestReady_RowLevelSecurity(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"relayers", "changes", "postings", "state", "pruning"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			admin, schema := newAdmin(t)
			one := create(t, openOn(t, admin, postgres.WithSchema(schema)), record("one"))
			store := openAt(t, limitedTo(t, schema, "GRANT ALL ON ALL TABLES"), postgres.WithSchema(schema))
			must(t, store.Ready(t.Context()))
			execute(t, admin,
				fmt.Sprintf("ALTER TABLE %s.%s ENABLE ROW LEVEL SECURITY", schema, table),
				fmt.Sprintf("CREATE POLICY reading ON %s.%s FOR SELECT USING (true)", schema, table))
			if err := store.Ready(t.Context()); err == nil || errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), "row-level security on "+table) {
				t.Errorf("Ready: error %v, want one that names the table", err)
			}
			if table == "relayers" {
				_, err := store.Update(t.Context(), one)
				wantDropped(t, "Update", err)
				wantDropped(t, "Delete", store.Delete(t.Context(), one.ID, one.Revision, nil))
			}
		})
	}
}
