//go:build unix

package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// TestPgBouncer_Watch follows the changes of two instances in transaction mode.
func TestPgBouncer_Watch(t *testing.T) {
	t.Parallel()
	connString := parameter(t, pgserver.StartPgBouncer(t, server, "transaction", pgserver.ResetAlways), "default_query_exec_mode", "cache_describe")
	schema := newSchema()
	watched, other := openAt(t, connString, schema), openAt(t, connString, schema)
	changes := watched.Watch(t.Context(), "")
	want := []string{create(t, other, record("one")).ID, create(t, watched, record("two")).ID}
	var got []string
	for change, err := range changes {
		must(t, err)
		if got = append(got, change.Record.ID); len(got) == len(want) {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("changes of %q, want %q", got, want)
	}
}

// TestPgBouncer_PreparedStatements reads in transaction mode with the driver's
// default query mode: its prepared statement is on another server connection.
func TestPgBouncer_PreparedStatements(t *testing.T) {
	t.Parallel()
	through := pgserver.StartPgBouncer(t, server, "transaction")
	store := openAt(t, through, newSchema())
	rec := create(t, store, record("one"))
	get(t, store, rec.ID)
	// A transaction of another client occupies the server connection.
	other := mustGet(pgx.Connect(t.Context(), parameter(t, through, "default_query_exec_mode", "simple_protocol")))(t)
	defer other.Close(t.Context())
	must(t, errorOf(other.Exec(t.Context(), "BEGIN")))
	_, err := store.Get(t.Context(), rec.ID)
	wantFault(t, "Get", err, "26000")
	if !strings.Contains(err.Error(), "default_query_exec_mode=cache_describe") {
		t.Errorf("error %v, want the setting to use", err)
	}
}
