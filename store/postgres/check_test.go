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
		"a relayer that is not counted": `INSERT INTO spoiled.relayers (sequence, id, revision, terms, text, note, document, private)
			VALUES (1000, 'uncounted', 1, '{}', '', '', '', '')`,
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
