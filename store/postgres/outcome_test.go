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
		err := store.Delete(t.Context(), rec.ID, rec.Revision)
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

// TestWrite_ConnectionLostBeforeCommit: a write that cannot have been committed is
// repeated.
func TestWrite_ConnectionLostBeforeCommit(t *testing.T) {
	t.Parallel()
	for name, write := range writes {
		for times := int64(1); times <= 3; times++ {
			t.Run(fmt.Sprintf("%s, %d times", name, times), func(t *testing.T) {
				p, store, witness := behindProxy(t)
				var met *atomic.Int64
				err, isCarriedOut := write(t, store, witness, func() { met = p.failFirst(cut, "BEGIN", times) })
				if err != nil || !isCarriedOut {
					t.Errorf("error %v, carried out: %t", err, isCarriedOut)
				}
				if met.Load() != times+1 {
					t.Errorf("%d transactions, want %d", met.Load(), times+1)
				}
				wantConsistent(t, witness)
			})
		}
	}
}

// TestWrite_ConnectionAlwaysLost: repetition has a limit.
func TestWrite_ConnectionAlwaysLost(t *testing.T) {
	t.Parallel()
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			p, store, witness := behindProxy(t)
			var met *atomic.Int64
			err, isCarriedOut := write(t, store, witness, func() { met = p.failFirst(cut, "BEGIN", 1_000_000) })
			if !errors.Is(err, relayer.ErrUnavailable) || isCarriedOut {
				t.Errorf("error %v, carried out: %t; want ErrUnavailable", err, isCarriedOut)
			}
			if met.Load() > 10 {
				t.Errorf("%d transactions", met.Load())
			}
			wantNoDriver(t, name, err)
			p.obey(func(string) fault { return none })
			create(t, store, record("next"))
			wantConsistent(t, witness)
		})
	}
}

