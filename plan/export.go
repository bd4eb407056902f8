package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/go-relayer/relayer"
)

// Export returns the configuration file of a registry: the relayers that the selector
// selects, in creation order, with their RPC URLs masked: a hidden path is /***, and hidden
// user information is ***@. A plan of the file has no changes. A registry that masks RPC URLs does not show
// whether they have user information: the file of such a registry lacks its mark. If a
// Manager has no keys for sealed URLs, all of them have the mark. Other failures to open
// them are errors, which match [relayer.ErrSealed].
func Export(ctx context.Context, registry relayer.Reader, selector relayer.Selector) ([]byte, error) {
	return export(ctx, registry, selector, revealIfSupported, maskOf)
}

// ExportWithSecrets is [Export] with the full RPC URLs, which often contain API keys. It
// returns an error that matches [relayer.ErrSealed] if they cannot be opened.
func ExportWithSecrets(ctx context.Context, manager *relayer.Manager, selector relayer.Selector) ([]byte, error) {
	return export(ctx, manager, selector, reveal, relayer.RPCURL.Unmasked)
}

func export(ctx context.Context, registry relayer.Reader, selector relayer.Selector, open func(context.Context, relayer.Reader, *relayer.Relayer) error, shown func(relayer.RPCURL) string) ([]byte, error) {
	relayers := []json.RawMessage{}
	for r, err := range registry.All(ctx, selector) {
		if err != nil {
			return nil, err
		}
		if err := open(ctx, registry, r); err != nil {
			return nil, err
		}
		body, err := requestFor(r, shown).MarshalUnmasked()
		if err != nil {
			return nil, err
		}
		relayers = append(relayers, body)
	}
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(struct {
		Relayers []json.RawMessage `json:"relayers"`
	}{relayers})
	return file.Bytes(), err
}

// requestFor returns the request that creates a relayer.
func requestFor(r *relayer.Relayer, shown func(relayer.RPCURL) string) relayer.CreateRequest {
	endpoints := slices.Clone(r.CustomRPCURLs)
	for i := range endpoints {
		endpoints[i].URL = relayer.RPCURL(shown(endpoints[i].URL))
	}
	return relayer.CreateRequest{
		ID: r.ID, Name: r.Name, Network: r.Network, NetworkType: r.NetworkType, Paused: r.Paused, SignerID: r.SignerID,
		NotificationID: r.NotificationID, CustomRPCURLs: endpoints, Policy: r.Policy, Labels: r.Labels,
	}
}
