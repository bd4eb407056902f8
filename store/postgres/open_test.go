//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// nastyPasswords contain characters that need escaping in some spelling.
var nastyPasswords = []string{
	"p@ss:w/rd?x#y%41&z=1 and space",
	`quote'back\slash"`,
	"=postgres://%20%zz:пароль-密码@z",
}

// TestOpen_Passwords opens with right passwords in every spelling. The errors of wrong
// passwords must not contain them.
func TestOpen_Passwords(t *testing.T) {
	t.Parallel()
	group := roleName()
	askForPasswords(t, group)
	for _, password := range nastyPasswords {
		t.Run(password, func(t *testing.T) {
			admin := newPool(t, server.ConnString())
			role := roleName()
			execute(t, admin, fmt.Sprintf("CREATE ROLE %s SUPERUSER LOGIN PASSWORD %s IN ROLE %s", role, literal(password), group))
			schema := newSchema()
			for spelling, spell := range spellings {
				store, err := postgres.Open(t.Context(), spell(role, password), longTimeouts, schema)
				if err != nil {
					t.Errorf("%s: %v", spelling, err)
					continue
				}
				must(t, store.Close())
				wrong := password + "-wrong"
				_, err = postgres.Open(t.Context(), spell(role, wrong), longTimeouts, schema)
				wantFault(t, spelling, err, "28P01")
				wantNoDriver(t, spelling, err)
				wantWithout(t, err, wrong)
			}
		})
	}
}

// spellings are the forms of a connection string.
var spellings = map[string]func(user, password string) string{
	"URL": func(user, password string) string {
		return (&url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Path: "/postgres", RawQuery: socketQuery()}).String()
	},
	"URL, percent-encoded": func(user, password string) string {
		return "postgresql://" + user + ":" + percentEncoded(password) + "@/postgres?" + socketQuery()
	},
	"query": func(user, password string) string {
		return "postgres:///postgres?" + socketQuery() + "&user=" + user + "&password=" + strings.ReplaceAll(url.QueryEscape(password), "+", "%20")
	},
	"key=value": func(user, password string) string {
		escaped := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password)
		return fmt.Sprintf("host=%s port=5432 dbname=postgres sslmode=disable user=%s password='%s'", filepath.Dir(server.Socket()), user, escaped)
	},
}

func socketQuery() string {
	return url.Values{"host": {filepath.Dir(server.Socket())}, "port": {"5432"}, "sslmode": {"disable"}}.Encode()
}

func percentEncoded(text string) string {
	var encoded strings.Builder
	for _, b := range []byte(text) {
		fmt.Fprintf(&encoded, "%%%02X", b)
	}
	return encoded.String()
}

func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// rulesMu is held while the rules of the server are changed: another test would read a part of them.
var rulesMu sync.Mutex

// askForPasswords makes the server ask the members of a role for a password.
func askForPasswords(t *testing.T, group string) {
	t.Helper()
	rulesMu.Lock()
	defer rulesMu.Unlock()
	admin := newPool(t, server.ConnString())
	probe := roleName()
	execute(t, admin, "CREATE ROLE "+group, "CREATE ROLE "+probe+" LOGIN IN ROLE "+group)
	file := queryOne[string](t, admin, `SELECT current_setting('hba_file')`)
	rules := queryOne[string](t, admin, `SELECT pg_read_file($1)`, file)
	var lines []string
	for line := range strings.Lines("local all +" + group + " scram-sha-256\n" + rules) {
		lines = append(lines, fmt.Sprintf("(%d, %s)", len(lines), literal(strings.TrimSpace(line))))
	}
	execute(t, admin,
		fmt.Sprintf(`COPY (SELECT line FROM (VALUES %s) AS rules (nth, line) ORDER BY nth) TO %s`, strings.Join(lines, ", "), literal(file)),
		`SELECT pg_reload_conf()`)
	eventually(t, "the rules are read", func() bool {
		_, err := postgres.Open(t.Context(), parameter(t, server.ConnString(), "user", probe), longTimeouts, newSchema())
		return err != nil && strings.Contains(err.Error(), "password")
	})
}

// wantWithout fails the test if an error contains the password in any spelling.
func wantWithout(t *testing.T, err error, password string) {
	t.Helper()
	for _, spelled := range []string{password, url.QueryEscape(password), url.PathEscape(password), percentEncoded(password)} {
		if err != nil && strings.Contains(err.Error(), spelled) {
			t.Errorf("the error contains the password: %v", err)
		}
	}
}

