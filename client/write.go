package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
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
//
// A client whose call has [relayer.DryRun] checks once that the server has dry runs. If it has
// none, the error of every such call matches [errors.ErrUnsupported].
func (c *Client) Create(ctx context.Context, req relayer.CreateRequest, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	hasOwnID := req.ID == ""
	if hasOwnID {
		generated, err := uuid.NewV7()
		if err != nil {
			return named[*relayer.Relayer](relayer.ActionCreate, "", nil, fmt.Errorf("generating an ID: %w", err))
		}
		req.ID = generated.String()
	}
	return perform(relayer.ActionCreate, req.ID, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		body, err := createBody(ctx, req)
		if err != nil {
			return nil, err
		}
		create := newRequest(http.MethodPost, collectionPath, body)
		create.wantID, create.reason = req.ID, settings.Reason
		if settings.DryRun {
			return c.dryRun(ctx, create)
		}
		return c.write(ctx, &write{
			request:  create,
			hasOwnID: hasOwnID,
			settle:   func(current *relayer.Relayer) (verdict, error) { return settleCreate(req, hasOwnID, current) },
		})
	})
}

// createBody returns the body of a create. It checks the type of the policy, which the JSON
// of an empty one does not show.
func createBody(ctx context.Context, req relayer.CreateRequest) ([]byte, error) {
	if wire.CheckPolicy(req.Policy, req.NetworkType) != nil {
		if err := req.Validate(ctx); err != nil {
			return nil, err
		}
	}
	return req.MarshalUnmasked()
}

// perform runs a write with its options, and names it in its error.
func perform(action relayer.Action, id string, options []relayer.WriteOption, run func(relayer.WriteSettings) (*relayer.Relayer, error)) (*relayer.Relayer, error) {
	settings, err := relayer.NewWriteSettings(options...)
	if err != nil {
		return named[*relayer.Relayer](action, id, nil, err)
	}
	r, err := run(settings)
	return named(action, id, r, err)
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

// Update changes a relayer like [relayer.Manager.Update], and returns it as stored: it reads
// the relayer, calls change, and sends the difference as a [Client.Patch] under the revision
// that it has read. If another writer was faster, it begins again, with the backoff and the
// time of [WithRetries].
//
// RPC URLs that change does not modify are not sent. If it modifies them, it must set all of
// them in full (see [WithFullRPCURLs]). SystemDisabled and DisabledReason cannot be changed:
// use [Client.Disable]. If the server returns no revision, Update returns
// [relayer.ErrNoRevision].
func (c *Client) Update(ctx context.Context, id string, change func(*relayer.Relayer) error, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return perform(relayer.ActionUpdate, id, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		races := &attempts{left: maxRaces, lastEnd: time.Now().Add(c.maxRetryTime)}
		for {
			updated, err := c.tryUpdate(ctx, id, change, settings)
			isLost := errors.Is(err, relayer.ErrConflict) && !errors.Is(err, relayer.ErrOutcomeUnknown)
			if !isLost || settings.Revisions != nil {
				return updated, err
			}
			if !races.next(ctx, 0) {
				return nil, cmp.Or(ctx.Err(), err)
			}
		}
	})
}

// maxRaces bounds the retries of an update. Each means that another writer succeeded.
const maxRaces = 200

func (c *Client) tryUpdate(ctx context.Context, id string, change func(*relayer.Relayer) error, settings relayer.WriteSettings) (*relayer.Relayer, error) {
	current, err := c.read(ctx, id, c.urls)
	if err != nil {
		return nil, err
	}
	if settings.Revisions != nil && !slices.Contains(settings.Revisions, current.Revision) {
		return nil, relayer.ErrConflict
	}
	patch, err := difference(current, change)
	if err != nil {
		return nil, err
	}
	if len(patch) == 0 {
		if settings.DryRun {
			current.LastChange = relayer.ChangeInfo{Changed: []string{}}
		}
		return current, nil
	}
	if current.Revision == 0 {
		return nil, fmt.Errorf("the server returns no revisions: %w", relayer.ErrNoRevision)
	}
	body, err := strictjson.Encode(patch)
	if err != nil {
		return nil, err
	}
	settings.Revisions = []uint64{current.Revision}
	return c.patch(ctx, id, body, settings)
}

// difference returns the patch that has the effect of change on the relayer.
func difference(r *relayer.Relayer, change func(*relayer.Relayer) error) (patch map[string]any, err error) {
	before, err := unmasked(r)
	if err != nil {
		return nil, err
	}
	if err := change(r); err != nil {
		return nil, err
	}
	if err := wire.CheckPolicy(r.Policy, r.NetworkType); err != nil {
		return nil, err
	}
	after, err := unmasked(r)
	if err != nil {
		return nil, err
	}
	return strictjson.Diff(before, after), nil
}

// unmasked returns the JSON of the relayer with its RPC URLs in full.
func unmasked(r *relayer.Relayer) (json.RawMessage, error) {
	full, err := wire.RequestOf(r).MarshalUnmasked()
	if err != nil {
		return nil, err
	}
	encoded, err := strictjson.Encode(r)
	if err != nil {
		return nil, err
	}
	return strictjson.MergePatch(encoded, full)
}

// Patch changes a relayer like [relayer.Manager.Patch], and returns it as stored.
//
// If the outcome of a request is unknown, Patch reads the relayer. If it has all that
// the patch sets, Patch returns it, even if another client has set it. This does not
// apply to a patch that sets RPC URLs, because their masked form does not show them. If
// the relayer still has a revision of [relayer.IfRevision], Patch sends the request again,
// which cannot take effect twice. If there is no relayer, it returns
// [relayer.ErrNotFound]; otherwise [relayer.ErrOutcomeUnknown]. Change RPC URLs with
// [relayer.IfRevision], so that a lost request is sent again.
func (c *Client) Patch(ctx context.Context, id string, patch []byte, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	body := append([]byte{}, patch...) // a request without a body has no type
	return perform(relayer.ActionUpdate, id, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		return c.patch(ctx, id, body, settings)
	})
}

