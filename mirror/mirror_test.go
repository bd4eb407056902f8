package mirror_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/mirror"
	"github.com/go-relayer/relayer/store/memory"
)

func newManager(t testing.TB) *relayer.Manager {
	t.Helper()
	return must(relayer.New(memory.New(), relayer.WithMaxPerPage(1000)))(t)
}

func request(id, network string, labels map[string]string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: "name of " + id, Network: network, NetworkType: relayer.EVM, SignerID: "signer", Labels: labels}
}

func mustCreate(t testing.TB, m *relayer.Manager, req relayer.CreateRequest) *relayer.Relayer {
	t.Helper()
	return must(m.Create(context.Background(), req))(t)
}

func open(t testing.TB, source relayer.Registry, selector relayer.Selector) *mirror.Mirror {
	t.Helper()
	m := must(mirror.Open(context.Background(), source, selector))(t)
	t.Cleanup(m.Close) // in a bubble a goroutine that is left fails the test
	return m
}

// faultySource is a Manager whose watches fail on demand.
type faultySource struct {
	*relayer.Manager
	mu     sync.Mutex
	cancel context.CancelCauseFunc
	refuse error // for every read and watch
}

// fail ends the present watch with an error.
func (s *faultySource) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(err)
	}
}

func (s *faultySource) setRefuse(err error) {
	s.mu.Lock()
	s.refuse = err
	s.mu.Unlock()
	if err != nil {
		s.fail(err)
	}
}

func (s *faultySource) refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuse
}

func (s *faultySource) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	if err := s.refused(); err != nil {
		return nil, err
	}
	return s.Manager.List(ctx, query)
}

func (s *faultySource) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	if err := s.refused(); err != nil {
		cancel(err)
	}
	changes := s.Manager.Watch(ctx, query)
	return func(yield func(relayer.Change, error) bool) {
		defer cancel(nil)
		for change, err := range changes {
			if ctx.Err() != nil {
				break
			}
			if !yield(change, err) {
				return
			}
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			yield(relayer.Change{}, cause)
		}
	}
}

// content returns what a registry has, in order.
func content(t testing.TB, reader relayer.Reader, selector relayer.Selector) (all []string) {
	t.Helper()
	for r, err := range reader.All(context.Background(), selector) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s: revision %d, network %s, paused %t", r.ID, r.Revision, r.Network, r.Paused))
	}
	return all
}

// hookedSource is a Manager that calls a hook after each page, whose pages have one relayer.
type hookedSource struct {
	*faultySource
	hook atomic.Pointer[func(*relayer.Page)]
}

func newHookedSource(t *testing.T) *hookedSource {
	return &hookedSource{faultySource: &faultySource{Manager: newManager(t)}}
}

func (s *hookedSource) onPage(hook func(*relayer.Page)) { s.hook.Store(&hook) }

func (s *hookedSource) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	query.PerPage = 1
	page, err := s.faultySource.List(ctx, query)
	if hook := s.hook.Load(); err == nil && hook != nil {
		(*hook)(page)
	}
	return page, err
}

// The changes during a read take effect, in their order, and no change goes back before a
// state that was read: neither a consumer nor a read sees one.
func TestOpen_ChangesDuringRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, ctx := newHookedSource(t), t.Context()
		for _, id := range []string{"a", "b", "c", "d"} {
			mustCreate(t, source.Manager, request(id, "sepolia", nil))
		}
		var want []string
		pages := 0
		source.onPage(func(*relayer.Page) {
			if pages++; pages != 2 { // a and b are read
				return
			}
			for i := range 20 {
				mustCreate(t, source.Manager, request(fmt.Sprintf("new-%d", i), "sepolia", nil))
			}
			for _, id := range []string{"b", "new-7"} {
				if err := source.Delete(ctx, id); err != nil {
					t.Fatal(err)
				}
			}
			for _, id := range []string{"a", "c"} {
				must(source.Pause(ctx, id))(t)
			}
			must(source.Resume(ctx, "c"))(t)
			mustCreate(t, source.Manager, request("b", "mainnet", nil))
			want = content(t, source.Manager, relayer.Selector{})
			synctest.Wait()
		})
		m := open(t, source, relayer.Selector{})
		got := content(t, m, relayer.Selector{})
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the view is\n%q\nwant\n%q", got, want)
		}
	})
}

