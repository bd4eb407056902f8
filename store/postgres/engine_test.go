//go:build unix

package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestOpen_UnsupportedEngine opens sessions whose version() is another engine's.
func TestOpen_UnsupportedEngine(t *testing.T) {
	t.Parallel()
	for version, name := range map[string]string{
		"CockroachDB CCL v24.3.0 (x86_64-pc-linux-gnu, built 2024/11/18 15:00:00, go1.22.8)":      "CockroachDB",
		"PostgreSQL 11.2-YB-2.20.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang 16.0.6":         "YugabyteDB",
		"PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang 17.0.6":      "YugabyteDB",
		"PostgreSQL 15.4 on aarch64-unknown-linux-gnu, compiled by gcc (GCC) 9.5.0, 64-bit":       "", // Aurora
		"PostgreSQL 15.5 on x86_64-pc-linux-gnu, compiled by Debian clang version 12.0.1, 64-bit": "", // AlloyDB
	} {
		t.Run(version, func(t *testing.T) {
			admin := newPool(t, server.ConnString())
			engine := schemaName()
			execute(t, admin,
				`CREATE SCHEMA `+engine,
				`CREATE FUNCTION `+engine+`.version() RETURNS text LANGUAGE sql AS $$ SELECT `+literal(version)+` $$`)
			connString := parameter(t, server.ConnString(), "search_path", engine+",pg_catalog")
			schema := schemaName()
			store, err := postgres.Open(t.Context(), connString, longTimeouts, postgres.WithSchema(schema))
			if store != nil {
				closeAtEnd(t, store)
			}
			if name == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "unsupported database: "+name+" has no advisory locks") {
				t.Errorf("error %v, want that %s is not supported and why", err, name)
			}
			if errors.Is(err, relayer.ErrUnavailable) {
				t.Errorf("error %v invites a retry", err)
			}
			if queryOne[bool](t, admin, `SELECT to_regnamespace($1) IS NOT NULL`, schema) {
				t.Error("the schema was created")
			}
		})
	}
}

// TestOpen_DatabaseEncoding: a database that lacks characters is refused, and nothing is created.
func TestOpen_DatabaseEncoding(t *testing.T) {
	t.Parallel()
	admin := newPool(t, server.ConnString())
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		name := schemaName()
		execute(t, admin, `CREATE DATABASE `+name+` ENCODING '`+encoding+`' LOCALE 'C' TEMPLATE template0`)
		connString := parameter(t, server.ConnString(), "database", name)
		pool := newPool(t, parameter(t, connString, "client_encoding", "UTF8"))
		_, opened := postgres.Open(t.Context(), connString, longTimeouts)
		_, made := postgres.New(t.Context(), pool, longTimeouts)
		for call, err := range map[string]error{"Open": opened, "New": made} {
			if err == nil || errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), "its encoding is "+encoding+" and must be UTF8") {
				t.Errorf("%s: error %v, want one that says which encoding is needed", call, err)
			}
		}
		if queryOne[bool](t, pool, `SELECT to_regnamespace('relayer') IS NOT NULL`) {
			t.Error("the schema was created")
		}
	}
}
