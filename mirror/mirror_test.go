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

// faultySource is a Manager that fails on demand, and whose pages have one relayer.
type faultySource struct {
	*relayer.Manager
	mu     sync.Mutex
	cancel context.CancelCauseFunc
	refuse error // for every read and watch

	// Hooks, or nil.
	beforePage func()
	onPage     func(*relayer.Page)
	onChange   func(*relayer.Change)
}

// newSource returns a source with relayers of the network sepolia.
func newSource(t testing.TB, ids ...string) *faultySource {
	t.Helper()
	s := &faultySource{Manager: newManager(t)}
	create(t, s.Manager, ids...)
	return s
}

func create(t testing.TB, m *relayer.Manager, ids ...string) {
	t.Helper()
	for _, id := range ids {
		mustCreate(t, m, request(id, "sepolia", nil))
	}
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

func (s *faultySource) current() (*relayer.Manager, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Manager, s.refuse
}

func (s *faultySource) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	if s.beforePage != nil {
		s.beforePage()
	}
	manager, err := s.current()
	if err != nil {
		return nil, err
	}
	query.PerPage = 1
	page, err := manager.List(ctx, query)
	if err == nil && s.onPage != nil {
		s.onPage(page)
	}
	return page, err
}

func (s *faultySource) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	manager, err := s.current()
	if err != nil {
		cancel(err)
	}
	changes := manager.Watch(ctx, query)
	return func(yield func(relayer.Change, error) bool) {
		defer cancel(nil)
		send := func(change relayer.Change, err error) bool {
			if s.onChange != nil {
				s.onChange(&change)
			}
			return yield(change, err)
		}
		for change, err := range changes {
			if ctx.Err() != nil {
				break
			}
			if !send(change, err) {
				return
			}
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			send(relayer.Change{}, cause)
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

// The changes during a read take effect, in their order, and no change goes back before a
// state that was read: neither a consumer nor a read sees one.
func TestOpen_ChangesDuringRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, ctx := newSource(t, "a", "b", "c", "d"), t.Context()
		var want []string
		pages := 0
		source.onPage = func(*relayer.Page) {
			if pages++; pages != 2 { // a and b are read
				return
			}
			for i := range 20 {
				create(t, source.Manager, fmt.Sprintf("new-%d", i))
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
		}
		m := open(t, source, relayer.Selector{})
		got := content(t, m, relayer.Selector{})
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the view is\n%q\nwant\n%q", got, want)
		}
	})
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
		source := newSource(t, "a", "b", "c")
		source.onChange = func(*relayer.Change) { time.Sleep(10 * time.Second) }
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
		source := newSource(t)
		mustCreate(t, source.Manager, request("other", "mainnet", nil))
		create(t, source.Manager, "a", "b")
		source.onPage = func(*relayer.Page) { // only the first of these changes becomes a heartbeat
			rename(t, source.Manager, "other")
			rename(t, source.Manager, "other")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // two heartbeats
		defer cancel()
		must(mirror.Open(ctx, source, relayer.Selector{}.Where("network", "sepolia")))(t).Close()
	})
}

// While all relayers are read again, the view remains as it is, and ages.
func TestMirror_ReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, ctx := newSource(t, "a"), t.Context()
		m := open(t, source, relayer.Selector{})
		synctest.Wait() // until it watches
		opened := m.CaughtUp()
		source.onPage = func(*relayer.Page) { time.Sleep(time.Minute) }
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
			source := newSource(t, "a", "b", "c")
			source.onPage = func(page *relayer.Page) {
				if isChanged && page.Relayers[0].ID == "a" {
					rename(t, source.Manager, "a")
				}
				time.Sleep(time.Second)
			}
			if age := time.Since(open(t, source, relayer.Selector{}).CaughtUp()); age != time.Second {
				t.Errorf("the view is %v old, want 1s (changed %t)", age, isChanged)
			}
		})
	}
}

// The differences of a read are reported once, deletions first.
func TestChanges_ReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, ctx := newSource(t, "1", "2", "3"), t.Context()
		m := open(t, source, relayer.Selector{})
		var got []string
		go collectChanges(ctx, m, &got)
		synctest.Wait()
		source.setRefuse(errors.New("unreachable"))
		must(source.Pause(ctx, "2"))(t)
		create(t, source.Manager, "4")
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

