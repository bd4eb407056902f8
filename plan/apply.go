package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-relayer/relayer"
)

// Result is the outcome of one change.
type Result struct {
	ID     string
	Action Action
	Err    error
}

// Apply makes the changes of the plan, each with one write that has the options, such as
// [relayer.Reason]. It returns a result for each change that it has tried, in the order of the
// entries. The error joins those of the results and of the entries that are [Blocked], each with
// the ID of its relayer, and says how many deletes were not tried.
//
// Up to 16 changes are made at once. They begin in the order of the entries, but new
// relayers may be created in another order.
//
// A failure that concerns one relayer (a conflict, or one that matches [relayer.ErrInvalid],
// [relayer.ErrNotFound] or [relayer.ErrExists]) does not stop the others. After any other failure
// no change begins. Deletes are last, and are made only if everything else has succeeded and no
// entry is Blocked.
//
// If there are more deletes than [Options.MaxDeletes], an option is invalid, or [New] has not
// made the plan, Apply returns an error and changes nothing.
func (p *Plan) Apply(ctx context.Context, options ...relayer.WriteOption) ([]Result, error) {
	if p == nil || p.entries == nil {
		return nil, errors.New("plan: the plan was not made by New")
	}
	if _, err := relayer.NewWriteSettings(options...); err != nil {
		return nil, err
	}
	if err := p.deletesError(); err != nil {
		return nil, err
	}
	deletes := p.with(Delete)
	results, failures := apply(ctx, p.with(Create, Update), options)
	failures = append(p.problems(), failures...)
	if len(failures) > 0 && len(deletes) > 0 {
		failures = append(failures, fmt.Errorf("deletes not tried because of the failures: %d", len(deletes)))
		return results, errors.Join(failures...)
	}
	deleted, notDeleted := apply(ctx, deletes, options)
	return append(results, deleted...), errors.Join(append(failures, notDeleted...)...)
}

// with returns the entries that have one of the actions.
func (p *Plan) with(actions ...Action) []Entry {
	return slices.DeleteFunc(slices.Clone(p.entries), func(e Entry) bool { return !slices.Contains(actions, e.Action) })
}

// apply makes changes until one of them fails for a reason that concerns all.
func apply(ctx context.Context, entries []Entry, options []relayer.WriteOption) (results []Result, failures []error) {
	outcomes := tryAll(ctx, entries, concernsOne, options...)
	for i, outcome := range outcomes {
		results = append(results, Result{ID: entries[i].ID, Action: entries[i].Action, Err: outcome.err})
		if outcome.err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", entries[i].ID, outcome.err))
		}
	}
	if rest := len(entries) - len(outcomes); rest > 0 {
		failures = append(failures, fmt.Errorf("changes not tried after the failure: %d", rest))
	}
	return results, failures
}

// maxParallel bounds the writes that run at once.
const maxParallel = 16

// outcome is that of one write. A dry run has what would change.
type outcome struct {
	changed []string
	err     error
}

// tryAll makes the changes of entries, several at once, and returns the outcome of each. After an
// error that is not tolerated, no change begins, so the result can be shorter than entries.
func tryAll(ctx context.Context, entries []Entry, isTolerated func(error) bool, options ...relayer.WriteOption) []outcome {
	outcomes, slots := make([]outcome, len(entries)), make(chan struct{}, maxParallel)
	var isStopped atomic.Bool
	var writes sync.WaitGroup
	begun := len(entries)
	for i, entry := range entries {
		if slots <- struct{}{}; isStopped.Load() {
			begun = i
			break
		}
		writes.Go(func() {
			err := ctx.Err()
			if err == nil && entry.apply != nil {
				outcomes[i].changed, err = entry.apply(ctx, options...)
			}
			if outcomes[i].err = err; err != nil && !isTolerated(err) {
				isStopped.Store(true)
			}
			<-slots
		})
	}
	writes.Wait()
	return outcomes[:begun]
}

// concernsOne reports whether a failure has its cause in one relayer.
func concernsOne(err error) bool {
	causes := []error{relayer.ErrConflict, relayer.ErrExists, relayer.ErrNotFound, relayer.ErrInvalid}
	return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
}
