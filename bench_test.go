package relayer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

// typical returns a request as deployments have it: an endpoint with a key, a policy and
// labels.
func typical(id string) relayer.CreateRequest {
	req := withURLs(id, "https://eth-sepolia.example/v2/KEY")
	req.Name, req.NotificationID = "Payments "+id, "alerts"
	req.Policy = &relayer.EVMPolicy{MinBalance: new(relayer.Gwei(100)), GasPriceCap: new(relayer.Gwei(90)), EIP1559Pricing: new(true)}
	req.Labels = map[string]string{"team": "payments", "environment": "production"}
	return req
}

// BenchmarkWrite compares changes of a relayer with a create, the limit that they are
// measured against.
func BenchmarkWrite(b *testing.B) {
	for name, write := range map[string]func(m *relayer.Manager, i int) error{
		"create": func(m *relayer.Manager, i int) error {
			return second(m.Create(b.Context(), typical(fmt.Sprint("new-", i))))
		},
		"patch": func(m *relayer.Manager, i int) error {
			return second(m.Documents().Patch(b.Context(), "r", fmt.Appendf(nil, `{"policies":{"gas_price_cap":%d}}`, i)))
		},
		"pause": func(m *relayer.Manager, i int) error {
			return second(m.Documents().Patch(b.Context(), "r", fmt.Appendf(nil, `{"paused":%t}`, i%2 == 0)))
		},
		"pause that returns a relayer": func(m *relayer.Manager, i int) error {
			if i%2 == 0 {
				return second(m.Pause(b.Context(), "r"))
			}
			return second(m.Resume(b.Context(), "r"))
		},
	} {
		b.Run(name, func(b *testing.B) {
			m, err := relayer.New(memory.New())
			if err != nil {
				b.Fatal(err)
			}
			mustCreate(b, m, typical("r"))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := write(m, i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPauseAll pauses all relayers of a file and resumes them.
func BenchmarkPauseAll(b *testing.B) {
	for _, count := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			store, err := bolt.Open(b.Context(), b.TempDir()+"/relayers.db")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = store.Close() }()
			m, err := relayer.New(store)
			if err != nil {
				b.Fatal(err)
			}
			var creates sync.WaitGroup
			for worker := range 64 {
				creates.Go(func() {
					for i := worker; i < count; i += 64 {
						if _, err := m.Create(b.Context(), typical(fmt.Sprint("r-", i))); err != nil {
							b.Error(err)
						}
					}
				})
			}
			creates.Wait()
			for b.Loop() {
				paused, err := m.PauseAll(b.Context(), relayer.Selector{}, relayer.AllRelayers())
				wantBulk(b, paused, err, count, 0)
				b.StopTimer()
				resumed, err := m.ResumeAll(b.Context(), relayer.Selector{}, relayer.AllRelayers())
				wantBulk(b, resumed, err, count, 0)
				b.StartTimer()
			}
		})
	}
}

// fixedStore returns the same records for every query, and allocates nothing.
type fixedStore struct {
	relayer.Store
	listing relayer.Listing
}

func (s fixedStore) Get(context.Context, string) (relayer.Record, error) {
	return s.listing.Records[0], nil
}

func (s fixedStore) List(context.Context, relayer.StoreQuery) (relayer.Listing, error) {
	return s.listing, nil
}

// A get of a document allocates nothing. A list allocates its page, and a view also the query
// and the position.
func TestDocuments_Allocations(t *testing.T) {
	store := memory.New()
	created(t, managerOf(t, store), 100)
	listing := must(store.List(t.Context(), relayer.StoreQuery{Limit: 100}))(t)
	ctx := t.Context()
	m := managerOf(t, fixedStore{store, listing})
	view := m.Within(mustParse(t, "network=sepolia|mainnet,paused=false"))
	for name, c := range map[string]struct {
		most float64
		read func() error
	}{
		"get":            {0, func() error { return second(m.Documents().Get(ctx, listing.Records[0].ID)) }},
		"get in a view":  {0, func() error { return second(view.Documents().Get(ctx, listing.Records[0].ID)) }},
		"list":           {3, func() error { return second(listDocuments(ctx, m, relayer.ListQuery{PerPage: 100})) }},
		"list in a view": {14, func() error { return second(listDocuments(ctx, view, relayer.ListQuery{PerPage: 100})) }},
	} {
		mustSucceed(t, c.read())
		if got := testing.AllocsPerRun(100, func() { _ = c.read() }); got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", name, got, c.most)
		}
	}
}
