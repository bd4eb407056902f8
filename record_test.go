package relayer_test

import (
	"context"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// TestPrivatePartMissing: masked URLs without the whole ones are no relayer.
func TestPrivatePartMissing(t *testing.T) {
	store := memory.New()
	_, err := store.Create(context.Background(), relayer.Record{ID: "a",
		Document: []byte(`{"id":"a","network_type":"evm","custom_rpc_urls":[{"url":"https://a.example/***","weight":1}],"policies":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := m.Get(context.Background(), "a"); err == nil {
		t.Errorf("the host gets %s for the whole URL", string(r.CustomRPCURLs[0].URL))
	}
}
