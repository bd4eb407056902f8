//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// openWithAdmin returns a Store, and a pool with which the test can take its write
// lock.
func openWithAdmin(t *testing.T, options ...postgres.Option) (store *postgres.Store, admin *pgxpool.Pool, schema string) {
	t.Helper()
	schema = schemaName()
	return open(t, append(options, postgres.WithSchema(schema))...), newPool(t, server.ConnString()), schema
}

// awaitWaiting waits until sessions wait for the write lock.
func awaitWaiting(t *testing.T, admin *pgxpool.Pool, schema string, count int) {
	t.Helper()
	eventually(t, "writes wait for the write lock", func() bool {
		return queryOne[int](t, admin, `SELECT count(*) FROM pg_locks WHERE NOT granted AND `+isWriteLock, schema) >= count
	})
}

// TestWriteLock_CanceledContext: a write that was sent returns its result; a write in
// the queue ends with its context.
func TestWriteLock_CanceledContext(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	release := holdWriteLock(t, admin, schema)
	ctx, cancel := context.WithCancel(t.Context())
	sent := inBackground(func() error { return errorOf(store.Create(ctx, record("sent"))) })
	awaitWaiting(t, admin, schema, 1)
	queued := inBackground(func() error { return errorOf(store.Create(ctx, record("queued"))) })
	awaitQueued(t, store, 1)
	cancel()
	wantError(t, <-queued, context.Canceled)
	release()
	must(t, <-sent)
	get(t, store, "sent")
	create(t, store, record("after"))
	wantError(t, errorOf(store.Get(t.Context(), "queued")), relayer.ErrNotFound)
}

// awaitQueued waits until writes wait in the queue of a Store.
func awaitQueued(t *testing.T, store *postgres.Store, count int) {
	t.Helper()
	eventually(t, "writes wait in the queue", func() bool { return store.Queued() >= count })
}

// TestQueue_RoundRobin: the queue gets the actor of a write, so a write of another actor is not
// behind all that wait.
func TestQueue_RoundRobin(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	release := holdWriteLock(t, admin, schema)
	var done []<-chan error
	for i, id := range []string{"a1", "a2", "a3", "b1"} {
		ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: id[:1]})
		rec := relayer.Record{ID: id, Document: make([]byte, 5<<20)} // a batch has one of these
		done = append(done, inBackground(func() error { return errorOf(store.Create(ctx, rec)) }))
		if i == 0 {
			awaitWaiting(t, admin, schema, 1)
		}
		awaitQueued(t, store, i)
	}
	release()
	for _, end := range done {
		must(t, <-end)
	}
	if other, last := get(t, store, "b1"), get(t, store, "a3"); other.Sequence > last.Sequence {
		t.Errorf("the write of the other actor is number %d, behind %d", other.Sequence, last.Sequence)
	}
}

// TestWriteLock_Timeout: if another instance holds the write lock, all writes fail in
// time and none is carried out later.
func TestWriteLock_Timeout(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	other, admin, schema := openWithAdmin(t)
	store := openImpatient(t, server.ConnString(), postgres.WithSchema(schema), postgres.WithTimeout(timeout))
	one := create(t, other, record("one"))
	release := holdWriteLock(t, admin, schema)
	first := inBackground(func() error { return errorOf(store.Create(t.Context(), record("first"))) })
	awaitWaiting(t, admin, schema, 1)
	const many = 60
	begun := time.Now()
	ends := make(chan error, many)
	for i := range many {
		go func() { ends <- errorOf(store.Create(context.Background(), record(numbered(i)))) }()
	}
	// Reads need no write lock.
	if got := untilAvailable(t, func() (relayer.Record, error) { return store.Get(t.Context(), "one") }); !same(got, one) {
		t.Errorf("got %+v, want %+v", got, one)
	}
	wantError(t, <-first, relayer.ErrUnavailable)
	for range many {
		wantError(t, <-ends, relayer.ErrUnavailable)
	}
	wantWithin(t, "the writes", begun, 2*timeout+slack)
	release()
	createSettled(t, store, record("after"))
	wantTotal(t, other, 2)
	wantConsistent(t, other)
}

