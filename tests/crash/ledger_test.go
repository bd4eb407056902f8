package crash

import (
	"bytes"
	"fmt"
	"math"

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
	l.changes = append(l.changes, event{Verb: begun.Verb, ID: e.ID, Revision: e.Revision, Version: e.Version})
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
	history    []string // an acknowledged change is not in the history, or not as it was written
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
	left, found := remaining.records, report{history: l.compareHistory(remaining.history)}
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

// compareHistory returns the IDs of acknowledged changes that are not in the history, and those of
// entries that are not in the order of their revisions.
func (l *ledger) compareHistory(history []relayer.RecordChange) (wrong []string) {
	byRevision, deleted := make(map[uint64]relayer.RecordChange), make(map[string]bool)
	last := uint64(math.MaxUint64)
	for _, change := range history {
		if change.Record.Revision >= last {
			wrong = append(wrong, change.Record.ID)
		}
		last = change.Record.Revision
		byRevision[last] = change
		deleted[change.Record.ID] = deleted[change.Record.ID] || change.Kind == relayer.ChangeDeleted
	}
	for _, e := range l.changes {
		is := byRevision[e.Revision]
		isThere := is.Record.ID == e.ID && bytes.Equal(is.Record.Document, content(e.ID, e.Version).Document)
		if e.Verb == deleting {
			isThere = deleted[e.ID]
		}
		if !isThere {
			wrong = append(wrong, e.ID)
		}
	}
	l.changes = nil
	return wrong
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
	present := make(map[string]uint64, len(left))
	for _, rec := range left {
		present[rec.ID] = rec.Revision
	}
	count := 0
	for _, e := range l.inFlight {
		if revision, isPresent := present[e.ID]; isPresent == (e.Verb != deleting) && revision != l.current[e.ID].Revision {
			count++
		}
	}
	return count
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
