//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// operations are the methods of a Store that return errors.
func operations(store *postgres.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Get":  func(ctx context.Context) error { return errorOf(store.Get(ctx, "one")) },
		"List": func(ctx context.Context) error { return errorOf(store.List(ctx, relayer.StoreQuery{Limit: 10})) },
		"List of a selection": func(ctx context.Context) error {
			return errorOf(store.List(ctx, relayer.StoreQuery{Terms: [][]string{{"common"}}, Limit: 10}))
		},
		"Create": func(ctx context.Context) error { return errorOf(store.Create(ctx, record("new"))) },
		"Update": func(ctx context.Context) error {
			rec := record("one")
			rec.Revision = 1
			return errorOf(store.Update(ctx, rec))
		},
		"Delete": func(ctx context.Context) error { return store.Delete(ctx, "one", 1, nil) },
		"Import": func(ctx context.Context) error {
			rec := record("imported")
			rec.Revision = 1
			return store.Import(ctx, []relayer.Record{rec})
		},
	}
}

// wantUnavailable fails unless every operation returns ErrUnavailable in time, with a reason at the
// end, but not as an error of the driver.
func wantUnavailable(t *testing.T, store *postgres.Store, within time.Duration, reason string) {
	t.Helper()
	var all sync.WaitGroup
	for name, call := range operations(store) {
		all.Go(func() {
			begun := time.Now()
			err := call(context.Background())
			wantWithin(t, name, begun, within)
			if !errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown) || !strings.HasSuffix(err.Error(), reason) {
				t.Errorf("%s: %v, want ErrUnavailable and %q", name, err, reason)
			}
			wantNoDriver(t, name, err)
			if err != nil && strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
				t.Errorf("%s: the error does not say what was late: %v", name, err)
			}
		})
	}
	all.Wait()
}

func wantNoDriver(t *testing.T, what string, err error) {
	t.Helper()
	var refusal *pgconn.PgError
	var connecting *pgconn.ConnectError
	var parsing *pgconn.ParseConfigError
	if errors.As(err, &refusal) || errors.As(err, &connecting) || errors.As(err, &parsing) {
		t.Errorf("%s: the error is one of the driver's: %v", what, err)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("%s: the error contains the password: %v", what, err)
	}
}

// wantFault fails unless an error is that of a refusal for ever, with its SQLSTATE.
func wantFault(t *testing.T, what string, err error, code string) {
	t.Helper()
	if err == nil || errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "(SQLSTATE "+code+")") {
		t.Errorf("%s: error %v, want a fault with the SQLSTATE %s", what, err, code)
	}
	wantNoDriver(t, what, err)
}

// TestWrite_RefusedForEver: the error of a write that the server refuses for a reason that does not
// pass has the SQLSTATE, and does not suggest a retry.
func TestWrite_RefusedForEver(t *testing.T) {
	t.Parallel()
	for code, prevent := range map[string]string{
		"42501": `REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA $ FROM $`,
		"23514": `ALTER TABLE $.relayers ADD CHECK (id = 'one')`,
		"P0001": `RAISE EXCEPTION 'refused'`,
		"22012": `PERFORM 1 / 0`,
		"54001": `RAISE EXCEPTION 'refused' USING ERRCODE = '54001'`,
		"0A000": `RAISE EXCEPTION 'refused' USING ERRCODE = '0A000'`,
		"42P01": `PERFORM 1 FROM nowhere`,
		"XX000": `RAISE EXCEPTION 'refused' USING ERRCODE = 'XX000'`,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			admin, schema := newAdmin(t)
			one := create(t, openOn(t, admin, postgres.WithSchema(schema)), record("one"))
			limited := limitedTo(t, schema, "GRANT ALL ON ALL TABLES")
			if strings.Contains(prevent, "$") {
				execute(t, admin, strings.ReplaceAll(prevent, "$", schema))
			} else {
				addTrigger(t, admin, schema, prevent+";")
				execute(t, admin, fmt.Sprintf(onInsert, schema))
			}
			store := openAt(t, limited, postgres.WithSchema(schema))
			two := record("two")
			two.Text = secret // the server quotes the text as it is, and bytes in hexadecimal
			_, err := store.Create(t.Context(), two)
			wantFault(t, "Create", err, code)
			wantStored(t, store, one)
			if err := store.Ready(t.Context()); (err != nil) != (code == "42501") {
				t.Errorf("Ready: error %v", err)
			}
		})
	}
}