// TestWriteLock_StalledMessage holds up the second message of a write on its way to
// the server. The write lock goes to other writers, and the write is repeated.
func TestWriteLock_StalledMessage(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	p := newProxy(t, server.Socket())
	// It loses the write lock after a tenth of its timeout.
	stalled := openAt(t, p.connString(), postgres.WithSchema(schema), postgres.WithTimeout(15*time.Second))
	other := open(t, postgres.WithSchema(schema))
	arrived, goOn := make(chan struct{}), make(chan struct{})
	resume := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(resume)
	p.obey(func(sql string) fault {
		// The first statement of the second message.
		if strings.Contains(sql, ".postings") {
			close(arrived)
			<-goOn
		}
		return none
	})
	created := inBackground(func() error { return errorOf(stalled.Create(t.Context(), record("stalled"))) })
	<-arrived
	p.obey(func(string) fault { return none })
	create(t, other, record("one"))
	resume()
	must(t, <-created)
	get(t, other, "stalled")
	wantConsistent(t, other)
}

// TestWriteLock_StalledInMessage holds up a part of the first message, which has the write lock.
func TestWriteLock_StalledInMessage(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	other := open(t, postgres.WithSchema(schema))
	admin := newPool(t, server.ConnString())
	if queryOne[int](t, admin, `SELECT current_setting('server_version_num')::int`) < 170000 {
		t.Skip("only PostgreSQL 17 and later limit a transaction")
	}
	p := newProxy(t, server.Socket())
	stalled := openAt(t, p.connString(), postgres.WithSchema(schema), postgres.WithTimeout(2*time.Second))
	createSettled(t, stalled, record("prepares its statements"))
	arrived, goOn := make(chan struct{}), make(chan struct{})
	resume := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(resume)
	p.obey(func(sql string) fault {
		if strings.Contains(sql, "INSERT INTO") && strings.Contains(sql, ".relayers") {
			close(arrived)
			<-goOn
		}
		return none
	})
	created := inBackground(func() error { return errorOf(stalled.Create(t.Context(), record("stalled"))) })
	select {
	case <-arrived:
	case err := <-created:
		t.Fatalf("the create ended early: %v", err)
	}
	p.obey(func(string) fault { return none })
	eventually(t, "it has the write lock", func() bool {
		return queryOne[int](t, admin, `SELECT count(*) FROM pg_locks WHERE granted AND `+isWriteLock, schema) > 0
	})
	create(t, other, record("one"))
	resume()
	<-created
	wantConsistent(t, other)
}

// addTrigger creates a trigger function and a sequence that it can count with.
func addTrigger(t *testing.T, admin *pgxpool.Pool, schema, body string) {
	t.Helper()
	execute(t, admin,
		fmt.Sprintf(`CREATE SEQUENCE %s.calls`, schema),
		fmt.Sprintf(`CREATE FUNCTION %s.addTrigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s RETURN NULL; END $$`, schema, body))
}

const (
	onInsert = `CREATE TRIGGER addTrigger AFTER INSERT ON %s.relayers FOR EACH ROW EXECUTE FUNCTION %[1]s.addTrigger()`
	onCommit = `CREATE CONSTRAINT TRIGGER addTrigger AFTER INSERT ON %s.relayers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %[1]s.addTrigger()`
)

// failures returns how often the trigger was called.
func failures(t *testing.T, admin *pgxpool.Pool, schema string) int {
	t.Helper()
	return queryOne[int](t, admin, fmt.Sprintf(`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM %s.calls`, schema))
}

