//go:build unix

package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

const workers = 6

// outcomes has the outcomes of writes by name. The value of a name is how often it is there.
type outcomes struct{ *ledger.Ledger[int] }

func newOutcomes() outcomes { return outcomes{ledger.New[int]()} }

func (o outcomes) add(name string, err error) { o.Add(ledger.StepOf(err), 1, name) }

// compare checks the names that are left against the outcomes. All stores have a history, so an
// outcome is unknown only if so many attempts fail that the store must fail too.
func (o outcomes) compare(s *system, left []string) {
	t := s.t
	t.Helper()
	counts := make(map[string]int)
	for _, name := range left {
		counts[name]++
	}
	if found := o.Compare(counts); !found.IsEmpty() {
		t.Errorf("%v: there are %v", found, counts)
	}
	written, refused, unknown := len(o.Ended(ledger.Done)), len(o.Ended(ledger.Refused)), len(o.Ended(ledger.Unknown))
	if unknown > 0 && !s.isUncertain {
		t.Errorf("%d outcomes are unknown", unknown)
	}
	if written == 0 {
		t.Error("no write succeeded")
	}
	t.Logf("%d written, %d not written, %d unknown", written, refused, unknown)
}

// allow fails the test if an error is not one that the faults may cause.
func allow(t *testing.T, what string, err error, allowed ...error) {
	t.Helper()
	if err == nil || errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown) {
		return
	}
	response, ok := errors.AsType[*client.ResponseError](err)
	if ok && (response.Status == http.StatusTooManyRequests || what == "read" && response.Status == http.StatusOK) {
		return // 200 is that of a page
	}
	if slices.ContainsFunc(allowed, func(other error) bool { return errors.Is(err, other) }) {
		return
	}
	t.Errorf("%s: %v", what, err)
}

func request(id, name, signer string) relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: id, Name: name, Network: "sepolia", NetworkType: relayer.EVM, SignerID: signer,
		CustomRPCURLs: []relayer.RPCConfig{{URL: "https://rpc.example/v2/key"}},
		Policy:        &relayer.EVMPolicy{GasPriceCap: new(relayer.Ether(1))},
	}
}

// content returns all relayers of the store, after late requests have arrived.
func (s *system) content() []*relayer.Relayer {
	s.t.Helper()
	s.proxy.Rate.Store(0)
	s.proxy.AwaitLate()
	return must(collect(s.manager))(s.t)
}

