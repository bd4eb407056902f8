package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/transfer"
)

// seedVariable is the environment variable with the seed of the random choices of a case that logs
// it, to repeat a failure.
const seedVariable = "STORETEST_SEED"

// stepsVariable is the environment variable with the number of steps of the random calls.
const stepsVariable = "STORETEST_STEPS"

// numberFrom returns the number of an environment variable, or the default.
func numberFrom(t *testing.T, variable string, number uint64) uint64 {
	if text := os.Getenv(variable); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		must(t, err)
		return given
	}
	return number
}

func newRandom(t *testing.T) *rand.Rand {
	seed := numberFrom(t, seedVariable, rand.Uint64())
	t.Logf("%s=%d repeats the random choices", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// script makes random calls, and compares each result with a model that is simple enough to be
// obviously correct: the records in creation order, and the changes.
type script struct {
	*testing.T
	random *rand.Rand
	store  relayer.Store
	open   opener // nil if the store is not opened again

	records  []relayer.Record
	revision uint64 // the greatest one
	sequence uint64 // the greatest one
	created  int    // records with an ID that is used once

	log      []logged
	places   []place
	reopened int
	feed     watcher // has returned the changes before read
	read     int
	seen     kept
}

// logged is a change, or an import of a record. The revision of a delete is 0 until the feed has
// shown it.
type logged struct {
	relayer.RecordChange
	isImport bool
}

// place is a point of the feed: a list, a change, or a call of Watch, which has no position.
type place struct {
	position string
	at       int // how many changes are before it
	reopened int
	isChange bool
}

// steps is the default number of steps of a script. A step may be a number of calls, or none.
const steps = 800

func randomCalls(t *testing.T, store relayer.Store) {
	s := &script{T: t, random: newRandom(t), store: store}
	s.run()
}

func randomCallsReopened(t *testing.T, open opener) {
	s := &script{T: t, random: newRandom(t), store: openUntilEnd(t, open), open: open}
	s.reopen()
	s.run()
}

func (s *script) run() {
	s.feed = watch(s.T, s.store)
	s.list()
	s.history()
	for range numberFrom(s.T, stepsVariable, steps) {
		switch n := s.random.IntN(100); {
		case n < 18:
			s.create(s.draw())
		case n < 36:
			s.update()
		case n < 44:
			s.delete(s.id())
		case n < 46 && len(s.records) > 0:
			s.delete(s.records[len(s.records)-1].ID)
		case n < 51:
			s.importSome()
		case n < 57:
			s.get()
		case n < 76:
			s.list()
		case n < 84:
			s.history()
		case n < 91:
			s.resume()
		case n < 97:
			s.drain()
		case n < 98:
			s.createMany()
		case n < 99:
			s.deleteMany()
		case s.open != nil:
			s.reopen()
		}
	}
	s.resume()
	s.drain()
	s.history()
	s.seen.add(wantSelected(s.T, s.store, relayer.StoreQuery{Limit: math.MaxInt}, s.records).Records...)
	if checker, ok := s.store.(transfer.Checker); ok {
		if err := checker.Check(s.Context()); err != nil {
			s.Fatalf("Check: %v", err)
		}
	}
	s.seen.wantUnchanged(s.T)
}

// id returns one of few IDs. Some begin with another one, or differ in letter case.
func (s *script) id() string {
	n := s.random.IntN(56)
	return []string{"id-", "ID-"}[n/48] + strconv.Itoa(n%48)
}

func (s *script) bytes(most int) []byte {
	var drawn []byte
	for range s.random.IntN(most + 1) {
		drawn = append(drawn, byte(s.random.Uint32()))
	}
	return drawn
}

// draw returns a record with a revision and a sequence that a create ignores.
func (s *script) draw() relayer.Record {
	claims := []string{"", "", "", "x", "X", "y", "z", "\x00", "claim of " + strconv.Itoa(s.random.IntN(100))}
	return relayer.Record{
		ID:       s.id(),
		Claim:    claims[s.random.IntN(len(claims))],
		Terms:    randomTerms(s.random),
		Text:     randomText(s.random, 6),
		Document: s.bytes(300),
		Private:  s.bytes(100),
		Note:     s.bytes(s.random.IntN(2) * 20),
		Revision: 1<<60 + s.random.Uint64()>>6,
		Sequence: 1<<60 + s.random.Uint64()>>6,
	}
}

func (s *script) index(id string) int {
	return slices.IndexFunc(s.records, func(rec relayer.Record) bool { return rec.ID == id })
}

// refusal returns the error of a create of a record beside others.
func refusal(records []relayer.Record, created relayer.Record) error {
	err := error(nil)
	for _, rec := range records {
		if rec.ID == created.ID {
			return relayer.ErrExists
		}
		if rec.Claim == created.Claim && rec.Claim != "" {
			err = relayer.ErrClaimed
		}
	}
	return err
}

func (s *script) create(rec relayer.Record) {
	s.Helper()
	made, err := s.store.Create(s.Context(), rec)
	wantError(s.T, fmt.Sprintf("Create(%q) with the claim %q", rec.ID, rec.Claim), err, refusal(s.records, rec))
	if err != nil {
		return
	}
	if made.Sequence <= s.sequence || made.Sequence == rec.Sequence {
		s.Fatalf("Create(%q): sequence %d after %d; the one given was %d", rec.ID, made.Sequence, s.sequence, rec.Sequence)
	}
	if made.Revision == rec.Revision {
		s.Fatalf("Create(%q): the revision %d is the one given", rec.ID, rec.Revision)
	}
	s.seen.add(rec)
	rec.Sequence = made.Sequence
	s.sequence = made.Sequence
	s.records = append(s.records, s.written(relayer.ChangeCreated, made, rec, relayer.Record{}))
}

// written checks what a write returned, and records the change.
func (s *script) written(kind relayer.ChangeKind, made, given, old relayer.Record) relayer.Record {
	s.Helper()
	wantContent(s.T, made, given)
	if made.Revision <= s.revision {
		s.Fatalf("the write of %q has revision %d after %d", made.ID, made.Revision, s.revision)
	}
	s.revision = made.Revision
	s.seen.add(made)
	s.add(relayer.RecordChange{Kind: kind, Record: made, OldTerms: old.Terms, OldText: old.Text})
	return made
}

func (s *script) add(change relayer.RecordChange) {
	s.log = append(s.log, logged{RecordChange: change})
}

// stale returns a revision for a write: mostly the current one.
func (s *script) stale(revision uint64) uint64 {
	others := []uint64{revision - 1, revision + 1, 0, 1, s.revision, math.MaxUint64}
	if n := s.random.IntN(4 * len(others)); n < len(others) {
		return others[n]
	}
	return revision
}

func (s *script) update() {
	s.Helper()
	rec := s.draw()
	if at := s.index(rec.ID); at < 0 && s.random.IntN(4) > 0 && len(s.records) > 0 {
		rec.ID = s.records[s.random.IntN(len(s.records))].ID
	}
	at, want := s.index(rec.ID), relayer.ErrNotFound
	var old relayer.Record
	if at >= 0 {
		old = s.records[at]
		rec.Revision = s.stale(old.Revision)
		want = refusal(slices.Delete(slices.Clone(s.records), at, at+1), rec)
		if rec.Revision != old.Revision {
			want = relayer.ErrConflict
		}
		if s.random.IntN(4) == 0 {
			rec.Text, rec.Terms = old.Text, old.Terms
		}
	}
	made, err := s.store.Update(s.Context(), rec)
	wantError(s.T, fmt.Sprintf("Update(%q) at %d, stored is %d, with the claim %q", rec.ID, rec.Revision, old.Revision, rec.Claim), err, want)
	if err != nil {
		return
	}
	s.seen.add(rec)
	rec.Sequence = old.Sequence
	s.records[at] = s.written(relayer.ChangeUpdated, made, rec, old)
}

func (s *script) delete(id string) {
	s.Helper()
	at, want, revision := s.index(id), relayer.ErrNotFound, uint64(1)
	if at >= 0 {
		revision, want = s.stale(s.records[at].Revision), nil
		if revision != s.records[at].Revision {
			want = relayer.ErrConflict
		}
	}
	note := s.bytes(20)
	err := s.store.Delete(s.Context(), id, revision, note)
	wantError(s.T, fmt.Sprintf("Delete(%q) at %d", id, revision), err, want)
	if err != nil {
		return
	}
	deleted := s.records[at]
	change := relayer.RecordChange{Kind: relayer.ChangeDeleted, Record: deleted, OldTerms: deleted.Terms, OldText: deleted.Text}
	change.Record.Revision, change.Record.Note = 0, note
	s.add(change)
	s.records = slices.Delete(s.records, at, at+1)
}

// once returns a record with an ID that was never used.
func (s *script) once() relayer.Record {
	rec := s.draw()
	s.created++
	rec.ID = fmt.Sprint("once-", s.created)
	return rec
}

func (s *script) createMany() {
	for range 25 {
		s.create(s.once())
	}
}

func (s *script) deleteMany() {
	from := s.random.IntN(len(s.records) + 1)
	for _, rec := range slices.Clone(s.records[from:min(len(s.records), from+30)]) {
		s.delete(rec.ID)
	}
}

// importSome imports a few records, some of them with an ID or a claim that may be taken.
func (s *script) importSome() {
	s.Helper()
	importer, ok := s.store.(transfer.Importer)
	if !ok {
		return
	}
	s.drain()
	records := make([]relayer.Record, s.random.IntN(7))
	after, refusals := slices.Clone(s.records), []error(nil)
	for i := range records {
		rec := s.once()
		rec.ID = "m" + rec.ID
		rec.Revision = 1 + s.random.Uint64N(s.revision+s.revision/4+30)
		switch s.random.IntN(14) {
		case 0:
			if rec.ID = s.id(); len(s.records) > 0 {
				rec.ID = s.records[s.random.IntN(len(s.records))].ID
			}
		case 1:
			rec.ID, rec.Claim = records[i/2].ID, "of "+rec.ID // an earlier record, or none
		case 2:
			rec.Claim = records[i/2].Claim
		case 3: // a claim that may be held
		default:
			rec.Claim = []string{"", "of " + rec.ID}[s.random.IntN(2)]
		}
		if rec.ID == "" {
			rec.ID = s.id()
		}
		if err := refusal(after, rec); err != nil {
			refusals = append(refusals, err)
		}
		records[i] = rec
		after = append(after, rec)
	}
	err := importer.Import(s.Context(), records)
	if len(refusals) > 0 {
		if !slices.ContainsFunc(refusals, func(want error) bool { return errors.Is(err, want) }) {
			s.Fatalf("Import: error is %v, want one of %v", err, refusals)
		}
		wantSelected(s.T, s.store, relayer.StoreQuery{Limit: math.MaxInt}, s.records)
		return
	}
	if err != nil {
		s.Fatalf("Import: %v", err)
	}
	for _, rec := range records {
		s.seen.add(rec)
		got := mustGet(s.T, s.store, rec.ID)
		if got.Sequence <= s.sequence {
			s.Fatalf("the imported %q has the sequence %d after %d", rec.ID, got.Sequence, s.sequence)
		}
		rec.Sequence = got.Sequence
		wantSame(s.T, "Get of an imported record", got, rec)
		s.revision, s.sequence = max(s.revision, rec.Revision), rec.Sequence
		s.records = append(s.records, rec)
		s.log = append(s.log, logged{relayer.RecordChange{Kind: relayer.ChangeCreated, Record: rec}, true})
	}
	s.drain()
}

func (s *script) get() {
	s.Helper()
	id := s.id()
	if at := s.index(id); at >= 0 {
		got := mustGet(s.T, s.store, id)
		wantSame(s.T, "Get", got, s.records[at])
		s.seen.add(got)
		return
	}
	wantAbsent(s.T, s.store, id)
}

// list compares a random page, and keeps its position.
func (s *script) list() place {
	s.Helper()
	query := s.query()
	page := wantSelected(s.T, s.store, query, s.records)
	wantPositionForm(s.T, page.Position)
	s.seen.add(page.Records[:min(3, len(page.Records))]...)
	clear(page.Records) // the slice belongs to the caller
	wantSelected(s.T, s.store, query, s.records)
	behind := place{page.Position, len(s.log), s.reopened, false}
	s.keep(behind)
	return behind
}

// vocabulary has few terms, so most queries select some records.
var vocabulary = []string{"a", "b", "c", "d", "e=1", "e=10"}

func randomTerms(random *rand.Rand) (terms []string) {
	for _, term := range vocabulary {
		if random.IntN(2) == 0 {
			terms = append(terms, term)
		}
	}
	return terms
}

// letters make short texts that often contain each other.
var letters = []string{"a", "b", "%", "_", `\`, "'", " ", "é", "É"}

func randomText(random *rand.Rand, most int) string {
	text := ""
	for range random.IntN(most + 1) {
		text += letters[random.IntN(len(letters))]
	}
	return text
}

func (s *script) query() (query relayer.StoreQuery) {
	random, most := s.random, len(s.records)
	query.Offset = []int{0, 0, 0, random.IntN(most + 2), math.MaxInt}[random.IntN(5)]
	query.Limit = []int{0, 1, random.IntN(most + 2), random.IntN(most + 2), math.MaxInt}[random.IntN(5)]
	for range max(0, random.IntN(6)-3) {
		terms := []string{}
		for range random.IntN(10) / 3 {
			terms = append(terms, append(vocabulary, "unknown", "e=", "e=1 ")[random.IntN(len(vocabulary)+3)])
		}
		query.Terms = append(query.Terms, terms)
	}
	if random.IntN(5) == 0 {
		for range 1 + random.IntN(30) {
			query.IDs = append(query.IDs, s.id())
		}
	}
	if random.IntN(3) == 0 {
		for range 1 + random.IntN(2) {
			query.Contains = append(query.Contains, randomText(random, 2))
		}
	}
	if random.IntN(3) == 0 {
		query.After = []uint64{random.Uint64N(s.sequence + 2), math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64}[max(0, random.IntN(7)-3)]
		if most > 0 && random.IntN(2) == 0 {
			query.After = s.records[random.IntN(most)].Sequence - uint64(random.IntN(2))
		}
	}
	query.DocumentsOnly = random.IntN(3) == 0
	return query
}

// keep keeps the position behind the changes before an index. The oldest ones stay.
func (s *script) keep(p place) {
	const most = 24
	if len(s.places) == most {
		s.places[most/2+s.random.IntN(most/2)] = p
		return
	}
	s.places = append(s.places, p)
}

// mayGap reports whether a store need not have all changes after a place.
func (s *script) mayGap(from place) bool {
	return from.isChange || from.reopened < s.reopened || len(s.log)-from.at > 500 ||
		slices.ContainsFunc(s.log[from.at:], func(change logged) bool { return change.isImport })
}

// resume watches from a position, or from the call on, and compares all changes behind it. The
// last one is made after the call.
func (s *script) resume() {
	s.Helper()
	from := place{at: len(s.log), reopened: s.reopened}
	switch n := s.random.IntN(2*len(s.places) + 2); {
	case n < len(s.places):
		from = s.places[n]
	case n < 2*len(s.places):
		from = s.list()
	}
	w := watchAfter(s.T, s.store, from.position)
	defer w.stop()
	s.create(sample(s.once().ID)) // without a claim that may be held
	s.follow(w, from)
}

// drain compares the changes that the feed has not returned yet.
func (s *script) drain() {
	s.Helper()
	if !s.follow(s.feed, place{at: s.read, reopened: s.reopened}) {
		s.feed.stop()
		s.feed = watch(s.T, s.store)
	}
	s.read = len(s.log)
}

// follow compares the changes of a watch. It reports false after a gap that is permitted.
func (s *script) follow(w watcher, from place) bool {
	s.Helper()
	for at := from.at; at < len(s.log); at++ {
		change, err, ok := w.next()
		if errors.Is(err, relayer.ErrGap) && s.mayGap(from) {
			w.wantNoMore(s.T, err)
			return false
		}
		if err != nil || !ok {
			s.Fatalf("Watch from %+v, change %d of %d: error %v, ended is %t", from, at, len(s.log), err, !ok)
		}
		s.wantLogged(change, at)
		if from.position == "" {
			s.seen.add(change.Record)
		}
		wantPositionForm(s.T, change.Position)
		s.keep(place{change.Position, at + 1, s.reopened, true})
	}
	return true
}

// wantLogged compares a change with that of the model. The private part need not be retained if a
// later change has replaced it.
func (s *script) wantLogged(got relayer.RecordChange, at int) {
	s.Helper()
	want := &s.log[at]
	if want.Record.Revision == 0 {
		s.wantRevisionOfDelete(got, at)
		want.Record.Revision = got.Record.Revision
		s.revision = max(s.revision, got.Record.Revision)
	}
	wantChange(s.T, got, want.RecordChange)
	isReplaced := slices.ContainsFunc(s.log[at+1:], func(later logged) bool { return later.Record.ID == got.Record.ID })
	if !isReplaced && want.Kind != relayer.ChangeDeleted && len(got.Record.Private) != len(want.Record.Private) {
		s.Fatalf("change %d, which is the last one of %q, has no private part", at, got.Record.ID)
	}
}

// wantRevisionOfDelete fails unless the revision is after those of the writes before, and before
// those of the writes behind.
func (s *script) wantRevisionOfDelete(got relayer.RecordChange, at int) {
	s.Helper()
	revision := got.Record.Revision
	for i, change := range s.log {
		isWrong := i < at && change.Record.Revision >= revision
		if i > at && !change.isImport && change.Record.Revision > 0 {
			isWrong = change.Record.Revision <= revision
		}
		if isWrong {
			s.Fatalf("the delete of %q, change %d, has the revision %d, and change %d has %d", got.Record.ID, at, revision, i, change.Record.Revision)
		}
	}
}

// history compares changes of the past, newest first. An import is not a change.
func (s *script) history() {
	s.Helper()
	s.drain()
	query := relayer.HistoryQuery{Limit: []int{1, 3, 60, math.MaxInt}[s.random.IntN(4)]}
	query.ID = []string{"", s.id(), "id-", "none"}[max(0, s.random.IntN(6)-2)]
	query.Before = []uint64{0, 0, 0, 1, math.MaxUint64}[s.random.IntN(5)]
	if len(s.log) > 0 && s.random.IntN(3) == 0 {
		query.Before = s.log[max(0, len(s.log)-1-s.random.IntN(60))].Record.Revision
	}
	if s.random.IntN(2) == 0 { // conditions that no change matches: a store ignores them
		query.Actor, query.Action, query.Since, query.Until = "nobody", "none", time.Now().Add(time.Hour), time.Unix(1, 0)
	}
	if _, err := s.store.History(s.Context(), query); errors.Is(err, errors.ErrUnsupported) {
		return
	}
	var changes []relayer.RecordChange
	for _, change := range slices.Backward(s.log) {
		if !change.isImport {
			changes = append(changes, change.RecordChange)
		}
	}
	for _, change := range wantHistory(s.T, s.store, query, changes) {
		s.seen.add(change.Record)
	}
}

// reopen closes the store and opens it again. The positions may be unknown then.
func (s *script) reopen() {
	s.Helper()
	if s.feed.pull != nil {
		s.drain()
		s.feed.stop()
	}
	closeStore(s.T, s.store)
	s.store = openUntilEnd(s.T, s.open)
	s.reopened++
	s.feed, s.read = watch(s.T, s.store), len(s.log)
	s.list()
}

// kept are records that a store was given or has returned, and copies of them.
type kept struct{ shared, copies []relayer.Record }

func (k *kept) add(recs ...relayer.Record) {
	for _, rec := range recs {
		k.shared = append(k.shared, rec)
		rec.Terms, rec.Document = slices.Clone(rec.Terms), bytes.Clone(rec.Document)
		rec.Private, rec.Note = bytes.Clone(rec.Private), bytes.Clone(rec.Note)
		rec.Text = strings.Clone(rec.Text)
		k.copies = append(k.copies, rec)
	}
}

func (k *kept) wantUnchanged(t *testing.T) {
	t.Helper()
	for i, rec := range k.shared {
		if diff := difference(rec, k.copies[i]); diff != "" {
			t.Fatalf("the store has changed the memory of a record that it was given or has returned: %s", diff)
		}
	}
}