const secret = "hunter2-secret"

// withPassword adds a password, for which the server does not ask.
func withPassword(connString string) string {
	return strings.Replace(connString, "postgres@", "postgres:"+secret+"@", 1)
}

// slack is what an operation may take beyond its timeouts on a busy machine.
const slack = 30 * time.Second

// defaultTimeouts are for tests that wait for them.
var defaultTimeouts = postgres.Options(postgres.ConnectTimeout(time.Second), postgres.WithTimeout(5*time.Second))

// TestServer_Killed kills the server, tries every operation, restarts it and tries
// again.
func TestServer_Killed(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	store := openImpatient(t, withPassword(server.ConnString()), defaultTimeouts)
	one := createSettled(t, store, record("one"))
	for range 2 {
		must(t, server.Kill())
		err := store.Check(t.Context())
		wantError(t, err, relayer.ErrUnavailable)
		wantNoDriver(t, "Check", err)
		wantUnavailable(t, store, slack, "")
		begun := time.Now()
		_, err = postgres.Open(t.Context(), withPassword(server.ConnString()))
		if took := time.Since(begun); !errors.Is(err, relayer.ErrUnavailable) || took > slack {
			t.Errorf("Open: %v after %v, want ErrUnavailable", err, took)
		}
		wantNoDriver(t, "Open", err)
		must(t, server.Restart())
		wantStoredSoon(t, store, one)
		one = untilAvailable(t, func() (relayer.Record, error) { return store.Update(t.Context(), one) })
	}
	patient := openAt(t, server.ConnString())
	wantTotal(t, patient, 1) // no failed write was carried out
	must(t, patient.Check(t.Context()))
}

// TestServer_RestartedUnderPool restarts the server under a pool full of idle
// connections. The next operation succeeds although they are all lost.
func TestServer_RestartedUnderPool(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	const connections = 20
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = connections })
	store := openOn(t, pool)
	one := create(t, store, record("one"))
	for round := range 2 {
		for _, conn := range acquireAll(t, pool, connections) {
			conn.Release()
		}
		must(t, server.Kill())
		must(t, server.Restart())
		if round%2 == 0 {
			one = update(t, store, one)
		}
		wantStored(t, store, one)
		one = update(t, store, one)
	}
}

// TestPool_Exhausted has the host application hold all connections.
func TestPool_Exhausted(t *testing.T) {
	t.Parallel()
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = 3 })
	store := openImpatientOn(t, pool, newSchema(), postgres.ConnectTimeout(2*time.Second))
	one := createSettled(t, store, record("one"))
	held := acquireAll(t, pool, 3)
	wantUnavailable(t, store, slack, "")
	wantError(t, errorOf(postgres.New(t.Context(), pool, newSchema(), postgres.ConnectTimeout(500*time.Millisecond))), relayer.ErrUnavailable)

	later := inBackground(func() error {
		for {
			_, err := store.Get(t.Context(), "one")
			if !errors.Is(err, relayer.ErrUnavailable) {
				return err
			}
		}
	})
	for _, conn := range held {
		conn.Release()
	}
	must(t, <-later)
	untilAvailable(t, func() (relayer.Record, error) { return store.Update(t.Context(), one) })
}