// laggingSource is a source whose pages and changes are late.
type laggingSource struct {
	*hookedSource
	beforePage func()
	lag        time.Duration // of each change
}

func (s *laggingSource) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	s.beforePage()
	return s.hookedSource.List(ctx, query)
}

func (s *laggingSource) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	return func(yield func(relayer.Change, error) bool) {
		for change, err := range s.hookedSource.Watch(ctx, query) {
			if time.Sleep(s.lag); !yield(change, err) {
				return
			}
		}
	}
}

func rename(t *testing.T, m *relayer.Manager, id string) {
	t.Helper()
	must(m.Update(t.Context(), id, func(r *relayer.Relayer) error { r.Name += "."; return nil }))(t)
}

// The last page shows later states than the changes before it, which arrive after it: a
// consumer never sees a state before one that it has seen.
func TestChanges_LateChangesOfRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := 0
		source := &laggingSource{newHookedSource(t), func() {}, 10 * time.Second}
		for _, id := range []string{"a", "b", "c"} {
			mustCreate(t, source.Manager, request(id, "sepolia", nil))
		}
		m := open(t, source, relayer.Selector{})
		seen := make(map[string]uint64)
		go func() {
			for change := range m.Changes(t.Context()) {
				if r := change.After; r.Revision < seen[r.ID] {
					t.Errorf("revision %d of %s follows %d", r.Revision, r.ID, seen[r.ID])
				} else {
					seen[r.ID] = r.Revision
				}
			}
		}()
		synctest.Wait()
		source.beforePage = func() {
			if pages++; pages != 3 {
				return
			}
			time.Sleep(time.Second)
			rename(t, source.Manager, "b")
			time.Sleep(time.Second)
			for range 5 {
				rename(t, source.Manager, "c")
			}
		}
		source.fail(relayer.ErrGap)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		for id, revision := range seen {
			if r, err := source.Get(t.Context(), id); err != nil || r.Revision != revision {
				t.Errorf("the last revision of %s is %d, want that of %v", id, revision, r)
			}
		}
	})
}

// A view with a selector is complete although the last change before its last page, and those
// after it, are changes of other relayers, which it does not get.
func TestOpen_LastChangeNotSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newHookedSource(t)
		mustCreate(t, source.Manager, request("other", "mainnet", nil))
		for _, id := range []string{"a", "b"} {
			mustCreate(t, source.Manager, request(id, "sepolia", nil))
		}
		source.onPage(func(*relayer.Page) { // only the first of these changes becomes a heartbeat
			rename(t, source.Manager, "other")
			rename(t, source.Manager, "other")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // two heartbeats
		defer cancel()
		m, err := mirror.Open(ctx, source, relayer.Selector{}.Where("network", "sepolia"))
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
	})
}

// While all relayers are read again, the view remains as it is, and ages.
func TestMirror_ReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, ctx := newHookedSource(t), t.Context()
		mustCreate(t, source.Manager, request("a", "sepolia", nil))
		m := open(t, source, relayer.Selector{})
		synctest.Wait() // until it watches
		opened := m.CaughtUp()
		source.onPage(func(*relayer.Page) { time.Sleep(time.Minute) })
		source.fail(relayer.ErrGap)
		time.Sleep(30 * time.Second)
		must(source.Pause(ctx, "a"))(t)
		synctest.Wait()
		if r, err := m.Get(ctx, "a"); err != nil || r.Paused {
			t.Errorf("meanwhile the relayer is %v, error %v", r, err)
		}
		if caughtUp := m.CaughtUp(); !caughtUp.Equal(opened) {
			t.Errorf("meanwhile the view was complete after %v", caughtUp.Sub(opened))
		}
		time.Sleep(time.Minute)
		if r, err := m.Get(ctx, "a"); err != nil || !r.Paused {
			t.Errorf("after the read the relayer is %v, error %v", r, err)
		}
		if age := time.Since(m.CaughtUp()); age > 5*time.Second {
			t.Errorf("after the read the view is %v old", age)
		}
	})
}

