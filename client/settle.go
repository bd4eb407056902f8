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

// write is a change of one relayer. All its attempts have the same request ID.
type write struct {
	*request
	hasOwnID  bool     // no other client creates the ID
	revisions []uint64 // of the condition; nil is no condition
	since     uint64   // the changes up to this revision are known, and none is the write
	isLost    bool     // the outcome of an attempt is unknown
}

func (w *write) isCreate() bool { return w.method == http.MethodPost }

// write sends a write until its outcome is known, or the attempts are exhausted.
func (c *Client) write(ctx context.Context, w *write, settings relayer.WriteSettings) (*relayer.Relayer, error) {
	w.reason = settings.Reason
	if !w.isCreate() && settings.Revisions != nil {
		w.ifMatch, w.revisions, w.since = ifMatch(settings.Revisions), settings.Revisions, slices.Min(append(settings.Revisions, math.MaxUint64))
	}
	if settings.DryRun {
		if err := c.requireDryRuns(ctx); err != nil {
			return nil, err
		}
		w.query.Set("dry_run", "true")
		w.hasNoEffect, w.isDryRun = true, true
	}
	attempts := c.newAttempts()
	for {
		resp, failed := c.do(ctx, w.request, attempts)
		if failed == nil {
			return resp.relayer, nil
		}
		w.isLost = w.isLost || failed.isUnknown
		if w.isDryRun || !w.isLost && !w.mayBeDuplicate(failed.err) {
			return nil, failed.err
		}
		found, current, err := c.settle(ctx, w, attempts)
		switch {
		case found == hadEffect:
			return current, nil
		case !w.isLost:
			return nil, failed.err
		case found == isDecided:
			return nil, err
		case found == isUndecided:
			return nil, &unknownOutcome{fmt.Errorf("%w; %w", failed.err, err)}
		case failed.isOfServer && !failed.isTemporary && !failed.isUnknown: // it would also reject the lost attempt
			return nil, failed.err
		case !failed.isUnknown && !failed.isTemporary || !attempts.next(ctx, failed.wait):
			return nil, &unknownOutcome{failed.withContextError(ctx).err}
		}
	}
}

// requireDryRuns returns an error unless the server has dry runs: one that ignores the query
// parameter would carry out the write. A server with dry runs has the path of permissions too.
func (c *Client) requireDryRuns(ctx context.Context) error {
	if c.hasDryRuns.Load() {
		return nil
	}
	probe := newRequest(http.MethodGet, accessPath, nil)
	probe.isOptional, probe.decode = true, decodeNothing
	if _, failed := c.do(ctx, probe, c.newAttempts()); failed != nil {
		return failed.err
	}
	c.hasDryRuns.Store(true)
	return nil
}

// mayBeDuplicate reports whether a rejection may be the effect of the write itself: a proxy may
// send a request twice and return the second response.
func (w *write) mayBeDuplicate(err error) bool {
	return errors.Is(err, relayer.ErrExists) || errors.Is(err, relayer.ErrConflict) || errors.Is(err, relayer.ErrNotFound) && w.method == http.MethodDelete
}

// verdict is what the server shows about a write whose response was lost.
type verdict int

const (
	hadEffect   verdict = iota
	isPending           // it has had no effect, and can be sent again
	isDecided           // it has had no effect, and the error is the result
	isUndecided         // the error says why
)

var errNoHistory = fmt.Errorf("the server has no history that shows the outcome: %w", errors.ErrUnsupported)

// settle looks for the request ID of the write in the last change of the relayer, then in its
// history. If the write has had an effect, it returns the relayer as it was then.
func (c *Client) settle(ctx context.Context, w *write, attempts *attempts) (verdict, *relayer.Relayer, error) {
	current, err := c.read(ctx, w.wantID, maskedURLs, c.lookUpAttempts(w, attempts))
	switch {
	case err == nil && current.LastChange.RequestID == w.requestID:
		return hadEffect, current, nil
	case err != nil && !errors.Is(err, relayer.ErrNotFound):
		return isUndecided, nil, fmt.Errorf("reading it back: %w", err)
	}
	own, err := c.findChange(ctx, w, attempts)
	switch {
	case own != nil:
		return hadEffect, own.Relayer, nil
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return isUndecided, nil, fmt.Errorf("reading the history: %w", err)
	case current == nil && w.isCreate(), current != nil && slices.Contains(w.revisions, current.Revision):
		return isPending, nil, nil
	case w.hasOwnID:
		return hadEffect, current, nil
	case err != nil:
		return isUndecided, nil, err
	case current == nil:
		return isDecided, nil, relayer.ErrNotFound
	case w.isCreate():
		return isDecided, nil, relayer.ErrExists
	case w.revisions != nil:
		return isDecided, nil, relayer.ErrConflict
	}
	w.since = current.Revision
	return isPending, nil, nil
}

// findChange returns the change with the request ID of the write, or nil if the history has
// none.
func (c *Client) findChange(ctx context.Context, w *write, attempts *attempts) (*relayer.Change, error) {
	query := relayer.HistoryQuery{ID: w.wantID, Limit: allPage}
	if !w.isLost { // a duplicate is among the newest
		query.Limit = 10
	}
	for {
		page, err := c.history(ctx, query, c.lookUpAttempts(w, attempts))
		switch {
		case errors.Is(err, relayer.ErrNotFound):
			return nil, nil
		case err == nil && !page.hasRequestIDs:
			err = errNoHistory
		}
		if err != nil {
			return nil, err
		}
		for _, past := range page.changes {
			if past.Info.RequestID == w.requestID {
				return &past, nil
			}
			if past.Info.Revision <= w.since {
				return nil, nil
			}
		}
		if query.Before = page.next; page.next == 0 || !w.isLost && w.since == 0 {
			return nil, nil
		}
	}
}

// lookUpAttempts are as many as those of any read, but no later than those of the write. A write
// that was rejected, and is hardly a duplicate, is looked up once.
func (c *Client) lookUpAttempts(w *write, attempts *attempts) *attempts {
	lookUp := *attempts
	if lookUp.left, lookUp.made = 0, 0; w.isLost {
		lookUp.left = c.maxAttempts - 1
	}
	return &lookUp
}
