//go:build unix

package postgres_test

import (
	"errors"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

func TestCheckFindsContradictions(t *testing.T) {
	for what, spoil := range map[string]string{
		"a count too high":     `UPDATE spoiled.counts SET live = live + 1 WHERE level = 2`,
		"a count that is gone": `DELETE FROM spoiled.counts WHERE level = 1`,
		"a relayer that is not counted": `INSERT INTO spoiled.relayers (place, id, revision, document, private)
			VALUES (1000, 'stranger', 1, '', '')`,
		"places counted from the start again":    `ALTER SEQUENCE spoiled.places RESTART`,
		"revisions counted from the start again": `ALTER SEQUENCE spoiled.writes RESTART`,
	} {
		t.Run(what, func(t *testing.T) {
			pool := newPool(t, server.ConnString())
			store, err := postgres.New(t.Context(), pool, postgres.WithSchema("spoiled"))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			defer func() {
				if _, err := pool.Exec(t.Context(), `DROP SCHEMA spoiled CASCADE`); err != nil {
					t.Error(err)
				}
			}()
			for _, id := range []string{"a", "b", "c"} {
				if _, err := store.Create(t.Context(), relayer.Record{ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), spoil); err != nil {
				t.Fatal(err)
			}
			if err := store.Check(t.Context()); !errors.Is(err, relayer.ErrCorrupt) {
				t.Errorf("Check: %v, want relayer.ErrCorrupt", err)
			}
		})
	}
}