// The time of a view that was just read is that at which the request of the last page began,
// and neither that of its response nor that of the last change.
func TestOpen_SlowRead(t *testing.T) {
	for _, isChanged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source := newHookedSource(t)
			for _, id := range []string{"a", "b", "c"} {
				mustCreate(t, source.Manager, request(id, "sepolia", nil))
			}
			source.onPage(func(page *relayer.Page) {
				if isChanged && page.Relayers[0].ID == "a" {
					rename(t, source.Manager, "a")
				}
				time.Sleep(time.Second)
			})
			if age := time.Since(open(t, source, relayer.Selector{}).CaughtUp()); age != time.Second {
				t.Errorf("the view is %v old, want 1s (changed %t)", age, isChanged)
			}
		})
	}
}

// The differences of a read are reported once, deletions first.
func TestChanges_ReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, ctx := newHookedSource(t), t.Context()
		for _, id := range []string{"1", "2", "3"} {
			mustCreate(t, source.Manager, request(id, "sepolia", nil))
		}
		m := open(t, source, relayer.Selector{})
		var got []string
		go collectChanges(ctx, m, &got)
		synctest.Wait()
		source.setRefuse(errors.New("unreachable"))
		must(source.Pause(ctx, "2"))(t)
		mustCreate(t, source.Manager, request("4", "sepolia", nil))
		if err := source.Delete(ctx, "3"); err != nil {
			t.Fatal(err)
		}
		source.setRefuse(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"created 1", "created 2", "created 3", "deleted 3", "updated 2", "created 4"}
		if !slices.Equal(got, want) {
			t.Errorf("changes are %q, want %q", got, want)
		}
		if got, want := content(t, m, relayer.Selector{}), content(t, source.Manager, relayer.Selector{}); !slices.Equal(got, want) {
			t.Errorf("the view is\n%q\nwant\n%q", got, want)
		}
	})
}

// collectChanges appends the kind and the ID of every change until ctx is done.
func collectChanges(ctx context.Context, m *mirror.Mirror, changes *[]string) {
	for c := range m.Changes(ctx) {
		*changes = append(*changes, fmt.Sprint(c.Kind, " ", cmp.Or(c.After, c.Before).ID))
	}
}

// replaceable is a source whose Manager can be replaced, as by a backup that is restored.
type replaceable struct {
	relayer.Registry
	current atomic.Pointer[faultySource]
}

func newReplaceable(manager *relayer.Manager) *replaceable {
	s := new(replaceable)
	s.current.Store(&faultySource{Manager: manager})
	return s
}

func (s *replaceable) replace(manager *relayer.Manager) {
	s.current.Swap(&faultySource{Manager: manager}).fail(relayer.ErrGap)
}

func (s *replaceable) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	return s.current.Load().List(ctx, query)
}

func (s *replaceable) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	return s.current.Load().Watch(ctx, query)
}

