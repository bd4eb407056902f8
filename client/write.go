package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

// Create adds a relayer and returns it as stored. It returns a
// [*relayer.ValidationError] with every problem of the request, and
// [relayer.ErrExists] if the ID is taken. If the request has no ID, the client generates
// one, a UUIDv7.
//
// If the response is lost, Create proceeds as the documentation of the package says. A server
// without history does not show that another client has deleted the new relayer: Create then
// creates it again.
func (c *Client) Create(ctx context.Context, req relayer.CreateRequest, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	if req.ID == "" {
		generated, err := uuid.NewV7()
		if err != nil {
			return named[*relayer.Relayer](relayer.ActionCreate, "", nil, fmt.Errorf("generating an ID: %w", err))
		}
		req.ID = generated.String()
	}
	return perform(relayer.ActionCreate, req.ID, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		if wire.CheckPolicy(req.Policy, req.NetworkType) != nil { // the JSON of an empty policy does not show its type
			if err := req.Validate(ctx); err != nil {
				return nil, err
			}
		}
		body, err := req.MarshalUnmasked()
		if err != nil {
			return nil, err
		}
		settings.Revisions = nil // no create has a condition
		create := newRequest(http.MethodPost, "", "", body)
		create.id = req.ID
		return c.write(ctx, create, settings)
	})
}

// perform runs a write with its options, and names it in its error.
func perform(action relayer.Action, id string, options []relayer.WriteOption, run func(relayer.WriteSettings) (*relayer.Relayer, error)) (*relayer.Relayer, error) {
	settings, err := relayer.NewWriteSettings(options...)
	if err == nil && settings.PausedBy != "" {
		err = &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "paused_by", Message: "is only possible for a resume of several relayers"}}}
	}
	if err != nil {
		return named[*relayer.Relayer](action, id, nil, err)
	}
	r, err := run(settings)
	return named(action, id, r, err)
}

// change sends a write of one relayer, or to the path below it.
func (c *Client) change(ctx context.Context, action relayer.Action, method, id, below string, body []byte, options []relayer.WriteOption) (*relayer.Relayer, error) {
	return perform(action, id, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		if !relayer.IsID(id) {
			return nil, relayer.ErrNotFound
		}
		return c.write(ctx, newRequest(method, id, below, body), settings)
	})
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
			if !errors.Is(err, relayer.ErrConflict) || settings.Revisions != nil {
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
	current, err := c.read(ctx, id, c.fullURLs, c.newAttempts())
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
	return c.write(ctx, newRequest(http.MethodPatch, id, "", body), settings)
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
func (c *Client) Patch(ctx context.Context, id string, patch []byte, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	body := append([]byte{}, patch...) // a request without a body has no type
	return c.change(ctx, relayer.ActionUpdate, http.MethodPatch, id, "", body, options)
}

// Pause sets Paused by a [Client.Patch].
func (c *Client) Pause(ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return c.change(ctx, relayer.ActionPause, http.MethodPatch, id, "", []byte(`{"paused":true}`), options)
}

// Resume resets Paused by a [Client.Patch].
func (c *Client) Resume(ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return c.change(ctx, relayer.ActionResume, http.MethodPatch, id, "", []byte(`{"paused":false}`), options)
}

// PauseAll pauses relayers like [relayer.Manager.PauseAll]. It sends the request again if the
// response is lost, with the same request ID, so the counts include all attempts. An
// error matches [relayer.ErrOutcomeUnknown] if relayers may have been changed: call PauseAll
// again. The result then has the request ID only. An error matches
// [errors.ErrUnsupported] if the server does not offer the operation.
//
// The server goes on after the end of ctx, or of [WithTimeout].
func (c *Client) PauseAll(ctx context.Context, selector relayer.Selector, options ...relayer.WriteOption) (relayer.BulkResult, error) {
	return c.setAll(ctx, relayer.ActionPause, selector, options)
}

// ResumeAll resumes relayers like [relayer.Manager.ResumeAll]. It returns the errors of
// [Client.PauseAll].
func (c *Client) ResumeAll(ctx context.Context, selector relayer.Selector, options ...relayer.WriteOption) (relayer.BulkResult, error) {
	return c.setAll(ctx, relayer.ActionResume, selector, options)
}

func (c *Client) setAll(ctx context.Context, action relayer.Action, selector relayer.Selector, options []relayer.WriteOption) (result relayer.BulkResult, err error) {
	settings, err := relayer.NewWriteSettings(options...)
	if err = cmp.Or(err, selector.Err()); err != nil {
		return named(action, "", result, err)
	}
	req := newRequest(http.MethodPost, "", ":"+string(action), nil)
	req.query, req.isRepeatable = url.Values{}, true
	addFilters(req.query, selector)
	for name, value := range map[string]string{"all": optional(settings.All, "true"), "dry_run": optional(settings.DryRun, "true"), "paused_by": settings.PausedBy} {
		if value != "" {
			req.query.Set(name, value)
		}
	}
	req.set("If-Match", ifMatch(settings.Revisions))
	req.set("X-Change-Reason", settings.Reason)
	result, failed := do(ctx, c, req, c.newAttempts(), (*response).bulk)
	_, err = named(action, "", result, failed.cause())
	if failed != nil && req.isLost && !settings.DryRun {
		result.RequestID = req.requestID
		_, err = named(action, "", result, unknownOutcome(ctx, failed.err))
	}
	return result, err
}

func (p *response) bulk() (result relayer.BulkResult, err error) {
	var sent wire.Bulk
	if json.Unmarshal(p.envelope.Data, &sent) != nil || sent.RequestID == "" {
		return result, errNoData
	}
	result = relayer.BulkResult{RequestID: sent.RequestID, Changed: sent.Changed, Unchanged: sent.Unchanged}
	for _, failure := range sent.Failed {
		if result.Failed == nil {
			result.Failed = make(map[string]error)
		}
		result.Failed[failure.ID] = errors.New(p.request.sanitize(failure.Message))
	}
	return result, nil
}

// Disable sets SystemDisabled and DisabledReason like [relayer.Manager.Disable]. It returns an
// error that matches [errors.ErrUnsupported] if the host has not enabled the operation (see
// httpapi.WithEngineOperations).
func (c *Client) Disable(ctx context.Context, id string, reason relayer.DisabledReason, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	body, err := strictjson.Encode(reason)
	if err != nil {
		return named[*relayer.Relayer](relayer.ActionDisable, id, nil, err)
	}
	return c.change(ctx, relayer.ActionDisable, http.MethodPut, id, "/disabled_reason", body, options)
}

// Enable resets SystemDisabled and removes DisabledReason. Errors are those of
// [Client.Disable].
func (c *Client) Enable(ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return c.change(ctx, relayer.ActionEnable, http.MethodDelete, id, "/disabled_reason", nil, options)
}

// Delete removes the relayer. It returns [relayer.ErrNotFound], a
// [*relayer.ValidationError] with the reason if the server refuses, or
// [relayer.ErrConflict] if a condition does not hold.
func (c *Client) Delete(ctx context.Context, id string, options ...relayer.WriteOption) error {
	_, err := c.change(ctx, relayer.ActionDelete, http.MethodDelete, id, "", nil, options)
	return err
}
