package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Export returns the configuration file of a registry: the relayers that the selector
// selects, in creation order, with their RPC URLs masked: a hidden path is /***, and hidden
// user information is ***@. A plan of the file has no changes. A registry that masks RPC
// URLs does not show whether they have user information: the file of such a registry lacks
// its mark. If a Manager has no keys for sealed URLs, all of them have the mark. Other
// failures to open them are errors, which match [relayer.ErrSealed]. A relayer of a network
// type that this version does not support is an error too: the file could not be parsed.
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
		if _, isUnknown := r.Policy.(*relayer.UnknownPolicy); isUnknown {
			return nil, fmt.Errorf("plan: relayer %s has a network type that this version does not support: %s", r.ID, r.NetworkType)
		}
		req := wire.RequestOf(r)
		req.CustomRPCURLs = slices.Clone(req.CustomRPCURLs) // r may be shared
		for i, endpoint := range req.CustomRPCURLs {
			req.CustomRPCURLs[i].URL = relayer.RPCURL(shown(endpoint.URL))
		}
		body, err := req.MarshalUnmasked()
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