// A registry that was restored or replaced becomes the content of the view, whatever its
// revisions, and is reported as changes.
func TestMirror_RestoredRegistry(t *testing.T) {
	for name, test := range map[string]struct {
		changes int // of the relayer before the restore, with the final state active
		fill    func(*testing.T, *relayer.Manager)
		want    []string
	}{
		"equal revisions": {1, func(t *testing.T, m *relayer.Manager) { mustCreate(t, m, request("a", "sepolia", nil)); pause(t, m) }, []string{"created a", "updated a"}},
		"lower revisions": {6, func(t *testing.T, m *relayer.Manager) { mustCreate(t, m, request("a", "sepolia", nil)); pause(t, m) }, []string{"created a", "updated a"}},
		"empty":           {1, func(*testing.T, *relayer.Manager) {}, []string{"created a", "deleted a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before, restored := newManager(t), newManager(t)
				mustCreate(t, before, request("a", "sepolia", nil))
				for range test.changes {
					must(before.Update(t.Context(), "a", func(r *relayer.Relayer) error { r.Name += "."; return nil }))(t)
				}
				test.fill(t, restored)
				source := newReplaceable(before)
				m := open(t, source, relayer.Selector{})
				var changes []string
				go collectChanges(t.Context(), m, &changes)
				synctest.Wait()
				source.replace(restored)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got, want := content(t, m, relayer.Selector{}), content(t, restored, relayer.Selector{}); !slices.Equal(got, want) {
					t.Errorf("the view is %q, want %q", got, want)
				}
				if !slices.Equal(changes, test.want) {
					t.Errorf("the changes are %q, want %q", changes, test.want)
				}
			})
		})
	}
}

func pause(t *testing.T, m *relayer.Manager) {
	t.Helper()
	must(m.Pause(t.Context(), "a"))(t)
}

// Every range begins with the relayers of the view.
func TestChanges_RangedAgain(t *testing.T) {
	manager := newManager(t)
	mustCreate(t, manager, request("a", "sepolia", nil))
	changes := open(t, manager, relayer.Selector{}).Changes(t.Context())
	for range 2 {
		for c := range changes {
			if c.Kind != relayer.ChangeCreated || c.After.ID != "a" {
				t.Errorf("the first change is %+v", c)
			}
			break
		}
	}
}

// The transitions of one relayer are combined until the consumer takes them.
func TestChanges_SlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager, ctx := newManager(t), t.Context()
		m := open(t, manager, relayer.Selector{})
		next, stop := iter.Pull(m.Changes(ctx))
		defer stop()
		mustCreate(t, manager, request("a", "sepolia", nil))
		first, _ := next()
		for i := range 1000 { // no change of the store waits
			if i%400 == 0 {
				synctest.Wait() // the store retains 1,024 changes: further behind, the mirror has a gap
			}
			for _, change := range []func(context.Context, string, ...relayer.WriteOption) (*relayer.Relayer, error){manager.Pause, manager.Resume} {
				must(change(ctx, "a"))(t)
			}
		}
		mustCreate(t, manager, request("short", "sepolia", nil))
		if err := manager.Delete(ctx, "short"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mustCreate(t, manager, request("last", "sepolia", nil))
		synctest.Wait()
		second, _ := next()
		third, _ := next()
		if second.Kind != relayer.ChangeUpdated || second.Before != first.After || second.After.Revision != 2001 || third.After.ID != "last" {
			t.Errorf("after %+v follow %+v and %+v", first, second, third)
		}
	})
}

// An unreachable registry leaves the view as it is. CaughtUp returns its age.
func TestMirror_Unreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &faultySource{Manager: newManager(t)}
		mustCreate(t, source.Manager, request("a", "sepolia", nil))
		m := open(t, source, relayer.Selector{})
		time.Sleep(time.Hour)
		if age := time.Since(m.CaughtUp()); age > 10*time.Second {
			t.Errorf("without changes the view is %v old", age)
		}
		source.setRefuse(errors.New("unreachable"))
		time.Sleep(time.Hour)
		if _, err := m.Get(t.Context(), "a"); err != nil || m.Err() != nil {
			t.Errorf("while the registry is unreachable: %v, %v", err, m.Err())
		}
		if age := time.Since(m.CaughtUp()); age < 59*time.Minute {
			t.Errorf("the view is %v old", age)
		}
		source.setRefuse(nil)
		time.Sleep(10 * time.Second)
		if age := time.Since(m.CaughtUp()); age > 10*time.Second {
			t.Errorf("after the repair the view is %v old", age)
		}
	})
}

// A failing registry is read at most as often as the backoff permits.
func TestMirror_Backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &faultySource{Manager: newManager(t)}
		var reads atomic.Int32
		open(t, countingSource{source, &reads}, relayer.Selector{})
		source.setRefuse(errors.New("unreachable"))
		time.Sleep(10 * time.Minute)
		if n := reads.Load(); n < 100 || n > 400 {
			t.Errorf("%d reads in ten minutes, want one in 2.5 seconds", n)
		}
	})
}

