package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/wire"
)

// WithFullRPCURLs makes Get, List, All and Watch return relayers with their full RPC URLs,
// which the server must permit (see [Client.RPCURLs]). The URLs of a relayer that the server
// cannot open are masked ([relayer.RPCURL.IsMasked] is true), and RPCURLs returns the error.
// Those that writes return are masked.
func WithFullRPCURLs() Option { return option(true, "", func(c *Client) { c.fullURLs = true }) }

const rpcURLsParameter = "rpc_urls"

// withURLs returns a read that asks for full RPC URLs, or not.
func (r *request) withURLs(full bool) *request {
	if full {
		r.query.Set(rpcURLsParameter, "full")
	}
	return r
}

// checkURLs returns an error if the server has ignored that full RPC URLs were requested. It
// marks those that the server could not open and that do not show that they are masked.
func (r *request) checkURLs(hasChanges bool, metadata *relayer.Metadata, sealed []string, relayers ...*relayer.Relayer) error {
	isIgnored := func(entry relayer.LogEntry) bool { return entry.Message == wire.IgnoredParameter(rpcURLsParameter) }
	if r.query.Has(rpcURLsParameter) && (!hasChanges || metadata != nil && slices.ContainsFunc(metadata.Logs, isIgnored)) {
		return fmt.Errorf("the server does not return full RPC URLs: %w", errors.ErrUnsupported)
	}
	for _, of := range relayers {
		for i, endpoint := range of.CustomRPCURLs {
			if slices.Contains(sealed, of.ID) {
				of.CustomRPCURLs[i].URL = relayer.RPCURL(mask.Marked(endpoint.URL.Unmasked()))
			}
		}
	}
	return nil
}

// RPCURLs returns the RPC endpoints of a relayer with their full URLs, which may contain
// API keys, or [relayer.ErrNotFound]. It returns an error that matches [relayer.ErrSealed] if
// the server cannot open them, [ErrForbidden] if the token does not permit it, and an error
// that matches [errors.ErrUnsupported] if the host has not enabled it (see
// httpapi.WithEngineOperations).
func (c *Client) RPCURLs(ctx context.Context, id string) ([]relayer.RPCConfig, error) {
	r, err := c.read(ctx, id, true, c.newAttempts())
	if err != nil {
		r = new(relayer.Relayer)
	}
	if slices.ContainsFunc(r.CustomRPCURLs, relayer.RPCConfig.IsMasked) {
		err = fmt.Errorf("the server cannot open them: %w: %w", relayer.ErrSealed, relayer.ErrUnavailable)
	}
	return named(relayer.ActionReveal, id, r.CustomRPCURLs, err)
}
