//go:build unix

package mirror

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/patchtest"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

var (
	listWatchKills = flag.Int("listwatch.kills", 2, "how often the server is killed while lists are followed by watches")
	listWatchPhase = flag.Duration("listwatch.phase", 300*time.Millisecond, "time between two kills")
)

const (
	listWatchWriters   = 16
	listWatchFollowers = 3
	listWatchPage      = 1000 // relayers of a page, more than there are
)

// restartable is a registry that is killed and started again.
type restartable struct {
	open    func() relayer.Registry // a client with separate connections
	direct  relayer.Registry        // an instance in this process, or nil
	restart func()
}

// restartableMemory replaces the Manager and the server of a store.
func restartableMemory(t *testing.T) *restartable {
	store := memory.New()
	manager := func() *relayer.Manager {
		m, err := relayer.New(store, relayer.WithMaxPerPage(listWatchPage))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	server, direct := new(childServer), newFlaky(manager())
	var serving *http.Server
	start := func() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serving = &http.Server{Handler: newAPI(t, manager())}
		server.address.Store(listener.Addr().String())
		go func() { _ = serving.Serve(listener) }()
	}
	start()
	t.Cleanup(func() { _ = serving.Close() })
	return &restartable{
		open:   func() relayer.Registry { return server.client(t, client.WithRetries(1, time.Second)) },
		direct: direct,
		restart: func() {
			_ = serving.Close()
			direct.cut(errDown)
			start()
		},
	}
}

// restartableProcess kills a process that serves a store.
func restartableProcess(t *testing.T, task serverTask, direct relayer.Registry) *restartable {
	task.MaxPerPage = listWatchPage
	server := &childServer{task: task}
	server.start(t)
	t.Cleanup(func() { server.kill(t) })
	return &restartable{
		open:    func() relayer.Registry { return server.client(t, client.WithRetries(1, time.Second)) },
		direct:  direct,
		restart: func() { server.kill(t); server.start(t) },
	}
}

// TestListWatch lists all relayers and watches from the position of the page, again and again,
// under 16 writers, while the server is killed. Every sequence of changes must be that of the
// acknowledged writes: none is missing, and none is repeated. A source that reads the position
// after the page is the control: it must be found.
func TestListWatch(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *restartable{
		"memory": restartableMemory,
		"file": func(t *testing.T) *restartable {
			return restartableProcess(t, serverTask{Path: filepath.Join(t.TempDir(), "relayers.db")}, nil)
		},
		"PostgreSQL": func(t *testing.T) *restartable {
			connString, schema := pgserver.Start(t).ConnString(), "listwatch"
			other, err := relayer.New(pgtest.Open(t, connString, postgres.WithSchema(schema)), relayer.WithMaxPerPage(listWatchPage))
			if err != nil {
				t.Fatal(err)
			}
			return restartableProcess(t, serverTask{Postgres: connString, Path: schema}, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testListWatch(t, start(t))
		})
	}
}

func testListWatch(t *testing.T, r *restartable) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	followers := []*listFollower{newListFollower(latePosition{r.open()})}
	for range listWatchFollowers {
		followers = append(followers, newListFollower(r.open()))
	}
	if r.direct != nil {
		followers = append(followers, newListFollower(r.direct))
	}
	var following sync.WaitGroup
	for _, f := range followers {
		following.Go(func() { f.follow(ctx) })
	}
	writes := &writeLog{index: make(map[string]map[string]int), isLastDelete: make(map[string]bool)}
	end := make(chan struct{})
	var writing sync.WaitGroup
	for number := range listWatchWriters {
		w := &listWriter{t: t, registry: r.open(), log: writes, number: number}
		writing.Go(func() { w.write(end) })
	}
	for range *listWatchKills {
		time.Sleep(*listWatchPhase)
		r.restart()
	}
	time.Sleep(*listWatchPhase)
	close(end)
	writing.Wait()
	if _, err := r.open().Create(t.Context(), request("marker", "a")); err != nil {
		t.Fatal(err)
	}
	want := content(t, r.open(), relayer.Selector{})
	for i, f := range followers[1:] {
		eventually(t, fmt.Sprint("follower ", i), f.lacksMarker)
	}
	stop()
	following.Wait()
	for i, f := range followers {
		problems := f.check(writes, want)
		switch isControl := i == 0; {
		case isControl && len(problems) == 0:
			t.Error("a position that is read after its page is not found")
		case !isControl && len(problems) > 0:
			t.Errorf("follower %d: %d problems, the first are %q", i, len(problems), problems[:min(5, len(problems))])
		}
		t.Logf("follower %d: %d lists, %d changes, %d problems", i, len(f.walks), f.changes(), len(problems))
	}
}