// TestWrite_SerializationFailure: a write is repeated if the server asks for that, up to a
// limit, or if its queue of notifications is full, once.
func TestWrite_SerializationFailure(t *testing.T) {
	t.Parallel()
	for where, trigger := range map[string]string{"at once": onInsert, "at the commit": onCommit} {
		for code, passes := range map[string]int{"40001": 3, "40P01": 3, "54000": 1} {
			t.Run(code+" "+where, func(t *testing.T) {
				t.Parallel()
				store, admin, schema := openWithAdmin(t)
				addTrigger(t, admin, schema, fmt.Sprintf(`
					IF nextval('%s.calls') <= %d THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '%s'; END IF;`, schema, passes, code))
				execute(t, admin, fmt.Sprintf(trigger, schema))
				create(t, store, record("one"))
				if met := failures(t, admin, schema); met != passes+1 {
					t.Errorf("tried %d times, want %d", met, passes+1)
				}
				execute(t, admin, fmt.Sprintf(`ALTER SEQUENCE %s.calls MINVALUE -1000000 RESTART -1000000`, schema))
				_, err := store.Create(t.Context(), record("two"))
				if passes == 1 {
					wantFault(t, "Create", err, code)
				} else if !errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("error %v, want ErrUnavailable", err)
				}
				wantNoDriver(t, "Create", err)
				if met := failures(t, admin, schema) + 1_000_001; met < min(passes, 2) || met > 20 {
					t.Errorf("tried %d times", met)
				}
				execute(t, admin, fmt.Sprintf(`DROP TRIGGER addTrigger ON %s.relayers`, schema))
				create(t, store, record("two"))
				wantConsistent(t, store)
			})
		}
	}
}

// TestWrite_RefusedInBatch: if the server refuses the data of one write, the others of
// its batch succeed.
func TestWrite_RefusedInBatch(t *testing.T) {
	t.Parallel()
	for where, trigger := range map[string]string{"at once": onInsert, "at the commit": onCommit} {
		t.Run(where, func(t *testing.T) {
			store, admin, schema := openWithAdmin(t)
			addTrigger(t, admin, schema, `IF NEW.id = 'bad' THEN RAISE EXCEPTION 'not this one'; END IF;`)
			execute(t, admin, fmt.Sprintf(trigger, schema))
			release := holdWriteLock(t, admin, schema)
			first := inBackground(func() error { return errorOf(store.Create(t.Context(), record("first"))) })
			awaitWaiting(t, admin, schema, 1)
			const many = 20
			good := make(chan error, many)
			bad := make(chan error, 1)
			for i := range many {
				go func() { good <- errorOf(store.Create(t.Context(), record(numbered(i)))) }()
				if i == many/2 {
					go func() { bad <- errorOf(store.Create(t.Context(), record("bad"))) }()
				}
			}
			awaitQueued(t, store, many+1)
			release()
			for range many {
				must(t, <-good)
			}
			must(t, <-first)
			wantFault(t, "Create", <-bad, "P0001")
			wantTotal(t, store, many+1)
			wantConsistent(t, store)
		})
	}
}

// TestWriteLock_SessionTimeouts: the timeouts of the session do not shorten the wait for the
// write lock. They are set for this write only, whose statements are prepared: the statements of
// Open can take longer on a busy machine.
func TestWriteLock_SessionTimeouts(t *testing.T) {
	t.Parallel()
	schema, admin := schemaName(), newPool(t, server.ConnString())
	var isLimited atomic.Bool
	store := openOn(t, newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) {
		config.MaxConns = 1
		config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
			if !isLimited.Load() {
				return true, nil
			}
			_, err := conn.Exec(ctx, `SET statement_timeout = '2s'; SET lock_timeout = '1ms'`)
			return true, err
		}
	}), postgres.WithSchema(schema))
	create(t, store, record("one"))
	isLimited.Store(true)
	release := holdWriteLock(t, admin, schema)
	created := inBackground(func() error { return errorOf(store.Create(t.Context(), record("two"))) })
	eventually(t, "the write has waited for longer than the timeouts", func() bool {
		if len(created) > 0 {
			t.Fatalf("the write ended with the error %v", <-created)
		}
		return queryOne[bool](t, admin, `
			SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND clock_timestamp() - waitstart > '2.5s' AND `+isWriteLock, schema)
	})
	release()
	must(t, <-created)
}

