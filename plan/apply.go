package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer"
)

// Result is the outcome of one change.
type Result struct {
	ID     string
	Action Action
	Err    error
}

// Apply makes the changes of the plan, each with one write, and returns a result for
// each change that it has tried. The error joins those of the results and [Plan.Err],
// each with the ID of its relayer.
//
// A failure that concerns one relayer (a conflict, or one that matches
// [relayer.ErrInvalid], [relayer.ErrNotFound] or [relayer.ErrExists]) does not stop the
// others. Any other failure ends Apply. Deletes are last, and are made only if everything
// else has succeeded and no entry is [Blocked].
func (p *Plan) Apply(ctx context.Context) ([]Result, error) {
	a := &applier{err: p.Err()}
	changes, deletes := p.pending()
	a.run(ctx, changes)
	if a.err != nil && len(deletes) > 0 {
		a.err = errors.Join(a.err, fmt.Errorf("no relayer was deleted because of the failures: %s left to delete", count(len(deletes), "relayer")))
		return a.results, a.err
	}
	a.run(ctx, deletes)
	return a.results, a.err
}

func (p *Plan) pending() (changes, deletes []Entry) {
	for _, entry := range p.Entries {
		switch entry.Action {
		case Create, Update:
			changes = append(changes, entry)
		case Delete:
			deletes = append(deletes, entry)
		}
	}
	return changes, deletes
}

// applier makes changes until one of them fails for a reason that concerns all.
type applier struct {
	results []Result
	err     error
}

func (a *applier) run(ctx context.Context, entries []Entry) {
	for i, entry := range entries {
		err := ctx.Err()
		if err == nil {
			err = entry.apply(ctx)
		}
		a.results = append(a.results, Result{ID: entry.ID, Action: entry.Action, Err: err})
		if err == nil {
			continue
		}
		a.err = errors.Join(a.err, fmt.Errorf("%s: %w", entry.ID, err))
		if concernsOne(err) {
			continue
		}
		if rest := len(entries) - i - 1; rest > 0 {
			a.err = errors.Join(a.err, fmt.Errorf("stopped: %s not tried", count(rest, "change")))
		}
		return
	}
}

// concernsOne reports whether a failure has its cause in one relayer.
func concernsOne(err error) bool {
	causes := []error{relayer.ErrConflict, relayer.ErrExists, relayer.ErrNotFound, relayer.ErrInvalid}
	return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
}