// latePosition is a source that reads the position of a page after the page has changed.
type latePosition struct{ relayer.Registry }

func (s latePosition) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	page, err := s.Registry.List(ctx, query)
	if err != nil {
		return nil, err
	}
	for range 500 { // the writers may have ended
		later, err := s.Registry.List(ctx, query)
		if err != nil {
			return nil, err
		}
		page.Position = later.Position
		if !slices.EqualFunc(page.Relayers, later.Relayers, func(a, b *relayer.Relayer) bool { return a.ID == b.ID && a.Revision == b.Revision }) {
			break
		}
	}
	return page, nil
}

// writeLog has the writes of each relayer, in order. The name of a relayer is that of its
// write. The outcome of the last one may be unknown.
type writeLog struct {
	mu           sync.Mutex
	index        map[string]map[string]int // by ID and name
	isLastDelete map[string]bool
}

func (l *writeLog) add(id, name string, isDelete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index[id] == nil {
		l.index[id] = make(map[string]int)
	}
	l.index[id][name], l.isLastDelete[id] = len(l.index[id]), isDelete
}

// listWriter creates, changes and deletes relayers that no other writer uses.
type listWriter struct {
	t        *testing.T
	registry relayer.Registry
	log      *writeLog
	number   int

	ids    []string // that exist
	writes int
}

func (w *listWriter) write(end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-time.After(5 * time.Millisecond):
			w.writeOnce()
		}
	}
}

// writeOnce makes one write. A relayer whose state is unknown is not used again.
func (w *listWriter) writeOnce() {
	w.writes++
	name := fmt.Sprintf("w%d-%d", w.number, w.writes)
	at, id, ctx := -1, name, w.t.Context()
	if len(w.ids) > 0 && (len(w.ids) > 3 || rand.IntN(3) > 0) {
		at = rand.IntN(len(w.ids))
		id = w.ids[at]
	}
	isDelete := at >= 0 && rand.IntN(4) == 0
	var err error
	switch {
	case at < 0:
		_, err = w.registry.Create(ctx, request(id, "a"))
	case isDelete:
		err = w.registry.Delete(ctx, id)
	default:
		_, err = w.registry.Patch(ctx, id, patchtest.JSON(map[string]any{"name": name}))
	}
	isUnknown := errors.Is(err, relayer.ErrOutcomeUnknown)
	if err != nil && !isUnknown {
		if !errors.Is(err, relayer.ErrUnavailable) { // it had no effect
			w.t.Errorf("writing %s: %v", id, err)
		}
		return
	}
	w.log.add(id, name, isDelete)
	switch {
	case at < 0 && !isUnknown:
		w.ids = append(w.ids, id)
	case at >= 0 && (isDelete || isUnknown):
		w.ids[at] = w.ids[len(w.ids)-1]
		w.ids = w.ids[:len(w.ids)-1]
	}
}

// listFollower lists all relayers, and applies the changes after the page.
type listFollower struct {
	source    relayer.Registry
	hasMarker atomic.Bool
	walks     []*listWalk
	problems  []string
}

// listWalk is a page with the changes after it, until the first error.
type listWalk struct {
	page    []*relayer.Relayer
	changes []relayer.Change
	state   map[string]*relayer.Relayer
}

