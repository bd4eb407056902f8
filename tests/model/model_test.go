package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/examples/mapstore"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// subject is a store under test and the model of its content. Each subject has its
// own model, because each store chooses its own revisions.
type subject struct {
	name string

	// instances have the same data. Each call goes to one of them.
	instances []relayer.Store

	// open opens another instance. It is nil if a closed store loses its data.
	open func(*rapid.T) relayer.Store

	model    naive
	follower *follower
	last     map[string]uint64 // the last revision by ID
	imported uint64            // the highest imported revision
}

func TestModel_InProcess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkSubjects(t, []*subject{
			{name: "memory", instances: []relayer.Store{memory.New()}},
			{name: "map", instances: []relayer.Store{new(mapstore.Store)}},
			newBolt(t),
		})
	})
}

// checkSubjects makes the same calls on all subjects, and compares each with its
// model.
func checkSubjects(t *rapid.T, subjects []*subject) {
	followed := rapid.SliceOfN(selections, 3, 3).Draw(t, "followed")
	for i := range followed {
		followed[i].Limit = 1000
	}
	for _, s := range subjects {
		s.last = make(map[string]uint64)
		s.follower = &follower{queries: followed}
	}
	t.Repeat(actions(subjects))
	for _, s := range subjects {
		s.follow(t)
		s.reopen(t)
		s.follow(t)
		s.wantPage(t, relayer.StoreQuery{Limit: 1000})
		s.wantSound(t)
	}
}

func newBolt(t *rapid.T) *subject {
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &subject{name: "bolt", open: func(t *rapid.T) relayer.Store {
		store, err := bolt.Open(t.Context(), filepath.Join(dir, "relayers.db"))
		if err != nil {
			t.Fatal(err)
		}
		return store
	}}
	s.start(t, 1)
	return s
}

// start opens the instances, and closes them at the end of the test.
func (s *subject) start(t *rapid.T, count int) {
	for range count {
		s.instances = append(s.instances, s.open(t))
	}
	t.Cleanup(func() {
		for _, store := range s.instances {
			_ = store.(io.Closer).Close()
		}
	})
}

// reopen closes one instance and opens it again.
func (s *subject) reopen(t *rapid.T) {
	if s.open == nil {
		return
	}
	at := s.drawInstance(t)
	if err := s.instances[at].(io.Closer).Close(); err != nil {
		t.Fatal(err)
	}
	s.instances[at] = s.open(t)
}

func (s *subject) drawInstance(t *rapid.T) int {
	return rapid.IntRange(0, len(s.instances)-1).Draw(t, "instance of "+s.name)
}

func (s *subject) instance(t *rapid.T) relayer.Store { return s.instances[s.drawInstance(t)] }

// wantSound runs the check of a store that has one.
func (s *subject) wantSound(t *rapid.T) {
	store, ok := s.instance(t).(transfer.Checker)
	if !ok {
		return
	}
	if err := store.Check(t.Context()); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
}

// With few IDs and fewer claims, most calls concern the same records.
var (
	ids       = rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("id-%d", rapid.IntRange(0, 30).Draw(t, "id")) })
	claims    = rapid.SampledFrom([]string{"", "", "x", "y", "z", "\x00"})
	documents = rapid.SliceOfN(rapid.Byte(), 0, 300)
	// Few terms, so that most queries select some of the records.
	terms      = rapid.Custom(drawTerms)
	selections = rapid.Custom(func(t *rapid.T) relayer.StoreQuery {
		return relayer.StoreQuery{
			Terms: rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(append(vocabulary, "unknown")), 0, 3), 0, 3).Draw(t, "terms"),
			IDs:   rapid.SampledFrom([][]string{nil, nil, nil, {"id-0", "id-1", "id-2", "id-3", "id-4"}}).Draw(t, "IDs"),
		}
	})
	// staleness is added to the current revision, and mostly 0.
	staleness = rapid.SampledFrom([]int{0, 0, 0, 0, -1, 1})
	imports   = rapid.Custom(func(t *rapid.T) relayer.Record {
		rec := draw(t)
		rec.Revision = rapid.Uint64Range(1, 1e6).Draw(t, "revision")
		return rec
	})
)

var vocabulary = []string{"a", "b", "c", "c ", "é"}

func drawTerms(t *rapid.T) (drawn []string) {
	chosen := rapid.IntRange(0, 1<<len(vocabulary)-1).Draw(t, "set of terms")
	for i, term := range vocabulary {
		if chosen&(1<<i) != 0 {
			drawn = append(drawn, term)
		}
	}
	return drawn
}