// After a session of more than two seconds, the first retry waits at most 100 ms.
func TestMirror_BackoffAfterLongSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &faultySource{Manager: newManager(t)}
		var reads atomic.Int32
		open(t, countingSource{source, &reads}, relayer.Selector{})
		for range 20 {
			time.Sleep(2500 * time.Millisecond)
			source.fail(errors.New("connection lost"))
		}
		time.Sleep(time.Second)
		if n := reads.Load(); n != 21 {
			t.Errorf("%d reads, want one at the beginning and one after each of 20 failures", n)
		}
	})
}

type countingSource struct {
	*faultySource
	reads *atomic.Int32
}

func (s countingSource) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	s.reads.Add(1)
	return s.faultySource.List(ctx, query)
}

// withoutPositions is a source like a server without cursors.
type withoutPositions struct{ *faultySource }

func (s withoutPositions) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	page, err := s.faultySource.List(ctx, query)
	if err == nil {
		page.Position = ""
	}
	return page, err
}

func TestOpen_NoPositions(t *testing.T) {
	source := withoutPositions{&faultySource{Manager: newManager(t)}}
	if _, err := mirror.Open(t.Context(), source, relayer.Selector{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error is %v", err)
	}
}

// The context of Open bounds Open only.
func TestOpen_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager := newManager(t)
		mustCreate(t, manager, request("a", "sepolia", nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m, err := mirror.Open(ctx, manager, relayer.Selector{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		time.Sleep(time.Hour)
		pause(t, manager)
		synctest.Wait()
		if r, err := m.Get(t.Context(), "a"); err != nil || !r.Paused || m.Err() != nil {
			t.Errorf("after the end of the context the relayer is %v, error %v, view %v", r, err, m.Err())
		}
	})
}

// A source that does not respond does not delay Open longer than its context.
func TestOpen_SourceHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newHookedSource(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		source.onPage(func(*relayer.Page) { <-ctx.Done() })
		mustCreate(t, source.Manager, request("a", "sepolia", nil))
		mustCreate(t, source.Manager, request("b", "sepolia", nil))
		if _, err := mirror.Open(ctx, source, relayer.Selector{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
}

// A closed view ends its changes and the use of the source, and ages.
func TestMirror_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager := newManager(t)
		mustCreate(t, manager, request("a", "sepolia", nil))
		m := open(t, manager, relayer.Selector{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range m.Changes(t.Context()) {
			}
		}()
		synctest.Wait()
		if m.Err() != nil {
			t.Errorf("an open view has error %v", m.Err())
		}
		m.Close()
		m.Close()
		<-m.Done()
		<-ended
		if !errors.Is(m.Err(), mirror.ErrClosed) {
			t.Errorf("a closed view has error %v", m.Err())
		}
		pause(t, manager)
		time.Sleep(time.Hour)
		if r, err := m.Get(t.Context(), "a"); err != nil || r.Paused || time.Since(m.CaughtUp()) < time.Hour {
			t.Errorf("the closed view has %v, error %v, and is %v old", r, err, time.Since(m.CaughtUp()))
		}
	})
}

// A consumer that takes long does not keep the view, or its age, from advancing.
func TestChanges_CaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager := newManager(t)
		mustCreate(t, manager, request("a", "sepolia", nil))
		m := open(t, manager, relayer.Selector{})
		for range m.Changes(t.Context()) {
			time.Sleep(time.Hour)
			break
		}
		if age := time.Since(m.CaughtUp()); age > 5*time.Second {
			t.Errorf("the view is %v old", age)
		}
	})
}

// stepped is a source whose times look as if, since then, the wall clock had advanced more
// than the monotonic clock, or less.
type stepped struct {
	*faultySource
	step time.Duration
}

