package model

import (
	"context"
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
)

// feed is the model of a change feed and a history: all changes, and positions between them.
type feed struct {
	log      []change
	places   []place
	reopened int // how often an instance was reopened
}

// change is a change that a store must report. The revision of a delete is 0 until the feed
// or the history has shown it.
type change struct {
	relayer.RecordChange
	acknowledged time.Time // when the call had returned
	isImport     bool
}

// place is the position of a list, or of a change.
type place struct {
	position string
	at       int // how many changes are before it
	reopened int
}

func (f *feed) add(kind relayer.ChangeKind, rec, old relayer.Record) {
	made := relayer.RecordChange{Kind: kind, Record: rec, OldTerms: old.Terms, OldText: old.Text}
	f.log = append(f.log, change{RecordChange: made, acknowledged: time.Now()})
}

func (f *feed) addImport(rec relayer.Record) {
	f.add(relayer.ChangeCreated, rec, relayer.Record{})
	f.log[len(f.log)-1].isImport = true
}

// mostPlaces bounds how many positions are kept; the oldest ones stay.
const mostPlaces = 12

// keep keeps a position behind all changes.
func (f *feed) keep(position string) {
	f.places = append(f.places[:min(len(f.places), mostPlaces-1)], place{position, len(f.log), f.reopened})
}

// follow watches from a position of the past, through any instance, and compares all changes
// from there on, the last of which is a marker.
func (s *subject) follow(t *rapid.T) {
	from := place{"", len(s.feed.log), s.feed.reopened}
	if n := len(s.feed.places); n > 0 {
		from = append(s.feed.places, from)[rapid.IntRange(0, n).Draw(t, "place")]
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := s.instance(t).Watch(ctx, from.position)
	s.create(t, relayer.Record{ID: "marker"})
	s.delete(t, "marker", 0, []byte("end"))
	next, reached := from.at, time.Time{}
	for got, err := range changes {
		if errors.Is(err, relayer.ErrGap) && s.mayGap(from) {
			return
		}
		if err != nil {
			t.Fatalf("%s: Watch from %+v: %v", s.name, from, err)
		}
		if got.Kind != relayer.ChangeHeartbeat {
			s.wantChange(t, got, next)
			next++
		}
		if got.Time.Before(reached) || next < len(s.feed.log) && s.feed.log[next].acknowledged.Before(got.Time) {
			t.Fatalf("%s: the time of change %d is %s, after %s, and the next was acknowledged at %s",
				s.name, next-1, got.Time, reached, s.feed.log[next].acknowledged)
		}
		reached = got.Time
		if next == len(s.feed.log) {
			s.feed.keep(got.Position)
			return
		}
	}
	t.Fatalf("%s: Watch from %+v ended before change %d", s.name, from, next)
}

// mayGap reports whether a store need not have all changes after a place: they have imports
// in them, are too many, or it was opened since.
func (s *subject) mayGap(from place) bool {
	after := s.feed.log[from.at:]
	return len(after) > 500 || s.isForgetful && from.reopened < s.feed.reopened ||
		slices.ContainsFunc(after, func(c change) bool { return c.isImport })
}

// wantChange compares a change, except for its private part if it is of a history.
func (s *subject) wantChange(t *rapid.T, got relayer.RecordChange, at int) {
	want := &s.feed.log[at]
	if want.Record.Revision == 0 && at > 0 && got.Record.Revision > s.greatestBefore(at) {
		want.Record.Revision = got.Record.Revision
		s.revision = max(s.revision, got.Record.Revision)
	}
	if got.Kind != want.Kind || !isSame(got.Record, want.Record) || !slices.Equal(got.OldTerms, want.OldTerms) || got.OldText != want.OldText {
		t.Fatalf("%s: change %d is %+v, want %+v", s.name, at, got, want.RecordChange)
	}
}

// greatestBefore returns the greatest known revision of the changes before one.
func (s *subject) greatestBefore(at int) (greatest uint64) {
	for _, c := range s.feed.log[:at] {
		greatest = max(greatest, c.Record.Revision)
	}
	return greatest
}

// wantHistory compares changes of the past: those before one whose revision is known, or
// all. Imports are not in a history.
func (s *subject) wantHistory(t *rapid.T, query relayer.HistoryQuery, before int) {
	if before == 0 || before >= len(s.feed.log) || s.feed.log[before].isImport || s.feed.log[before].Record.Revision == 0 {
		before = len(s.feed.log)
	} else {
		query.Before = s.feed.log[before].Record.Revision
	}
	got, err := s.instance(t).History(t.Context(), query)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatalf("%s: History(%+v): %v", s.name, query, err)
	}
	var want []int // in the log, newest first
	for i, c := range slices.Backward(s.feed.log[:before]) {
		if !c.isImport && (query.ID == "" || c.Record.ID == query.ID) && len(want) < query.Limit {
			want = append(want, i)
		}
	}
	if len(got) != len(want) && len(s.feed.log) < 500 || len(got) > len(want) {
		t.Fatalf("%s: History(%+v): %d changes, want %d", s.name, query, len(got), len(want))
	}
	for i, c := range got {
		if len(c.Record.Private) > 0 || !c.Time.IsZero() {
			t.Fatalf("%s: History(%+v): change %d has a private part or a time", s.name, query, i)
		}
		s.wantChange(t, c, want[i])
	}
}