// TestPool_FullOfReads has more reads than connections, none of which ends. Writes have a
// connection that reads leave to them.
func TestPool_FullOfReads(t *testing.T) {
	t.Parallel()
	const connections = 3
	schema := schemaName()
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = connections })
	admin := newPool(t, server.ConnString())
	store := openOn(t, pool, postgres.WithSchema(schema), postgres.ConnectTimeout(3*time.Second))
	one := create(t, store, record("one"))
	// A read of an ID waits until the test releases a lock.
	key := fmt.Sprintf("'%s.relayers'::regclass::oid::bigint", schema)
	release := holdTransaction(t, admin, "SELECT pg_advisory_xact_lock("+key+")")
	definition := queryOne[string](t, admin, `SELECT pg_get_functiondef(($1 || '.relayer(text)')::regprocedure)`, schema)
	execute(t, admin, strings.Replace(definition, "BEGIN", "BEGIN PERFORM pg_advisory_xact_lock_shared("+key+");", 1))
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	for range 5 * connections {
		reading.Go(func() {
			for ctx.Err() == nil {
				_, _ = store.Get(ctx, "one")
			}
		})
	}
	isReading := func(count int) func() bool {
		return func() bool {
			return queryOne[int](t, admin, `SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = ($1 || '.relayers')::regclass`, schema) >= count
		}
	}
	eventually(t, "reads wait", isReading(connections-1))
	for range 3 {
		one = update(t, store, one)
	}
	stop()
	reading.Wait()
	release()
	wantStored(t, store, one)
	eventually(t, "all connections are released", func() bool { return pool.Stat().AcquiredConns() == 0 })
}

// TestPool_ManyWaiting has more writers wait for a connection than fit in one batch.
// They fail together, and later writers wait no longer.
func TestPool_ManyWaiting(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = 1 })
	store := openImpatientOn(t, pool, newSchema(), postgres.ConnectTimeout(timeout), postgres.WithTimeout(time.Minute))
	conn := mustGet(pool.Acquire(t.Context()))(t)
	defer conn.Release()
	for range 2 {
		began := time.Now()
		var writers sync.WaitGroup
		for i := range 3000 {
			writers.Go(func() {
				wantError(t, errorOf(store.Create(t.Context(), record(numbered(i)))), relayer.ErrUnavailable)
			})
		}
		writers.Wait()
		// A dozen batches would fail one after the other.
		wantWithin(t, "the last writer", began, 10*timeout)
	}
}

// TestServer_Hangs pauses the server, tries every operation, and resumes it.
func TestServer_Hangs(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	const timeout = time.Second
	openAt(t, server.ConnString()) // which creates the schema
	store := openImpatient(t, withPassword(server.ConnString()), postgres.WithTimeout(timeout), postgres.ConnectTimeout(timeout))
	witness := openAt(t, server.ConnString())
	one := create(t, witness, record("one"))
	for range 2 {
		must(t, server.Pause())
		// In the first round with recently used connections, then without.
		wantUnavailable(t, store, timeout+slack, "")
		begun := time.Now()
		_, err := postgres.Open(t.Context(), server.ConnString(), postgres.WithTimeout(timeout), postgres.ConnectTimeout(500*time.Millisecond))
		if took := time.Since(begun); !errors.Is(err, relayer.ErrUnavailable) || took > timeout+slack {
			t.Errorf("Open: %v after %v, want ErrUnavailable", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		begun = time.Now()
		_, err = store.Get(ctx, "one")
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > slack {
			t.Errorf("Get: %v after %v, want the context's error", err, took)
		}
		cancel()
		must(t, server.Continue())
		eventually(t, "the store goes on", func() bool { _, err := store.Get(t.Context(), "one"); return err == nil })
		one = update(t, witness, one)
	}
	wantTotal(t, witness, 1) // no failed write was carried out
	must(t, witness.Check(t.Context()))
}

// TestConnect_PassingReasons has writes and reads wait while connections are refused for a
// reason that passes, and fail at once for another.
func TestConnect_PassingReasons(t *testing.T) {
	t.Parallel()
	for code, passes := range map[string]bool{
		"EOF": true, "57P03": true, "57P01": true, "53300": true, "08006": true,
		"28P01": false, "28000": false, "3D000": false, "42501": false,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			p, store, _ := behindProxy(t, postgres.ConnectTimeout(waitLimit))
			p.refusal.Store(&code)
			p.cutAll()
			for name, call := range map[string]func() error{
				"Create": func() error { return errorOf(store.Create(context.Background(), record("one"))) },
				"List":   func() error { return errorOf(store.List(context.Background(), relayer.StoreQuery{Limit: 10})) },
			} {
				p.refused.Store(0)
				done := inBackground(call)
				if !passes {
					wantFault(t, name, <-done, code)
					if p.refused.Load() > 10 {
						t.Errorf("%s: error after %d attempts, want it at once", name, p.refused.Load())
					}
					continue
				}
				eventually(t, "connections are refused", func() bool { return p.refused.Load() > 5 })
				if isAway := store.IsPrimaryAway(); isAway != (code != "53300") {
					t.Errorf("%s: the primary is away: %t", name, isAway)
				}
				p.refusal.Store(nil)
				if err := <-done; err != nil {
					t.Errorf("%s: %v", name, err)
				}
				p.refusal.Store(&code)
				p.cutAll()
			}
			p.refusal.Store(nil)
		})
	}
}

