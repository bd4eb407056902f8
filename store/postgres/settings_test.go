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

// TestCommit_Settings has a trigger record the settings at the commit. If the server ended the wait
// for a synchronous standby by its timeout, it would report success: only the Store may give up.
func TestCommit_Settings(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{"off": "on", "on": "on", "local": "local", "remote_apply": "remote_apply"} {
		t.Run(set, func(t *testing.T) {
			admin, schema := newAdmin(t)
			store := openAt(t, asRole(t, map[string]string{"synchronous_commit": set}), postgres.WithSchema(schema))
			addTrigger(t, admin, schema, fmt.Sprintf(`
				INSERT INTO %s.noted VALUES (concat_ws(' ', current_setting('synchronous_commit'), current_setting('statement_timeout')));`, schema))
			execute(t, admin,
				fmt.Sprintf(`CREATE TABLE %s.noted (settings text)`, schema),
				strings.Replace(fmt.Sprintf(onCommit, schema), "INSERT", "INSERT OR UPDATE OR DELETE", 1))
			rec := create(t, store, record("one"))
			remove(t, store, update(t, store, rec))
			imported := record("two")
			imported.Revision = 7
			must(t, store.Import(t.Context(), []relayer.Record{imported}))
			noted := queryOne[string](t, admin, fmt.Sprintf(`SELECT count(*) || ' ' || string_agg(DISTINCT settings, ' ') FROM %s.noted`, schema))
			if noted != "4 "+want+" 0" {
				t.Errorf("commits noted: %q, want 4 %s 0", noted, want)
			}
		})
	}
}

// TestWrite_SettingsAreLocal: connections return to the pool of a host application with
// its settings.
func TestWrite_SettingsAreLocal(t *testing.T) {
	t.Parallel()
	pool := newPool(t, asRole(t, map[string]string{"synchronous_commit": "off", "lock_timeout": "12s", "statement_timeout": "13s"}))
	store := openOn(t, pool, newSchema())
	create(t, store, record("one"))
	_, _ = store.Create(t.Context(), record("one"))
	for _, conn := range pool.AcquireAllIdle(t.Context()) {
		var settings string
		err := conn.QueryRow(t.Context(), `SELECT string_agg(current_setting(name), ' ' ORDER BY name) FROM unnest($1::text[]) AS name`,
			[]string{"enable_seqscan", "jit", "lock_timeout", "statement_timeout", "synchronous_commit"}).Scan(&settings)
		conn.Release()
		if want := "on on 12s 13s off"; settings != want || err != nil {
			t.Errorf("settings %q, error %v, want %q", settings, err, want)
		}
	}
}

// TestOpen_Encoding: Open sets what makes IDs and statements readable. A pool of the host
// with other settings is refused.
func TestOpen_Encoding(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"client_encoding": "LATIN1", "standard_conforming_strings": "off"} {
		t.Run(name, func(t *testing.T) {
			role := asRole(t, map[string]string{name: value})
			for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
				connString := parameter(t, role, "default_query_exec_mode", mode)
				schema := newSchema()
				store := openAt(t, connString, schema)
				made := create(t, store, record(`пароль\'`))
				if got := get(t, open(t, schema), made.ID); !same(got, made) {
					t.Errorf("%s: got %+v, want %+v", mode, got, made)
				}
				_, err := postgres.New(t.Context(), newPool(t, connString), longTimeouts, newSchema())
				if err == nil || !strings.Contains(err.Error(), name) || errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("%s: New returns the error %v", mode, err)
				}
			}
		})
	}
}