func actions(subjects []*subject) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"create": func(t *rapid.T) {
			rec := draw(t)
			each(subjects, func(s *subject) { s.create(t, rec) })
		},
		"create many": func(t *rapid.T) {
			prefix, n := rapid.StringMatching("[a-z]{6}").Draw(t, "prefix"), rapid.IntRange(1, 25).Draw(t, "n")
			for i := range n {
				rec := relayer.Record{ID: fmt.Sprintf("%s-%d", prefix, i), Terms: vocabulary[i%len(vocabulary):]}
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
		"delete a range": func(t *rapid.T) {
			from, n := rapid.IntRange(0, 200).Draw(t, "from"), rapid.IntRange(1, 40).Draw(t, "n")
			each(subjects, func(s *subject) {
				gone, _ := s.model.list(relayer.StoreQuery{Offset: from, Limit: n})
				for _, rec := range gone {
					s.delete(t, rec.ID, 0)
				}
			})
		},
		"import": func(t *rapid.T) {
			recs := rapid.SliceOfN(imports, 0, 6).Draw(t, "records")
			each(subjects, func(s *subject) { s.importAll(t, recs) })
		},
		"get": func(t *rapid.T) {
			id := ids.Draw(t, "id")
			each(subjects, func(s *subject) { s.wantRecord(t, id) })
		},
		"list": func(t *rapid.T) {
			query := selections.Draw(t, "selection")
			query.Offset, query.Limit = rapid.IntRange(0, 250).Draw(t, "offset"), rapid.IntRange(0, 60).Draw(t, "limit")
			each(subjects, func(s *subject) { s.wantPage(t, query) })
		},
		"canceled": func(t *rapid.T) {
			rec := draw(t)
			each(subjects, func(s *subject) { s.createCanceled(t, rec) })
		},
		"follow": func(t *rapid.T) { each(subjects, func(s *subject) { s.follow(t) }) },
		"lose the position": func(t *rapid.T) {
			each(subjects, func(s *subject) { s.follower.position = "unknown" })
		},
		"reopen": func(t *rapid.T) { each(subjects, func(s *subject) { s.reopen(t) }) },
	}
}

func draw(t *rapid.T) relayer.Record {
	return relayer.Record{
		ID:       ids.Draw(t, "id"),
		Claim:    claims.Draw(t, "claim"),
		Terms:    terms.Draw(t, "terms"),
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
	created, err := s.instance(t).Create(t.Context(), rec)
	s.wantError(t, "Create", err, s.model.create(rec))
	s.wantNewRevision(t, rec.ID, created.Revision, err)
}

func (s *subject) update(t *rapid.T, rec relayer.Record, stale int) {
	rec.Revision = s.revision(rec.ID, stale)
	updated, err := s.instance(t).Update(t.Context(), rec)
	s.wantError(t, "Update", err, s.model.update(rec, rec.Revision))
	s.wantNewRevision(t, rec.ID, updated.Revision, err)
}

func (s *subject) delete(t *rapid.T, id string, stale int) {
	revision := s.revision(id, stale)
	err := s.instance(t).Delete(t.Context(), id, revision)
	s.wantError(t, "Delete", err, s.model.delete(id, revision))
}

// importAll accepts any refusal if the model refuses: a store chooses which of the
// records it reports.
func (s *subject) importAll(t *rapid.T, recs []relayer.Record) {
	importer, ok := s.instance(t).(transfer.Importer)
	if !ok {
		return
	}
	err := importer.Import(t.Context(), recs)
	want := s.model.importAll(recs)
	if want != nil && (errors.Is(err, relayer.ErrExists) || errors.Is(err, relayer.ErrClaimed)) {
		return
	}
	s.wantError(t, "Import", err, want)
	for _, rec := range recs {
		s.last[rec.ID] = rec.Revision
		s.imported = max(s.imported, rec.Revision)
	}
}

func (s *subject) createCanceled(t *rapid.T, rec relayer.Record) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.instance(t).Create(ctx, rec)
	s.wantError(t, "Create", err, context.Canceled)
}

// revision returns the current revision plus stale.
func (s *subject) revision(id string, stale int) uint64 {
	rec, err := s.model.get(id)
	if err != nil {
		return 1
	}
	return rec.Revision + uint64(stale)
}

// wantNewRevision checks that a write of a record returned a revision above all
// earlier ones of its ID, and above all imported ones.
func (s *subject) wantNewRevision(t *rapid.T, id string, revision uint64, err error) {
	if err != nil {
		return
	}
	if revision <= max(s.last[id], s.imported) {
		t.Fatalf("%s: revision %d of %s, want more than %d and than the imported %d", s.name, revision, id, s.last[id], s.imported)
	}
	s.last[id] = revision
	s.model.setRevision(id, revision)
}

func (s *subject) wantError(t *rapid.T, what string, got, want error) {
	if !errors.Is(got, want) {
		t.Fatalf("%s: %s: error is %v, want %v", s.name, what, got, want)
	}
}

func (s *subject) wantRecord(t *rapid.T, id string) {
	got, err := s.instance(t).Get(t.Context(), id)
	want, wantErr := s.model.get(id)
	s.wantError(t, "Get", err, wantErr)
	s.wantSame(t, got, want)
}

func (s *subject) wantPage(t *rapid.T, query relayer.StoreQuery) {
	got, total, err := s.instance(t).List(t.Context(), query)
	want, wantTotal := s.model.list(query)
	if err != nil || total != wantTotal || len(got) != len(want) {
		t.Fatalf("%s: List(%+v): %d records of %d, want %d of %d; error %v", s.name, query, len(got), total, len(want), wantTotal, err)
	}
	for i := range want {
		s.wantSame(t, got[i], want[i])
	}
}

func (s *subject) wantSame(t *rapid.T, got, want relayer.Record) {
	if got.ID != want.ID || got.Revision != want.Revision || got.Claim != want.Claim || !slices.Equal(got.Terms, want.Terms) ||
		!bytes.Equal(got.Document, want.Document) || !bytes.Equal(got.Private, want.Private) {
		t.Fatalf("%s: %s at %d, want %s at %d", s.name, got.ID, got.Revision, want.ID, want.Revision)
	}
}
