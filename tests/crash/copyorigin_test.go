//go:build unix

package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// fillOrigin fills a store as years of use would: some relayers have exclusive
// signers, some were updated, and others between them were deleted.
func fillOrigin(t *testing.T, origin store) {
	t.Helper()
	filled := memory.New()
	shared, err := relayer.New(filled)
	must(t, err)
	exclusive, err := relayer.New(filled, relayer.WithExclusiveSigners())
	must(t, err)
	definitions := realDefinitions(t)
	for i := range *relayers {
		manager := shared
		if i%3 == 0 {
			manager = exclusive
		}
		id := fmt.Sprintf("relayer-%d", i)
		create(t, manager, definitions[i%len(definitions)], id)
		for range i % 7 / 5 {
			rename(t, manager, id)
		}
		if i%20 == 0 {
			create(t, manager, definitions[i%len(definitions)], "deleted")
			must(t, manager.Delete(t.Context(), "deleted"))
		}
	}
	importAll(t, origin, filled)
}

// realDefinitions returns relayers of public deployments.
func realDefinitions(t *testing.T) []map[string]any {
	t.Helper()
	data, err := os.ReadFile("../../cmd/relayerd/testdata/real-relayers.json")
	must(t, err)
	var entries []struct {
		Relayer map[string]any `json:"relayer"`
	}
	must(t, json.Unmarshal(data, &entries))
	var definitions []map[string]any
	for _, entry := range entries {
		definitions = append(definitions, entry.Relayer)
	}
	return definitions
}

// create creates a relayer with its own signer and with secret endpoints.
func create(t *testing.T, manager *relayer.Manager, definition map[string]any, id string) {
	t.Helper()
	definition["id"] = id
	definition["signer_id"] = "signer-of-" + id
	definition["custom_rpc_urls"] = []map[string]any{
		{"url": "https://rpc.example/v2/key-of-" + id},
		{"url": "https://second.example/?key=" + id, "weight": 7},
	}
	body, err := json.Marshal(definition)
	must(t, err)
	_, err = manager.Documents().Create(t.Context(), body)
	must(t, err)
}

func rename(t *testing.T, manager *relayer.Manager, id string) {
	t.Helper()
	_, err := manager.Update(t.Context(), id, func(r *relayer.Relayer) error {
		r.Name = "Überarbeitet: " + r.Name
		return nil
	})
	must(t, err)
}

func importAll(t *testing.T, origin store, filled relayer.Store) {
	t.Helper()
	const batch = 5000
	for after := uint64(0); ; {
		page, err := filled.List(t.Context(), relayer.StoreQuery{After: after, Limit: batch})
		must(t, err)
		if len(page.Records) == 0 {
			return
		}
		must(t, origin.Import(t.Context(), page.Records))
		after = page.Records[len(page.Records)-1].Sequence
	}
}
