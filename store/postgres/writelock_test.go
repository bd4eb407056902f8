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
