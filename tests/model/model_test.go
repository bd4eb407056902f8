package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/stores"
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

	// isForgetful is true if a position is unknown after reopening.
	isForgetful bool

	model    naive
	feed     feed
	revision uint64 // the greatest one
	sequence uint64 // the greatest one
}

func TestModel_InProcess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var subjects []*subject
		for _, kind := range stores.All {
			subjects = append(subjects, newSubject(t, kind))
		}
		checkSubjects(t, subjects)
	})
}

// checkSubjects makes the same calls on all subjects, and compares each with its
// model.
func checkSubjects(t *rapid.T, subjects []*subject) {
	t.Repeat(actions(subjects))
	for _, s := range subjects {
		s.wantPage(t, relayer.StoreQuery{Limit: 1000})
		s.follow(t)
		s.reopen(t)
		s.wantPage(t, relayer.StoreQuery{Limit: 1000})
		s.follow(t)
		s.wantHistory(t, relayer.HistoryQuery{Limit: 1000}, 0)
		s.wantSound(t)
	}
}

func newSubject(t *rapid.T, kind stores.Kind) *subject {
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &subject{name: kind.Name, isForgetful: true, open: func(t *rapid.T) relayer.Store {
		store, err := kind.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return store
	}}
	s.start(t, 1)
	if !kind.IsDurable {
		s.open = nil
	}
	return s
}

