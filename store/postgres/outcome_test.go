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
