//go:build unix

package mirror

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/mirror"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/faultproxy"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

var rounds = flag.Int("rounds", 1, "rounds of writes and faults for each source")

// subject is a registry with a writer, and a source for mirrors.
type subject struct {
	writer *relayer.Manager
	source relayer.Registry

	// interrupt interrupts the source while it calls write.
	interrupt func(random *rand.Rand, write func())

	// setFaults begins and ends the faults that happen without a call of interrupt.
	setFaults func(on bool)
}

// direct is a Manager as a source. The writer may be another instance.
func direct(writer, manager *relayer.Manager) *subject {
	source := &flaky{Registry: manager}
	source.life, source.end = context.WithCancelCause(context.Background())
	interrupt := func(random *rand.Rand, write func()) {
		switch random.IntN(3) {
		case 0:
			source.cut(relayer.ErrGap)
			write()
		case 1:
			source.cut(errDown)
			write()
		default:
			source.setDown(errDown)
			write()
			source.setDown(nil)
		}
	}
	return &subject{writer, source, interrupt, func(bool) {}}
}

// remote is a client as a source, through a proxy that fails. The Managers are opened at
// every start of the server.
func remote(t *testing.T, open func() (writer, served *relayer.Manager)) *subject {
	writer, served := open()
	proxy := faultproxy.Start(t, newAPI(t, served))
	s := &subject{
		writer: writer,
		source: newClient(t, proxy.URL(), &http.Transport{}, client.WithTimeout(2*time.Second), client.WithRetries(4, 10*time.Second)),
		setFaults: func(on bool) {
			rate := int64(0)
			if on {
				rate = 100
			}
			proxy.Rate.Store(rate)
			proxy.EventRate.Store(rate)
		},
	}
	s.interrupt = func(_ *rand.Rand, write func()) {
		proxy.Stop()
		s.writer, served = open()
		write()
		proxy.Serve(newAPI(t, served))
	}
	return s
}

func same(manager *relayer.Manager) func() (writer, served *relayer.Manager) {
	return func() (writer, served *relayer.Manager) { return manager, manager }
}

// reopened returns a function that closes the file store and opens it again, which loses
// the positions of the change feed.
func reopened(t *testing.T) func() (writer, served *relayer.Manager) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	var store *bolt.Store
	closeStore := func() {
		if store != nil {
			succeed(t, store.Close())
		}
	}
	t.Cleanup(func() { closeStore() })
	return func() (writer, served *relayer.Manager) {
		closeStore()
		store = must(bolt.Open(t.Context(), path))(t)
		return same(newManager(t, store))()
	}
}

// TestMirror_Model compares mirrors of every store, in process and over HTTP, with the registry.
func TestMirror_Model(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	local := same(newManager(t, memory.New()))
	for name, open := range map[string]func(t *testing.T) *subject{
		"memory":             func(*testing.T) *subject { return direct(local()) },
		"bolt":               func(t *testing.T) *subject { return direct(reopened(t)()) },
		"postgres":           func(t *testing.T) *subject { return direct(twoInstances(t, server, "direct")()) },
		"client of memory":   func(t *testing.T) *subject { return remote(t, same(newManager(t, memory.New()))) },
		"client of bolt":     func(t *testing.T) *subject { return remote(t, reopened(t)) },
		"client of postgres": func(t *testing.T) *subject { return remote(t, twoInstances(t, server, "remote")) },
	} {
		t.Run(name, func(t *testing.T) { testModel(t, open(t)) })
	}
}

// twoInstances returns Managers of one registry: changes of the writer reach the other one
// through the database.
func twoInstances(t *testing.T, server *pgserver.Server, schema string) func() (writer, served *relayer.Manager) {
	open := func() *relayer.Manager {
		return newManager(t, pgtest.Open(t, server.ConnString(), postgres.WithSchema(schema)))
	}
	writer, served := open(), open()
	return func() (*relayer.Manager, *relayer.Manager) { return writer, served }
}