// start opens the instances, and closes them at the end of the test.
func (s *subject) start(t *rapid.T, count int) {
	for range count {
		s.instances = append(s.instances, s.open(t))
	}
	t.Cleanup(func() {
		for _, store := range s.instances {
			if store, ok := store.(io.Closer); ok {
				_ = store.Close()
			}
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
	s.feed.reopened++
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
	notes     = rapid.SliceOfN(rapid.Byte(), 0, 20)
	texts     = rapid.StringOfN(rapid.RuneFrom([]rune(`aAb%_\'é `)), 0, 3, -1)
	// Few terms, so that most queries select some of the records.
	terms      = rapid.Custom(drawTerms)
	selections = rapid.Custom(func(t *rapid.T) relayer.StoreQuery {
		return relayer.StoreQuery{
			Terms:    rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(append(vocabulary, "unknown")), 0, 3), 0, 3).Draw(t, "terms"),
			IDs:      rapid.SampledFrom([][]string{nil, nil, nil, {"id-0", "id-1", "id-2", "id-3", "id-4"}}).Draw(t, "IDs"),
			Contains: rapid.SliceOfN(texts, 0, 2).Draw(t, "parts"),
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
				rec := relayer.Record{ID: fmt.Sprintf("%s-%d", prefix, i), Terms: vocabulary[i%len(vocabulary):], Text: prefix}
				each(subjects, func(s *subject) { s.create(t, rec) })
			}
		},
		"update": func(t *rapid.T) {
			rec, stale := draw(t), staleness.Draw(t, "stale")
			each(subjects, func(s *subject) { s.update(t, rec, stale) })
		},
		"delete": func(t *rapid.T) {
			id, stale, note := ids.Draw(t, "id"), staleness.Draw(t, "stale"), notes.Draw(t, "note")
			each(subjects, func(s *subject) { s.delete(t, id, stale, note) })
		},
		"delete a range": func(t *rapid.T) {
			from, n := rapid.IntRange(0, 200).Draw(t, "from"), rapid.IntRange(1, 40).Draw(t, "n")
			each(subjects, func(s *subject) {
				gone, _ := s.model.list(relayer.StoreQuery{Offset: from, Limit: n})
				for _, rec := range gone {
					s.delete(t, rec.ID, 0, nil)
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
			begin := rapid.SampledFrom([]int{-1, -1, 0, 3, 20, 100}).Draw(t, "index of the record before")
			each(subjects, func(s *subject) {
				if begin >= 0 && begin < len(s.model.recs) {
					query.After = s.model.recs[begin].Sequence
				}
				s.wantPage(t, query)
			})
		},
		"history": func(t *rapid.T) {
			query := relayer.HistoryQuery{Limit: rapid.IntRange(1, 60).Draw(t, "limit")}
			if rapid.Bool().Draw(t, "of one") {
				query.ID = ids.Draw(t, "id")
			}
			begin := rapid.IntRange(0, 100).Draw(t, "index of the change before")
			each(subjects, func(s *subject) { s.wantHistory(t, query, begin) })
		},
		"canceled": func(t *rapid.T) {
			rec := draw(t)
			each(subjects, func(s *subject) { s.createCanceled(t, rec) })
		},
		"follow": func(t *rapid.T) { each(subjects, func(s *subject) { s.follow(t) }) },
		"reopen": func(t *rapid.T) { each(subjects, func(s *subject) { s.reopen(t) }) },
	}
}

func draw(t *rapid.T) relayer.Record {
	return relayer.Record{
		ID:       ids.Draw(t, "id"),
		Claim:    claims.Draw(t, "claim"),
		Terms:    terms.Draw(t, "terms"),
		Text:     texts.Draw(t, "text"),
		Note:     notes.Draw(t, "note"),
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
	made, err := s.instance(t).Create(t.Context(), rec)
	s.wantError(t, "Create", err, s.model.create(rec))
	if err != nil {
		return
	}
	if made.Sequence <= s.sequence {
		t.Fatalf("%s: sequence %d of %s after %d", s.name, made.Sequence, rec.ID, s.sequence)
	}
	s.written(t, relayer.ChangeCreated, made, relayer.Record{})
}

func (s *subject) update(t *rapid.T, rec relayer.Record, stale int) {
	old, _ := s.model.get(rec.ID)
	rec.Revision = s.current(rec.ID, stale)
	made, err := s.instance(t).Update(t.Context(), rec)
	s.wantError(t, "Update", err, s.model.update(rec, rec.Revision))
	if err != nil {
		return
	}
	if made.Sequence != old.Sequence {
		t.Fatalf("%s: the sequence of %s went from %d to %d", s.name, rec.ID, old.Sequence, made.Sequence)
	}
	s.written(t, relayer.ChangeUpdated, made, old)
}

// written checks that a write returned a revision above all earlier ones, and records it.
func (s *subject) written(t *rapid.T, kind relayer.ChangeKind, made, old relayer.Record) {
	if made.Revision <= s.revision {
		t.Fatalf("%s: revision %d of %s after %d", s.name, made.Revision, made.ID, s.revision)
	}
	s.revision, s.sequence = made.Revision, max(s.sequence, made.Sequence)
	s.model.set(made.ID, made.Revision, made.Sequence)
	stored, _ := s.model.get(made.ID)
	s.wantSame(t, made, stored)
	s.feed.add(kind, stored, old)
}

// delete reads the revision of the delete from the feed: the call does not return it.
func (s *subject) delete(t *rapid.T, id string, stale int, note []byte) {
	old, _ := s.model.get(id)
	revision := s.current(id, stale)
	err := s.instance(t).Delete(t.Context(), id, revision, note)
	s.wantError(t, "Delete", err, s.model.delete(id, revision))
	if err != nil {
		return
	}
	deleted := old
	deleted.Revision, deleted.Note = 0, note
	s.feed.add(relayer.ChangeDeleted, deleted, old)
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
		made, err := s.instance(t).Get(t.Context(), rec.ID)
		if err != nil || made.Sequence <= s.sequence || made.Revision != rec.Revision {
			t.Fatalf("%s: imported %s has the sequence %d after %d, error %v", s.name, rec.ID, made.Sequence, s.sequence, err)
		}
		s.revision, s.sequence = max(s.revision, rec.Revision), made.Sequence
		s.model.set(rec.ID, made.Revision, made.Sequence)
		s.feed.addImport(made)
	}
}

func (s *subject) createCanceled(t *rapid.T, rec relayer.Record) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.instance(t).Create(ctx, rec)
	s.wantError(t, "Create", err, context.Canceled)
}

// current returns the current revision plus stale.
func (s *subject) current(id string, stale int) uint64 {
	rec, err := s.model.get(id)
	if err != nil {
		return 1
	}
	return rec.Revision + uint64(stale)
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

// wantPage compares a page, and keeps its position, from which follow watches later.
func (s *subject) wantPage(t *rapid.T, query relayer.StoreQuery) {
	page, err := s.instance(t).List(t.Context(), query)
	want, total := s.model.list(query)
	if err != nil || page.Total != total || len(page.Records) != len(want) {
		t.Fatalf("%s: List(%+v): %d records of %d, want %d of %d; error %v", s.name, query, len(page.Records), page.Total, len(want), total, err)
	}
	for i := range want {
		s.wantSame(t, page.Records[i], want[i])
	}
	s.feed.keep(page.Position)
}

func (s *subject) wantSame(t *rapid.T, got, want relayer.Record) {
	if !isSame(got, want) || !bytes.Equal(got.Private, want.Private) {
		t.Fatalf("%s: %+v, want %+v", s.name, got, want)
	}
}

// isSame compares all parts except the private one.
func isSame(a, b relayer.Record) bool {
	return a.ID == b.ID && a.Revision == b.Revision && a.Sequence == b.Sequence && a.Claim == b.Claim && slices.Equal(a.Terms, b.Terms) &&
		a.Text == b.Text && bytes.Equal(a.Document, b.Document) && bytes.Equal(a.Note, b.Note)
}
