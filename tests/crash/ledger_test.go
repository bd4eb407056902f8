package crash

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/go-relayer/relayer"
)

// ledger is what is known of the store from outside: the current version of each
// record by the acknowledged writes, and the one unacknowledged write of each
// worker.
type ledger struct {
	current      map[string]event
	inFlight     map[int]event
	created      map[int][]string // per worker, in the order of acknowledgement
	changes      []event          // acknowledged since the last comparison, with their verbs
	history      []string         // digests of the changes that were compared, oldest first
	revision     uint64           // of the last of them
	acknowledged int
}

func newLedger() *ledger {
	return &ledger{current: make(map[string]event), inFlight: make(map[int]event), created: make(map[int][]string)}
}

func (l *ledger) note(e event) {
	switch e.Verb {
	case committed:
		l.acknowledge(e)
	case refused:
		delete(l.inFlight, e.Worker)
	default:
		l.inFlight[e.Worker] = e
	}
}

func (l *ledger) acknowledge(e event) {
	begun := l.inFlight[e.Worker]
	delete(l.inFlight, e.Worker)
	l.acknowledged++
	begun.Revision = e.Revision
	l.changes = append(l.changes, begun)
	switch begun.Verb {
	case creating:
		l.created[e.Worker] = append(l.created[e.Worker], e.ID)
		l.current[e.ID] = e
	case updating:
		l.current[e.ID] = e
	case deleting:
		delete(l.current, e.ID)
	}
}

// report is the result of a comparison, as IDs.
type report struct {
	lost       []string // acknowledged and absent
	partial    []string // neither as before a write nor as after it
	unexpected []string // present and never written
	duplicate  []string // present more than once
	misordered []string // listed before an earlier record of the same worker
	history    []string // notes of changes that are in the history and were not made so, or are missing
}

func (r report) String() string {
	return fmt.Sprintf("lost %v, partial %v, unexpected %v, duplicate %v, misordered %v, wrong in the history %v",
		r.lost, r.partial, r.unexpected, r.duplicate, r.misordered, r.history)
}

func (r report) isEmpty() bool {
	return len(r.lost)+len(r.partial)+len(r.unexpected)+len(r.duplicate)+len(r.misordered)+len(r.history) == 0
}

// compare compares what is left in the store with the ledger, which then forgets the
// acknowledged changes.
func (l *ledger) compare(remaining contents) report {
	left, found := remaining.records, report{history: l.compareHistory(remaining)}
	pending := make(map[string]event)
	for _, e := range l.inFlight {
		pending[e.ID] = e
	}
	present := make(map[string]relayer.Record, len(left))
	for _, rec := range left {
		if _, isDuplicate := present[rec.ID]; isDuplicate {
			found.duplicate = append(found.duplicate, rec.ID)
		}
		present[rec.ID] = rec
		current, isKnown := l.current[rec.ID]
		begun, isPending := pending[rec.ID]
		switch {
		case isKnown && rec.Revision == current.Revision && hasVersion(rec, current.Version):
		case isPending && begun.Verb != deleting && rec.Revision > current.Revision && hasVersion(rec, begun.Version):
		case isKnown || isPending:
			found.partial = append(found.partial, rec.ID)
		default:
			found.unexpected = append(found.unexpected, rec.ID)
		}
	}
	for id := range l.current {
		if _, isPresent := present[id]; !isPresent && pending[id].Verb != deleting {
			found.lost = append(found.lost, id)
		}
	}
	found.misordered = l.misordered(left)
	return found
}