// behindProxy returns a Store whose connections can be made to fail, and one that
// connects directly.
func behindProxy(t *testing.T, options ...postgres.Option) (*proxy, *postgres.Store, *postgres.Store) {
	t.Helper()
	p := newProxy(t, server.Socket())
	options = append(options, newSchema())
	return p, openAt(t, p.connString(), options...), open(t, options...)
}

// writes has one write of each kind. Each returns its error and whether another Store
// sees its effect.
var writes = map[string]func(t *testing.T, store, witness *postgres.Store, fail func()) (error, bool){
	"create": func(t *testing.T, store, witness *postgres.Store, fail func()) (error, bool) {
		fail()
		made, err := store.Create(t.Context(), record("new"))
		got, absent := witness.Get(t.Context(), "new")
		return err, absent == nil && (err != nil || same(got, made))
	},
	"update": func(t *testing.T, store, witness *postgres.Store, fail func()) (error, bool) {
		rec := create(t, witness, record("one"))
		rec.Document = []byte("updated")
		fail()
		_, err := store.Update(t.Context(), rec)
		return err, string(get(t, witness, "one").Document) == "updated"
	},
	"delete": func(t *testing.T, store, witness *postgres.Store, fail func()) (error, bool) {
		rec := create(t, witness, record("one"))
		fail()
		err := store.Delete(t.Context(), rec.ID, rec.Revision, nil)
		_, absent := witness.Get(t.Context(), "one")
		return err, errors.Is(absent, relayer.ErrNotFound)
	},
	"import": func(t *testing.T, store, witness *postgres.Store, fail func()) (error, bool) {
		rec := record("new")
		rec.Revision = 40
		fail()
		err := store.Import(t.Context(), []relayer.Record{rec})
		got, absent := witness.Get(t.Context(), "new")
		return err, absent == nil && same(got, rec)
	},
}

// TestWrite_ConnectionLost: a write that cannot have been committed is repeated, up to a limit. If
// the connection is lost during the commit, the outcome is unknown, whether the commit arrives or not.
func TestWrite_ConnectionLost(t *testing.T) {
	t.Parallel()
	for when, c := range map[string]struct {
		fault    fault
		at       string
		times    int64
		attempts int64 // 0 if only their limit is known
		want     error
		isDone   bool
	}{
		"once before the commit":         {cut, "BEGIN", 1, 2, nil, true},
		"three times before the commit":  {cut, "BEGIN", 3, 4, nil, true},
		"always":                         {cut, "BEGIN", 1_000_000, 0, relayer.ErrUnavailable, false},
		"during a commit, which is lost": {cut, "COMMIT", 1, 1, relayer.ErrOutcomeUnknown, false},
		"during a commit, which arrives": {dropAnswer, "COMMIT", 1, 1, relayer.ErrOutcomeUnknown, true},
	} {
		for name, write := range writes {
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				p, store, witness := behindProxy(t)
				var met *atomic.Int64
				err, isDone := write(t, store, witness, func() { met = p.failFirst(c.fault, c.at, c.times) })
				if !errors.Is(err, c.want) || errors.Is(err, relayer.ErrUnavailable) != (c.want == relayer.ErrUnavailable) || isDone != c.isDone {
					t.Errorf("error %v, carried out: %t; want %v, %t", err, isDone, c.want, c.isDone)
				}
				if attempts := met.Load(); attempts > 20 || c.attempts > 0 && attempts != c.attempts {
					t.Errorf("%d transactions, want %d", attempts, c.attempts)
				}
				wantNoDriver(t, name, err)
				p.obey(func(string) fault { return none })
				create(t, store, record("next"))
				wantConsistent(t, witness)
			})
		}
	}
}

