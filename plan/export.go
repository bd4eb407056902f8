package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

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
	relayers := []json.RawMessage{}
	for r, err := range registry.All(ctx, selector) {
		if err != nil {
			return nil, err
		}
		req := wire.RequestOf(r)
		req.CustomRPCURLs = maskedList(r.CustomRPCURLs)
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