// compareHistory compares the changes since the last comparison. Each must be one that was
// acknowledged or in flight, and none occurs twice. One in flight is there if its record has it.
func (l *ledger) compareHistory(remaining contents) (wrong []string) {
	writes, revisions := make(map[string]event), revisionsOf(remaining.records)
	for _, e := range l.changes {
		writes[e.note()] = e
	}
	for _, e := range l.inFlight {
		writes[e.note()] = e
	}
	for _, change := range slices.Backward(remaining.history) {
		note := string(change.Record.Note)
		e, isKnown := writes[note]
		if delete(writes, note); !isKnown || change.Record.Revision <= l.revision || !e.made(change) {
			wrong = append(wrong, note)
		}
		l.revision = change.Record.Revision
		l.history = append(l.history, digest(change))
	}
	for _, e := range l.changes {
		if _, isMissing := writes[e.note()]; isMissing {
			wrong = append(wrong, e.note())
		}
	}
	for _, e := range l.inFlight {
		if _, isMissing := writes[e.note()]; isMissing == l.isCarriedOut(e, revisions) {
			wrong = append(wrong, e.note())
		}
	}
	l.changes = nil
	return wrong
}

// made reports whether the write made the change, to the last byte.
func (e event) made(change relayer.RecordChange) bool {
	want := e.change()
	want.Record.Private = nil
	want.Record.Revision, want.Record.Sequence = change.Record.Revision, change.Record.Sequence
	return digest(change) == digest(want) && (e.Revision == 0 || e.Revision == change.Record.Revision)
}

func digest(change relayer.RecordChange) string {
	change.Position, change.Time = "", time.Time{}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", change))
	return string(sum[:])
}

// retained is how many changes every store retains.
const retained = 100_000

// compareAll compares all changes that a store retains with those that were compared before.
func (l *ledger) compareAll(history []relayer.RecordChange) error {
	if len(history) < min(retained, len(l.history)) || len(history) > len(l.history) {
		return fmt.Errorf("the history has %d changes, and %d were compared", len(history), len(l.history))
	}
	for i, change := range history {
		if digest(change) != l.history[len(l.history)-1-i] {
			return fmt.Errorf("the change of revision %d is another one than before", change.Record.Revision)
		}
	}
	return nil
}

// hasVersion reports whether a record is this version of itself, to the last byte.
func hasVersion(rec relayer.Record, version int) bool {
	want := content(rec.ID, version)
	return rec.Claim == want.Claim && bytes.Equal(rec.Document, want.Document) && bytes.Equal(rec.Private, want.Private)
}

func (l *ledger) misordered(left []relayer.Record) []string {
	position := make(map[string]int, len(left))
	for i, rec := range left {
		position[rec.ID] = i
	}
	var found []string
	for _, ids := range l.created {
		last := -1
		for _, id := range ids {
			at, isPresent := position[id]
			if isPresent && at < last {
				found = append(found, id)
			}
			if isPresent {
				last = at
			}
		}
	}
	return found
}

// carriedOut counts the writes in flight whose effect is in the store.
func (l *ledger) carriedOut(left []relayer.Record) int {
	revisions, count := revisionsOf(left), 0
	for _, e := range l.inFlight {
		if l.isCarriedOut(e, revisions) {
			count++
		}
	}
	return count
}

func (l *ledger) isCarriedOut(e event, revisions map[string]uint64) bool {
	revision, isPresent := revisions[e.ID]
	return isPresent == (e.Verb != deleting) && revision != l.current[e.ID].Revision
}

func revisionsOf(records []relayer.Record) map[string]uint64 {
	revisions := make(map[string]uint64, len(records))
	for _, rec := range records {
		revisions[rec.ID] = rec.Revision
	}
	return revisions
}

// adopt begins the next round with the records that are left.
func (l *ledger) adopt(left []relayer.Record) {
	current := make(map[string]event, len(left))
	for _, rec := range left {
		current[rec.ID] = event{ID: rec.ID, Revision: rec.Revision, Version: versionOf(rec)}
	}
	for worker, e := range l.inFlight {
		if e.Verb == creating {
			l.created[worker] = append(l.created[worker], e.ID)
		}
	}
	l.current, l.inFlight = current, make(map[int]event)
}

// versionOf reads the version from the claim, which compare has verified.
func versionOf(rec relayer.Record) int {
	var version int
	_, _ = fmt.Sscanf(rec.Claim[len(rec.ID):], "/%d", &version)
	return version
}