// TestReads_ConnectionLost: reads are repeated on another connection.
func TestReads_ConnectionLost(t *testing.T) {
	t.Parallel()
	p, store, _ := behindProxy(t)
	one := create(t, store, record("one"))
	for _, f := range []fault{cut, dropAnswer} {
		p.failFirst(f, "SELECT id", 2)
		if got := get(t, store, "one"); !same(got, one) {
			t.Errorf("got %+v, want %+v", got, one)
		}
		p.failFirst(f, "SELECT total, id", 2)
		if recs, total, err := store.List(t.Context(), relayer.StoreQuery{Limit: 10}); err != nil || total != 1 || len(recs) != 1 || !same(recs[0], one) {
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
type afterBatch struct{ do atomic.Pointer[func()] }

func (a *afterBatch) once(do func()) { a.do.Store(&do) }

func (*afterBatch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*afterBatch) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*afterBatch) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (*afterBatch) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (a *afterBatch) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {
	if do := a.do.Swap(nil); do != nil {
		(*do)()
	}
}

// TestWrite_ConnectionLostDuringCommit: the outcome is unknown, whether the commit
// arrives or not.
func TestWrite_ConnectionLostDuringCommit(t *testing.T) {
	t.Parallel()
	for name, write := range writes {
		for f, arrives := range map[fault]bool{cut: false, dropAnswer: true} {
			t.Run(fmt.Sprintf("%s, arrives %t", name, arrives), func(t *testing.T) {
				p, store, witness := behindProxy(t)
				err, isCarriedOut := write(t, store, witness, func() { p.failFirst(f, "COMMIT", 1) })
				if !errors.Is(err, relayer.ErrOutcomeUnknown) || errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("error %v, want ErrOutcomeUnknown", err)
				}
				wantNoDriver(t, name, err)
				if isCarriedOut != arrives {
					t.Errorf("carried out: %t, want %t", isCarriedOut, arrives)
				}
				wantConsistent(t, witness)
			})
		}
	}
}

// TestCreate_Repeated repeats a create of unknown outcome.
func TestCreate_Repeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first     fault                                              // of the first commit
		meanwhile func(t *testing.T, witness *postgres.Store)        // before the repetition
		again     func(store, other *postgres.Store) *postgres.Store // the Store of the repetition
		rec       relayer.Record                                     // of the repetition
		want      error
		revision  uint64
	}{
		"carried out":                    {first: dropAnswer, rec: record("one"), revision: 1},
		"not carried out":                {first: cut, rec: record("one"), revision: 1},
		"another document":               {first: dropAnswer, rec: with(record("one"), "another", ""), want: relayer.ErrExists},
		"another private part":           {first: dropAnswer, rec: with(record("one"), "", "another"), want: relayer.ErrExists},
		"another document, not there":    {first: cut, rec: with(record("one"), "another", ""), revision: 1},
		"another Store":                  {first: dropAnswer, rec: record("one"), again: theOther, want: relayer.ErrExists},
		"another Store, not carried out": {first: cut, rec: record("one"), again: theOther, revision: 1},
		"deleted since": {first: dropAnswer, rec: record("one"), revision: 3, meanwhile: func(t *testing.T, witness *postgres.Store) {
			remove(t, witness, get(t, witness, "one"))
		}},
		"created by another client since": {first: cut, rec: record("one"), want: relayer.ErrExists, meanwhile: func(t *testing.T, witness *postgres.Store) {
			create(t, witness, record("one"))
		}},
		"deleted, and created by another client since": {first: dropAnswer, rec: record("one"), want: relayer.ErrExists, meanwhile: func(t *testing.T, witness *postgres.Store) {
			remove(t, witness, get(t, witness, "one"))
			create(t, witness, record("one"))
		}},
		"changed since": {first: dropAnswer, rec: record("one"), want: relayer.ErrExists, meanwhile: func(t *testing.T, witness *postgres.Store) {
			update(t, witness, with(get(t, witness, "one"), "changed", ""))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p, store, witness := behindProxy(t)
			p.failFirst(c.first, "COMMIT", 1)
			if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
				t.Fatalf("error %v, want ErrOutcomeUnknown", err)
			}
			if c.meanwhile != nil {
				c.meanwhile(t, witness)
			}
			through := store
			if c.again != nil {
				through = c.again(store, witness)
			}
			made, err := through.Create(t.Context(), c.rec)
			if !errors.Is(err, c.want) || made.Revision != c.revision {
				t.Fatalf("repeated: revision %d, error %v, want revision %d, error %v", made.Revision, err, c.revision, c.want)
			}
			if err == nil && !same(get(t, witness, "one"), made) {
				t.Errorf("created %+v, stored %+v", made, get(t, witness, "one"))
			}
			// With a known outcome, another create is not a repetition.
			if err == nil {
				if _, err := through.Create(t.Context(), c.rec); !errors.Is(err, relayer.ErrExists) {
					t.Errorf("third create: error %v, want ErrExists", err)
				}
			}
			if _, total, err := witness.List(t.Context(), relayer.StoreQuery{}); total != 1 || err != nil {
				t.Errorf("%d relayers, error %v", total, err)
			}
			wantConsistent(t, witness)
		})
	}
}

func theOther(_, other *postgres.Store) *postgres.Store { return other }

func with(rec relayer.Record, document, private string) relayer.Record {
	if document != "" {
		rec.Document = []byte(document)
	}
	if private != "" {
		rec.Private = []byte(private)
	}
	return rec
}

// TestCreate_RepeatedFailures: any attempt may be the one that was carried out. There
// is one relayer with one change.
func TestCreate_RepeatedFailures(t *testing.T) {
	t.Parallel()
	p, store, witness := behindProxy(t)
	changes := watch(t, witness)
	faults := []fault{cut, cut, dropAnswer, cut, dropAnswer, none}
	var commits atomic.Int64
	p.obey(func(sql string) fault {
		if !strings.HasPrefix(sql, "COMMIT") {
			return none
		}
		return faults[min(int(commits.Add(1)), len(faults))-1]
	})
	for attempt := range len(faults) + 1 {
		made, err := store.Create(t.Context(), record("one"))
		if errors.Is(err, relayer.ErrOutcomeUnknown) {
			continue
		}
		if err != nil {
			t.Fatalf("attempt %d: %v", attempt, err)
		}
		if !same(get(t, witness, "one"), made) {
			t.Errorf("created %+v, stored %+v", made, get(t, witness, "one"))
		}
		changes.want(t, relayer.ChangeCreated, made)
		next := create(t, witness, record("two"))
		changes.want(t, relayer.ChangeCreated, next)
		wantConsistent(t, witness)
		return
	}
	t.Error("the outcome stays unknown")
}

