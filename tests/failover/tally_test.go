//go:build unix

package failover

import (
	"fmt"

	"github.com/go-relayer/relayer"
)

// tally counts acknowledged writes and what is wrong with them afterwards.
type tally struct {
	acknowledged int64
	lost         int // acknowledged writes that the store does not have
	doubled      int // writes that were carried out twice, and changes that were received twice
	gaps         int // changes that a watcher did not receive, or not in order, without ErrGap
	signaled     int // gaps that a watcher received as ErrGap
}

func (y tally) String() string {
	return fmt.Sprintf("%d writes acknowledged, %d lost, %d doubled, %d gaps in Watch, %d signaled gaps",
		y.acknowledged, y.lost, y.doubled, y.gaps, y.signaled)
}

func (y *tally) add(other tally) {
	y.acknowledged += other.acknowledged
	y.lost += other.lost
	y.doubled += other.doubled
	y.gaps += other.gaps
	y.signaled += other.signaled
}

// compareRecords counts what is lost or doubled among the stored records.
func (y *tally) compareRecords(known map[string]entry, present []relayer.Record) {
	stored := make(map[string]uint64)
	for _, rec := range present {
		_, isTwice := stored[rec.ID]
		_, isKnown := known[rec.ID]
		if isTwice || !isKnown {
			y.doubled++
		}
		stored[rec.ID] = rec.Revision
	}
	for id, e := range known {
		switch revision := stored[id]; {
		case e.isDeleted && revision == 0:
		case e.isDeleted || revision < e.current():
			y.lost++
		case revision > e.current():
			y.doubled++
		}
	}
}

// compareChanges counts what a watcher did not receive exactly once and in order. After
// ErrGap a watcher has to read all records again, so that it may miss changes before it
// and receive them again after it. It reports whether there was no ErrGap.
func (y *tally) compareChanges(known map[string]entry, changes []change) (isComplete bool) {
	isComplete = true
	received := make(map[change]bool)
	var last uint64
	for _, c := range changes {
		if c == gap {
			y.signaled++
			isComplete = false
			clear(received)
			last = 0
			continue
		}
		if received[c] {
			y.doubled++
		}
		received[c] = true
		if c.kind == relayer.ChangeDeleted {
			continue
		}
		if c.revision <= last {
			y.gaps++
		}
		last = c.revision
	}
	if !isComplete {
		return false
	}
	for id, e := range known {
		for _, want := range e.changes(id) {
			if !received[want] {
				y.gaps++
			}
		}
	}
	return true
}

// changes returns the changes that a watcher has to receive.
func (e entry) changes(id string) []change {
	all := []change{{relayer.ChangeCreated, id, e.created}}
	if e.updated > 0 {
		all = append(all, change{relayer.ChangeUpdated, id, e.updated})
	}
	if e.isDeleted {
		all = append(all, change{kind: relayer.ChangeDeleted, id: id})
	}
	return all
}
