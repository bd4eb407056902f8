//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// pair is two instances that share a schema, each with a follower.
type pair struct {
	schema  string
	stores  [2]*postgres.Store
	changes [2]*follower
}

func newPair(t *testing.T, connStrings [2]string, options ...postgres.Option) pair {
	t.Helper()
	p := pair{schema: schemaName()}
	options = append(options, postgres.WithSchema(p.schema))
	for i := range p.stores {
		p.stores[i] = openAt(t, connStrings[i], options...)
		p.changes[i] = watch(t, p.stores[i])
	}
	return p
}

func both(connString string) [2]string { return [2]string{connString, connString} }

// want checks that both followers receive a change next.
func (p pair) want(t *testing.T, kind relayer.ChangeKind, rec relayer.Record) {
	t.Helper()
	for _, changes := range p.changes {
		changes.want(t, kind, rec)
	}
}

// wantLife creates, updates and deletes a relayer, each through the other Store than
// before.
func (p pair) wantLife(t *testing.T, id string) {
	t.Helper()
	rec := create(t, p.stores[0], record(id))
	p.want(t, relayer.ChangeCreated, rec)
	rec = update(t, p.stores[1], with(rec, "changed", "also changed"))
	p.want(t, relayer.ChangeUpdated, rec)
	remove(t, p.stores[0], rec)
	p.want(t, relayer.ChangeDeleted, rec)
}

func TestWatch_TwoStores(t *testing.T) {
	t.Parallel()
	p := newPair(t, both(server.ConnString()))
	begun := time.Now()
	for i := range 10 {
		p.wantLife(t, numbered(i))
	}
	// With polling alone it would take 30 s.
	wantWithin(t, "30 changes, one after the other,", begun, 25*time.Second)
}

