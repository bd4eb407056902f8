//go:build unix

package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/storetest"
)

// TestPgBouncer runs the suite through PgBouncer in each pool mode, with the query
// mode that the documentation names for it.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	for poolMode, queryMode := range map[string]string{
		"session":     "cache_statement",
		"transaction": "cache_describe",
	} {
		connString := parameter(t, pgserver.StartPgBouncer(t, server, poolMode, pgserver.ResetAlways), "default_query_exec_mode", queryMode)
		t.Run(poolMode, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) relayer.Store {
				schema := newSchema()
				return &alternating{stores: []*postgres.Store{openAt(t, connString, schema), openAt(t, connString, schema)}}
			})
		})
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
	other, err := pgx.Connect(t.Context(), parameter(t, through, "default_query_exec_mode", "simple_protocol"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	if _, err := other.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	_, err = store.Get(t.Context(), rec.ID)
	if !errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), "default_query_exec_mode=cache_describe") {
		t.Errorf("error %v, want ErrUnavailable and the setting to use", err)
	}
}