// TestOpen_InvalidConnectionString: the error must not quote the string, any part of
// which may be the password.
func TestOpen_InvalidConnectionString(t *testing.T) {
	t.Parallel()
	for _, malformed := range []string{
		"postgres://user:sesame%zz@localhost/db",
		"postgres://user:ses/ame@localhost/db",
		"postgres://user:1234/sesame@localhost/db",
		"postgres://user:s@sesame/more@localhost/db",
		"postgresql://user:1234/ses?ame@localhost/db",
		"postgres://user:sesame@localhost:port/db",
		"postgres://user:sesame@[::1/db",
		"mysql://user:sesame@localhost/db",
		"user:sesame@localhost/db",
		"sesame",
		"host=localhost password=open sesame",
		"host=localhost password='sesame",
		"host=localhost password=sesame port=none",
		"host=localhost =sesame",
		"postgres://u:1234@sesame@localhost:1/d",
		"postgres://u:@sesame@localhost:1/d",
		"postgres://u@sesame@localhost:1/d",
		"postgres://u:sesame@one@localhost:1,localhost:2/d",
		"POSTGRES://postgres:sesame=x@db/d?" + socketQuery(),
		" postgres://postgres:sesame=x@db/d?" + socketQuery(),
		"host=" + filepath.Dir(server.Socket()) + " user=postgres dbname=postgres password=my sesame=abc",
	} {
		t.Run(malformed, func(t *testing.T) {
			store, err := postgres.Open(t.Context(), malformed)
			if err == nil {
				store.Close()
				t.Fatal("no error")
			}
			if errors.Is(err, relayer.ErrUnavailable) {
				t.Errorf("error %v suggests a retry", err)
			}
			if strings.Contains(err.Error(), "ame") || strings.Contains(err.Error(), "1234") || strings.Contains(err.Error(), "localhost") {
				t.Errorf("the error contains a part of the connection string: %v", err)
			}
			wantNoDriver(t, malformed, err)
		})
	}
}

// TestOpen_Unreachable opens well-formed connection strings to no server. The error
// names the cause.
func TestOpen_Unreachable(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		connString, says string
		timeouts         postgres.Option
	}{
		"unknown database": {parameter(t, withPassword(server.ConnString()), "database", "nowhere"), `"nowhere" does not exist`, longTimeouts},
		"unknown role":     {parameter(t, withPassword(server.ConnString()), "user", "nobody"), `"nobody" does not exist`, longTimeouts},
		"no socket":        {parameter(t, withPassword(server.ConnString()), "host", t.TempDir()), "no such file", defaultTimeouts},
		"closed port":      {"postgres://postgres:" + secret + "@127.0.0.1:1/postgres?sslmode=disable", "connection refused", defaultTimeouts},
		"odd characters":   {"postgres://postgres:" + secret + "#1?2@127.0.0.1:1/postgres?sslmode=prefer", "connection refused", defaultTimeouts},
		"encoded database": {"postgres://postgres:" + secret + "@127.0.0.1:1/a%40b?sslmode=disable", "connection refused", defaultTimeouts},
		"key=value":        {"host=127.0.0.1 port=1 dbname=a@b/c password=" + secret + "\\", "connection refused", defaultTimeouts},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_, err := postgres.Open(t.Context(), c.connString, c.timeouts, newSchema())
			if isFault := strings.HasPrefix(what, "unknown"); err == nil || errors.Is(err, relayer.ErrUnavailable) == isFault || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %s, and ErrUnavailable: %t", err, c.says, !isFault)
			}
			wantWithin(t, "it", begun, slack)
			wantNoDriver(t, what, err)
		})
	}
}

func TestOpen_CanceledContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, errorOf(postgres.Open(ctx, server.ConnString(), newSchema())), context.Canceled)
	wantError(t, errorOf(postgres.New(ctx, newPool(t, server.ConnString()), newSchema())), context.Canceled)
}

// TestOptions_OutOfRange: invalid options are refused before a connection is made.
func TestOptions_OutOfRange(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]postgres.Option{
		"empty":               {},
		"no timeout":          postgres.WithTimeout(0),
		"a negative timeout":  postgres.WithTimeout(-time.Second),
		"too short a timeout": postgres.WithTimeout(time.Microsecond),
		"too short a history": postgres.WithHistory(1, time.Nanosecond),
	} {
		if _, err := postgres.Open(t.Context(), "host=/nowhere", option); err == nil || errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := postgres.New(t.Context(), nil); err == nil {
		t.Error("no error of a nil pool")
	}
	const longest = time.Duration(1<<63 - 1)
	store := open(t, newSchema(), postgres.WithTimeout(longest), postgres.WithHistory(1, longest))
	rec := create(t, store, record("one"))
	wantStored(t, store, rec)
}

