package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Export returns the configuration file of a registry: the relayers that the selector
// selects, in creation order, with their RPC URLs masked: a hidden path is /***, and hidden
// user information is ***@. The values of headers are ***. A plan of the file has no changes. A
// server does not show user information, so the file of a server lacks its mark. If a Manager has
// sealed URLs, all of them have a mark.
//
// A relayer that [Parse] would refuse is an error, which matches [relayer.ErrInvalid]: a
// newer version has stored it, with a network type or a value that this version does not
// have. Export it with the newer version, or leave it out with the selector.
func Export(ctx context.Context, registry relayer.Reader, selector relayer.Selector) ([]byte, error) {
	return export(ctx, registry, selector, func(r *relayer.Relayer) ([]relayer.RPCConfig, error) {
		return maskedList(r.CustomRPCURLs), nil
	})
}

// ExportWithSecrets is [Export] with the full RPC URLs and headers, which often contain API keys. It
// returns an error that matches [relayer.ErrSealed] if they cannot be opened.
func ExportWithSecrets(ctx context.Context, manager *relayer.Manager, selector relayer.Selector) ([]byte, error) {
	return export(ctx, manager, selector, func(r *relayer.Relayer) ([]relayer.RPCConfig, error) {
		if !slices.ContainsFunc(r.CustomRPCURLs, isMasked) {
			return r.CustomRPCURLs, nil
		}
		return manager.RPCURLs(ctx, r.ID)
	})
}

func export(ctx context.Context, registry relayer.Reader, selector relayer.Selector, urlsOf func(*relayer.Relayer) ([]relayer.RPCConfig, error)) ([]byte, error) {
	relayers := []json.RawMessage{}
	for r, err := range registry.All(ctx, selector) {
		if err != nil {
			return nil, err
		}
		req := wire.RequestOf(r)
		if req.CustomRPCURLs, err = urlsOf(r); errors.Is(err, relayer.ErrNotFound) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
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