// TestReads_ConnectionLost: reads are repeated on another connection.
func TestReads_ConnectionLost(t *testing.T) {
	t.Parallel()
	p, store, _ := behindProxy(t)
	one := create(t, store, record("one"))
	for _, f := range []fault{cut, dropAnswer} {
		p.failFirst(f, "SELECT id", 2)
		wantStored(t, store, one)
		p.failFirst(f, "SELECT total", 2)
		if recs, total, err := list(t.Context(), store, relayer.StoreQuery{Limit: 10}); err != nil || total != 1 || len(recs) != 1 || !same(recs[0], one) {
			t.Errorf("listed %v of %d, error %v", recs, total, err)
		}
	}
}

// TestWrite_ConnectionLostBetweenMessages: a transaction whose commit was not sent is
// repeated.
func TestWrite_ConnectionLostBetweenMessages(t *testing.T) {
	t.Parallel()
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, server.Socket())
			between := &afterBatch{}
			pool := newPoolWith(t, p.connString(), func(config *pgxpool.Config) { config.ConnConfig.Tracer = between })
			schema := newSchema()
			store, witness := openOn(t, pool, schema), open(t, schema)
			err, isCarriedOut := write(t, store, witness, func() { between.once(p.cutAll) })
			if err != nil || !isCarriedOut {
				t.Errorf("error %v, carried out: %t", err, isCarriedOut)
			}
			wantConsistent(t, witness)
		})
	}
}

// afterBatch is a tracer that calls a function once, after the answer to a message.
type afterBatch struct {
	queryCounter
	do atomic.Pointer[func()]
}

func (a *afterBatch) once(do func()) { a.do.Store(&do) }

func (*afterBatch) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (*afterBatch) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (a *afterBatch) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {
	if do := a.do.Swap(nil); do != nil {
		(*do)()
	}
}

func with(rec relayer.Record, document, private string) relayer.Record {
	if document != "" {
		rec.Document = []byte(document)
	}
	if private != "" {
		rec.Private = []byte(private)
	}
	return rec
}

// TestCreate_RepeatedDuringLateCommit delays a commit beyond the timeout. The
// repetition waits for its outcome.
func TestCreate_RepeatedDuringLateCommit(t *testing.T) {
	t.Parallel()
	p, store, witness := behindProxy(t, postgres.WithTimeout(3*time.Second))
	goOn := make(chan struct{})
	arrive := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(arrive)
	p.obey(func(sql string) fault {
		if strings.HasPrefix(sql, "COMMIT") { // each: a stalled client loses its transaction and tries again
			<-goOn
		}
		return none
	})
	createOne := func() error { return errorOf(store.Create(t.Context(), record("one"))) }
	wantUnknown(t, createOne)
	again := inBackground(func() (err error) {
		for err = createOne(); errors.Is(err, relayer.ErrUnavailable); err = createOne() {
		}
		return err
	})
	time.Sleep(100 * time.Millisecond)
	select {
	case err := <-again:
		t.Fatalf("the repeated create does not wait: %v", err)
	default:
	}
	wantError(t, errorOf(witness.Get(t.Context(), "one")), relayer.ErrNotFound)
	arrive()
	wantError(t, <-again, relayer.ErrExists)
	wantConsistent(t, witness)
}

func wantConsistent(t *testing.T, store *postgres.Store) {
	t.Helper()
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWrite_PoolerLostConnection has the commit fail as behind a pooler that has lost
// its connection to the server: with an error that does not end the session.
func TestWrite_PoolerLostConnection(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"08P01", "08006", "40003"} {
		store, admin, schema := openWithAdmin(t)
		addTrigger(t, admin, schema, `RAISE EXCEPTION 'server conn crashed?' USING ERRCODE = '`+code+`';`)
		execute(t, admin, fmt.Sprintf(onCommit, schema))
		if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Errorf("%s: error %v, want ErrOutcomeUnknown", code, err)
		}
	}
}