// TestClose_WaitsForAcceptedWrites: each write is carried out and succeeds, or is
// refused.
func TestClose_WaitsForAcceptedWrites(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	store := mustGet(postgres.Open(t.Context(), server.ConnString(), longTimeouts, postgres.WithSchema(schema)))(t)
	release := holdWriteLock(t, admin, schema)
	const many = 50
	ends := make(chan error, many)
	for i := range many {
		go func() { ends <- errorOf(store.Create(context.Background(), record(numbered(i)))) }()
		if i == 0 {
			awaitWaiting(t, admin, schema, 1)
		}
	}
	awaitQueued(t, store, many-1)
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the Store is closed", func() bool {
		_, err := store.Get(t.Context(), "one")
		return errors.Is(err, relayer.ErrUnavailable)
	})
	wantError(t, errorOf(store.Create(t.Context(), record("late"))), relayer.ErrUnavailable)
	release()
	closing.Wait()
	for range many {
		must(t, <-ends)
	}
	wantTotal(t, open(t, postgres.WithSchema(schema)), many)
}

// TestClose_ServerHangs closes a Store, but not its pool, whose Close is up to the
// driver.
func TestClose_ServerHangs(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	pool := newPool(t, server.ConnString())
	store := openImpatientOn(t, pool, postgres.WithTimeout(2*time.Second), postgres.ConnectTimeout(2*time.Second))
	createSettled(t, store, record("one"))
	watch(t, store)
	must(t, server.Pause())
	pending := inBackground(func() error { return errorOf(store.Create(context.Background(), record("two"))) })
	time.Sleep(50 * time.Millisecond)
	begun := time.Now()
	must(t, store.Close())
	wantWithin(t, "Close", begun, 4*time.Second+slack)
	wantError(t, <-pending, relayer.ErrUnavailable)
	must(t, server.Continue())
}

// TestReads_CanceledContext: reads return the error of the context and release their
// connections.
func TestReads_CanceledContext(t *testing.T) {
	t.Parallel()
	pool := newPool(t, server.ConnString())
	schema := schemaName()
	store := openOn(t, pool, postgres.WithSchema(schema))
	one := create(t, store, record("one"))
	admin := newPool(t, server.ConnString())
	// As a migration locks out readers.
	release := holdTransaction(t, admin, "LOCK TABLE "+schema+".relayers, "+schema+".state, "+schema+".postings")
	reads := operations(store)
	for _, name := range []string{"Get", "List", "List of a selection"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		begun := time.Now()
		if err := reads[name](ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("%s: %v, want the context's error", name, err)
		}
		wantWithin(t, name, begun, slack)
		cancel()
	}
	release()
	wantStored(t, store, one)
	eventually(t, "all connections are released", func() bool { return pool.Stat().AcquiredConns() == 0 })
}

