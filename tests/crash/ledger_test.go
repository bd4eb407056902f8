package crash

import (
	"bytes"
	"fmt"

	"github.com/go-relayer/relayer"
)

// ledger is what is known from outside of the store: how each record stands by what was
// acknowledged, and the one write of each worker that was not answered.
type ledger struct {
	stands   map[string]event
	inFlight map[int]event
	created  map[int][]string // per worker, in the order of acknowledgement
	acked    int
}

func newLedger() *ledger {
	return &ledger{stands: make(map[string]event), inFlight: make(map[int]event), created: make(map[int][]string)}
}

func (l *ledger) note(e event) {
	switch e.Verb {
	case "done":
		l.acknowledge(e)
	case "refused":
		delete(l.inFlight, e.Worker)
	default:
		l.inFlight[e.Worker] = e
	}
}

func (l *ledger) acknowledge(e event) {
	begun := l.inFlight[e.Worker]
	delete(l.inFlight, e.Worker)
	l.acked++
	switch begun.Verb {
	case "create":
		l.created[e.Worker] = append(l.created[e.Worker], e.ID)
		l.stands[e.ID] = e
	case "update":
		l.stands[e.ID] = e
	case "delete":
		delete(l.stands, e.ID)
	}
}

// report is what a comparison found.
type report struct {
	lost     []string // acknowledged and not there
	halves   []string // neither as before the write nor as after it
	unasked  []string // there, and never asked for
	doubled  []string // there more than once
	disorder []string
}

func (r report) String() string {
	return fmt.Sprintf("lost %v, halves %v, never asked for %v, doubled %v, out of order %v",
		r.lost, r.halves, r.unasked, r.doubled, r.disorder)
}

func (r report) clean() bool {
	return len(r.lost)+len(r.halves)+len(r.unasked)+len(r.doubled)+len(r.disorder) == 0
}

// compare holds what is left in the store against the ledger.
func (l *ledger) compare(left []relayer.Record) report {
	var found report
	pending := make(map[string]event)
	for _, e := range l.inFlight {
		pending[e.ID] = e
	}
	present := make(map[string]relayer.Record, len(left))
	for _, rec := range left {
		if _, twice := present[rec.ID]; twice {
			found.doubled = append(found.doubled, rec.ID)
		}
		present[rec.ID] = rec
		stands, known := l.stands[rec.ID]
		begun, unanswered := pending[rec.ID]
		switch {
		case known && rec.Revision == stands.Revision && holds(rec, stands.Version):
		case unanswered && begun.Verb != "delete" && rec.Revision > stands.Revision && holds(rec, begun.Version):
		case known || unanswered:
			found.halves = append(found.halves, rec.ID)
		default:
			found.unasked = append(found.unasked, rec.ID)
		}
	}
	for id := range l.stands {
		if _, there := present[id]; !there && pending[id].Verb != "delete" {
			found.lost = append(found.lost, id)
		}
	}
	found.disorder = l.disorder(left)
	return found
}

// holds says whether a record is this version of itself, to the last byte.
func holds(rec relayer.Record, version int) bool {
	want := content(rec.ID, version)
	return rec.Claim == want.Claim && bytes.Equal(rec.Document, want.Document) && bytes.Equal(rec.Private, want.Private)
}

// disorder finds records that come before one which their worker made earlier.
func (l *ledger) disorder(left []relayer.Record) []string {
	place := make(map[string]int, len(left))
	for i, rec := range left {
		place[rec.ID] = i
	}
	var found []string
	for _, ids := range l.created {
		last := -1
		for _, id := range ids {
			at, there := place[id]
			if there && at < last {
				found = append(found, id)
			}
			if there {
				last = at
			}
		}
	}
	return found
}

// adopt starts the next round from what is left.
func (l *ledger) adopt(left []relayer.Record) {
	stands := make(map[string]event, len(left))
	for _, rec := range left {
		stands[rec.ID] = event{ID: rec.ID, Revision: rec.Revision, Version: versionOf(rec)}
	}
	for worker, e := range l.inFlight {
		if e.Verb == "create" {
			l.created[worker] = append(l.created[worker], e.ID)
		}
	}
	l.stands, l.inFlight = stands, make(map[int]event)
}

// versionOf reads the version out of the claim, which compare has vouched for.
func versionOf(rec relayer.Record) int {
	var version int
	_, _ = fmt.Sscanf(rec.Claim[len(rec.ID):], "/%d", &version)
	return version
}