// A registry that was restored or replaced becomes the content of the view, whatever its
// revisions, and is reported as changes.
func TestMirror_RestoredRegistry(t *testing.T) {
	for name, test := range map[string]struct {
		changes int // of the relayer before the restore
		isEmpty bool
		want    []string
	}{
		"equal revisions": {1, false, []string{"created a", "updated a"}},
		"lower revisions": {6, false, []string{"created a", "updated a"}},
		"empty":           {1, true, []string{"created a", "deleted a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, restored := newSource(t, "a"), newManager(t)
				for range test.changes {
					rename(t, source.Manager, "a")
				}
				if !test.isEmpty {
					create(t, restored, "a")
					must(restored.Pause(t.Context(), "a"))(t)
				}
				m := open(t, source, relayer.Selector{})
				var changes []string
				go collectChanges(t.Context(), m, &changes)
				synctest.Wait()
				source.mu.Lock()
				source.Manager = restored
				source.mu.Unlock()
				source.fail(relayer.ErrGap)
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

// Every range begins with the relayers of the view.
func TestChanges_RangedAgain(t *testing.T) {
	manager := newSource(t, "a").Manager
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
		create(t, manager, "a")
		first, _ := next()
		for i := range 1000 { // no change of the store waits
			if i%400 == 0 {
				synctest.Wait() // the store retains 1,024 changes: further behind, the mirror has a gap
			}
			for _, change := range []func(context.Context, string, ...relayer.WriteOption) (*relayer.Relayer, error){manager.Pause, manager.Resume} {
				must(change(ctx, "a"))(t)
			}
		}
		create(t, manager, "short")
		if err := manager.Delete(ctx, "short"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		create(t, manager, "last")
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
		source := newSource(t, "a")
		m := open(t, source, relayer.Selector{})
		time.Sleep(time.Hour)
		if age := time.Since(m.CaughtUp()); age > 10*time.Second {
			t.Errorf("without changes the view is %v old", age)
		}
		source.setRefuse(errors.New("unreachable"))
		time.Sleep(time.Hour)
		if _, err := m.Get(t.Context(), "a"); err != nil {
			t.Errorf("while the registry is unreachable: %v", err)
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

// A change without a time, as a server may send it, leaves the age of the view as it is.
func TestMirror_ChangeWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, "a")
		m := open(t, source, relayer.Selector{})
		synctest.Wait() // until it watches
		source.onChange = func(change *relayer.Change) { change.Time = time.Time{} }
		before := m.CaughtUp()
		must(source.Pause(t.Context(), "a"))(t)
		synctest.Wait()
		if r, err := m.Get(t.Context(), "a"); err != nil || !r.Paused || !m.CaughtUp().Equal(before) {
			t.Errorf("the relayer is %v, error %v, in a view of %v, want %v", r, err, m.CaughtUp(), before)
		}
	})
}

// A registry is read again within 1.6 seconds after a failure, and not more often on average than
// every half second.
func TestMirror_Backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		source := newSource(t)
		source.beforePage = func() { reads.Add(1) }
		open(t, source, relayer.Selector{})
		for range 20 {
			time.Sleep(2500 * time.Millisecond)
			source.fail(errors.New("connection lost"))
		}
		time.Sleep(2 * time.Second)
		if n := reads.Swap(0); n != 21 {
			t.Errorf("%d reads, want one at the beginning and one after each of 20 failures", n)
		}
		source.setRefuse(errors.New("unreachable"))
		time.Sleep(10 * time.Minute)
		if n := reads.Load(); n < 600 || n > 1200 {
			t.Errorf("%d reads in ten minutes, want about one in 0.8 seconds", n)
		}
	})
}

// The context of Open bounds Open only.
func TestOpen_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager := newSource(t, "a").Manager
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m := must(mirror.Open(ctx, manager, relayer.Selector{}))(t)
		defer m.Close()
		time.Sleep(time.Hour)
		must(manager.Pause(t.Context(), "a"))(t)
		synctest.Wait()
		if r, err := m.Get(t.Context(), "a"); err != nil || !r.Paused {
			t.Errorf("after the end of the context the relayer is %v, error %v", r, err)
		}
	})
}

// A closed view ends its changes and the use of the source, and ages.
func TestMirror_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager := newSource(t, "a").Manager
		m := open(t, manager, relayer.Selector{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range m.Changes(t.Context()) {
			}
		}()
		synctest.Wait()
		m.Close()
		m.Close()
		<-ended
		must(manager.Pause(t.Context(), "a"))(t)
		time.Sleep(time.Hour)
		if r, err := m.Get(t.Context(), "a"); err != nil || r.Paused || time.Since(m.CaughtUp()) < time.Hour {
			t.Errorf("the closed view has %v, error %v, and is %v old", r, err, time.Since(m.CaughtUp()))
		}
	})
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
		source := newSource(t)
		source.onChange = func(change *relayer.Change) { change.Time = withMonotonic(change.Time.Add(-step), step) }
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

// A view that fails to open leaves no goroutine: synctest would fail. A source that does not respond
// does not delay Open longer than its context.
func TestOpen_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		unreachable, refusing, silent, old := errors.New("unreachable"), newSource(t), newSource(t, "a", "b"), newSource(t)
		refusing.setRefuse(unreachable)
		silent.onPage = func(*relayer.Page) { <-short.Done() }
		old.onPage = func(page *relayer.Page) { page.Position = "" }
		for name, c := range map[string]struct {
			ctx      context.Context
			source   relayer.Registry
			selector relayer.Selector
			want     error
		}{
			"unreachable":              {t.Context(), refusing, relayer.Selector{}, unreachable},
			"no response":              {short, silent, relayer.Selector{}, context.DeadlineExceeded},
			"a server without cursors": {t.Context(), old, relayer.Selector{}, errors.ErrUnsupported},
			"a canceled context":       {canceled, newManager(t), relayer.Selector{}, context.Canceled},
			"an invalid selector":      {t.Context(), newManager(t), relayer.Selector{}.Where("color", "red"), relayer.ErrInvalid},
		} {
			if _, err := mirror.Open(c.ctx, c.source, c.selector); !errors.Is(err, c.want) {
				t.Errorf("%s: error %v, want %v", name, err, c.want)
			}
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
		page, err := m.List(t.Context(), relayer.ListQuery{After: cursor, PerPage: 10})
		if err != nil || page.Pagination.TotalItems != 50 || len(page.Relayers) != 10 { // also of the last page, which is full
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
		source := newSource(t, "a", "c", "d", "f")
		m := open(t, source, relayer.Selector{})
		first, err := m.List(t.Context(), relayer.ListQuery{After: new(relayer.Cursor), PerPage: 2})
		if err != nil || first.Next == "" {
			t.Fatalf("%+v, error %v", first, err)
		}
		synctest.Wait() // until it watches
		create(t, source.Manager, "b", "e")
		if err := source.Delete(t.Context(), "c"); err != nil { // the cursor
			t.Fatal(err)
		}
		source.fail(relayer.ErrGap)
		time.Sleep(2 * time.Second)
		rest := must(m.List(t.Context(), relayer.ListQuery{After: &first.Next}))(t)
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
	manager := newSource(t, "a").Manager
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