func (s stepped) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	return func(yield func(relayer.Change, error) bool) {
		for change, err := range s.faultySource.Watch(ctx, query) {
			change.Time = withMonotonic(change.Time.Add(-s.step), s.step)
			if !yield(change, err) {
				return
			}
		}
	}
}

// withMonotonic adds a duration to the monotonic clock reading of a time only. Package time
// does not have such times: they need a machine that is suspended, or whose clock is set.
func withMonotonic(t time.Time, add time.Duration) time.Time {
	type layout struct {
		wall      uint64
		monotonic int64
		location  *time.Location
	}
	(*layout)(unsafe.Pointer(&t)).monotonic += int64(add)
	return t
}

// The view of a machine that was suspended is old, and one whose wall clock was set is never
// younger than it is.
func TestMirror_ClockSteps(t *testing.T) {
	for step, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, -time.Hour: 0, 0: 0} {
		source := stepped{&faultySource{Manager: newManager(t)}, step}
		m := open(t, source, relayer.Selector{})
		created := mustCreate(t, source.Manager, request("a", "sepolia", nil))
		for change := range m.Changes(t.Context()) {
			if change.After.Revision == created.Revision {
				break
			}
		}
		if age := time.Since(m.CaughtUp()); age < want || age > want+30*time.Second {
			t.Errorf("after a step of %v the view is %v old, want %v", step, age, want)
		}
	}
}

// A view that fails to open leaves no goroutine: synctest would fail.
func TestOpen_Fails(t *testing.T) {
	unreachable := errors.New("unreachable")
	synctest.Test(t, func(t *testing.T) {
		source := &faultySource{Manager: newManager(t)}
		source.setRefuse(unreachable)
		if _, err := mirror.Open(t.Context(), source, relayer.Selector{}); !errors.Is(err, unreachable) {
			t.Errorf("error is %v, want %v", err, unreachable)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := mirror.Open(canceled, newManager(t), relayer.Selector{}); !errors.Is(err, context.Canceled) {
			t.Errorf("with a canceled context: %v", err)
		}
		if _, err := mirror.Open(t.Context(), newManager(t), relayer.Selector{}.Where("color", "red")); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("with an invalid selector: %v", err)
		}
		if _, err := mirror.Open(t.Context(), nil, relayer.Selector{}); err == nil {
			t.Error("without a source: no error")
		}
	})
}

func TestMirror_Reads(t *testing.T) {
	manager := newManager(t)
	for i := range 50 {
		mustCreate(t, manager, request(fmt.Sprintf("r%02d", i), []string{"sepolia", "mainnet"}[i%2], map[string]string{"n": fmt.Sprint(i % 5), "rare": fmt.Sprint(i % 25)}))
	}
	m := open(t, manager, relayer.Selector{})
	for _, text := range []string{"", "none", "network=mainnet", "label.rare=20|3", "label.rare=7,network=mainnet", "label.n=3|4,network=mainnet", "id=r01|r07|r40", "paused=true", "search=R0", "search=name of r1,label.n=1"} {
		selector := must(relayer.ParseSelector(text))(t)
		if got, want := content(t, m, selector), content(t, manager, selector); !slices.Equal(got, want) {
			t.Errorf("%q selects\n%s\nwant\n%s", text, got, want)
		}
		for _, query := range []relayer.ListQuery{{}, {PerPage: 3, Page: 2}, {Page: 100}, {Page: 1 << 62, PerPage: 1000}} {
			query.Selector = selector
			got := must(m.List(t.Context(), query))(t)
			want := must(manager.List(t.Context(), query))(t)
			if got.Pagination != want.Pagination || len(got.Relayers) != len(want.Relayers) {
				t.Errorf("%q %+v: %+v with %d relayers, want %+v with %d", text, query, got.Pagination, len(got.Relayers), want.Pagination, len(want.Relayers))
			}
		}
	}
	if page, err := m.List(t.Context(), relayer.ListQuery{}); err != nil || page.Pagination.TotalItems != 50 {
		t.Errorf("the page is %+v, error %v", page, err)
	}
	if _, err := m.Get(t.Context(), "absent"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("an absent relayer: %v", err)
	}
	if _, err := m.List(t.Context(), relayer.ListQuery{Page: -1}); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("a negative page: %v", err)
	}
	walked, cursor := []string{}, new(relayer.Cursor)
	for isLast := false; !isLast; isLast = *cursor == "" {
		page, err := m.List(t.Context(), relayer.ListQuery{After: cursor, PerPage: 7})
		if err != nil || page.Pagination.TotalItems != 50 {
			t.Fatalf("a page after %q: %+v, error %v", *cursor, page, err)
		}
		for _, r := range page.Relayers {
			walked = append(walked, r.ID)
		}
		cursor = &page.Next
	}
	if len(slices.Compact(walked)) != 50 || !slices.IsSorted(walked) {
		t.Errorf("a walk has %q", walked)
	}
	for _, err := range m.All(t.Context(), relayer.Selector{}.Where("color", "red")) {
		if !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("an invalid selector: %v", err)
		}
	}
}