// TestCreate_RepeatedBatch repeats every create of a batch of unknown outcome. Each
// finds its own row.
func TestCreate_RepeatedBatch(t *testing.T) {
	t.Parallel()
	for _, f := range []fault{cut, dropAnswer} {
		p, store, witness := behindProxy(t)
		// The first commit waits, so that the other writes share a batch.
		goOn := make(chan struct{})
		p.obey(func(sql string) fault {
			if strings.HasPrefix(sql, "COMMIT") {
				<-goOn
				return f
			}
			return none
		})
		const many = 40
		results := make(chan string, many)
		for i := range many {
			go func() {
				_, err := store.Create(t.Context(), record(numbered(i)))
				if errors.Is(err, relayer.ErrOutcomeUnknown) {
					results <- numbered(i)
					return
				}
				if err != nil {
					t.Error(err)
				}
				results <- ""
			}()
		}
		time.Sleep(50 * time.Millisecond)
		close(goOn)
		unknown := 0
		for range many {
			if id := <-results; id != "" {
				unknown++
				p.obey(func(string) fault { return none })
				made, err := store.Create(t.Context(), record(id))
				if err != nil || !same(get(t, witness, id), made) {
					t.Errorf("repeated create of %s: %v", id, err)
				}
			}
		}
		if unknown == 0 {
			t.Error("no outcome was unknown")
		}
		if _, total, err := witness.List(t.Context(), relayer.StoreQuery{}); total != many || err != nil {
			t.Errorf("%d relayers, error %v, want %d", total, err, many)
		}
		wantConsistent(t, witness)
	}
}

// TestCreate_RepeatedAfterOtherErrors: an unknown outcome is remembered after a
// repetition that was not carried out.
func TestCreate_RepeatedAfterOtherErrors(t *testing.T) {
	t.Parallel()
	p, store, witness := behindProxy(t)
	p.failFirst(dropAnswer, "COMMIT", 1)
	if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Fatalf("error %v, want ErrOutcomeUnknown", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Create(ctx, record("one")); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want the context's", err)
	}
	p.failFirst(cut, "BEGIN", 1_000_000)
	if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
	p.failFirst(dropAnswer, "COMMIT", 0)
	made := create(t, store, record("one"))
	if !same(get(t, witness, "one"), made) {
		t.Errorf("created %+v, stored %+v", made, get(t, witness, "one"))
	}
}

// TestCreate_RepeatedConcurrently: one of several repetitions succeeds.
func TestCreate_RepeatedConcurrently(t *testing.T) {
	t.Parallel()
	for _, f := range []fault{cut, dropAnswer} {
		p, store, witness := behindProxy(t)
		p.failFirst(f, "COMMIT", 1)
		if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Fatalf("error %v, want ErrOutcomeUnknown", err)
		}
		results := make(chan error, 4)
		for range cap(results) {
			go func() { _, err := store.Create(t.Context(), record("one")); results <- err }()
		}
		made := 0
		for range cap(results) {
			switch err := <-results; {
			case err == nil:
				made++
			case !errors.Is(err, relayer.ErrExists):
				t.Errorf("error %v, want ErrExists", err)
			}
		}
		if made != 1 {
			t.Errorf("%d repetitions succeeded", made)
		}
		wantConsistent(t, witness)
	}
}

