//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-relayer/relayer/store/postgres"
)

// TestVacuum_DoesNotBlockWrites vacuums the table of the write lock while its last pages
// are empty and a reader uses it. A vacuum that truncates would hold its lock until the
// reader ends.
func TestVacuum_DoesNotBlockWrites(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	store := openOn(t, admin, postgres.WithSchema(schema))
	execute(t, admin,
		fmt.Sprintf(`INSERT INTO %s.state SELECT 1, 1, 0, -n, 0 FROM generate_series(1, 20000) AS n`, schema),
		fmt.Sprintf(`DELETE FROM %s.state WHERE last_revision < 0`, schema))
	reader, err := admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(context.Background()) }()
	if _, err := reader.Exec(t.Context(), fmt.Sprintf(`LOCK TABLE %s.state IN ACCESS SHARE MODE`, schema)); err != nil {
		t.Fatal(err)
	}
	vacuumed := inBackground(func() error {
		_, err := admin.Exec(context.Background(), fmt.Sprintf(`VACUUM %s.state`, schema))
		return err
	})
	isDone := false
	eventually(t, "the vacuum ends or waits to truncate", func() bool {
		select {
		case err := <-vacuumed:
			isDone = true
			if err != nil {
				t.Error(err)
			}
			return true
		default:
			return queryOne[int](t, admin, `SELECT count(*) FROM pg_stat_progress_vacuum
				WHERE relid = ($1 || '.state')::regclass AND phase = 'truncating heap'`, schema) > 0
		}
	})
	create(t, store, record("one"))
	if !isDone {
		t.Error("the vacuum truncates the table of the write lock")
		if err := <-vacuumed; err != nil {
			t.Error(err)
		}
	}
}
