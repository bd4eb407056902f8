package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// errUnsupported is not [relayer.ErrUnavailable]: a retry cannot succeed.
var errUnsupported = errors.New("unsupported database")

// unsupportedEngines speak PostgreSQL's protocol. Each is recognized by a part of version().
var unsupportedEngines = map[string]string{"CockroachDB": "CockroachDB", "-YB-": "YugabyteDB"}

// checkEngine returns an error if the server is not PostgreSQL but an engine that
// cannot order writes as PostgreSQL does, or if the database lacks characters.
func checkEngine(ctx context.Context, conn *conn) error {
	var version, encoding string
	if err := conn.QueryRow(ctx, `SELECT version(), current_setting('server_encoding')`).Scan(&version, &encoding); err != nil {
		return err
	}
	for mark, engine := range unsupportedEngines {
		if strings.Contains(version, mark) {
			return fmt.Errorf("%w: %s has no advisory locks, which order writes, and no LISTEN/NOTIFY, or not by default; use PostgreSQL", errUnsupported, engine)
		}
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w: its encoding is %s and must be UTF8: create another with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0", errUnsupported, encoding)
	}
	return nil
}