// selectors are those of the mirrors. All select the marker.
var selectors = []relayer.Selector{
	{},
	relayer.Selector{}.Where("label.team", "a"),
	relayer.Selector{}.Where("paused", "false"),
}

// testModel makes random writes while the source fails, and compares the views with the
// registry whenever all is quiet.
func testModel(t *testing.T, s *subject) {
	t.Parallel()
	views, followers := openViews(t, s.source)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range *rounds {
		s.setFaults(true)
		s.write(t, random, 50) // while the views follow
		for range 10 {
			s.write(t, random, 5)
			s.interrupt(random, func() { s.write(t, random, 3) })
		}
		s.setFaults(false)
		marker := s.mark(t)
		for i, view := range views {
			eventually(t, fmt.Sprintf("the view of %q in round %d", selectors[i], round), func() string {
				if !followers[i].has(marker) {
					return "the marker has not arrived"
				}
				return difference(t, view, s.writer, selectors[i])
			})
			eventually(t, "the changes", func() string { return followers[i].difference(view) })
		}
	}
}

func openViews(t *testing.T, source relayer.Registry) (views []*mirror.Mirror, followers []*follower) {
	for _, selector := range selectors {
		view := must(mirror.Open(t.Context(), source, selector))(t)
		t.Cleanup(view.Close)
		views, followers = append(views, view), append(followers, follow(t, view))
	}
	return views, followers
}

// difference returns how the view differs from the registry, or "".
func difference(t *testing.T, view *mirror.Mirror, registry relayer.Reader, selector relayer.Selector) string {
	got, want := content(t, view, relayer.Selector{}), content(t, registry, selector)
	if maps.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("the view is %v, want %v", got, want)
}

// write makes random changes of few relayers.
func (s *subject) write(t *testing.T, random *rand.Rand, count int) {
	for range count {
		id := fmt.Sprint("r", random.IntN(6))
		team := []string{"a", "b"}[random.IntN(2)]
		var err error
		switch random.IntN(6) {
		case 0, 1:
			_, err = s.writer.Create(t.Context(), request(id, team))
		case 2:
			err = s.writer.Delete(t.Context(), id)
		case 3:
			_, err = s.writer.Pause(t.Context(), id)
		case 4:
			_, err = s.writer.Resume(t.Context(), id)
		case 5:
			_, err = s.writer.Patch(t.Context(), id, fmt.Appendf(nil, `{"labels":{"team":%q}}`, team))
		}
		if err != nil && !errors.Is(err, relayer.ErrNotFound) && !errors.Is(err, relayer.ErrExists) {
			t.Fatal(err)
		}
	}
}

// mark changes the marker after all other changes.
func (s *subject) mark(t *testing.T) *relayer.Relayer {
	if _, err := s.writer.Create(t.Context(), request("marker", "a")); err != nil && !errors.Is(err, relayer.ErrExists) {
		t.Fatal(err)
	}
	return must(s.writer.Patch(t.Context(), "marker", fmt.Appendf(nil, `{"name":%q}`, crand.Text())))(t)
}

// TestMirror_IgnoredGaps is the control: mirrors that do not see gaps have the marker, and
// differ from the registry.
func TestMirror_IgnoredGaps(t *testing.T) {
	manager := newManager(t, memory.New())
	s := direct(manager, manager)
	views, followers := openViews(t, deaf{s.source})
	random := rand.New(rand.NewPCG(1, 2))
	isDifferent := make([]bool, len(views))
	for range 20 {
		s.write(t, random, 5)
		s.interrupt(random, func() { s.write(t, random, 3) })
		marker := s.mark(t)
		for i, view := range views {
			eventually(t, "the marker", func() string {
				if followers[i].has(marker) {
					return ""
				}
				marker = s.mark(t) // it is lost if the watch has not begun again
				return "has not arrived"
			})
			isDifferent[i] = isDifferent[i] || difference(t, view, manager, selectors[i]) != ""
		}
	}
	for i, selector := range selectors {
		if !isDifferent[i] {
			t.Errorf("the view of %q without repairs never differs from the registry", selector)
		}
	}
}

