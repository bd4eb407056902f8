package table

import (
	"context"
	"iter"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/feed"
)

// Published is a change in a feed.
type Published struct {
	kind     relayer.ChangeKind
	record   *Record
	position string
}

// NewFeed returns a feed for [Batch.Publish] and [Watch].
func NewFeed() *feed.Feed[Published] {
	return feed.New(relayer.ErrGap, func(p Published, position string) Published {
		p.position = position
		return p
	})
}

// Publish sends the changes of an applied batch to the subscribers.
func (b *Batch) Publish(to *feed.Feed[Published]) {
	for _, c := range b.Changes {
		to.Publish(Published{kind: c.Kind(), record: c.Record()}, len(c.Record().Parts()))
	}
}

// Watch is that of [relayer.WatchStore]. Each consumer gets a copy of the bytes.
func Watch(ctx context.Context, from *feed.Feed[Published], after string) iter.Seq2[relayer.RecordChange, error] {
	published := from.Subscribe(ctx, after)
	return func(yield func(relayer.RecordChange, error) bool) {
		for p, err := range published {
			var change relayer.RecordChange
			if err == nil {
				change = relayer.RecordChange{Kind: p.kind, Record: p.record.Copy(), Position: p.position}
			}
			if !yield(change, err) {
				return
			}
		}
	}
}
