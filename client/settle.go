package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/go-relayer/relayer"
)

// write sends a change of one relayer until its outcome is known, or the attempts are exhausted.
func (c *Client) write(ctx context.Context, w *request, settings relayer.WriteSettings) (*relayer.Relayer, error) {
	w.set("X-Change-Reason", settings.Reason)
	if w.revisions = settings.Revisions; w.revisions != nil {
		w.set("If-Match", ifMatch(w.revisions))
		w.since = slices.Min(append(slices.Clone(w.revisions), math.MaxUint64))
	}
	if settings.DryRun {
		if err := c.requireDryRuns(ctx); err != nil {
			return nil, err
		}
		w.query.Set("dry_run", "true")
		w.isRepeatable, w.isDryRun = true, true
	}
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
			return nil, unknownOutcome(ctx, fmt.Errorf("%w; %w", failed.err, err))
		case err != errPending:
			return nil, err
		case isRejection && failed.isOfServer: // it would also reject the lost attempt
			return nil, failed.err
		case isRejection || !attempts.next(ctx, failed.wait):
			return nil, unknownOutcome(ctx, failed.err)
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
	probe.path, probe.isOptional = "/api/v1/access", true
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
// history. If the write has had an effect, it returns the relayer as it was then. Otherwise it
// returns errPending, an error that matches errUndecided, or the error of the write.
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
