//go:build unix

package failover

import (
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/tests/internal/ledger"
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
func (y *tally) compareRecords(known *ledger.Ledger[uint64], present []relayer.Record) {
	held := make(map[string]uint64)
	for _, rec := range present {
		if _, isTwice := held[rec.ID]; isTwice {
			y.doubled++
		}
		held[rec.ID] = rec.Revision
	}
	found := known.Compare(held)
	y.lost += len(found.Lost)
	y.doubled += len(found.Unexpected)
}

// compareChanges counts what a watcher did not receive exactly once and in order. After
// ErrGap a watcher has to read all records again, so that it may miss changes before it
// and receive them again after it. It reports whether there was no ErrGap.
func (y *tally) compareChanges(known *ledger.Ledger[uint64], changes []change) (isComplete bool) {
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
		if c.revision == 0 {
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
	for _, want := range known.Acknowledged() {
		if !received[change{want.Key, want.Value}] {
			y.gaps++
		}
	}
	return true
}