// listeners counts the connections that listen for changes of a schema; endListeners
// closes them.
const (
	listeners    = `SELECT count(*) FROM pg_stat_activity WHERE query = format('LISTEN "%s_changes"', $1::text)`
	endListeners = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = format('LISTEN "%s_changes"', $1::text)`
)

func TestWatch_ListenerLost(t *testing.T) {
	t.Parallel()
	p := newPair(t, both(server.ConnString()))
	admin := newPool(t, server.ConnString())
	eventually(t, "both listen", func() bool { return queryOne[int](t, admin, listeners, p.schema) == 2 })
	for round := range 15 {
		ended := queryOne[int](t, admin, endListeners, p.schema)
		if round == 0 && ended != 2 {
			t.Errorf("%d listened, want 2", ended)
		}
		p.wantLife(t, numbered(round))
	}
	eventually(t, "both listen again", func() bool { return queryOne[int](t, admin, listeners, p.schema) == 2 })
	p.wantLife(t, "last")
}

// TestWatch_NotRangedOver: a sequence has a listener while it is ranged over, and returns what
// was written since the call.
func TestWatch_NotRangedOver(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	store, other := open(t, postgres.WithSchema(schema)), open(t, postgres.WithSchema(schema))
	position := mustGet(store.LastPosition(t.Context()))(t)
	sequences := []iter.Seq2[relayer.RecordChange, error]{store.Watch(context.Background(), ""), store.Watch(context.Background(), position)}
	changes := watch(t, other)
	one := create(t, store, record("one"))
	changes.want(t, relayer.ChangeCreated, one)
	isListening := func(count int) func() bool {
		return func() bool { return queryOne[int](t, admin, listeners, schema) == count }
	}
	// The one that began later listens, so that earlier ones would listen too.
	eventually(t, "the other Store listens", func() bool { return queryOne[int](t, admin, listeners, schema) > 0 })
	if !isListening(1)() {
		t.Error("a sequence that is not ranged over has a listener")
	}
	for _, sequence := range sequences {
		for change, err := range sequence {
			if err != nil || change.Kind != relayer.ChangeCreated || !sameChange(change.Record, one) {
				t.Errorf("the first change is %v, error %v", change, err)
			}
			eventually(t, "the Store listens", isListening(2))
			break
		}
		eventually(t, "the Store listens no more", isListening(1))
	}
}

func TestWatch_ServerRestarts(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	p := newPair(t, both(server.ConnString()))
	for round := range 2 {
		p.wantLife(t, numbered(round))
		must(t, server.Kill())
		time.Sleep(50 * time.Millisecond)
		must(t, server.Restart())
	}
	p.wantLife(t, "last")
}

// TestWatch_BegunWithoutServer: changes before the first successful read are unknown.
func TestWatch_BegunWithoutServer(t *testing.T) {
	t.Parallel()
	p, store, witness := behindProxy(t, postgres.ConnectTimeout(3*time.Second)) // for which Watch waits
	p.obey(func(string) fault { return cut })
	changes := watch(t, store)
	create(t, witness, record("unseen"))
	p.obey(func(string) fault { return none })
	changes.wantGap(t)
	made := create(t, witness, record("seen"))
	changes.want(t, relayer.ChangeCreated, made)
}

func TestWatch_WithoutNotifications(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*proxy){
		"notifications are lost": func(p *proxy) { p.dropsNotifications.Store(true) },
		"LISTEN fails":           func(p *proxy) { p.failFirst(cut, "LISTEN", 1_000_000) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, store, witness := behindProxy(t)
			spoil(p)
			changes := watch(t, store)
			for i := range 3 {
				begun := time.Now()
				made := create(t, witness, record(numbered(i)))
				changes.want(t, relayer.ChangeCreated, made)
				wantWithin(t, "the change", begun, time.Second+slack)
			}
		})
	}
}

// pull returns a consumer that takes one change per call.
func pull(t *testing.T, changes iter.Seq2[relayer.RecordChange, error]) func() received {
	t.Helper()
	next, stop := iter.Pull2(changes)
	t.Cleanup(stop)
	return func() received {
		t.Helper()
		for {
			change, err, ok := next()
			if !ok {
				t.Fatal("the sequence has ended")
			}
			if change.Kind != relayer.ChangeHeartbeat {
				return received{change, err}
			}
		}
	}
}

// TestWatch_PrunedChanges has a Store read no changes until they are pruned. Its
// watcher then gets ErrGap, and watches again.
func TestWatch_PrunedChanges(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	p := newProxy(t, server.Socket())
	store := openAt(t, p.connString(), postgres.WithSchema(schema))
	other := open(t, postgres.WithSchema(schema), postgres.WithHistory(0, 0))
	prune := func() {
		t.Helper()
		must(t, other.PruneAll())
		if left := changesIn(t, admin, schema); left != 0 {
			t.Fatalf("%d changes are left", left)
		}
	}
	changes := watch(t, store)
	rec := create(t, store, record("one"))
	changes.want(t, relayer.ChangeCreated, rec)
	for range 3 {
		p.obey(func(sql string) fault {
			if strings.Contains(sql, "changes_after") {
				return cut
			}
			return none
		})
		// A read that the proxy has already passed on would return the next changes.
		p.cutAll()
		rec = update(t, other, rec)
		prune()
		p.obey(func(string) fault { return none })
		changes.wantGap(t)
		rec = update(t, other, rec)
		changes.want(t, relayer.ChangeUpdated, rec)
	}
	// Pruning drops no change that was already read.
	prune()
	changes.want(t, relayer.ChangeUpdated, update(t, other, rec))
}

// queryCounter counts the queries that contain a text.
type queryCounter struct {
	text  string
	count atomic.Int64
}

func (c *queryCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, c.text) {
		c.count.Add(1)
	}
	return ctx
}

func (*queryCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestWatch_OneReader has a hundred watchers of one Store see each change. The
// server must be asked for it a few times only, however many they are.
func TestWatch_OneReader(t *testing.T) {
	t.Parallel()
	const watchers, writes = 100, 20
	reads := &queryCounter{text: "changes_after"}
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.ConnConfig.Tracer = reads })
	schema := newSchema()
	store, other := openOn(t, pool, schema), open(t, schema)
	var all []*follower
	for range watchers {
		all = append(all, watch(t, store))
	}
	wantAll := func(rec relayer.Record) {
		for _, f := range all {
			f.want(t, relayer.ChangeCreated, rec)
		}
	}
	// Until the feed has begun, watchers may read for themselves.
	wantAll(create(t, store, record("first")))
	before := reads.count.Load()
	begun := time.Now()
	for i := range writes {
		wantAll(create(t, [2]*postgres.Store{store, other}[i%2], record(numbered(i))))
	}
	// Two reads for the write, two for its notification, and one a second.
	most := int64(4*writes + 2 + int(time.Since(begun).Seconds()))
	if count := reads.count.Load() - before; count < writes || count > most {
		t.Errorf("%d reads of changes for %d writes and %d watchers, want at most %d", count, writes, watchers, most)
	}
}

func TestWatch_CanceledContext(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	for range 3 {
		var all []*follower
		for range 5 {
			all = append(all, watch(t, store))
		}
		// A consumer that does not come back does not keep the listener.
		ctx, cancel := context.WithCancel(t.Context())
		next := pull(t, store.Watch(ctx, ""))
		eventually(t, "they listen", func() bool { return queryOne[int](t, admin, listeners, schema) == 1 })
		made := create(t, store, record("one"))
		if got := next(); got.err != nil || got.Record.ID != made.ID {
			t.Errorf("received %v, error %v", got.RecordChange, got.err)
		}
		for _, f := range all {
			f.want(t, relayer.ChangeCreated, made)
			f.stop()
			f.wantEnd(t)
		}
		if got := queryOne[int](t, admin, listeners, schema); got != 1 {
			t.Errorf("%d connections listen, want 1 for the remaining watcher", got)
		}
		cancel()
		eventually(t, "no connection listens", func() bool { return queryOne[int](t, admin, listeners, schema) == 0 })
		remove(t, store, made)
	}
}

func TestWatch_ClosedStore(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	pool := newPool(t, server.ConnString())
	store := mustGet(postgres.New(t.Context(), pool, longTimeouts, postgres.WithSchema(schema)))(t)
	before, late := watch(t, store), pull(t, store.Watch(t.Context(), ""))
	eventually(t, "they listen", func() bool { return queryOne[int](t, admin, listeners, schema) == 1 })
	must(t, store.Close())
	for name, got := range map[string]received{
		"waiting":           before.next(t),
		"not begun":         late(),
		"begun after Close": pull(t, store.Watch(t.Context(), ""))(),
	} {
		if !errors.Is(got.err, relayer.ErrUnavailable) {
			t.Errorf("%s: received %v, error %v, want ErrUnavailable", name, got.Record, got.err)
		}
	}
	before.wantEnd(t)
	eventually(t, "no connection listens", func() bool { return queryOne[int](t, admin, listeners, schema) == 0 })
	// The pool of the host application stays open.
	if one := queryOne[int](t, pool, "SELECT 1"); one != 1 {
		t.Errorf("SELECT 1 returns %d", one)
	}
	// The pool destroys the connection that listened in the background.
	eventually(t, "no connection of the pool is in use", func() bool { return pool.Stat().AcquiredConns() == 0 })
}

// restore brings the changes of a schema back to an earlier number.
func restore(t *testing.T, pool *pgxpool.Pool, schema string, number int64) {
	t.Helper()
	execute(t, pool,
		fmt.Sprintf("DELETE FROM %s.changes WHERE number > %d", schema, number),
		fmt.Sprintf("UPDATE %s.state SET last_revision = %d, last_changed_at = (SELECT changed_at FROM %[1]s.changes WHERE number = %[2]d)", schema, number))
}

// TestWatch_ResumeElsewhere: a position is valid on every instance of the database, and
// not on another database.
func TestWatch_ResumeElsewhere(t *testing.T) {
	t.Parallel()
	p := newPair(t, both(server.ConnString()))
	first := create(t, p.stores[0], record("one"))
	position := p.changes[0].next(t).Position
	second := create(t, p.stores[0], record("two"))
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if got := pull(t, p.stores[1].Watch(ctx, position))(); got.err != nil || !sameChange(got.Record, second) {
		t.Errorf("received %v, error %v, want %v", got.Record, got.err, second)
	}
	another := open(t, newSchema())
	if rec := create(t, another, record("one")); rec.Revision != first.Revision {
		t.Fatalf("the change has the number %d, want %d", rec.Revision, first.Revision)
	}
	if got := pull(t, another.Watch(ctx, position))(); !errors.Is(got.err, relayer.ErrGap) {
		t.Errorf("received %v, error %v, want ErrGap", got.Record, got.err)
	}
}

// TestWatch_ResumeAfterPruning: the position of the last change is valid for as long as
// no other change is pruned after it. An earlier one leads to a gap.
func TestWatch_ResumeAfterPruning(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	store := open(t, schema)
	changes := watch(t, store)
	var positions []string
	for i := range 3 {
		create(t, store, record(numbered(i)))
		positions = append(positions, changes.next(t).Position)
	}
	must(t, store.PruneAll())
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	// Another instance has nothing in memory.
	other := open(t, schema)
	last, early := pull(t, other.Watch(ctx, positions[2])), pull(t, other.Watch(ctx, positions[1]))
	rec := create(t, other, record("later"))
	if got := last(); got.err != nil || !sameChange(got.Record, rec) {
		t.Errorf("after the last position: received %v, error %v, want %v", got.Record, got.err, rec)
	}
	if got := early(); !errors.Is(got.err, relayer.ErrGap) {
		t.Errorf("after a pruned position: received %v, error %v, want ErrGap", got.Record, got.err)
	}
}

// TestWatch_ResumeAfterRestore: a change that a restore has lost leads to a gap, even if
// its number belongs to another change now, and if that has been pruned.
func TestWatch_ResumeAfterRestore(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	changes := watch(t, store)
	first := create(t, store, record("one"))
	changes.next(t)
	update(t, store, first)
	lost := changes.next(t).Position
	restore(t, admin, schema, int64(first.Revision))
	execute(t, admin, fmt.Sprintf("UPDATE %s.relayers SET revision = %d", schema, first.Revision))

	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	wantGap := func(when string) {
		t.Helper()
		if got := pull(t, open(t, postgres.WithSchema(schema)).Watch(ctx, lost))(); !errors.Is(got.err, relayer.ErrGap) {
			t.Errorf("%s: received %v, error %v, want ErrGap", when, got.Record, got.err)
		}
	}
	wantGap("restored")
	update(t, store, first)
	wantGap("another change has the number")
	openPruner(t, schema)
	eventually(t, "the changes are pruned", func() bool { return changesIn(t, admin, schema) == 0 })
	wantGap("the other change is pruned")
}

// TestWatch_WithoutPrivilege: a watch that can never return a change ends.
func TestWatch_WithoutPrivilege(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	openOn(t, admin, postgres.WithSchema(schema))
	execute(t, admin, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA "+schema+" FROM PUBLIC")
	store := openAt(t, limitedTo(t, schema, "GRANT SELECT ON ALL TABLES"), postgres.WithSchema(schema))
	changes := watch(t, store)
	wantFault(t, "Watch", changes.next(t).err, "42501")
	changes.wantEnd(t)
}

// TestFeed_Memory: every part of a change counts in the bound of the feed.
func TestFeed_Memory(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, change := range map[string]relayer.RecordChange{
		"document":     {Record: relayer.Record{Document: []byte(long)}},
		"private part": {Record: relayer.Record{Private: []byte(long)}},
		"note":         {Record: relayer.Record{Note: []byte(long)}},
		"text":         {Record: relayer.Record{Text: long}},
		"text before":  {OldText: long},
		"terms":        {Record: relayer.Record{Terms: []string{long}}},
		"terms before": {OldTerms: []string{long}},
	} {
		if got := postgres.SizeInFeed(change); got < len(long) || got > 2*len(long) {
			t.Errorf("%s of %d bytes: %d bytes", name, len(long), got)
		}
	}
}

// TestFeed_DroppedChanges: large changes that the feed has dropped are not kept behind small ones.
func TestFeed_DroppedChanges(t *testing.T) {
	feed, added := new(postgres.Feed), []weak.Pointer[byte]{}
	for range 3000 {
		feed.Add(relayer.RecordChange{})
	}
	for range 60 {
		document := make([]byte, 1<<20)
		added = append(added, weak.Make(&document[0]))
		feed.Add(relayer.RecordChange{Record: relayer.Record{Document: document}})
	}
	runtime.GC()
	kept := len(slices.DeleteFunc(added, func(p weak.Pointer[byte]) bool { return p.Value() == nil }))
	runtime.KeepAlive(feed)
	if kept < 8 || kept > 17 {
		t.Errorf("%d MiB are in memory, want 8 to 16", kept)
	}
}

// TestWatch_SlowConsumers: a consumer that takes its time keeps little in memory, whether its
// watch reads the database or the buffer of the feed.
func TestWatch_SlowConsumers(t *testing.T) {
	store := open(t, newSchema())
	start := mustGet(store.LastPosition(t.Context()))(t)
	heap := func() int {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // what a sync.Pool keeps
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc >> 20)
	}
	before := heap()
	for i := range 80 {
		rec := record(numbered(i))
		rec.Document = bytes.Repeat([]byte{byte(i)}, 1<<20)
		next := pull(t, store.Watch(t.Context(), ""))
		create(t, store, rec)
		if i%8 == 0 {
			next()
			pull(t, store.Watch(t.Context(), start))()
		}
	}
	// The buffer has 16 MiB, and each of 20 consumers a change.
	if grown := heap() - before; grown > 60 {
		t.Errorf("the heap has grown by %d MiB", grown)
	}
}

// TestWatch_LargeChanges has changes that exceed the limit of one read and the memory
// of the feed.
func TestWatch_LargeChanges(t *testing.T) {
	t.Parallel()
	store := open(t, newSchema())
	changes := watch(t, store)
	for i := range 7 {
		rec := record(fmt.Sprint(i))
		rec.Private = bytes.Repeat([]byte{byte(i)}, 3<<20)
		changes.want(t, relayer.ChangeCreated, create(t, store, rec))
	}
	late := pull(t, store.Watch(t.Context(), ""))
	var all []relayer.Record
	for i := range 7 {
		all = append(all, update(t, store, get(t, store, fmt.Sprint(i))))
	}
	for _, rec := range all {
		if got := late(); got.err != nil || got.Kind != relayer.ChangeUpdated || !sameChange(got.Record, rec) {
			t.Fatalf("%s %q, error %v", got.Kind, got.Record.ID, got.err)
		}
	}
}

// TestWatch_CompleteHistory has many writers on two instances whose listeners are
// disconnected again and again. Each watcher receives every change once, in the order
// of the revisions, and the changes lead to the stored records.
func TestWatch_CompleteHistory(t *testing.T) {
	t.Parallel()
	p := newPair(t, both(server.ConnString()))
	admin := newPool(t, server.ConnString())
	var writing sync.WaitGroup
	for writer := range 8 {
		store := p.stores[writer%2]
		writing.Go(func() {
			for i := range 40 {
				rec, err := store.Create(t.Context(), record(fmt.Sprintf("w%d-%d", writer, i)))
				if err == nil && i%2 == 0 {
					rec, err = store.Update(t.Context(), rec)
				}
				if err == nil && i%3 == 0 {
					err = store.Delete(t.Context(), rec.ID, rec.Revision, nil)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	disturbed := make(chan struct{})
	go func() {
		defer close(disturbed)
		for range 10 {
			time.Sleep(20 * time.Millisecond)
			_, _ = admin.Exec(context.Background(), endListeners, p.schema)
		}
	}()
	writing.Wait()
	<-disturbed
	create(t, p.stores[0], record("end"))
	histories := [2][]received{history(t, p.changes[0]), history(t, p.changes[1])}
	if len(histories[0]) != 8*(40+20+14)+1 || len(histories[1]) != len(histories[0]) {
		t.Fatalf("received %d and %d changes, want %d", len(histories[0]), len(histories[1]), 8*(40+20+14)+1)
	}
	current := make(map[string]relayer.Record)
	for i, change := range histories[0] {
		other := histories[1][i]
		if change.Kind != other.Kind || !sameChange(change.Record, other.Record) {
			t.Fatalf("change %d: one is received %v, the other of %v", i, change, other)
		}
		before, isThere := current[change.Record.ID]
		switch {
		case change.Kind == relayer.ChangeCreated && !isThere, change.Kind == relayer.ChangeUpdated && isThere && before.Revision < change.Record.Revision:
			current[change.Record.ID] = change.Record
		case change.Kind == relayer.ChangeDeleted && isThere && before.Revision < change.Record.Revision:
			delete(current, change.Record.ID)
		default:
			t.Fatalf("change %d: %v on %v", i, change, before)
		}
	}
	wantAll(t, p.stores[1], current)
}

func history(t *testing.T, f *follower) []received {
	t.Helper()
	var all []received
	for {
		next := f.next(t)
		if next.err != nil {
			t.Fatal(next.err)
		}
		all = append(all, next)
		if next.Record.ID == "end" {
			return all
		}
	}
}

func wantAll(t *testing.T, store *postgres.Store, want map[string]relayer.Record) {
	t.Helper()
	recs, total, err := list(t.Context(), store, relayer.StoreQuery{Limit: len(want) + 1})
	if err != nil || total != len(want) || len(recs) != len(want) {
		t.Fatalf("%d of %d relayers, error %v, want %d", len(recs), total, err, len(want))
	}
	for _, rec := range recs {
		if !sameChange(rec, want[rec.ID]) {
			t.Errorf("stored %v, want %v", rec, want[rec.ID])
		}
	}
}

// TestWatch_Unreachable: the sequences of a server that does not respond, or is away, end.
func TestWatch_Unreachable(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*pgserver.Server) error{"hangs": (*pgserver.Server).Pause, "is down": (*pgserver.Server).Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgserver.Start(t)
			store, other := openImpatient(t, server.ConnString(), defaultTimeouts), openImpatient(t, server.ConnString(), defaultTimeouts)
			idle := watch(t, store)
			made := createSettled(t, store, record("one"))
			idle.want(t, relayer.ChangeCreated, made)
			must(t, fail(server))
			begun := time.Now()
			since := watch(t, other)
			for what, got := range map[string]received{"begun before": idle.next(t), "begun since": since.next(t)} {
				if !errors.Is(got.err, relayer.ErrUnavailable) {
					t.Errorf("%s: received %v, error %v, want ErrUnavailable", what, got.RecordChange, got.err)
				}
			}
			if took := time.Since(begun); took < 13*time.Second || took > 15*time.Second+slack {
				t.Errorf("the sequences end after %v", took)
			}
			if name == "hangs" {
				must(t, server.Continue())
			}
		})
	}
}

// TestNotifyQueue_Full: while the queue is full, writes succeed without a notification, and
// watchers receive them. Later notifications are sent again. The test replaces a function of the
// server: to fill its queue takes 8 GB.
func TestNotifyQueue_Full(t *testing.T) {
	t.Parallel()
	schema, shadow := schemaName(), schemaName()
	admin := newPool(t, server.ConnString())
	execute(t, admin,
		"CREATE SCHEMA "+shadow,
		fmt.Sprintf(`CREATE TABLE %s.queue AS SELECT true AS is_full`, shadow),
		fmt.Sprintf(`CREATE SEQUENCE %s.sent`, shadow),
		fmt.Sprintf(`CREATE FUNCTION %s.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
			IF (SELECT is_full FROM %[1]s.queue) THEN
				RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000';
			END IF;
			PERFORM nextval('%[1]s.sent');
		END $$`, shadow))
	store := openAt(t, parameter(t, server.ConnString(), "search_path", shadow+",pg_catalog"), postgres.WithSchema(schema))
	store.PruneEach(time.Second)
	changes := watch(t, openOn(t, admin, postgres.WithSchema(schema)))
	rec := create(t, store, record("one"))
	changes.want(t, relayer.ChangeCreated, rec)
	rec = update(t, store, rec)
	changes.want(t, relayer.ChangeUpdated, rec)
	execute(t, admin, `UPDATE `+shadow+`.queue SET is_full = false`)
	eventually(t, "notifications are sent", func() bool {
		rec = update(t, store, rec)
		return queryOne[bool](t, admin, `SELECT is_called FROM `+shadow+`.sent`)
	})
}

// follower is a fast consumer of changes.
type follower struct {
	arrived chan received
	stop    context.CancelFunc
	ended   chan struct{}
}

// TestWatch_HeartbeatInterval: an idle sequence has a heartbeat every few seconds, and not at each
// poll.
func TestWatch_HeartbeatInterval(t *testing.T) {
	t.Parallel()
	var last time.Time
	for change, err := range open(t, newSchema()).Watch(t.Context(), "") {
		if since := time.Since(last); err != nil || change.Kind != relayer.ChangeHeartbeat || since < 2*time.Second {
			t.Fatalf("%s after %v, error %v; want a heartbeat after 3 s", change.Kind, since, err)
		}
		if !last.IsZero() {
			return
		}
		last = time.Now()
	}
}

type received struct {
	relayer.RecordChange
	err error
}

// watch starts a watch before it returns, and ends it with the test.
func watch(t testing.TB, store relayer.Store) *follower {
	ctx, stop := context.WithCancel(context.Background())
	f := &follower{arrived: make(chan received, 100_000), stop: stop, ended: make(chan struct{})}
	changes := store.Watch(ctx, "")
	go func() {
		defer close(f.ended)
		for changes != nil {
			changes = f.follow(ctx, store, changes)
		}
	}()
	t.Cleanup(func() {
		stop()
		f.wantEnd(t)
	})
	return f
}

// follow receives the changes of a sequence. If it ends with ErrGap, follow returns another
// one that begins before ErrGap is received.
func (f *follower) follow(ctx context.Context, store relayer.Store, changes iter.Seq2[relayer.RecordChange, error]) (next iter.Seq2[relayer.RecordChange, error]) {
	for change, err := range changes {
		if change.Kind == relayer.ChangeHeartbeat {
			continue
		}
		if next != nil {
			err = errors.Join(err, errors.New("the sequence does not end with ErrGap"))
		}
		if err == relayer.ErrGap {
			next = store.Watch(ctx, "")
		}
		f.arrived <- received{change, err}
	}
	return next
}

// waitLimit is far above any delay on a busy machine.
const waitLimit = 3 * time.Minute

func (f *follower) next(t testing.TB) received {
	t.Helper()
	select {
	case next := <-f.arrived:
		return next
	case <-time.After(waitLimit):
		t.Fatal("no change arrives")
		return received{}
	}
}

func (f *follower) want(t testing.TB, kind relayer.ChangeKind, rec relayer.Record) {
	t.Helper()
	next := f.next(t)
	if kind == relayer.ChangeDeleted && next.Record.Revision > rec.Revision {
		rec.Revision = next.Record.Revision // of the delete
	}
	if next.err != nil || next.Kind != kind || !sameChange(next.Record, rec) {
		t.Fatalf("received %s %.200v, error %v, want %s %.200v", next.Kind, next.Record, next.err, kind, rec)
	}
}

func (f *follower) wantGap(t testing.TB) {
	t.Helper()
	if next := f.next(t); !errors.Is(next.err, relayer.ErrGap) {
		t.Fatalf("received %s %.200v, error %v, want ErrGap", next.Kind, next.Record, next.err)
	}
}

// wantEnd waits for the end of the sequence.
func (f *follower) wantEnd(t testing.TB) {
	t.Helper()
	select {
	case <-f.ended:
	case <-time.After(waitLimit):
		t.Error("the sequence of changes does not end")
	}
}