// TestCreate_RepeatedDuringLateCommit delays a commit beyond the timeout. The
// repetition waits for its outcome.
func TestCreate_RepeatedDuringLateCommit(t *testing.T) {
	t.Parallel()
	p, store, witness := behindProxy(t, postgres.WithTimeout(8*time.Second))
	goOn := make(chan struct{})
	arrive := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(arrive)
	var commits atomic.Int64
	p.obey(func(sql string) fault {
		if strings.HasPrefix(sql, "COMMIT") && commits.Add(1) == 1 {
			<-goOn
		}
		return none
	})
	if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Fatalf("error %v, want ErrOutcomeUnknown", err)
	}
	var made relayer.Record
	again := inBackground(func() (err error) { made, err = store.Create(t.Context(), record("one")); return err })
	time.Sleep(100 * time.Millisecond)
	select {
	case err := <-again:
		t.Fatalf("the repeated create does not wait: %v", err)
	default:
	}
	if _, err := witness.Get(t.Context(), "one"); !errors.Is(err, relayer.ErrNotFound) {
		t.Fatalf("error %v, want ErrNotFound", err)
	}
	arrive()
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	if made.Revision != 1 || !same(get(t, witness, "one"), made) {
		t.Errorf("created %+v, stored %+v", made, get(t, witness, "one"))
	}
	wantConsistent(t, witness)
}

// TestCreate_RepeatedByManager: the same request makes the same record.
func TestCreate_RepeatedByManager(t *testing.T) {
	t.Parallel()
	for _, f := range []fault{cut, dropAnswer} {
		p, store, witness := behindProxy(t)
		manager, err := relayer.New(store, relayer.WithExclusiveSigners())
		if err != nil {
			t.Fatal(err)
		}
		p.failFirst(f, "COMMIT", 1)
		if _, err := manager.Create(t.Context(), requestFor("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Fatalf("error %v, want ErrOutcomeUnknown", err)
		}
		made, err := manager.Create(t.Context(), requestFor("one"))
		if err != nil || made.Revision != 1 || get(t, witness, "one").Revision != 1 {
			t.Errorf("made %+v, error %v, want revision 1", made, err)
		}
		if _, err := manager.Create(t.Context(), requestFor("one")); !errors.Is(err, relayer.ErrExists) {
			t.Errorf("error %v, want ErrExists", err)
		}
	}
}

func wantConsistent(t *testing.T, store *postgres.Store) {
	t.Helper()
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCreate_RepeatedAfterAnotherRecord creates another record with the ID between a
// create of unknown outcome and its repetition.
func TestCreate_RepeatedAfterAnotherRecord(t *testing.T) {
	t.Parallel()
	p, store, witness := behindProxy(t)
	p.failFirst(dropAnswer, "COMMIT", 1)
	if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Fatalf("error %v, want ErrOutcomeUnknown", err)
	}
	if _, err := store.Create(t.Context(), with(record("one"), "another", "")); !errors.Is(err, relayer.ErrExists) {
		t.Fatalf("another record: error %v, want ErrExists", err)
	}
	if made := create(t, store, record("one")); !same(made, get(t, witness, "one")) {
		t.Errorf("made %+v", made)
	}
}

// TestWrite_PoolerLostConnection has the commit fail as behind a pooler that has lost
// its connection to the server: with an error that does not end the session.
func TestWrite_PoolerLostConnection(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"08P01", "08006", "40003"} {
		name := schemaName()
		pool := newPool(t, server.ConnString())
		store := openOn(t, pool, postgres.WithSchema(name))
		execute(t, pool,
			`CREATE FUNCTION `+name+`.lose() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN RAISE EXCEPTION 'server conn crashed?' USING ERRCODE = '`+code+`'; END $$`,
			`CREATE CONSTRAINT TRIGGER lost AFTER INSERT ON `+name+`.relayers
				DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION `+name+`.lose()`)
		if _, err := store.Create(t.Context(), record("one")); !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Errorf("%s: error %v, want ErrOutcomeUnknown", code, err)
		}
	}
}
