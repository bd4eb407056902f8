package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync"

	"github.com/go-relayer/relayer"
)

// WithFullRPCURLs makes Get, List, All and Watch return relayers with their full RPC URLs,
// which the server must permit (see [Client.RPCURLs]). They are requested again when the
// revision of a relayer has changed, for at most 8 relayers at a time, and kept in memory.
// They may be those of a later revision of the relayer. Those of a deleted relayer, and
// those that writes return, are masked. A failure to get the URLs of a relayer is an error of
// the call, and ends All and Watch.
func WithFullRPCURLs() Option {
	return Option{func(c *Client) error {
		c.fullURLs = &fullURLs{known: make(map[string]endpoints)}
		return nil
	}}
}

// maxReveals is the number of relayers whose URLs are requested concurrently.
const maxReveals = 8

// fullURLs are the RPC URLs that were requested.
type fullURLs struct {
	mu    sync.Mutex
	known map[string]endpoints // by ID
}

// endpoints are the RPC endpoints of a relayer at a revision.
type endpoints struct {
	revision uint64
	encoded  json.RawMessage
}

func (e endpoints) decode() (list []relayer.RPCConfig, err error) {
	if json.Unmarshal(e.encoded, &list) != nil {
		return nil, errNoData // the error of the decoder may quote a URL
	}
	return list, nil
}

func (u *fullURLs) get(id string) endpoints {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known[id]
}

// set replaces the endpoints of a relayer. The zero value removes them.
func (u *fullURLs) set(id string, e endpoints) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known[id] = e; e.revision == 0 {
		delete(u.known, id)
	}
}

// RPCURLs returns the RPC endpoints of a relayer with their full URLs, which may contain
// API keys, or [relayer.ErrNotFound]. It returns [ErrForbidden] if the token does not permit
// it, and an error that matches [errors.ErrUnsupported] if the host has not enabled it (see
// httpapi.WithEngineOperations).
func (c *Client) RPCURLs(ctx context.Context, id string) ([]relayer.RPCConfig, error) {
	var list []relayer.RPCConfig
	e, err := c.endpoints(ctx, id)
	if err == nil {
		list, err = e.decode()
	}
	return named(relayer.ActionReveal, id, list, err)
}

func (c *Client) endpoints(ctx context.Context, id string) (e endpoints, err error) {
	if err := checkID(id); err != nil {
		return endpoints{}, err
	}
	req := newSingleRequest(http.MethodGet, id, "/custom_rpc_urls", nil)
	req.isOptional = true
	req.decode = func(resp *response) error {
		e = endpoints{revisionOf(resp.header.Get("ETag")), resp.envelope.Data}
		_, err := e.decode()
		return err
	}
	if _, failed := c.do(ctx, req, c.newAttempts()); failed != nil {
		return endpoints{}, failed.err
	}
	return e, nil
}

// reveal replaces the RPC URLs of the relayers by the full ones, if the client is to
// return these. Those of a relayer that was deleted in the meantime stay masked.
func (c *Client) reveal(ctx context.Context, relayers ...*relayer.Relayer) error {
	if c.fullURLs == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var requests sync.WaitGroup
	slots := make(chan struct{}, maxReveals)
	for _, r := range relayers {
		slots <- struct{}{}
		requests.Go(func() {
			defer func() { <-slots }()
			if err := c.revealOne(ctx, r); err != nil {
				cancel(err)
			}
		})
	}
	requests.Wait()
	return context.Cause(ctx)
}

func (c *Client) revealOne(ctx context.Context, r *relayer.Relayer) error {
	if len(r.CustomRPCURLs) == 0 {
		return nil
	}
	known := c.fullURLs.get(r.ID)
	if known.revision == 0 || known.revision != r.Revision {
		var err error
		known, err = c.endpoints(ctx, r.ID)
		if err != nil && !errors.Is(err, relayer.ErrNotFound) {
			return err
		}
		c.fullURLs.set(r.ID, known)
		if err != nil {
			return nil
		}
	}
	list, err := known.decode()
	if err == nil {
		r.CustomRPCURLs = list
	}
	return err
}

// revealing is a change whose full RPC URLs are requested.
type revealing struct {
	change relayer.Change
	err    error
	done   chan struct{}
}

// revealed returns the changes in their order, with full RPC URLs, which are requested for
// maxReveals changes at a time. Stop ends the changes.
func (c *Client) revealed(ctx context.Context, stop context.CancelFunc, changes iter.Seq2[relayer.Change, error]) iter.Seq2[relayer.Change, error] {
	return func(yield func(relayer.Change, error) bool) {
		ahead := make(chan *revealing, maxReveals-2) // one more waits to be sent, and one is awaited
		var running sync.WaitGroup
		running.Go(func() {
			defer close(ahead)
			for change, err := range changes {
				next := &revealing{change, err, make(chan struct{})}
				running.Go(func() { next.reveal(ctx, c) })
				select {
				case ahead <- next:
				case <-ctx.Done():
					return
				}
			}
		})
		defer running.Wait()
		defer stop()
		for next := range ahead {
			<-next.done
			if next.change.Kind == relayer.ChangeDeleted {
				c.fullURLs.set(next.change.Relayer.ID, endpoints{})
			}
			if ctx.Err() != nil || !yield(next.change, next.err) || next.err != nil {
				return
			}
		}
	}
}

func (r *revealing) reveal(ctx context.Context, c *Client) {
	defer close(r.done)
	if r.err != nil || r.change.Relayer == nil || r.change.Kind == relayer.ChangeDeleted {
		return
	}
	if err := c.reveal(ctx, r.change.Relayer); err != nil {
		r.change, r.err = named(relayer.ActionWatch, "", relayer.Change{}, fmt.Errorf("GET %s: %w", watchPath, err))
	}
}