// A walk by cursors has every relayer that exists during it once, whatever is created, deleted
// and read again meanwhile.
func TestList_WalkDuringChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &faultySource{Manager: newManager(t)}
		for _, id := range []string{"a", "c", "d", "f"} {
			mustCreate(t, source.Manager, request(id, "sepolia", nil))
		}
		m := open(t, source, relayer.Selector{})
		first, err := m.List(t.Context(), relayer.ListQuery{After: new(relayer.Cursor), PerPage: 2})
		if err != nil || first.Next == "" {
			t.Fatalf("%+v, error %v", first, err)
		}
		synctest.Wait() // until it watches
		for _, id := range []string{"b", "e"} {
			mustCreate(t, source.Manager, request(id, "sepolia", nil))
		}
		if err := source.Delete(t.Context(), "c"); err != nil { // the cursor
			t.Fatal(err)
		}
		source.fail(relayer.ErrGap)
		time.Sleep(time.Second)
		rest, err := m.List(t.Context(), relayer.ListQuery{After: &first.Next})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range slices.Concat(first.Relayers, rest.Relayers) {
			ids = append(ids, r.ID)
		}
		if !slices.Equal(ids, []string{"a", "c", "d", "e", "f"}) {
			t.Errorf("the walk has %q", ids)
		}
	})
}

func BenchmarkMirror(b *testing.B) {
	const relayers = 100_000
	manager := newManager(b)
	for i := range relayers {
		labels := map[string]string{"team": fmt.Sprint(i % (relayers / 10))}
		mustCreate(b, manager, request(fmt.Sprintf("r%d", i), "sepolia", labels))
	}
	m, ctx := open(b, manager, relayer.Selector{}), context.Background()
	ids := make([]string, 1024)
	for i := range ids {
		ids[i] = fmt.Sprintf("r%d", rand.IntN(relayers))
	}
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := m.Get(ctx, ids[i%len(ids)]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("All/10 of 100000", func(b *testing.B) {
		selector := relayer.Selector{}.Where("label.team", "17").Where("paused", "false")
		for b.Loop() {
			count := 0
			for range m.All(ctx, selector) {
				count++
			}
			if count != 10 {
				b.Fatalf("%d relayers", count)
			}
		}
	})
}

// TestGet_Shared: a read by ID returns the relayer of the view, without an allocation.
func TestGet_Shared(t *testing.T) {
	manager := newManager(t)
	mustCreate(t, manager, request("a", "sepolia", nil))
	m := open(t, manager, relayer.Selector{})
	first := must(m.Get(t.Context(), "a"))(t)
	ctx := t.Context()
	allocations := testing.AllocsPerRun(100, func() {
		if again, err := m.Get(ctx, "a"); err != nil || again != first {
			t.Errorf("got %p, %v, want %p", again, err, first)
		}
	})
	if allocations > 0 {
		t.Errorf("%g allocations", allocations)
	}
}

// must returns a function that returns the value, or fails the test with the error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
