package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
)

// Create adds a relayer and returns it as stored. It returns a
// [*relayer.ValidationError] with every problem of the request, and
// [relayer.ErrExists] if the ID is taken. If the request has no ID, the client generates
// one, a UUIDv7.
//
// If the outcome of a request is unknown, Create reads the relayer with the ID. If there
// is none, it sends the request again. This never creates a second relayer next to the
// first, but it creates the relayer again if another client has deleted it in the
// meantime. If there is one that equals the request, with the defaults of package
// relayer, Create returns it. It may be the equal relayer of another client that chose the
// same ID; its RPC URLs are compared masked, so that they may have other keys. If it has
// another network or signer, it is another relayer, and Create returns
// [relayer.ErrExists]. Otherwise Create returns [relayer.ErrOutcomeUnknown]: the relayer
// may have been changed since, or the server sets other defaults.
func (c *Client) Create(ctx context.Context, req relayer.CreateRequest) (*relayer.Relayer, error) {
	hasOwnID := req.ID == ""
	if hasOwnID {
		generated, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("client: generating an ID: %w", err)
		}
		req.ID = generated.String()
	}
	body, err := req.RequestBody()
	if err != nil {
		return nil, err
	}
	create := newRequest(http.MethodPost, collectionPath, body)
	create.wantID = req.ID
	return c.write(ctx, &write{
		request:  create,
		id:       req.ID,
		hasOwnID: hasOwnID,
		settle:   func(current *relayer.Relayer) (verdict, error) { return settleCreate(req, hasOwnID, current) },
	})
}

func settleCreate(req relayer.CreateRequest, hasOwnID bool, current *relayer.Relayer) (verdict, error) {
	switch {
	case current == nil:
		return hadNoEffect, nil
	case hasOwnID || isCreated(req, current):
		return hadEffect, nil
	case current.Network != req.Network || current.NetworkType != req.NetworkType || current.SignerID != req.SignerID:
		return isDecided, relayer.ErrExists
	default:
		return isUndecided, nil
	}
}

// Patch changes a relayer like [relayer.Manager.Patch], and returns it as stored.
//
// If the outcome of a request is unknown, Patch reads the relayer. If it has all that
// the patch sets, Patch returns it, even if another client has set it. This does not
// apply to a patch that sets RPC URLs, because their masked form does not show them. If
// the relayer still has a revision of the conditions, Patch sends the request again,
// which cannot take effect twice. If there is no relayer, it returns
// [relayer.ErrNotFound]; otherwise [relayer.ErrOutcomeUnknown]. Change RPC URLs with
// [relayer.IfRevision], so that a lost request is sent again.
//
// If the value of policies is a [relayer.Policy], Patch first reads the relayer, and
// returns a [*relayer.ValidationError] if it has another network type: the body of a
// request does not show whether MinBalance is in wei or in lamports.
func (c *Client) Patch(ctx context.Context, id string, patch relayer.Patch, conditions ...relayer.Condition) (*relayer.Relayer, error) {
	body, err := patch.RequestBody()
	if err != nil {
		return nil, err
	}
	if _, ok := patch["policies"].(relayer.Policy); ok {
		current, err := c.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := patch.CheckPolicy(current.NetworkType); err != nil {
			return nil, err
		}
	}
	return c.change(ctx, http.MethodPatch, id, body, conditions)
}

// Pause sets Paused by a [Client.Patch].
func (c *Client) Pause(ctx context.Context, id string, conditions ...relayer.Condition) (*relayer.Relayer, error) {
	return c.Patch(ctx, id, relayer.Patch{"paused": true}, conditions...)
}

// Resume resets Paused by a [Client.Patch].
func (c *Client) Resume(ctx context.Context, id string, conditions ...relayer.Condition) (*relayer.Relayer, error) {
	return c.Patch(ctx, id, relayer.Patch{"paused": false}, conditions...)
}

