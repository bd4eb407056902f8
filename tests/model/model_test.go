package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// subject is one store under test beside the model of what it should hold. Each
// has a model of its own, because revisions are the store's to choose.
type subject struct {
	name   string
	store  relayer.Store
	model  naive
	reopen func(t *rapid.T, s *subject)
	last   map[string]uint64
}

func TestStoresAgreeWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "model")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		durable := &subject{name: "bolt", reopen: reopener(filepath.Join(dir, "relayers.db"))}
		durable.reopen(t, durable)
		subjects := []*subject{
			{name: "memory", store: memory.New(), reopen: func(*rapid.T, *subject) {}},
			durable,
		}
		for _, s := range subjects {
			s.last = make(map[string]uint64)
		}
		defer func() { _ = durable.store.(*bolt.Store).Close() }()
		t.Repeat(actions(subjects))
		for _, s := range subjects {
			s.reopen(t, s)
			s.wantPage(t, 0, 1000)
		}
		if err := durable.store.(*bolt.Store).Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// reopener closes the store, where one is open, and opens the file again.
func reopener(path string) func(*rapid.T, *subject) {
	return func(t *rapid.T, s *subject) {
		if s.store != nil {
			if err := s.store.(*bolt.Store).Close(); err != nil {
				t.Fatal(err)
			}
		}
		store, err := bolt.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s.store = store
	}
}

// Few ids and fewer claims make most operations meet one another.
var (
	ids       = rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("id-%d", rapid.IntRange(0, 30).Draw(t, "id")) })
	claims    = rapid.SampledFrom([]string{"", "", "x", "y", "z", "\x00"})
	documents = rapid.SliceOfN(rapid.Byte(), 0, 300)
	// revisions are those that stand, mostly, and others.
	staleness = rapid.SampledFrom([]int{0, 0, 0, 0, -1, 1})
)

func actions(subjects []*subject) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"create": func(t *rapid.T) {
			rec := draw(t)
			each(subjects, func(s *subject) { s.create(t, rec) })
		},
		"create many": func(t *rapid.T) {
			prefix, n := rapid.StringMatching("[a-z]{6}").Draw(t, "prefix"), rapid.IntRange(1, 25).Draw(t, "n")
			for i := range n {
				rec := relayer.Record{ID: fmt.Sprintf("%s-%d", prefix, i)}
				each(subjects, func(s *subject) { s.create(t, rec) })
			}
		},
		"update": func(t *rapid.T) {
			rec, stale := draw(t), staleness.Draw(t, "stale")
			each(subjects, func(s *subject) { s.update(t, rec, stale) })
		},
		"delete": func(t *rapid.T) {
			id, stale := ids.Draw(t, "id"), staleness.Draw(t, "stale")
			each(subjects, func(s *subject) { s.delete(t, id, stale) })
		},
		"delete a run": func(t *rapid.T) {
			from, n := rapid.IntRange(0, 200).Draw(t, "from"), rapid.IntRange(1, 40).Draw(t, "n")
			each(subjects, func(s *subject) {
				for _, rec := range append([]relayer.Record(nil), s.model.list(from, n)...) {
					s.delete(t, rec.ID, 0)
				}
			})
		},
		"get": func(t *rapid.T) {
			id := ids.Draw(t, "id")
			each(subjects, func(s *subject) { s.wantRecord(t, id) })
		},
		"list": func(t *rapid.T) {
			offset, limit := rapid.IntRange(0, 250).Draw(t, "offset"), rapid.IntRange(0, 60).Draw(t, "limit")
			each(subjects, func(s *subject) { s.wantPage(t, offset, limit) })
		},
		"cancelled": func(t *rapid.T) {
			rec := draw(t)
			each(subjects, func(s *subject) { s.cancelled(t, rec) })
		},
		"reopen": func(t *rapid.T) { each(subjects, func(s *subject) { s.reopen(t, s) }) },
	}
}

func draw(t *rapid.T) relayer.Record {
	return relayer.Record{
		ID:       ids.Draw(t, "id"),
		Claim:    claims.Draw(t, "claim"),
		Document: documents.Draw(t, "document"),
		Private:  documents.Draw(t, "private"),
	}
}

func each(subjects []*subject, run func(*subject)) {
	for _, s := range subjects {
		run(s)
	}
}

func (s *subject) create(t *rapid.T, rec relayer.Record) {
	made, err := s.store.Create(t.Context(), rec)
	s.wantError(t, "Create", err, s.model.create(rec))
	s.revised(t, rec.ID, made.Revision, err)
}

func (s *subject) update(t *rapid.T, rec relayer.Record, stale int) {
	rec.Revision = s.revision(rec.ID, stale)
	made, err := s.store.Update(t.Context(), rec)
	s.wantError(t, "Update", err, s.model.update(rec, rec.Revision))
	s.revised(t, rec.ID, made.Revision, err)
}

func (s *subject) delete(t *rapid.T, id string, stale int) {
	revision := s.revision(id, stale)
	err := s.store.Delete(t.Context(), id, revision)
	s.wantError(t, "Delete", err, s.model.delete(id, revision))
}

func (s *subject) cancelled(t *rapid.T, rec relayer.Record) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.store.Create(ctx, rec)
	s.wantError(t, "Create", err, context.Canceled)
}

// revision is the one that the record stands at, or one beside it.
func (s *subject) revision(id string, stale int) uint64 {
	rec, err := s.model.get(id)
	if err != nil {
		return 1
	}
	return rec.Revision + uint64(stale)
}

// revised checks that a revision is new to its id for as long as the store is.
func (s *subject) revised(t *rapid.T, id string, revision uint64, err error) {
	if err != nil {
		return
	}
	if revision <= s.last[id] {
		t.Fatalf("%s: revision %d of %s after %d", s.name, revision, id, s.last[id])
	}
	s.last[id] = revision
	s.model.revise(id, revision)
}

func (s *subject) wantError(t *rapid.T, what string, got, want error) {
	if !errors.Is(got, want) {
		t.Fatalf("%s: %s: error is %v, want %v", s.name, what, got, want)
	}
}

func (s *subject) wantRecord(t *rapid.T, id string) {
	got, err := s.store.Get(t.Context(), id)
	want, wantErr := s.model.get(id)
	s.wantError(t, "Get", err, wantErr)
	s.wantSame(t, got, want)
}

func (s *subject) wantPage(t *rapid.T, offset, limit int) {
	got, total, err := s.store.List(t.Context(), offset, limit)
	want := s.model.list(offset, limit)
	if err != nil || total != len(s.model.recs) || len(got) != len(want) {
		t.Fatalf("%s: List(%d, %d): %d records of %d, want %d of %d; error %v",
			s.name, offset, limit, len(got), total, len(want), len(s.model.recs), err)
	}
	for i := range want {
		s.wantSame(t, got[i], want[i])
	}
}

func (s *subject) wantSame(t *rapid.T, got, want relayer.Record) {
	if got.ID != want.ID || got.Revision != want.Revision || got.Claim != want.Claim ||
		!bytes.Equal(got.Document, want.Document) || !bytes.Equal(got.Private, want.Private) {
		t.Fatalf("%s: %s at %d, want %s at %d", s.name, got.ID, got.Revision, want.ID, want.Revision)
	}
}
