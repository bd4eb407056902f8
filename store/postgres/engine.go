package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// errUnsupportedEngine is not [relayer.ErrUnavailable]: a retry cannot succeed.
var errUnsupportedEngine = errors.New("unsupported database engine")

// unsupportedEngines speak PostgreSQL's protocol and lack what the Store depends
// on. Each is recognized by a part of version().
var unsupportedEngines = []struct{ mark, reason string }{
	{"CockroachDB", "CockroachDB has no LOCK TABLE, which orders writes, and no LISTEN/NOTIFY"},
	{"-YB-", "YugabyteDB has no LOCK TABLE, which orders writes, and no LISTEN/NOTIFY, or not by default"},
}

// checkEngine returns an error if the server is not PostgreSQL but an engine that
// cannot order writes as PostgreSQL does.
func checkEngine(ctx context.Context, conn *pgxpool.Conn) error {
	var version string
	if err := conn.QueryRow(ctx, `SELECT version()`).Scan(&version); err != nil {
		return err
	}
	for _, engine := range unsupportedEngines {
		if strings.Contains(version, engine.mark) {
			return fmt.Errorf("%w: %s; use PostgreSQL", errUnsupportedEngine, engine.reason)
		}
	}
	return nil
}