// Delete removes the relayer. It returns [relayer.ErrNotFound], a
// [*relayer.ValidationError] with the reason if the server refuses, or
// [relayer.ErrConflict] if a condition does not hold.
//
// If the outcome of a request is unknown, Delete reads the relayer. If there is none,
// Delete returns nil, even if another client has deleted it. If it still has a revision
// of the conditions, Delete sends the request again. Otherwise it returns
// [relayer.ErrOutcomeUnknown].
func (c *Client) Delete(ctx context.Context, id string, conditions ...relayer.Condition) error {
	_, err := c.change(ctx, http.MethodDelete, id, nil, conditions)
	return err
}

// change sends a patch, or a delete if there is no body.
func (c *Client) change(ctx context.Context, method, id string, body []byte, conditions []relayer.Condition) (*relayer.Relayer, error) {
	if !relayer.IsID(id) {
		return nil, relayer.ErrNotFound
	}
	tag, revisions, err := ifMatch(conditions)
	if err != nil {
		return nil, err
	}
	req := newRequest(method, singlePath+id, body)
	req.ifMatch = tag
	if body == nil {
		req.decode = decodeNothing
	}
	return c.write(ctx, &write{
		request: req,
		id:      id,
		settle:  func(current *relayer.Relayer) (verdict, error) { return settleChange(body, revisions, current) },
	})
}

func settleChange(body []byte, revisions []uint64, current *relayer.Relayer) (verdict, error) {
	switch {
	case current == nil && body == nil:
		return hadEffect, nil
	case current == nil:
		return isDecided, relayer.ErrNotFound
	case body != nil && !setsRPCURLs(body) && isPatched(body, current):
		return hadEffect, nil
	case slices.Contains(revisions, current.Revision):
		return hadNoEffect, nil
	default:
		return isUndecided, nil
	}
}

// verdict is what the current relayer shows about a write of unknown outcome.
type verdict int

const (
	hadEffect   verdict = iota
	hadNoEffect         // and can be sent again: the ID or the revision permits one effect only
	isDecided           // the error is the result
	isUndecided
)

// write is a request that changes something.
type write struct {
	*request
	id       string
	hasOwnID bool // no other client uses the ID
	settle   func(current *relayer.Relayer) (verdict, error)
}

// write sends a write until its outcome is known, or the attempts are exhausted.
func (c *Client) write(ctx context.Context, w *write) (*relayer.Relayer, error) {
	attempts := c.newAttempts()
	isUnknown := false
	for {
		resp, failed := c.do(ctx, w.request, attempts)
		if failed == nil {
			return resp.relayer, nil
		}
		// After an attempt of unknown outcome, the failure of a later one may be its effect.
		// So may ErrExists for a generated ID: a proxy may have sent the request twice.
		isUnknown = isUnknown || failed.isUnknown || w.hasOwnID && errors.Is(failed.err, relayer.ErrExists)
		if !isUnknown {
			return nil, failed.err
		}
		current, err := c.readBack(ctx, w.id, attempts)
		if err != nil {
			return nil, &unknownOutcome{fmt.Errorf("%w; reading it back: %w", failed.err, err)}
		}
		switch found, err := w.settle(current); found {
		case hadEffect:
			return current, nil
		case isDecided:
			return nil, err
		case isUndecided:
			return nil, &unknownOutcome{fmt.Errorf("%w; the relayer is not as requested", failed.err)}
		}
		if !failed.isUnknown && !failed.isTemporary || !attempts.next(ctx, failed.wait) {
			return nil, &unknownOutcome{failed.withContextError(ctx).err}
		}
	}
}

// readBack returns the current relayer, or nil if there is none. It has as many attempts
// as any read, but no more time than the write.
func (c *Client) readBack(ctx context.Context, id string, write *attempts) (*relayer.Relayer, error) {
	current, err := c.get(ctx, id, &attempts{left: c.maxAttempts - 1, lastEnd: write.lastEnd})
	if errors.Is(err, relayer.ErrNotFound) {
		return nil, nil
	}
	return current, err
}
