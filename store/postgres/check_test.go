//go:build unix

package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/transfer"
)

// TestCheck_Contradictions spoils the tables, and restores them from copies.
func TestCheck_Contradictions(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	for _, id := range []string{"a", "b", "c"} {
		create(t, store, relayer.Record{ID: id, Terms: []string{"common"}})
	}
	tables := []string{"state", "pruning", "relayers", "postings", "changes"}
	execute(t, admin, "CREATE SCHEMA copy_of_"+schema)
	for _, table := range tables {
		execute(t, admin, fmt.Sprintf("CREATE TABLE copy_of_%[1]s.%[2]s AS TABLE %[1]s.%[2]s", schema, table))
	}
	for what, spoil := range map[string]string{
		"a total too high":            `UPDATE spoiled.state SET total = total + 1`,
		"a relayer without a posting": `DELETE FROM spoiled.postings WHERE term = ''`,
		"a relayer that is not counted": `INSERT INTO spoiled.relayers (sequence, id, nth, revision, terms, text, note, document, private)
			VALUES (1000, 'uncounted', 1, 1, '{}', '', '', '', '')`,
		"a term without a posting":     `UPDATE spoiled.relayers SET terms = terms || '{z}'::text[] WHERE id = 'a'`,
		"a posting without a term":     `UPDATE spoiled.relayers SET terms = '{}' WHERE id = 'a'`,
		"a posting without bits":       `INSERT INTO spoiled.postings VALUES ('z', 0, 0::bit(512))`,
		"a position above the counter": `UPDATE spoiled.state SET last_sequence = 2`,
		"a revision above the counter": `DELETE FROM spoiled.changes; UPDATE spoiled.state SET last_revision = 2`,
		"a change above the counter":   `UPDATE spoiled.relayers SET revision = 1; UPDATE spoiled.state SET last_revision = 2`,
		"no row of pruning":            `DELETE FROM spoiled.pruning`,
		"a change that was pruned":     `UPDATE spoiled.pruning SET pruned = 1, history_pruned = 1`,
		"a history without its feed":   `DELETE FROM spoiled.changes WHERE number = 1; UPDATE spoiled.pruning SET history_pruned = 1`,
		"a position of another change": `UPDATE spoiled.state SET last_changed_at = 1`,
		"another text":                 `UPDATE spoiled.relayers SET text = 'other' WHERE id = 'a'`,
		"another document":             `UPDATE spoiled.relayers SET document = 'other' WHERE id = 'a'`,
		"a prune above the counter":    `DELETE FROM spoiled.changes; UPDATE spoiled.pruning SET pruned = 4`,
		"a hole in the changes":        `DELETE FROM spoiled.changes WHERE number = 2`,
		"no first change":              `DELETE FROM spoiled.changes WHERE number = 1`,
		"no last change":               `DELETE FROM spoiled.changes WHERE number = 3`,
		"a count of other changes":     `UPDATE spoiled.relayers SET nth = 2 WHERE id = 'a'`,
		"no changes":                   `DELETE FROM spoiled.changes`,
		"a revision of 0":              `UPDATE spoiled.relayers SET revision = 0 WHERE id = 'a'`,
		"a negative revision":          `UPDATE spoiled.relayers SET revision = -1 WHERE id = 'a'`,
		"an empty ID":                  `UPDATE spoiled.relayers SET id = '' WHERE id = 'a'`,
		"a long ID":                    `UPDATE spoiled.relayers SET id = repeat('a', 65) WHERE id = 'a'`,
		"an empty claim":               `UPDATE spoiled.relayers SET claim = '' WHERE id = 'a'`,
		"a long claim":                 `UPDATE spoiled.relayers SET claim = decode(repeat('ab', 129), 'hex') WHERE id = 'a'`,
		"a negative prune":             `UPDATE spoiled.pruning SET pruned = -1`,
		"no row of counters":           `DELETE FROM spoiled.state`,
		"no version":                   `UPDATE spoiled.state SET version = 0`,
		"a second row of counters":     `INSERT INTO spoiled.state SELECT version, version, 0, 0, 0, 0 FROM spoiled.state`,
	} {
		wantConsistent(t, store)
		execute(t, admin, strings.Split(strings.ReplaceAll(spoil, "spoiled", schema), "; ")...)
		if err := store.Check(t.Context()); !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("%s: error %v, want ErrCorrupt", what, err)
		}
		for _, table := range tables {
			execute(t, admin, fmt.Sprintf("TRUNCATE %s.%s", schema, table), fmt.Sprintf("INSERT INTO %[1]s.%[2]s SELECT * FROM copy_of_%[1]s.%[2]s", schema, table))
		}
	}
}

// TestCounters_SetBack sets the counters below what is stored, as a partial restore
// does. Nothing stored is overwritten, and Check reports it.
func TestCounters_SetBack(t *testing.T) {
	t.Parallel()
	name := schemaName()
	pool := newPool(t, server.ConnString())
	store := openOn(t, pool, postgres.WithSchema(name))
	create(t, store, record("one"))
	create(t, store, record("two"))
	execute(t, pool, `UPDATE `+name+`.state SET last_sequence = 0, last_revision = 0`)
	wantError(t, store.Check(t.Context()), relayer.ErrCorrupt)
	_, err := store.Create(t.Context(), record("three"))
	wantFault(t, "Create", err, "23505")
	if _, total, err := list(t.Context(), store, relayer.StoreQuery{Limit: 3}); total != 2 || err != nil {
		t.Errorf("listed %d, error %v, want 2", total, err)
	}
}