// TestOpen_PasswordFileChanged changes the password of a role and the file that has it, while a
// Store is open.
func TestOpen_PasswordFileChanged(t *testing.T) {
	t.Parallel()
	group, role := roleName(), roleName()
	askForPasswords(t, group)
	admin := newPool(t, server.ConnString())
	execute(t, admin, fmt.Sprintf("CREATE ROLE %s SUPERUSER LOGIN PASSWORD 'first' IN ROLE %s", role, group))
	file := filepath.Join(t.TempDir(), "password")
	write := func(content string) {
		must(t, os.WriteFile(file, []byte(content), 0o600))
	}
	write("*:*:*:*:first\n")
	store := openAt(t, parameter(t, parameter(t, server.ConnString(), "user", role), "passfile", file), newSchema())
	changes := watch(t, store)
	changes.want(t, relayer.ChangeCreated, create(t, store, record("before")))
	execute(t, admin, fmt.Sprintf("ALTER ROLE %s PASSWORD 'second'", role))
	write("*:*:*:*:second\n")
	queryOne[int](t, admin, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1`, role)
	changes.want(t, relayer.ChangeCreated, create(t, store, record("after")))
}

// TestOpen_WrongSetting: the error names the setting that is wrong, and not its value.
func TestOpen_WrongSetting(t *testing.T) {
	t.Parallel()
	for setting, value := range map[string]string{
		"sslmode": "sesame", "connect_timeout": "sesame", "pool_max_conns": "sesame", "pool_max_conn_lifetime": "sesame", "sslrootcert": "/sesame",
		"target_session_attrs": "sesame", "default_query_exec_mode": "sesame", "statement_cache_capacity": "sesame", "channel_binding": "sesame",
		"no_such_setting": "sesame", "statement_timeout": "sesame", "gssencmode": "require", "timezone": "sesame", "datestyle": "sesame",
		"role": "sesame", "options": "-c work_mem=sesame", // of which the server quotes the value only
	} {
		base := server.ConnString()
		if strings.HasPrefix(setting, "ssl") { // which a socket does not have
			base = "postgres://postgres@127.0.0.1:1/postgres?sslmode=verify-ca"
		}
		_, err := postgres.Open(t.Context(), parameter(t, withPassword(base), setting, value), longTimeouts, newSchema())
		if err == nil || errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), setting) && !strings.Contains(err.Error(), "a setting of the connection string") {
			t.Errorf("error %v, want one that names %s", err, setting)
		}
		if err != nil && (strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "key=value")) {
			t.Errorf("%s: error %v has the value, or advice that does not fit a URL", setting, err)
		}
		wantNoDriver(t, setting, err)
	}
}

// TestOpen_SettingsOfLibpq: settings that only libpq needs are ignored with a warning that names
// them.
func TestOpen_SettingsOfLibpq(t *testing.T) {
	t.Parallel()
	connString, settings := server.ConnString(), []string{"gssencmode", "keepalives", "keepalives_idle", "load_balance_hosts", "tcp_user_timeout"}
	for _, setting := range settings {
		connString = parameter(t, connString, setting, "sesame")
	}
	var log bytes.Buffer
	create(t, openAt(t, connString, newSchema(), postgres.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))), record("one"))
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), strings.Join(settings, " ")) || strings.Contains(log.String(), "sesame") {
		t.Errorf("log %s, want a warning that names %v", &log, settings)
	}
}

// TestOpen_RequiresSSLMode: to a host that is not local, the password is not sent in clear unless
// sslmode permits it. Each of several hosts counts.
func TestOpen_RequiresSSLMode(t *testing.T) {
	t.Parallel()
	for connString, isRefused := range map[string]bool{
		"postgres://u:sesame@db.invalid/d":                                true,
		"postgres://u:sesame@192.0.2.1/d?target_session_attrs=any":        true,
		"postgresql://u:sesame@localhost,db.invalid/d":                    true,
		"postgres://u:sesame@/d?host=/nowhere,192.0.2.1":                  true,
		"host=db.invalid user=u password=sesame":                          true,
		"postgres://u:sesame@localhost:1/d":                               false,
		"postgres://u:sesame@127.0.0.1:1,[::1]:1/d":                       false,
		"postgres://u:sesame@/d?host=/nowhere":                            false,
		"postgres://u:sesame@db.invalid/d?sslmode=disable":                false,
		"postgres://u:sesame@db.invalid/d?sslmode=prefer":                 false,
		"postgres://u:sesame@db.invalid,localhost:1/d?sslmode=verify-ca":  false,
		"host=db.invalid user=u password=sesame sslmode = verify-full":    false,
		"host=localhost port=1 user=u password=sesame application_name=a": false,
	} {
		_, err := postgres.Open(t.Context(), connString, postgres.ConnectTimeout(10*time.Millisecond))
		if err == nil || errors.Is(err, relayer.ErrUnavailable) == isRefused || strings.Contains(err.Error(), "sslmode=verify-full") != isRefused {
			t.Errorf("%s: error %v, want it refused: %t", connString, err, isRefused)
		}
		wantWithout(t, err, "sesame")
	}
}

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
