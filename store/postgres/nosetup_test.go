//go:build unix

package postgres_test

import (
	"errors"
	"testing"

	"github.com/go-relayer/relayer/store/postgres"
)

func TestWithoutSetupMakesNothing(t *testing.T) {
	name := schemaName()
	schema := postgres.WithSchema(name)
	pool := newPool(t, server.ConnString())
	store, err := postgres.New(t.Context(), pool, schema, postgres.WithoutSetup())
	if !errors.Is(err, postgres.ErrNoSchema) {
		t.Fatalf("error is %v, store is %v, want ErrNoSchema", err, store)
	}
	if queryOne[bool](t, pool, `SELECT to_regnamespace($1) IS NOT NULL`, name) {
		t.Error("the schema was made")
	}
	create(t, openOn(t, pool, schema), record("one"))
	get(t, openOn(t, pool, schema, postgres.WithoutSetup()), "one")
}