// An imported relayer may have any revision of an earlier relayer of its ID, which was deleted.
func TestCheck_ImportAfterDelete(t *testing.T) {
	t.Parallel()
	for revision := range uint64(4) {
		store := open(t, newSchema())
		one := create(t, store, record("one"))
		one.Text = "updated"
		remove(t, store, update(t, store, one))
		rec := record("one")
		rec.Revision, rec.Document = revision+1, []byte("imported")
		must(t, store.Import(t.Context(), []relayer.Record{rec}))
		wantConsistent(t, store)
		// The copy has the changes with the sequence numbers of the first store.
		copied := open(t, newSchema())
		must(t, transfer.Copy(t.Context(), copied, store))
		wantConsistent(t, copied)
	}
}

// A change of the feed does not have the private part of an imported relayer with its revision.
func TestWatch_ImportedRevision(t *testing.T) {
	t.Parallel()
	for revision := range uint64(2) {
		schema := newSchema()
		store := open(t, schema)
		before := mustGet(store.List(t.Context(), relayer.StoreQuery{}))(t)
		remove(t, store, create(t, store, relayer.Record{ID: "one", Private: []byte("first")}))
		must(t, store.Import(t.Context(), []relayer.Record{{ID: "one", Revision: revision + 1, Private: []byte("second")}}))
		var kinds []relayer.ChangeKind
		for change, err := range open(t, schema).Watch(t.Context(), before.Position) {
			if err != nil {
				wantError(t, err, relayer.ErrGap)
				break
			}
			if kinds = append(kinds, change.Kind); len(change.Record.Private) > 0 {
				t.Errorf("change %s has the private part %q", change.Kind, change.Record.Private)
			}
		}
		if !slices.Equal(kinds, []relayer.ChangeKind{relayer.ChangeCreated, relayer.ChangeDeleted}) {
			t.Errorf("changes %v", kinds)
		}
	}
}

// The changes of a relayer are counted on after those that are imported for its ID.
func TestCheck_ImportedHistory(t *testing.T) {
	t.Parallel()
	for _, exists := range []bool{false, true} {
		store := open(t, newSchema())
		one := record("one")
		if exists {
			one = create(t, store, one)
		}
		past := make([]relayer.RecordChange, 3)
		for i := range past {
			past[i] = relayer.RecordChange{Kind: relayer.ChangeUpdated, Record: record("one")}
			past[i].Record.Revision, past[i].Record.Sequence = uint64(10+i), 1
		}
		must(t, store.ImportHistory(t.Context(), past))
		wantConsistent(t, store)
		if !exists {
			one.Revision = 5
			must(t, store.Import(t.Context(), []relayer.Record{one}))
			wantConsistent(t, store)
		}
		one.Text = "updated"
		remove(t, store, update(t, store, one))
		wantConsistent(t, store)
		create(t, store, record("one"))
		wantConsistent(t, store)
	}
}

// TestCheck_StatementTimeout checks with sessions whose timeout ends every statement of
// some duration.
func TestCheck_StatementTimeout(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	create(t, openOn(t, admin, postgres.WithSchema(schema)), record("one"))
	execute(t, admin,
		fmt.Sprintf(`ALTER TABLE %s.postings RENAME TO stored`, schema),
		fmt.Sprintf(`CREATE VIEW %s.postings AS SELECT stored.* FROM %[1]s.stored, (SELECT pg_sleep(3)) AS pause`, schema))
	limited := openAt(t, asRole(t, map[string]string{"statement_timeout": "2s"}), postgres.WithSchema(schema))
	wantConsistent(t, limited)
}

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
			if table == "state" { // a write that cannot raise the counters is not acknowledged
				wantDropped(t, "Create", errorOf(store.Create(t.Context(), record("two"))))
				owner := openOn(t, admin, postgres.WithSchema(schema))
				wantConsistent(t, owner)
				create(t, owner, record("two"))
			}
			if table == "relayers" {
				_, err := store.Update(t.Context(), one)
				wantDropped(t, "Update", err)
				wantDropped(t, "Delete", store.Delete(t.Context(), one.ID, one.Revision, nil))
			}
		})
	}
}

func TestReady_MissingPrivileges(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	openOn(t, admin, postgres.WithSchema(schema))
	store := openAt(t, limitedTo(t, schema, "GRANT ALL ON ALL TABLES"), postgres.WithSchema(schema))
	must(t, store.Ready(t.Context()))
	for _, missing := range []string{"UPDATE on state", "UPDATE on pruning", "DELETE on changes", "SELECT on relayers", "SELECT on changes", "SELECT on postings"} {
		privilege, table, _ := strings.Cut(missing, " on ")
		execute(t, admin, fmt.Sprintf("REVOKE %s ON %s.%s FROM %[2]s", privilege, schema, table))
		if err := store.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: error %v", missing, err)
		}
	}
}