// follower applies the changes of a view to an empty map, and notes what cannot be right.
type follower struct {
	mu       sync.Mutex
	state    map[string]*relayer.Relayer
	last     map[string]uint64 // the highest revision by ID
	problems []string
}

func follow(t testing.TB, view *mirror.Mirror) *follower {
	f := &follower{state: make(map[string]*relayer.Relayer), last: make(map[string]uint64)}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		for change := range view.Changes(ctx) {
			f.apply(change)
		}
	})
	t.Cleanup(func() {
		cancel()
		following.Wait()
		for _, problem := range f.problems {
			t.Error(problem)
		}
	})
	return f
}

func (f *follower) apply(c mirror.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := cmp.Or(c.After, c.Before).ID
	if f.state[id] != c.Before || kindOf(c) != c.Kind {
		f.problems = append(f.problems, fmt.Sprintf("after %v follows %+v", f.state[id], c))
	}
	if c.After == nil {
		delete(f.state, id)
		return
	}
	if c.After.Revision <= f.last[id] { // no registry of these tests is restored
		f.problems = append(f.problems, fmt.Sprintf("revision %d of %s follows %d", c.After.Revision, id, f.last[id]))
	}
	f.state[id], f.last[id] = c.After, c.After.Revision
}

func kindOf(c mirror.Change) relayer.ChangeKind {
	switch {
	case c.Before == nil:
		return relayer.ChangeCreated
	case c.After == nil:
		return relayer.ChangeDeleted
	default:
		return relayer.ChangeUpdated
	}
}

// has reports whether the changes have led to this revision of the relayer.
func (f *follower) has(r *relayer.Relayer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last[r.ID] == r.Revision
}

// difference returns how the map differs from the view, or "".
func (f *follower) difference(view *mirror.Mirror) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	inView := make(map[string]*relayer.Relayer)
	for r := range view.All(context.Background(), relayer.Selector{}) {
		inView[r.ID] = r
	}
	if !maps.Equal(inView, f.state) {
		return fmt.Sprintf("the changes lead to %v, and the view is %v", f.state, inView)
	}
	return ""
}

// flaky is a source whose watches end on demand.
type flaky struct {
	relayer.Registry

	mu   sync.Mutex
	life context.Context // of the present watches
	end  context.CancelCauseFunc
	down error
}

// cut ends the present watches with an error.
func (s *flaky) cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(err)
	s.life, s.end = context.WithCancelCause(context.Background())
}

// setDown makes all reads and watches fail until it is called with nil.
func (s *flaky) setDown(err error) {
	s.mu.Lock()
	s.down = err
	s.mu.Unlock()
	if err != nil {
		s.cut(err)
	}
}

func (s *flaky) state() (life context.Context, down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life, s.down
}

func (s *flaky) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	if _, down := s.state(); down != nil {
		return nil, down
	}
	return s.Registry.List(ctx, query)
}

func (s *flaky) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	life, down := s.state()
	if down != nil {
		return func(yield func(relayer.Change, error) bool) { yield(relayer.Change{}, down) }
	}
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(life, cancel)
	changes := s.Registry.Watch(ctx, query)
	return func(yield func(relayer.Change, error) bool) {
		defer cancel()
		defer detach()
		for change, err := range changes {
			if life.Err() != nil {
				break
			}
			if !yield(change, err) {
				return
			}
		}
		if life.Err() != nil {
			yield(relayer.Change{}, context.Cause(life))
		}
	}
}

// deaf is a source that hides errors of watches, and with them the gaps.
type deaf struct{ relayer.Registry }

func (s deaf) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	return func(yield func(relayer.Change, error) bool) {
		for ctx.Err() == nil {
			for change, err := range s.Registry.Watch(ctx, query) {
				if err != nil {
					break
				}
				if !yield(change, nil) {
					return
				}
			}
			query.After = "" // it begins again where the registry is now
			time.Sleep(time.Millisecond)
		}
	}
}

var errDown = errors.New("the registry is down")
