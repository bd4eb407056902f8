//go:build unix

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
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
