package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer"
)

// errUsed reports a destination that has changes in its history which the source does not have.
var errUsed = fmt.Errorf("%w: the destination already has another history: copy to a new one", ErrDiffers)

// copyHistory adds the changes in the history of the source to that of the destination, which
// has no relayers yet: later, its revisions would not be greater than all others.
func (c *copier) copyHistory(ctx context.Context) error {
	importer, ok := c.dst.(HistoryImporter)
	if !ok || c.importer == nil {
		return nil // the records get other revisions
	}
	known, err := c.knownHistory(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	pages, err := c.historyPages(ctx, known)
	if err != nil {
		return err
	}
	for _, query := range slices.Backward(pages) {
		page, err := c.sourceHistory(ctx, query, known)
		if err != nil {
			return err
		}
		slices.Reverse(page)
		if len(page) == 0 {
			continue
		}
		err = importer.ImportHistory(ctx, page)
		switch {
		case errors.Is(err, relayer.ErrConflict):
			return errUsed
		case err != nil:
			return fmt.Errorf("write the history: %w", err)
		}
		known = page[len(page)-1].Record.Revision
	}
	return nil
}

// knownHistory returns the revision of the last change that the destination has in its history.
func (c *copier) knownHistory(ctx context.Context) (uint64, error) {
	have, err := c.dst.History(ctx, relayer.HistoryQuery{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("read the history of the destination: %w", err)
	}
	if len(have) == 0 {
		return 0, nil
	}
	known := have[0].Record
	same, err := c.sourceHistory(ctx, relayer.HistoryQuery{Before: known.Revision + 1, Limit: 1}, 0)
	if err == nil && len(same) > 0 && (same[0].Record.Revision != known.Revision || same[0].Record.ID != known.ID) {
		err = errUsed
	}
	return known.Revision, err
}

// historyPages returns the pages of the source after a revision, the newest first. A history
// is read from its end and written from its start, so that it is read twice and not kept in
// memory.
func (c *copier) historyPages(ctx context.Context, known uint64) (pages []relayer.HistoryQuery, err error) {
	query := relayer.HistoryQuery{Limit: firstPage}
	for {
		page, err := c.sourceHistory(ctx, query, known)
		if err != nil || len(page) == 0 {
			return pages, err
		}
		query.Limit = len(page)
		pages = append(pages, query)
		records := make([]relayer.Record, len(page))
		for i, change := range page {
			records[i] = change.Record
		}
		query = relayer.HistoryQuery{Before: records[len(records)-1].Revision, Limit: nextPage(records)}
	}
}

// sourceHistory returns the changes of a page after a revision. It returns none if the source
// retains none, or can read none of those that are left.
func (c *copier) sourceHistory(ctx context.Context, query relayer.HistoryQuery, known uint64) ([]relayer.RecordChange, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	page, err := c.src.History(ctx, query)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, relayer.ErrCorrupt) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the history of the source: %w", err)
	}
	return slices.DeleteFunc(page, func(c relayer.RecordChange) bool { return c.Record.Revision <= known }), nil
}
