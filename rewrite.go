package relayer

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
)

// recordForm returns the record in another form, which describes the same relayer, or as it
// is if it has the form already.
type recordForm func(context.Context, Record) (Record, error)

// rewrite stores a record in another form, and reports whether it has.
func (m *Manager) rewrite(ctx context.Context, id string, form recordForm) (isStored bool, err error) {
	_, err = observeWrite(ctx, m, ActionUpdate, &id, nil, func(ctx context.Context, w *write) (Record, error) {
		return retry(ctx, func() (Record, error) {
			current, err := m.get(ctx, id)
			if errors.Is(err, ErrNotFound) {
				return Record{}, nil
			}
			if err != nil {
				return Record{}, err
			}
			changed, err := form(ctx, current)
			if err != nil || isSameRecord(changed, current) {
				return changed, err
			}
			w.begins(current)
			changed, err = w.swap(ctx, changed)
			if isStored = err == nil; isStored {
				w.operation.Revision = changed.Revision
			}
			return changed, err
		})
	})
	return isStored, err
}

// maxRewrites bounds the records that are rewritten at once.
const maxRewrites = 16

// rewriteAll rewrites records, several at once. It yields, in order, the ID of each that it has
// stored, the ID and an error for each that it could not store, and the error of records. It
// reports whether it has reached the end.
func (m *Manager) rewriteAll(ctx context.Context, records iter.Seq2[Record, error], form recordForm, yield func(string, error) bool) (isComplete bool) {
	var ids []string
	for rec, err := range records {
		if err != nil {
			_ = m.rewriteBatch(ctx, ids, form, yield) && yield("", err)
			return false
		}
		if ids = append(ids, rec.ID); len(ids) < maxRewrites {
			continue
		}
		if !m.rewriteBatch(ctx, ids, form, yield) {
			return false
		}
		ids = ids[:0]
	}
	return m.rewriteBatch(ctx, ids, form, yield)
}

// rewriteBatch rewrites records at the same time. A panic of form reaches the caller.
func (m *Manager) rewriteBatch(ctx context.Context, ids []string, form recordForm, yield func(string, error) bool) (goesOn bool) {
	outcomes := make([]struct {
		isStored bool
		err      error
		panicked any
	}, len(ids))
	var running sync.WaitGroup
	for i, id := range ids {
		running.Go(func() {
			o := &outcomes[i]
			defer func() { o.panicked = recover() }()
			o.isStored, o.err = m.rewrite(ctx, id, form)
		})
	}
	running.Wait()
	for i, o := range outcomes {
		if o.panicked != nil {
			panic(o.panicked)
		}
		if (o.isStored || o.err != nil) && !yield(ids[i], o.err) {
			return false
		}
	}
	return ctx.Err() == nil
}

func isSameRecord(a, b Record) bool {
	return bytes.Equal(a.Private, b.Private) && slices.Equal(a.Terms, b.Terms) && a.Text == b.Text
}
