package powerloss

import (
	"context"
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// content describes a version of a relayer. Its size varies, and every part of
// the record depends on the version: public, private, and the claim on the id.
func content(id string, version int) relayer.CreateRequest {
	receivers := make([]string, version%7*8)
	for i := range receivers {
		receivers[i] = fmt.Sprintf("receiver-%d-of-version-%d", i, version)
	}
	return relayer.CreateRequest{
		ID:            id,
		Name:          fmt.Sprintf("version %d", version),
		Network:       "sepolia",
		NetworkType:   relayer.EVM,
		SignerID:      "signer-of-" + id,
		Paused:        version%2 == 0,
		CustomRPCURLs: []relayer.RPCConfig{{URL: relayer.RPCURL(fmt.Sprintf("https://rpc.example/key-%d", version)), Weight: new(100.0)}},
		Policy:        &relayer.EVMPolicy{WhitelistReceivers: receivers},
	}
}

// versionOf returns the version in the name of a relayer.
func versionOf(r *relayer.Relayer) (version int, err error) {
	_, err = fmt.Sscanf(r.Name, "version %d", &version)
	return version, err
}

// setContent changes a relayer to another version of itself.
func setContent(r *relayer.Relayer, version int) {
	want := content(r.ID, version)
	r.Name, r.Paused, r.CustomRPCURLs, r.Policy = want.Name, want.Paused, want.CustomRPCURLs, want.Policy
}

// recordsOf returns the records of this version of each id, as a Manager writes
// them.
func recordsOf(ctx context.Context, version int, ids ...string) ([]relayer.Record, error) {
	store := memory.New()
	manager, err := newManager(store)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, err := manager.Create(ctx, content(id, version)); err != nil {
			return nil, err
		}
	}
	page, err := store.List(ctx, relayer.StoreQuery{Limit: len(ids)})
	return page.Records, err
}

func newManager(store relayer.Store) (*relayer.Manager, error) {
	return relayer.New(store, relayer.WithExclusiveSigners())
}
