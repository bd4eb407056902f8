package model

import (
	"context"
	"errors"
	"slices"

	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// follower computes the selections of queries from the changes of a store and their old
// terms. It reads the changes in parts, and resumes after the last one.
type follower struct {
	queries  []relayer.StoreQuery
	held     []map[string]uint64 // revision by ID, for each query
	position string              // of the last change; empty before the first read
}

// follow reads all changes, through any instance, and compares the selections with those
// of the model. The marker is the last change.
func (s *subject) follow(t *rapid.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := s.instance(t).Watch(ctx, s.follower.position)
	if s.follower.position == "" {
		s.follower.read(s.model)
	}
	last := s.mark(t)
	for change, err := range changes {
		if errors.Is(err, relayer.ErrGap) && s.follower.position != "" {
			s.follower.position = ""
			s.follow(t)
			return
		}
		if err != nil {
			t.Fatalf("%s: Watch: %v", s.name, err)
		}
		s.follower.apply(change)
		if change.Kind == relayer.ChangeDeleted && change.Record.Revision == last {
			break
		}
	}
	for i, query := range s.follower.queries {
		want, _ := s.model.list(query)
		isHeld := func(rec relayer.Record) bool { return s.follower.held[i][rec.ID] == rec.Revision }
		if len(s.follower.held[i]) != len(want) || slices.ContainsFunc(want, func(rec relayer.Record) bool { return !isHeld(rec) }) {
			t.Fatalf("%s: by the changes, %+v selects %v, want %v", s.name, query, s.follower.held[i], want)
		}
	}
}

// mark creates and deletes a record, and returns its revision.
func (s *subject) mark(t *rapid.T) uint64 {
	s.create(t, relayer.Record{ID: "marker"})
	s.delete(t, "marker", 0)
	return s.last["marker"]
}

// read replaces the selections by those of the model, which the store is known to have.
func (f *follower) read(model naive) {
	f.held = nil
	for _, query := range f.queries {
		held := make(map[string]uint64)
		selected, _ := model.list(query)
		for _, rec := range selected {
			held[rec.ID] = rec.Revision
		}
		f.held = append(f.held, held)
	}
}

func (f *follower) apply(change relayer.RecordChange) {
	f.position = change.Position
	before := relayer.Record{ID: change.Record.ID, Terms: change.OldTerms}
	for i, query := range f.queries {
		switch {
		case change.Kind != relayer.ChangeDeleted && storeutil.Selects(query, change.Record):
			f.held[i][change.Record.ID] = change.Record.Revision
		case change.Kind != relayer.ChangeCreated && storeutil.Selects(query, before):
			delete(f.held[i], change.Record.ID)
		}
	}
}
