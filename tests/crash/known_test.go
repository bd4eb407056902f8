//go:build unix

package crash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// known is what is known of a store from outside.
type known struct {
	versions     *ledger.Ledger[int]
	revisions    map[ledger.Change[int]]uint64 // that were acknowledged
	history      [][sha256.Size]byte           // digests of the changes that were compared, oldest first
	revision     uint64                        // of the last of them
	acknowledged int
}

func newKnown() *known {
	return &known{versions: ledger.New[int](), revisions: make(map[ledger.Change[int]]uint64)}
}

func (k *known) note(e event) {
	if e.Revision > 0 {
		k.revisions[ledger.Change[int]{Key: e.Keys[0], Value: e.Value}] = e.Revision
	}
	k.versions.Note(e.Event)
}

// report is how a store differs from what is known of it.
type report struct {
	ledger.Difference
	wrong []string
}

func (r report) isEmpty() bool { return r.IsEmpty() && len(r.wrong) == 0 }

func (r report) String() string { return fmt.Sprintf("%v; wrong: %v", r.Difference, r.wrong) }

// compare compares what is left in the store with what is known, and begins the next round with
// it. No process writes.
func (k *known) compare(left contents) (found report, inFlight, carriedOut int) {
	k.versions.Interrupt()
	held := k.held(left.Records, &found)
	found.Difference = k.versions.Compare(held)
	history := k.changes(left.History, &found)
	for _, change := range k.versions.CompareHistory(history, held) {
		found.wrong = append(found.wrong, fmt.Sprintf("change %v", change))
	}
	k.acknowledged += len(k.versions.Ended(ledger.Done))
	uncertain := k.versions.Ended(ledger.Unknown)
	for _, e := range uncertain {
		if held[e.Keys[0]] == e.Value {
			carriedOut++
		}
	}
	k.versions.Adopt(held)
	return found, len(uncertain), carriedOut
}

// held returns the versions of the records. Each record must be as it was written, to the last byte,
// once, with its acknowledged revision, and after the earlier records of its worker.
func (k *known) held(left []kept, found *report) map[string]int {
	held, last := make(map[string]int), make(map[int]int)
	for _, rec := range left {
		_, isTwice := held[rec.ID]
		held[rec.ID] = rec.Version
		var worker, number int
		_, err := fmt.Sscanf(rec.ID, "w%d-%d", &worker, &number)
		revision, isKnown := k.revisions[ledger.Change[int]{Key: rec.ID, Value: rec.Version}]
		if err != nil || isTwice || !rec.IsWhole || number <= last[worker] || isKnown && rec.Revision != revision {
			found.wrong = append(found.wrong, fmt.Sprintf("record %s of revision %d", rec.ID, rec.Revision))
		}
		last[worker] = number
	}
	return held
}

// changes returns the changes of the history, oldest first. Each must be as it was made, to the last
// byte, with its acknowledged revision and a higher one than those before.
func (k *known) changes(history []made, found *report) (changes []ledger.Change[int]) {
	for _, m := range slices.Backward(history) {
		revision, isKnown := k.revisions[m.Change]
		if m.Error != "" || m.Revision <= k.revision || isKnown && revision != m.Revision {
			found.wrong = append(found.wrong, fmt.Sprintf("change %v of revision %d: %s", m.Change, m.Revision, m.Error))
		}
		changes = append(changes, m.Change)
		k.revision = m.Revision
		k.history = append(k.history, m.digest)
	}
	return changes
}

// retained is how many changes every store retains.
const retained = 100_000

// compareAll compares all changes that a store retains with those that were compared before.
func (k *known) compareAll(history []made) error {
	if len(history) < min(retained, len(k.history)) || len(history) > len(k.history) {
		return fmt.Errorf("the history has %d changes, and %d were compared", len(history), len(k.history))
	}
	for i, m := range history {
		if m.digest != k.history[len(k.history)-1-i] {
			return fmt.Errorf("the change of revision %d is another one than before", m.Revision)
		}
	}
	return nil
}

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
			change.Time = time.Time{}
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
