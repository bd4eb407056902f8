//go:build unix

package failover

import (
	"net/url"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// TestFailover_PgBouncer has a PgBouncer for each server. The connection string
// names both.
func TestFailover_PgBouncer(t *testing.T) {
	t.Parallel()
	for poolMode, settings := range map[string]string{"session": "", "transaction": "&default_query_exec_mode=cache_describe"} {
		t.Run(poolMode, func(t *testing.T) {
			if poolMode == "session" {
				requireLong(t)
			}
			t.Parallel()
			primary, standby := pgserver.StartPair(t)
			first, err := url.Parse(pgserver.StartPgBouncer(t, primary, poolMode, pgserver.ResetAlways))
			must(t, err)
			second, err := url.Parse(pgserver.StartPgBouncer(t, standby, poolMode, pgserver.ResetAlways))
			must(t, err)
			query := first.Query()
			query.Set("host", query.Get("host")+","+second.Query().Get("host"))
			first.RawQuery = query.Encode()
			store := pgtest.Open(t, first.String()+"&target_session_attrs=primary"+settings, postgres.WithTimeout(time.Second))
			createSettled(t, store, "before")
			must(t, primary.Kill())
			must(t, standby.Promote())
			wantRecovered(t, store)
		})
	}
}
