package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
)

// WithFullRPCURLs makes Get, List, All and Watch return relayers with their full RPC URLs,
// which the server must permit (see [Client.RPCURLs]). The URLs of a relayer that the server
// cannot open are masked ([relayer.RPCURL.IsMasked] is true), and RPCURLs returns the error.
// Those that writes return are masked.
func WithFullRPCURLs() Option {
	return Option{func(c *Client) error {
		c.fullURLs = true
		return nil
	}}
}

const rpcURLsParameter = "rpc_urls"

// withURLs returns a read that asks for full RPC URLs, or not.
func (r *request) withURLs(full bool) *request {
	if full {
		r.query.Set(rpcURLsParameter, "full")
	}
	return r
}

var errNoFullURLs = fmt.Errorf("the server does not return full RPC URLs: %w", errors.ErrUnsupported)

// checkURLs returns an error if the server has ignored that full RPC URLs were requested. It
// marks those that the server could not open.
func (p *response) checkURLs(relayers ...*relayer.Relayer) error {
	if !p.request.query.Has(rpcURLsParameter) {
		return nil
	}
	if p.envelope.Change == nil && p.envelope.Changes == nil || ignores(p.envelope.Metadata, rpcURLsParameter) {
		return errNoFullURLs
	}
	for _, r := range relayers {
		if slices.Contains(p.envelope.Sealed, r.ID) {
			markSealed(r)
		}
	}
	return nil
}

// markSealed marks RPC URLs that do not show that they are masked.
func markSealed(r *relayer.Relayer) {
	for i, endpoint := range r.CustomRPCURLs {
		r.CustomRPCURLs[i].URL = relayer.RPCURL(mask.Marked(endpoint.URL.Unmasked()))
	}
}

// RPCURLs returns the RPC endpoints of a relayer with their full URLs, which may contain
// API keys, or [relayer.ErrNotFound]. It returns an error that matches [relayer.ErrSealed] if
// the server cannot open them, [ErrForbidden] if the token does not permit it, and an error
// that matches [errors.ErrUnsupported] if the host has not enabled it (see
// httpapi.WithEngineOperations).
func (c *Client) RPCURLs(ctx context.Context, id string) ([]relayer.RPCConfig, error) {
	list, err := c.openURLs(ctx, id)
	return named(relayer.ActionReveal, id, list, err)
}

func (c *Client) openURLs(ctx context.Context, id string) ([]relayer.RPCConfig, error) {
	r, err := c.read(ctx, id, true, c.newAttempts())
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(r.CustomRPCURLs, func(endpoint relayer.RPCConfig) bool { return endpoint.URL.IsMasked() }) {
		return nil, fmt.Errorf("the server cannot open them: %w: %w", relayer.ErrSealed, relayer.ErrUnavailable)
	}
	return r.CustomRPCURLs, nil
}
