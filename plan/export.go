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
// failures to open them are errors, which match [relayer.ErrSealed].
//
// A relayer that [Parse] would refuse is an error, which matches [relayer.ErrInvalid]: a
// newer version has stored it, with a network type or a value that this version does not
// have. Export it with the newer version, or leave it out with the selector.
func Export(ctx context.Context, registry relayer.Reader, selector relayer.Selector) ([]byte, error) {
	return export(ctx, registry, selector, isRefused, maskOf)
}

// ExportWithSecrets is [Export] with the full RPC URLs, which often contain API keys. It
// returns an error that matches [relayer.ErrSealed] if they cannot be opened.
func ExportWithSecrets(ctx context.Context, manager *relayer.Manager, selector relayer.Selector) ([]byte, error) {
	none := func(error) bool { return false }
	return export(ctx, manager, selector, none, relayer.RPCURL.Unmasked)
}

// export tolerates some errors of opening RPC URLs: the file then has them as they are.
func export(ctx context.Context, registry relayer.Reader, selector relayer.Selector, isTolerated func(error) bool, shown func(relayer.RPCURL) string) ([]byte, error) {
	relayers := []json.RawMessage{}
	for r, err := range registry.All(ctx, selector) {
		if err != nil {
			return nil, err
		}
		own := *r
		if err := reveal(ctx, registry, &own); err != nil && !isTolerated(err) {
			return nil, err
		}
		req := wire.RequestOf(&own)
		req.CustomRPCURLs = slices.Clone(req.CustomRPCURLs)
		for i, endpoint := range req.CustomRPCURLs {
			req.CustomRPCURLs[i].URL = relayer.RPCURL(shown(endpoint.URL))
		}
		if err := req.Validate(ctx); err != nil {
			return nil, fmt.Errorf("plan: the file cannot have the relayer %s: %w", r.ID, err)
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