// collect returns the relayers of a registry until the first error.
func collect(registry relayer.Reader) (all []*relayer.Relayer, err error) {
	for r, err := range registry.All(context.Background(), relayer.Selector{}) {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

func names(relayers []*relayer.Relayer) (list []string) {
	for _, r := range relayers {
		list = append(list, r.Name)
	}
	return list
}

// work calls do for every operation of every worker.
func work(s *system, do func(c *client.Client, worker, operation int)) {
	s.proxy.Rate.Store(300)
	count := *operations
	if testing.Short() {
		count /= 4
	}
	var group sync.WaitGroup
	for worker := range workers {
		c := s.client()
		group.Go(func() {
			for operation := range count {
				do(c, worker, operation)
			}
		})
	}
	group.Wait()
}

// testCreates creates relayers with and without an ID. The names are unique.
func testCreates(s *system) {
	t, l := s.t, newOutcomes()
	work(s, func(c *client.Client, worker, operation int) {
		name := fmt.Sprintf("%d-%d", worker, operation)
		id := ""
		if operation%2 == 0 {
			id = "id-" + name
		}
		created, err := c.Create(t.Context(), request(id, name, "signer"))
		allow(t, "create", err)
		if err == nil && (created.Name != name || created.Revision == 0) {
			t.Errorf("created %v", created)
		}
		l.add(name, err)
	})
	l.compare(s, names(s.content()))
	s.proxy.WantEveryFault(s.t)
}

// testConditionalPatches lets all workers append to the name of one relayer, so
// that it lists all patches that took effect.
func testConditionalPatches(s *system) {
	t, l := s.t, newOutcomes()
	must(s.manager.Create(t.Context(), request("list", "start", "signer")))(t)
	work(s, func(c *client.Client, worker, operation int) {
		current, err := c.Get(t.Context(), "list")
		allow(t, "read", err)
		if err != nil {
			return
		}
		entry := fmt.Sprintf("%d-%d", worker, operation)
		_, err = c.Patch(t.Context(), "list", fmt.Appendf(nil, `{"name":%q}`, current.Name+" "+entry), relayer.IfRevision(current.Revision))
		allow(t, "patch", err, relayer.ErrConflict)
		l.add(entry, err)
	})
	l.compare(s, strings.Fields(s.content()[0].Name)[1:])
}

// testUpdates lets all workers append to the name of one relayer by Update, which loses
// races against the others.
func testUpdates(s *system) {
	t, l := s.t, newOutcomes()
	must(s.manager.Create(t.Context(), request("list", "start", "signer")))(t)
	work(s, func(c *client.Client, worker, operation int) {
		entry := fmt.Sprintf("%d-%d", worker, operation)
		_, err := c.Update(t.Context(), "list", func(r *relayer.Relayer) error { r.Name += " " + entry; return nil })
		if !isFailedRead(err) {
			allow(t, "update", err, relayer.ErrConflict)
		}
		l.add(entry, err)
	})
	l.compare(s, strings.Fields(s.content()[0].Name)[1:])
}

// isFailedRead reports whether an update has failed because it read a page with status 200.
func isFailedRead(err error) bool {
	response, ok := errors.AsType[*client.ResponseError](err)
	return ok && response.Status == http.StatusOK
}

// testDeletes deletes relayers, half of them by their revision.
func testDeletes(s *system) {
	t, l := s.t, newOutcomes()
	revisions := make(map[string]uint64)
	for worker := range workers {
		for operation := range *operations {
			id := fmt.Sprintf("%d-%d", worker, operation)
			created := must(s.manager.Create(t.Context(), request(id, id, "signer")))(t)
			revisions[id] = created.Revision
		}
	}
	work(s, func(c *client.Client, worker, operation int) {
		id := fmt.Sprintf("%d-%d", worker, operation)
		var conditions []relayer.WriteOption
		if operation%2 == 0 {
			conditions = append(conditions, relayer.IfRevision(revisions[id]))
		}
		err := c.Delete(t.Context(), id, conditions...)
		allow(t, "delete", err)
		l.add(id, err)
	})
	left := names(s.content())
	var deleted []string
	for id := range revisions {
		if !slices.Contains(left, id) {
			deleted = append(deleted, id)
		}
	}
	l.compare(s, deleted)
}

// testWatch follows the changes of a writer while connections are lost and the server is
// restarted. With every gap repaired by a list, the view of the follower must become the
// content of the store.
func testWatch(s *system) {
	t := s.t
	s.proxy.Rate.Store(100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := s.client()
	v := &view{names: make(map[string]string), revisions: make(map[string]uint64)}
	changes := c.Watch(ctx, relayer.WatchQuery{})
	v.readAll(t, c)
	written := make(chan error, 1)
	go func() { written <- s.write(10**operations, func() bool { return v.changes.Load() > 0 }) }()
	for v.follow(s, changes) {
		v.gaps++
		changes = c.Watch(ctx, relayer.WatchQuery{})
		v.readAll(t, c)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if want := namesOf(s.content()); !maps.Equal(v.names, want) {
		t.Errorf("the view is %v, want %v", v.names, want)
	}
	t.Logf("%d changes, %d gaps", v.changes.Load(), v.gaps)
}

// follow applies the changes, and reports whether a gap ended them before the last relayer.
func (v *view) follow(s *system, changes iter.Seq2[relayer.Change, error]) (isGap bool) {
	if _, ok := v.names[lastID]; ok {
		return false
	}
	for change, err := range changes {
		if errors.Is(err, relayer.ErrGap) {
			return true
		}
		if err != nil {
			s.t.Fatal(err)
		}
		v.apply(s.t, change)
		if v.changes.Load() == int64(*operations) {
			s.restart()
		}
		if _, ok := v.names[lastID]; ok {
			return false
		}
	}
	return false
}

const lastID = "the-last-one"

// write makes changes of few relayers until it has made enough, and a follower has seen one.
// Finally it creates the last one.
func (s *system) write(count int, isSeen func() bool) error {
	ctx := s.t.Context()
	for i := 0; i < count || !isSeen(); i++ {
		id := fmt.Sprint("r", rand.IntN(10))
		name := fmt.Sprint("name-", i)
		_, err := s.manager.Create(ctx, request(id, name, "signer"))
		if errors.Is(err, relayer.ErrExists) {
			if i%3 == 0 {
				err = s.manager.Delete(ctx, id)
			} else {
				_, err = s.manager.Patch(ctx, id, fmt.Appendf(nil, `{"name":%q}`, name))
			}
		}
		if err != nil {
			return err
		}
	}
	_, err := s.manager.Create(ctx, request(lastID, "last", "signer"))
	return err
}

// view is what a follower has learned.
type view struct {
	names     map[string]string
	revisions map[string]uint64 // of the last change
	changes   atomic.Int64
	gaps      int
}

// namesOf returns the names by ID.
func namesOf(relayers []*relayer.Relayer) map[string]string {
	names := make(map[string]string)
	for _, r := range relayers {
		names[r.ID] = r.Name
	}
	return names
}

// readAll reads until a list is complete: requests of the list fail too.
func (v *view) readAll(t *testing.T, c *client.Client) {
	for {
		all, err := collect(c)
		if err == nil {
			v.names = namesOf(all)
			return
		}
		allow(t, "read", err)
	}
}

func (v *view) apply(t *testing.T, change relayer.Change) {
	id, revision := change.Relayer.ID, change.Relayer.Revision
	v.changes.Add(1)
	if change.Kind == relayer.ChangeDeleted {
		delete(v.names, id)
		return
	}
	if revision <= v.revisions[id] {
		t.Errorf("revision %d of %s arrives after %d", revision, id, v.revisions[id])
	}
	v.revisions[id] = revision
	v.names[id] = change.Relayer.Name
}
