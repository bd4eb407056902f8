//go:build unix

package crash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// contents are the records of a store, and its changes after a revision, newest first. A child can
// send them as JSON.
type contents struct {
	Records []kept
	History []made
}

// kept is a record in a store.
type kept struct {
	ID       string
	Version  int
	Revision uint64
	IsWhole  bool // as it was written, to the last byte
}

// made is a change in the history of a store.
type made struct {
	ledger.Change[int]
	Revision uint64
	Error    string // what differs from the change as it was made
	digest   [sha256.Size]byte
}

func contentsOf(ctx context.Context, store relayer.Store, after uint64) (contents, error) {
	records, history, err := read(ctx, store, after)
	return newContents(records, history), err
}

func newContents(records []relayer.Record, history []relayer.RecordChange) (c contents) {
	for _, rec := range records {
		version := versionOf(rec)
		want := content(rec.ID, version)
		isWhole := rec.Claim == want.Claim && bytes.Equal(rec.Document, want.Document) && bytes.Equal(rec.Private, want.Private)
		c.Records = append(c.Records, kept{rec.ID, version, rec.Revision, isWhole})
	}
	for _, change := range history {
		e, err := madeBy(change)
		m := made{ledger.Change[int]{Key: e.Keys[0], Value: e.Value}, change.Record.Revision, "", digest(change)}
		if err != nil {
			m.Error = err.Error()
		}
		c.History = append(c.History, m)
	}
	return c
}

// read returns the records of a store, and its changes after a revision.
func read(ctx context.Context, store relayer.Store, after uint64) (records []relayer.Record, history []relayer.RecordChange, err error) {
	all, err := store.List(ctx, relayer.StoreQuery{Limit: 1 << 30})
	if err != nil || all.Total != len(all.Records) {
		return nil, nil, fmt.Errorf("%d records, total %d, error %w", len(all.Records), all.Total, err)
	}
	for query := (relayer.HistoryQuery{Limit: 1000}); ; {
		page, err := store.History(ctx, query)
		if err != nil {
			return nil, nil, err
		}
		for _, change := range page {
			if change.Record.Revision <= after {
				return all.Records, history, nil
			}
			if change.Record.ID != afterTheCut {
				history = append(history, change)
			}
		}
		if len(page) < query.Limit {
			return all.Records, history, nil
		}
		query.Before = page[len(page)-1].Record.Revision
	}
}