// A read that succeeds just before its timeout has succeeded.
func TestReads_SuccessAtTimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	must(t, postgres.CauseOf(ctx, nil))
}

// withDeadHost adds a host to those of a server. It closes every connection, and counts them.
func withDeadHost(t *testing.T, server *pgserver.Server) (connString string, logins *atomic.Int64) {
	t.Helper()
	dead := newProxy(t, server.Socket())
	dead.refusal.Store(new("EOF"))
	hosts := filepath.Dir(server.Socket()) + "," + filepath.Dir(dead.listener.Addr().String())
	return parameter(t, server.ConnString(), "host", hosts), &dead.refused
}

// TestProber_NoPrimary: while no primary can be reached, one caller connects to the hosts, and
// the others wait for it. All have the reason.
func TestProber_NoPrimary(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t)
	connString, logins := withDeadHost(t, primary)
	const timeout = time.Second
	store := openImpatient(t, connString, postgres.ConnectTimeout(timeout))
	rec := createSettled(t, store, record("one"))
	must(t, primary.Stop())
	logins.Store(0)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			wantError(t, errorOf(store.Get(context.Background(), "one")), relayer.ErrUnavailable)
		})
	}
	calls.Wait()
	// A caller that is alone connects every 25 ms.
	if count := logins.Load(); count < 1 || count > 160 {
		t.Errorf("%d connections to the other host within %v", count, timeout)
	}
	must(t, primary.Restart())
	wantStoredSoon(t, store, rec)
}

// TestSurvey_SlowWrites: the other hosts are asked once in some seconds, although every write
// is slow.
func TestSurvey_SlowWrites(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t)
	connString, logins := withDeadHost(t, primary)
	rec := create(t, openAt(t, connString), record("one")) // to create the schema can take longer than the timeout
	store := openImpatient(t, connString, postgres.WithTimeout(5*time.Second))
	slowDown(t, primary)
	logins.Store(0)
	begun := time.Now()
	for range 4 {
		rec = update(t, store, rec)
	}
	// The first one may have begun before, and a busy machine may make another call slow.
	limit := int64(time.Since(begun)/(2*time.Second)) + 3
	if count := logins.Load(); count < 1 || count > limit {
		t.Errorf("%d surveys within %v, want at most %d", count, time.Since(begun), limit)
	}
}

// slowDown makes each update take longer than the time after which the hosts are asked.
func slowDown(t *testing.T, server *pgserver.Server) {
	t.Helper()
	execute(t, newPool(t, server.ConnString()),
		`CREATE FUNCTION relayer.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.2); RETURN NULL; END $$`,
		`CREATE TRIGGER slow AFTER UPDATE ON relayer.relayers FOR EACH ROW EXECUTE FUNCTION relayer.slow()`)
}

// TestSurvey_OneServer: a server is not asked during a slow write if its settings are only
// repeated, as the driver does for a connection without TLS.
func TestSurvey_OneServer(t *testing.T) {
	t.Parallel()
	only := pgserver.Start(t)
	p := newProxy(t, only.Socket())
	host := filepath.Dir(p.listener.Addr().String())
	connString := parameter(t, p.connString(), "host", host+","+host)
	rec := create(t, openAt(t, connString), record("one"))
	store := openImpatient(t, connString, postgres.WithTimeout(5*time.Second))
	rec = update(t, store, rec) // opens the connection of the writer, which asks once
	slowDown(t, only)
	asked := p.failFirst(none, "SELECT pg_is_in_recovery", 0)
	update(t, store, rec)
	if count := asked.Load(); count > 0 {
		t.Errorf("the server was asked %d times", count)
	}
}
