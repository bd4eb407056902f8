package mirror_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/mirror"
	"github.com/go-relayer/relayer/store/memory"
)

func newManager(t testing.TB) *relayer.Manager {
	t.Helper()
	m, err := relayer.New(memory.New(), relayer.WithMaxPerPage(1000))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func request(id, network string, labels map[string]string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: "name of " + id, Network: network, NetworkType: relayer.EVM, SignerID: "signer", Labels: labels}
}

func mustCreate(t testing.TB, m *relayer.Manager, req relayer.CreateRequest) *relayer.Relayer {
	t.Helper()
	r, err := m.Create(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func open(t testing.TB, source mirror.Source, selector relayer.Selector, options ...mirror.Option) *mirror.Mirror {
	t.Helper()
	m, err := mirror.Open(t.Context(), source, selector, options...)
	if err != nil {
		t.Fatal(err)
	}
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

func (s *faultySource) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	if err := s.refused(); err != nil {
		return func(yield func(*relayer.Relayer, error) bool) { yield(nil, err) }
	}
	return s.Manager.All(ctx, selector)
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

// hookedSource is a Manager that calls a hook after each relayer of a read of all.
type hookedSource struct {
	*faultySource
	hook atomic.Pointer[func(*relayer.Relayer)]
}

func newHookedSource(t *testing.T) *hookedSource {
	return &hookedSource{faultySource: &faultySource{Manager: newManager(t)}}
}

func (s *hookedSource) onRead(hook func(*relayer.Relayer)) { s.hook.Store(&hook) }

func (s *hookedSource) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		for r, err := range s.faultySource.All(ctx, selector) {
			if hook := s.hook.Load(); err == nil && hook != nil {
				(*hook)(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// The changes during a read take effect, in their order.
func TestOpen_ChangesDuringRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newHookedSource(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, id := range []string{"a", "b", "c"} {
			mustCreate(t, source.Manager, request(id, "sepolia", nil))
		}
		var want []string
		source.onRead(func(r *relayer.Relayer) {
			if r.ID != "c" {
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
			if _, err := source.Pause(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			mustCreate(t, source.Manager, request("b", "mainnet", nil))
			want = content(t, source.Manager, relayer.Selector{})
			synctest.Wait()
		})
		m, err := mirror.Open(ctx, source, relayer.Selector{})
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, m, relayer.Selector{}); !slices.Equal(got, want) {
			t.Errorf("the view is\n%q\nwant\n%q", got, want)
		}
	})
}

// While a gap is repaired, the changes that arrive are visible, but the view does not count
// as complete.
func TestMirror_ChangesDuringRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newHookedSource(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		mustCreate(t, source.Manager, request("a", "sepolia", nil))
		m, err := mirror.Open(ctx, source, relayer.Selector{})
		if err != nil {
			t.Fatal(err)
		}
		opened := m.CaughtUp()
		source.onRead(func(*relayer.Relayer) { time.Sleep(time.Minute) })
		source.fail(relayer.ErrGap)
		time.Sleep(30 * time.Second)
		if _, err := source.Pause(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r, err := m.Get(ctx, "a"); err != nil || !r.Paused {
			t.Errorf("during the repair the relayer is %v, error %v", r, err)
		}
		if caughtUp := m.CaughtUp(); caughtUp != opened {
			t.Errorf("during the repair the view was complete after %v", caughtUp.Sub(opened))
		}
		time.Sleep(time.Minute)
		if age := time.Since(m.CaughtUp()); age > 31*time.Second {
			t.Errorf("after the repair the view is %v old", age)
		}
	})
}

// The differences of a repair are reported once, deletions first, and no relayer gets an
// older state.
func TestChanges_Repair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newHookedSource(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, id := range []string{"same", "updated", "deleted"} {
			mustCreate(t, source.Manager, request(id, "sepolia", nil))
		}
		m, err := mirror.Open(ctx, source, relayer.Selector{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		go collectChanges(ctx, m, &got)
		synctest.Wait()
		source.setRefuse(errors.New("unreachable"))
		if _, err := source.Pause(ctx, "updated"); err != nil {
			t.Fatal(err)
		}
		mustCreate(t, source.Manager, request("created", "sepolia", nil))
		if err := source.Delete(ctx, "deleted"); err != nil {
			t.Fatal(err)
		}
		// The read returns a state before a change that the watch reports.
		source.onRead(func(r *relayer.Relayer) {
			if r.ID == "same" {
				if _, err := source.Pause(ctx, "same"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		})
		source.setRefuse(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"created same", "created updated", "created deleted", "updated same", "deleted deleted", "updated updated", "created created"}
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

// scripted is a source with these relayers and then these changes.
type scripted struct {
	relayer.Reader
	relayers []*relayer.Relayer
	changes  []relayer.Change
}

func (s scripted) All(context.Context, relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		for _, r := range s.relayers {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s scripted) Watch(ctx context.Context, _ relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	return func(yield func(relayer.Change, error) bool) {
		time.Sleep(time.Second) // until all are read
		for _, change := range s.changes {
			if !yield(change, nil) {
				return
			}
		}
		<-ctx.Done()
	}
}

// replaceable is a source whose Manager can be replaced, as by a backup that is restored.
type replaceable struct {
	*faultySource
	current atomic.Pointer[relayer.Manager]
}

func (s *replaceable) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return s.current.Load().All(ctx, selector)
}

// A view of a registry that was restored is not current: what is paused there may not be
// paused in the view, which never goes backward.
func TestMirror_RestoredRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before, restored := newManager(t), newManager(t)
		mustCreate(t, before, request("a", "sepolia", nil))
		for range 2 {
			if _, err := before.Pause(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			if _, err := before.Resume(ctx, "a"); err != nil {
				t.Fatal(err)
			}
		}
		mustCreate(t, restored, request("a", "sepolia", nil))
		if _, err := restored.Pause(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		source := &replaceable{faultySource: &faultySource{Manager: before}}
		source.current.Store(before)
		errs := make(chan error, 1)
		m, err := mirror.Open(ctx, source, relayer.Selector{}, mirror.WithMaxAge(time.Minute, func(_ time.Time, err error) { errs <- err }))
		if err != nil {
			t.Fatal(err)
		}
		source.current.Store(restored)
		source.fail(relayer.ErrGap)
		opened := m.CaughtUp()
		time.Sleep(10 * time.Minute)
		select {
		case err := <-errs:
			if err == nil || !strings.Contains(err.Error(), "open the view again") {
				t.Errorf("the error of the stale view is %v", err)
			}
		default:
			t.Error("the view is not stale")
		}
		if !m.CaughtUp().Equal(opened) {
			t.Error("the view counts as current")
		}
	})
}

// A relayer never gets an older state: neither by a change that arrives after a read of its
// result, nor by one that arrives again.
func TestMirror_OldChanges(t *testing.T) {
	at := func(id string, revision uint64) *relayer.Relayer {
		return &relayer.Relayer{ID: id, Revision: revision, Network: "sepolia"}
	}
	source := scripted{
		relayers: []*relayer.Relayer{at("a", 5)},
		changes: []relayer.Change{
			{Kind: relayer.ChangeUpdated, Relayer: at("a", 3)},
			{Kind: relayer.ChangeDeleted, Relayer: at("a", 3)},
			{Kind: relayer.ChangeCreated, Relayer: at("a", 5)},
			{Kind: relayer.ChangeCreated, Relayer: at("b", 6)},
			{Kind: relayer.ChangeUpdated, Relayer: at("b", 7)},
			{Kind: relayer.ChangeUpdated, Relayer: at("b", 7)},
			{Kind: relayer.ChangeCreated, Relayer: at("b", 6)},
			{Kind: relayer.ChangeDeleted, Relayer: at("c", 8)},
		},
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m, err := mirror.Open(ctx, source, relayer.Selector{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		go collectChanges(ctx, m, &got)
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"created a", "created b"}; !slices.Equal(got, want) {
			t.Errorf("changes are %q, want %q", got, want)
		}
		want := []string{"a: revision 5, network sepolia, paused false", "b: revision 7, network sepolia, paused false"}
		if got := content(t, m, relayer.Selector{}); !slices.Equal(got, want) {
			t.Errorf("the view is %q, want %q", got, want)
		}
	})
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
		manager := newManager(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m, err := mirror.Open(ctx, manager, relayer.Selector{})
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull(m.Changes(ctx))
		defer stop()
		mustCreate(t, manager, request("a", "sepolia", nil))
		first, _ := next()
		for i := range 1000 { // no change of the store waits
			if i%400 == 0 {
				synctest.Wait() // the store retains 1,024 changes: further behind, the mirror has a gap
			}
			for _, change := range []func(context.Context, string, ...relayer.WriteOption) (*relayer.Relayer, error){manager.Pause, manager.Resume} {
				if _, err := change(ctx, "a"); err != nil {
					t.Fatal(err)
				}
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

// Deleted and created again is seen as both, also if it happens while the watch is down and
// only the reads show it.
func TestChanges_CreatedAgain(t *testing.T) {
	for name, isDown := range map[string]bool{"followed": false, "during a repair": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &faultySource{Manager: newManager(t)}
				mustCreate(t, source.Manager, request("a", "sepolia", nil))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				m, err := mirror.Open(ctx, source, relayer.Selector{})
				if err != nil {
					t.Fatal(err)
				}
				var kinds []relayer.ChangeKind
				go func() {
					for change := range m.Changes(ctx) {
						kinds = append(kinds, change.Kind)
					}
				}()
				synctest.Wait()
				if isDown {
					source.setRefuse(errors.New("unreachable"))
					synctest.Wait()
				}
				if err := source.Delete(ctx, "a"); err != nil {
					t.Fatal(err)
				}
				mustCreate(t, source.Manager, request("a", "mainnet", nil))
				source.setRefuse(nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				if want := []relayer.ChangeKind{"created", "deleted", "created"}; !slices.Equal(kinds, want) {
					t.Errorf("changes are %v, want %v", kinds, want)
				}
			})
		})
	}
}

// An unreachable registry leaves the view as it is. CaughtUp returns its age, and the hook
// of WithMaxAge is called once each time it becomes too old.
func TestMirror_MaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &faultySource{Manager: newManager(t)}
		mustCreate(t, source.Manager, request("a", "sepolia", nil))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		unreachable := errors.New("unreachable")
		var stale atomic.Int32
		m, err := mirror.Open(ctx, source, relayer.Selector{}, mirror.WithMaxAge(time.Minute, func(caughtUp time.Time, err error) {
			stale.Add(1)
			if age := time.Since(caughtUp); age < time.Minute || age > time.Minute+10*time.Second || !errors.Is(err, unreachable) {
				t.Errorf("stale after %v with error %v", age, err)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if age := time.Since(m.CaughtUp()); age > 10*time.Second || stale.Load() != 0 {
			t.Errorf("without changes the view is %v old, and was stale %d times", age, stale.Load())
		}
		for round := range int32(2) {
			source.setRefuse(unreachable)
			time.Sleep(time.Hour)
			if _, err := m.Get(ctx, "a"); err != nil {
				t.Errorf("while the registry is unreachable: %v", err)
			}
			if age := time.Since(m.CaughtUp()); age < 59*time.Minute || stale.Load() != round+1 {
				t.Errorf("round %d: the view is %v old, and was stale %d times", round, age, stale.Load())
			}
			source.setRefuse(nil)
			time.Sleep(10 * time.Second)
			if age := time.Since(m.CaughtUp()); age > 10*time.Second {
				t.Errorf("round %d: after the repair the view is %v old", round, age)
			}
		}
	})
}

// A failing registry is read at most as often as the backoff permits.
func TestMirror_Backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &faultySource{Manager: newManager(t)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var watches atomic.Int32
		m, err := mirror.Open(ctx, countingSource{source, &watches}, relayer.Selector{})
		if err != nil {
			t.Fatal(err)
		}
		source.setRefuse(errors.New("unreachable"))
		time.Sleep(10 * time.Minute)
		if n := watches.Load(); n < 100 || n > 300 {
			t.Errorf("%d watches in ten minutes, want one in 2.5 to 5 seconds", n)
		}
		_ = m
	})
}

// withoutRevisions is a source like a server that returns no revisions.
type withoutRevisions struct{ *faultySource }

func (s withoutRevisions) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		for r, err := range s.faultySource.All(ctx, selector) {
			r.Revision = 0
			if !yield(r, err) {
				return
			}
		}
	}
}

func TestOpen_NoRevisions(t *testing.T) {
	source := withoutRevisions{&faultySource{Manager: newManager(t)}}
	mustCreate(t, source.Manager, request("a", "sepolia", nil))
	if _, err := mirror.Open(t.Context(), source, relayer.Selector{}); !errors.Is(err, relayer.ErrNoRevision) {
		t.Errorf("error is %v", err)
	}
}

type countingSource struct {
	*faultySource
	watches *atomic.Int32
}

func (s countingSource) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	s.watches.Add(1)
	return s.faultySource.Watch(ctx, query)
}

// A mirror ends with its context: synctest fails if a goroutine is left.
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
		for name, options := range map[string][]mirror.Option{
			"zero option":    {{}},
			"short age":      {mirror.WithMaxAge(time.Second, func(time.Time, error) {})},
			"without a hook": {mirror.WithMaxAge(time.Minute, nil)},
		} {
			if _, err := mirror.Open(t.Context(), newManager(t), relayer.Selector{}, options...); err == nil {
				t.Errorf("%s: no error", name)
			}
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
		selector, err := relayer.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := content(t, m, selector), content(t, manager, selector); !slices.Equal(got, want) {
			t.Errorf("%q selects\n%s\nwant\n%s", text, got, want)
		}
		for _, query := range []relayer.ListQuery{{}, {PerPage: 3, Page: 2}, {Page: 100}, {Page: 1 << 62, PerPage: 1000}} {
			query.Selector = selector
			got, err := m.List(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			want, err := manager.List(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got.Pagination) != fmt.Sprint(want.Pagination) || len(got.Relayers) != len(want.Relayers) {
				t.Errorf("%q %+v: %+v with %d relayers, want %+v with %d", text, query, got.Pagination, len(got.Relayers), want.Pagination, len(want.Relayers))
			}
		}
	}
	if m.Len() != 50 {
		t.Errorf("length is %d", m.Len())
	}
	if _, err := m.Get(t.Context(), "absent"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("an absent relayer: %v", err)
	}
	if _, err := m.List(t.Context(), relayer.ListQuery{Page: -1}); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("a negative page: %v", err)
	}
	for _, err := range m.All(t.Context(), relayer.Selector{}.Where("color", "red")) {
		if !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("an invalid selector: %v", err)
		}
	}
}

func TestGet_NoAllocation(t *testing.T) {
	manager := newManager(t)
	mustCreate(t, manager, request("a", "sepolia", nil))
	m, ctx := open(t, manager, relayer.Selector{}), context.Background()
	if allocations := testing.AllocsPerRun(100, func() { _, _ = m.Get(ctx, "a") }); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
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
