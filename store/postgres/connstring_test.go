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
		"postgres://user:sesame%@localhost/db",
		"postgres://user:sesame%zz@localhost/db",
		"postgres://user:ses/ame@localhost/db",
		"postgres://user:1234/sesame@localhost/db",
		"postgres://user:s@sesame/more@localhost/db",
		"postgresql://user:1234/ses?ame@localhost/db",
		"postgres://user:sesame@localhost:port/db",
		"postgres://user:sesame@[::1/db",
		"postgres://user:sesame@localhost/db?sslmode=unheard-of",
		"postgres://user:sesame@localhost/db?connect_timeout=sesame",
		"postgres://user:sesame@localhost/db?pool_max_conns=sesame",
		"postgres://user:sesame@localhost/db?sslrootcert=/sesame/missing",
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
		"postgres://u:1234/sesame@localhost:1/d",
		"postgres://u:sesame@one@localhost:1,localhost:2/d",
		"postgresql://u:%sesame@localhost:1/d",
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
		"an odd database":  {"postgres://postgres:" + secret + "@127.0.0.1:1/a%40b?application_name=c@d", "connection refused", defaultTimeouts},
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
// Store is open. While the file is empty, the last password is used.
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
	for _, content := range []string{"*:*:*:*:second\n", ""} {
		write(content)
		queryOne[int](t, admin, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1`, role)
		made, err := store.Create(t.Context(), record("after "+content))
		must(t, err)
		changes.want(t, relayer.ChangeCreated, made)
	}
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
