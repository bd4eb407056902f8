package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

// Create adds a relayer and returns it as stored. It returns a
// [*relayer.ValidationError] with the problems of the request, and [relayer.ErrExists] if the ID is
// taken. If the request has no ID, the client generates one, a UUIDv7.
//
// If the response is lost, Create proceeds as the documentation of the package says. A server
// without history does not show that another client has deleted the new relayer: Create then
// creates it again.
func (c *Client) Create(ctx context.Context, req relayer.CreateRequest, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	if req.ID == "" {
		req.ID = uuid.Must(uuid.NewV7()).String() // crypto/rand never fails
	}
	return perform(relayer.ActionCreate, req.ID, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
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
// RPC URLs that change does not modify are not sent. If it modifies them, it must set all of them
// in full (see [WithFullRPCURLs]). SystemDisabled and DisabledReason cannot be changed: use
// [Client.Disable]. Without a revision from the server, a difference returns
// [relayer.ErrNoRevision].
func (c *Client) Update(ctx context.Context, id string, change func(*relayer.Relayer) error, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return perform(relayer.ActionUpdate, id, options, func(settings relayer.WriteSettings) (*relayer.Relayer, error) {
		races := &attempts{most: maxRaces, lastEnd: time.Now().Add(c.maxRetryTime)}
		for {
			updated, isRace, err := c.tryUpdate(ctx, id, change, settings)
			if !isRace || settings.Revisions != nil {
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

// tryUpdate makes one attempt of an update, and reports whether another writer was faster.
func (c *Client) tryUpdate(ctx context.Context, id string, change func(*relayer.Relayer) error, settings relayer.WriteSettings) (updated *relayer.Relayer, isRace bool, err error) {
	current, err := c.read(ctx, id, c.fullURLs, c.newAttempts())
	if err != nil {
		return nil, false, err
	}
	revision, lastChange := current.Revision, current.LastChange
	if settings.Revisions != nil && !slices.Contains(settings.Revisions, revision) {
		return nil, false, relayer.ErrConflict
	}
	isUnopened := c.fullURLs && hasMasked(current.CustomRPCURLs)
	patch, err := difference(current, change)
	if err != nil {
		return nil, false, err
	}
	if isUnopened && patch["custom_rpc_urls"] != nil && hasMasked(current.CustomRPCURLs) {
		return nil, false, errUnopened // they may be opened later
	}
	if len(patch) == 0 {
		current.Revision, current.LastChange = revision, lastChange
		if settings.DryRun {
			current.LastChange = relayer.ChangeInfo{Changed: []string{}}
		}
		return current, false, nil
	}
	if revision == 0 {
		return nil, false, fmt.Errorf("the server returns no revisions: %w", relayer.ErrNoRevision)
	}
	body, err := strictjson.Encode(patch)
	if err != nil {
		return nil, false, err
	}
	settings.Revisions = []uint64{revision}
	updated, err = c.write(ctx, newRequest(http.MethodPatch, id, "", body), settings)
	return updated, errors.Is(err, relayer.ErrConflict), err
}

// difference returns the patch that has the effect of change on the relayer.
func difference(r *relayer.Relayer, change func(*relayer.Relayer) error) (patch map[string]any, err error) {
	before, err := unmasked(r)
	if err != nil {
		return nil, err
	}
	stored := string(r.Settings)
	if err := change(r); err != nil {
		return nil, err
	}
	// The difference would keep one of two members of the settings with the same name.
	if string(r.Settings) != stored {
		sample := relayer.CreateRequest{Name: "any", Network: "any", NetworkType: relayer.EVM, SignerID: "any", Settings: r.Settings}
		if err := sample.Validate(context.Background()); err != nil {
			return nil, err
		}
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
	return strictjson.MergePatch(encoded, full), nil
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
// response is lost, with the same request ID: [relayer.BulkResult] says what then counts. If
// relayers may have been changed, the error matches [relayer.ErrOutcomeUnknown], and the result
// has only the request ID: call PauseAll again. The server goes on even if ctx ends or the time
// of [WithTimeout] is over.
func (c *Client) PauseAll(ctx context.Context, selector relayer.Selector, options ...relayer.WriteOption) (relayer.BulkResult, error) {
	return c.setAll(ctx, relayer.ActionPause, selector, options)
}

// ResumeAll resumes relayers like [relayer.Manager.ResumeAll], with the errors of [Client.PauseAll].
func (c *Client) ResumeAll(ctx context.Context, selector relayer.Selector, options ...relayer.WriteOption) (relayer.BulkResult, error) {
	return c.setAll(ctx, relayer.ActionResume, selector, options)
}

func (c *Client) setAll(ctx context.Context, action relayer.Action, selector relayer.Selector, options []relayer.WriteOption) (result relayer.BulkResult, err error) {
	settings, err := relayer.NewWriteSettings(options...)
	if err = cmp.Or(err, selector.Err()); err != nil {
		return named(action, "", result, err)
	}
	req := newRequest(http.MethodPost, "", ":"+string(action), nil)
	req.query = url.Values{}
	req.set("all", "true", settings.All)
	req.set("paused_by", settings.PausedBy, settings.PausedBy != "")
	addFilters(req.query, selector)
	req.setOptions(settings)
	req.isRepeatable = true
	result, failed := do(ctx, c, req, c.newAttempts(), (*response).bulk)
	err = failed.cause()
	if failed != nil && req.isLost && !settings.DryRun {
		result.RequestID, err = req.requestID, req.unknownOutcome(ctx, err)
	}
	_, err = named(action, "", result, err)
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
		result.Failed[failure.ID] = errors.New(p.request.sanitize(mask.Text, failure.Message))
	}
	return result, nil
}

// Disable sets SystemDisabled and DisabledReason like [relayer.Manager.Disable]. The server needs
// httpapi.WithEngineOperations.
func (c *Client) Disable(ctx context.Context, id string, reason relayer.DisabledReason, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	if !utf8.ValidString(string(reason.Type)) { // the encoder would replace the bytes
		err := &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "type", Message: strictjson.NotUTF8Message}}}
		return named[*relayer.Relayer](relayer.ActionDisable, id, nil, err)
	}
	reason.Details = mask.Details(reason.Details) // as the server does, which limits the body
	body, err := strictjson.Encode(reason)
	if err != nil {
		return named[*relayer.Relayer](relayer.ActionDisable, id, nil, err)
	}
	return c.change(ctx, relayer.ActionDisable, http.MethodPut, id, "/disabled_reason", body, options)
}

// Enable resets SystemDisabled and removes DisabledReason. It needs what [Client.Disable] needs.
func (c *Client) Enable(ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return c.change(ctx, relayer.ActionEnable, http.MethodDelete, id, "/disabled_reason", nil, options)
}

// Delete removes the relayer. It returns [relayer.ErrNotFound], a [*relayer.ValidationError] with
// the reason if the server refuses, or [relayer.ErrConflict] if a condition does not hold.
func (c *Client) Delete(ctx context.Context, id string, options ...relayer.WriteOption) error {
	_, err := c.change(ctx, relayer.ActionDelete, http.MethodDelete, id, "", nil, options)
	return err
}

// write sends a change of one relayer until its outcome is known, or cannot become known.
func (c *Client) write(ctx context.Context, w *request, settings relayer.WriteSettings) (*relayer.Relayer, error) {
	if w.revisions = settings.Revisions; w.revisions != nil {
		w.since = slices.Min(append(slices.Clone(w.revisions), math.MaxUint64))
	}
	if settings.DryRun {
		if err := c.requireDryRuns(ctx); err != nil {
			return nil, err
		}
	}
	w.setOptions(settings)
	attempts := c.newAttempts()
	for {
		r, failed := do(ctx, c, w, attempts, (*response).single)
		if failed == nil {
			return r, nil
		}
		if w.isDryRun || !w.isLost && !w.mayBeDuplicate(failed.err) {
			return nil, failed.err
		}
		own, err := c.settle(ctx, w, attempts)
		isRejection := !failed.isTemporary && !failed.isUnknown
		switch {
		case err == nil:
			return own, nil
		case !w.isLost:
			return nil, failed.err
		case errors.Is(err, errUndecided):
			return nil, w.unknownOutcome(ctx, fmt.Errorf("%w; %w", failed.err, err))
		case err != errPending:
			return nil, err
		case isRejection && failed.isOfServer: // it would also reject the lost attempt
			return nil, failed.err
		case isRejection || !attempts.next(ctx, failed.wait):
			return nil, w.unknownOutcome(ctx, failed.err)
		}
	}
}

// requireDryRuns returns an error unless the server has dry runs: one that ignores the query
// parameter, like OpenZeppelin Relayer, would carry out the write. A server with dry runs has the
// path of permissions too.
func (c *Client) requireDryRuns(ctx context.Context) error {
	if c.hasDryRuns.Load() {
		return nil
	}
	probe := newRequest(http.MethodGet, "", "", nil)
	probe.path = "/api/v1/access"
	_, failed := do(ctx, c, probe, c.newAttempts(), func(*response) (bool, error) { return true, nil })
	c.hasDryRuns.Store(failed == nil)
	return failed.cause()
}

// mayBeDuplicate reports whether a rejection may be the effect of the write itself: a proxy may
// send a request twice and return the second response.
func (r *request) mayBeDuplicate(err error) bool {
	return errors.Is(err, relayer.ErrExists) || errors.Is(err, relayer.ErrConflict) || errors.Is(err, relayer.ErrNotFound) && r.isDelete
}

var (
	errPending   = errors.New("the write has had no effect, and can be sent again")
	errUndecided = errors.New("the server does not show the outcome")
)

// settle looks for the request ID of the write in the last change of the relayer, then in its
// history. If it finds the change, it returns the relayer as it was then. Otherwise it returns
// errPending, an error that matches errUndecided, or the error of the write.
func (c *Client) settle(ctx context.Context, w *request, attempts *attempts) (*relayer.Relayer, error) {
	lookUp := c.newAttempts()
	lookUp.lastEnd = attempts.lastEnd
	current, err := c.read(ctx, w.id, false, lookUp)
	switch {
	case err == nil && current.LastChange.RequestID == w.requestID:
		return current, nil
	case err != nil && !errors.Is(err, relayer.ErrNotFound):
		return nil, fmt.Errorf("%w: reading it back: %w", errUndecided, err)
	}
	own, err := c.findChange(ctx, w, lookUp)
	isCreate := w.method == http.MethodPost
	switch {
	case own != nil && own.Relayer == nil && !w.isDelete:
		return nil, fmt.Errorf("%w: the history does not show the relayer", errUndecided)
	case own != nil:
		return own.Relayer, nil
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return nil, fmt.Errorf("%w: reading the history: %w", errUndecided, err)
	case current == nil && isCreate, current != nil && slices.Contains(w.revisions, current.Revision):
		return nil, errPending
	case err != nil:
		return nil, fmt.Errorf("%w: it has no history that shows it: %w", errUndecided, err)
	case current == nil:
		return nil, relayer.ErrNotFound
	case isCreate:
		return nil, relayer.ErrExists
	case w.revisions != nil:
		return nil, relayer.ErrConflict
	}
	w.since = current.Revision
	return nil, errPending
}

// findChange returns the change with the request ID of the write, or nil if the history has none.
// A proxy that replaces request IDs makes a history useless.
func (c *Client) findChange(ctx context.Context, w *request, attempts *attempts) (*relayer.Change, error) {
	query := relayer.HistoryQuery{ID: w.id, Limit: allPage}
	for {
		page, err := c.history(ctx, query, attempts)
		switch {
		case errors.Is(err, relayer.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case !page.hasRequestIDs:
			return nil, errors.ErrUnsupported
		}
		for _, past := range page.changes {
			if past.Info.RequestID == w.requestID {
				return &past, nil
			}
			if past.Info.Revision <= w.since {
				return nil, nil
			}
		}
		// A duplicate of a write that was rejected is among the newest changes.
		if query.Before = page.next; page.next == 0 || !w.isLost && w.since == 0 {
			return nil, nil
		}
	}
}