func (c *Client) patch(ctx context.Context, id string, body []byte, settings relayer.WriteSettings) (*relayer.Relayer, error) {
	isDone := func(current *relayer.Relayer) bool { return !setsRPCURLs(body) && isPatched(body, current) }
	return c.change(ctx, newSingleRequest(http.MethodPatch, id, "", body), settings, isDone)
}

// Pause sets Paused by a [Client.Patch].
func (c *Client) Pause(ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return c.setPaused(ctx, relayer.ActionPause, id, true, options)
}

// Resume resets Paused by a [Client.Patch].
func (c *Client) Resume(ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return c.setPaused(ctx, relayer.ActionResume, id, false, options)
}

func (c *Client) setPaused(ctx context.Context, action relayer.Action, id string, paused bool, options []relayer.WriteOption) (*relayer.Relayer, error) {
	return perform(action, id, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		return c.patch(ctx, id, fmt.Appendf(nil, `{"paused":%t}`, paused), settings)
	})
}

// Disable sets SystemDisabled and DisabledReason like [relayer.Manager.Disable]. If the
// outcome of a request is unknown, it proceeds like [Client.Patch]. It returns an error that
// matches [errors.ErrUnsupported] if the host has not enabled the operation (see httpapi.WithEngineOperations).
func (c *Client) Disable(ctx context.Context, id string, reason relayer.DisabledReason, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	reason.Details = mask.Details(reason.Details)
	stored := relayer.DisabledReason{Type: relayer.DisabledReasonType(mask.Text(string(reason.Type))), Details: reason.Details}
	return perform(relayer.ActionDisable, id, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		if problem := strictjson.TextProblem(string(reason.Type)); problem != "" {
			return nil, &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "type", Message: problem}}}
		}
		body, err := strictjson.Encode(reason)
		if err != nil {
			return nil, err
		}
		req := newSingleRequest(http.MethodPut, id, "/disabled_reason", body)
		req.isOptional = true
		return c.change(ctx, req, settings, func(current *relayer.Relayer) bool {
			return current.DisabledReason != nil && *current.DisabledReason == stored
		})
	})
}

// Enable resets SystemDisabled and removes DisabledReason. Errors are those of
// [Client.Disable].
func (c *Client) Enable(ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return perform(relayer.ActionEnable, id, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		req := newSingleRequest(http.MethodDelete, id, "/disabled_reason", nil)
		req.isOptional = true
		return c.change(ctx, req, settings, func(current *relayer.Relayer) bool { return !current.SystemDisabled })
	})
}

// Delete removes the relayer. It returns [relayer.ErrNotFound], a
// [*relayer.ValidationError] with the reason if the server refuses, or
// [relayer.ErrConflict] if a condition does not hold.
//
// If the outcome of a request is unknown, Delete reads the relayer. If there is none,
// Delete returns nil, even if another client has deleted it. If it still has a revision
// of [relayer.IfRevision], Delete sends the request again. Otherwise it returns
// [relayer.ErrOutcomeUnknown].
func (c *Client) Delete(ctx context.Context, id string, options ...relayer.WriteOption) error {
	_, err := perform(relayer.ActionDelete, id, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		req := newSingleRequest(http.MethodDelete, id, "", nil)
		req.decode = decodeNothing
		return c.change(ctx, req, settings, nil)
	})
	return err
}

// change sends a change. isDone reports whether a relayer shows its effect; it is nil for a
// delete.
func (c *Client) change(ctx context.Context, req *request, settings relayer.WriteSettings, isDone func(*relayer.Relayer) bool) (*relayer.Relayer, error) {
	if err := checkID(req.id); err != nil {
		return nil, err
	}
	req.ifMatch, req.reason = ifMatch(settings.Revisions), settings.Reason
	if settings.DryRun {
		return c.dryRun(ctx, req)
	}
	return c.write(ctx, &write{request: req, settle: func(current *relayer.Relayer) (verdict, error) {
		return settleChange(isDone, settings.Revisions, current)
	}})
}

// dryRun sends a write as a dry run, if the server has dry runs: one that ignores the query
// parameter would carry out the write. A server with dry runs has the path of permissions too.
func (c *Client) dryRun(ctx context.Context, req *request) (*relayer.Relayer, error) {
	if !c.hasDryRuns.Load() {
		probe := newRequest(http.MethodGet, accessPath, nil)
		probe.isOptional, probe.decode = true, decodeNothing
		if _, failed := c.do(ctx, probe, c.newAttempts()); failed != nil {
			return nil, failed.err
		}
		c.hasDryRuns.Store(true)
	}
	req.query.Set("dry_run", "true")
	req.hasNoEffect, req.isDryRun = true, true
	resp, failed := c.do(ctx, req, c.newAttempts())
	if failed != nil {
		return nil, failed.err
	}
	return resp.relayer, nil
}

func settleChange(isDone func(*relayer.Relayer) bool, revisions []uint64, current *relayer.Relayer) (verdict, error) {
	switch {
	case current == nil && isDone == nil:
		return hadEffect, nil
	case current == nil:
		return isDecided, relayer.ErrNotFound
	case isDone != nil && isDone(current):
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

type write struct {
	*request
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
		current, err := c.readBack(ctx, w.wantID, attempts)
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
	resp, err := c.get(ctx, id, maskedURLs, &attempts{left: c.maxAttempts - 1, lastEnd: write.lastEnd})
	switch {
	case errors.Is(err, relayer.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return resp.relayer, nil
}