func newListFollower(source relayer.Registry) *listFollower { return &listFollower{source: source} }

func (f *listFollower) lacksMarker() string {
	if f.hasMarker.Load() {
		return ""
	}
	return "the marker has not arrived"
}

// follow lists again after every error, and after some changes.
func (f *listFollower) follow(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		page, err := f.source.List(ctx, relayer.ListQuery{After: new(relayer.Cursor), PerPage: listWatchPage})
		if err != nil {
			continue
		}
		walk := &listWalk{page: page.Relayers, state: make(map[string]*relayer.Relayer)}
		f.walks = append(f.walks, walk)
		if page.Next != "" || page.Position == "" {
			f.problems = append(f.problems, fmt.Sprintf("a page of %d relayers has the cursor %q and the position %q", len(page.Relayers), page.Next, page.Position))
		}
		for _, r := range page.Relayers {
			walk.state[r.ID] = r
		}
		f.noteMarker(walk)
		for change, err := range f.source.Watch(ctx, relayer.WatchQuery{After: page.Position}) {
			if err != nil {
				break
			}
			walk.changes = append(walk.changes, change)
			f.apply(walk, change)
			if f.noteMarker(walk); len(walk.changes) == 100 && !f.hasMarker.Load() {
				break
			}
		}
	}
}

func (f *listFollower) noteMarker(walk *listWalk) {
	if walk.state["marker"] != nil {
		f.hasMarker.Store(true)
	}
}

// apply applies a change strictly.
func (f *listFollower) apply(walk *listWalk, change relayer.Change) {
	r := change.Relayer
	before := walk.state[r.ID]
	if isNew := change.Kind == relayer.ChangeCreated; isNew == (before != nil) || before != nil && r.Revision <= before.Revision {
		f.problems = append(f.problems, fmt.Sprintf("%s is %s at revision %d after %v", r.ID, change.Kind, r.Revision, before))
	}
	if walk.state[r.ID] = r; change.Kind == relayer.ChangeDeleted {
		delete(walk.state, r.ID)
	}
}

func (f *listFollower) changes() (count int) {
	for _, walk := range f.walks {
		count += len(walk.changes)
	}
	return count
}

// check returns how the pages and changes differ from the writes, and the last state from that
// of the registry.
func (f *listFollower) check(writes *writeLog, want map[string]string) []string {
	problems := f.problems
	for _, walk := range f.walks {
		problems = append(problems, walk.check(writes)...)
	}
	got := make(map[string]string)
	if len(f.walks) > 0 {
		for id, r := range f.walks[len(f.walks)-1].state {
			got[id] = fmt.Sprint(*r)
		}
	}
	if difference := differs(got, want); difference != "" {
		problems = append(problems, "at the end "+difference)
	}
	return problems
}

// check compares the changes of each relayer with its writes: each is the one after the state
// before it.
func (w *listWalk) check(writes *writeLog) (problems []string) {
	next := make(map[string]int) // the number of the next write of a relayer
	note := func(r *relayer.Relayer, what string) {
		problems = append(problems, fmt.Sprintf("%s with the name %s %s", r.ID, r.Name, what))
	}
	for _, r := range w.page {
		number, isWritten := writes.index[r.ID][r.Name]
		if next[r.ID] = number + 1; !isWritten && r.ID != "marker" {
			note(r, "was not written")
		}
	}
	for _, change := range w.changes {
		r := change.Relayer
		number, isWritten := writes.index[r.ID][r.Name]
		if change.Kind == relayer.ChangeDeleted {
			number, isWritten = len(writes.index[r.ID])-1, writes.isLastDelete[r.ID]
		}
		if r.ID == "marker" {
			continue
		}
		if !isWritten || number != next[r.ID] {
			note(r, fmt.Sprintf("is %s as write %d, want write %d", change.Kind, number, next[r.ID]))
		}
		next[r.ID] = number + 1
	}
	return problems
}
