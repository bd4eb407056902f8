package relayer_test

import (
	"fmt"
	"testing"

	"github.com/go-relayer/relayer"
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
