package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/transfer"
)

func idsAtLimits(t *testing.T, store relayer.Store) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	var all []relayer.Record
	for _, letter := range alphabet {
		all = append(all, mustCreate(t, store, sample(string(letter))))
	}
	all = append(all,
		mustCreate(t, store, sample(alphabet)),
		mustCreate(t, store, sample(strings.Repeat("a", limits.ID))),
		mustCreate(t, store, sample(strings.Repeat("a", limits.ID-1))))
	for _, want := range all {
		wantSame(t, "Get", mustGet(t, store, want.ID), want)
	}
	wantPage(t, store, 0, len(all)+1, all)
	for _, id := range []string{"", "NUL\x00", "\xff", strings.Repeat("x", limits.ID+1), strings.Repeat("x", 1<<16)} {
		wantAbsent(t, store, id)
		err := store.Delete(t.Context(), id, 1, deleteNote)
		wantError(t, fmt.Sprintf("Delete(%.80q)", id), err, relayer.ErrNotFound)
	}
}

func claimsAtLimits(t *testing.T, store relayer.Store) {
	longest := strings.Repeat("c", limits.Claim)
	claims := []string{longest, longest[1:], longest[1:] + "d", "\x00", "\xff\xfe", "\x00\x00", " "}
	var all []relayer.Record
	for i, claim := range claims {
		all = append(all, mustCreate(t, store, claiming(numbered(i), claim)))
	}
	wantPage(t, store, 0, 10, all)
	for _, claim := range claims {
		_, err := store.Create(t.Context(), claiming("other", claim))
		wantError(t, "Create", err, relayer.ErrClaimed)
	}
}

// partsAtLimits has notes of any bytes: only the Manager interprets them.
func partsAtLimits(t *testing.T, store relayer.Store) {
	longest := sample(strings.Repeat("i", limits.ID))
	longest.Claim = strings.Repeat("c", limits.Claim)
	longest.Terms = nil
	for i := range limits.Terms {
		longest.Terms = append(longest.Terms, numbered(i)+strings.Repeat("t", limits.Term-len(numbered(i))))
	}
	longest.Text = strings.Repeat("é", limits.Text/2)
	longest.Note = slices.Repeat([]byte{0, 0xff, 'n', '"'}, limits.Note/4)
	shortest := relayer.Record{ID: "s"}
	empty := relayer.Record{ID: "e", Terms: []string{}, Note: []byte{}, Document: []byte{}, Private: []byte{}}
	bytes := sample("bytes")
	for i := range 256 {
		bytes.Note = append(bytes.Note, byte(i))
	}
	w := watch(t, store)
	var all []relayer.Record
	for _, rec := range []relayer.Record{longest, shortest, empty, bytes} {
		all = append(all, mustCreate(t, store, rec))
	}
	wantPage(t, store, 0, 10, all)
	for i, rec := range all {
		wantSame(t, "Get", mustGet(t, store, rec.ID), rec)
		w.want(t, relayer.ChangeCreated, rec, relayer.Record{})
		other := all[len(all)-1-i]
		rec.Text, rec.Note = other.Text, other.Note
		all[i] = mustUpdate(t, store, rec)
	}
	wantPage(t, store, 0, 10, all)
	wantSelected(t, store, relayer.StoreQuery{Contains: []string{longest.Text}, Limit: 10}, all)
	if err := store.Delete(t.Context(), all[0].ID, all[0].Revision, longest.Note); err != nil {
		t.Fatalf("Delete with the longest note: %v", err)
	}
}

// termsAtLimits uses terms that a store may confuse: terms compare byte by byte.
func termsAtLimits(t *testing.T, store relayer.Store) {
	terms := []string{
		"a", "A", "a ", " a", "ab", "a%", "_", "a_", "a,b", "{a}", `"a"`, `a\`, "a'b", "NULL", "\x01", "\n",
		"é", "e\u0301", "\u00a0", "\U0010ffff", strings.Repeat("t", limits.Term),
		strings.Repeat("t", limits.Term-1), strings.Repeat("é", limits.Term/2),
	}
	most := sample("most")
	most.Terms = nil
	for i := range limits.Terms {
		most.Terms = append(most.Terms, fmt.Sprintf("%03d%s", i, strings.Repeat("t", limits.Term-3)))
	}
	none := sample("none")
	none.Terms = nil
	all := []relayer.Record{mustCreate(t, store, most), mustCreate(t, store, none)}
	for i, term := range terms {
		rec := sample(numbered(i))
		rec.Terms = []string{term}
		all = append(all, mustCreate(t, store, rec))
	}
	for _, term := range append(terms, most.Terms[0], most.Terms[limits.Terms-1], "other", "") {
		wantSelected(t, store, relayer.StoreQuery{Terms: [][]string{{term}}, Limit: 10}, all)
	}
	var every [][]string
	for _, term := range most.Terms {
		every = append(every, []string{"other", term})
	}
	for _, query := range []relayer.StoreQuery{
		{Limit: 100},
		{Terms: [][]string{terms}, Offset: 3, Limit: 10},
		{Terms: [][]string{append(most.Terms, terms...)}, Limit: math.MaxInt},
		{Terms: every, Limit: 10},
		{Terms: [][]string{{}}, Limit: 10},
		{Terms: [][]string{{"a"}, {"a"}}, Limit: 10},
		{Terms: [][]string{{"a", "a"}}, IDs: []string{numbered(0), numbered(0)}, Limit: 10},
		{IDs: []string{"none", "unknown", "most"}, Offset: 1, Limit: math.MaxInt},
		{Terms: [][]string{{"a"}}, Offset: math.MaxInt, Limit: math.MaxInt},
	} {
		wantSelected(t, store, query, all)
	}
}

// searched has texts that a store may confuse: a search compares byte by byte, and no
// character has a special meaning.
var searched = []string{
	"", " ", "a", "A", "ab", "ba", "a b", "a%b", "a_b", "%", "_", "%%", `\`, `\\`, `a\b`, `\%`, "'", "''", "a'b", `"`, "`",
	"a.b", ".", "a*", "[a]", "^a$", "(a|b)", "{a}", "NULL", "$1", "?", "\x01", "\n", "\t", "a\n",
	"é", "e\u0301", "É", "ß", "ss", "İ", "\u00a0", "\u200b", "\U0010ffff", "日本語", "本",
	strings.Repeat("x", limits.Text), strings.Repeat("x", limits.Text-1) + "y",
	"y" + strings.Repeat("x", limits.Text-1), strings.Repeat("é", limits.Text/2),
	strings.Repeat(`%_\'`, limits.Text/4),
}

func listContains(t *testing.T, store relayer.Store) {
	var all []relayer.Record
	for i, text := range searched {
		rec := sample(numbered(i))
		rec.Text = text
		all = append(all, mustCreate(t, store, rec))
	}
	for _, part := range append(searched, "xy", "yx", "éé", "B", "\u0301", strings.Repeat("x", limits.Text+1), "id-0001") {
		wantSelected(t, store, relayer.StoreQuery{Contains: []string{part}, Limit: 100}, all)
	}
	for _, query := range []relayer.StoreQuery{
		{Contains: []string{}, Limit: 100},
		{Contains: []string{"%", "_"}, Limit: 3},
		{Contains: []string{"a", "a", "ab"}, Offset: 2, Limit: math.MaxInt},
		{Contains: []string{"none", "nothing"}, Limit: 10},
		{Contains: searched[1:9], Limit: 100},
		{Contains: []string{"a", "x"}, Terms: [][]string{{"id=id-0002", "id=id-0004", "id=id-0005", "id=id-0046"}}, Limit: 10},
		{Contains: []string{"a"}, Terms: [][]string{{"common"}, {"none"}}, Limit: 10},
		{Contains: []string{"a"}, IDs: []string{numbered(2), numbered(3), numbered(6), "none"}, Limit: 10},
		{Contains: []string{"a"}, After: all[6].Sequence, Limit: 2},
		{Contains: []string{"a"}, After: all[6].Sequence, Offset: 1, Limit: 2, Terms: [][]string{{"common"}}},
	} {
		wantSelected(t, store, query, all)
	}
	// The text of an update takes the place of the old one.
	all[2].Text = "c"
	all[2] = mustUpdate(t, store, all[2])
	mustDelete(t, store, all[4])
	all = append(all[:4:4], all[5:]...)
	for _, part := range []string{"a", "c", "ab", "%"} {
		wantSelected(t, store, relayer.StoreQuery{Contains: []string{part}, Limit: 100}, all)
	}
}

func largeDocuments(t *testing.T, store relayer.Store) {
	random := rand.NewChaCha8([32]byte{1})
	var all []relayer.Record
	for i, size := range []int{4095, 4096, 4097, 65536, 1 << 20} {
		rec := relayer.Record{ID: numbered(i), Document: make([]byte, size), Private: make([]byte, size)}
		_, _ = random.Read(rec.Document)
		_, _ = random.Read(rec.Private)
		all = append(all, mustCreate(t, store, rec))
	}
	wantPage(t, store, 0, 10, all)
	last := all[len(all)-1]
	last.Document, last.Private = all[0].Document, last.Document
	last = mustUpdate(t, store, last)
	wantSame(t, "Get", mustGet(t, store, last.ID), last)
	mustDelete(t, store, last)
	wantPage(t, store, 0, 10, all[:len(all)-1])
}

// errorsOf tries all writes of records, and Check, and returns the errors by method.
func errorsOf(ctx context.Context, store relayer.Store, stored relayer.Record) map[string]error {
	stored.Document = []byte(`{"changed":true}`)
	_, created := store.Create(ctx, sample("new"))
	_, updated := store.Update(ctx, stored)
	errs := map[string]error{"Create": created, "Update": updated, "Delete": store.Delete(ctx, stored.ID, stored.Revision, deleteNote)}
	if importer, ok := store.(transfer.Importer); ok {
		errs["Import"] = importer.Import(ctx, moved("m", 3))
	}
	if checker, ok := store.(transfer.Checker); ok {
		errs["Check"] = checker.Check(ctx)
	}
	return errs
}

func canceledContext(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 2)
	for method, err := range errorsOf(canceled(t), store, all[0]) {
		wantError(t, method, err, context.Canceled)
	}
	wantAbsent(t, store, "new")
	wantPage(t, store, 0, 10, all)
	mustCreate(t, store, sample("new"))
	for i := range 200 { // their contexts end at any time
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(200*time.Microsecond))
		_, created := store.Create(ctx, sample(fmt.Sprint("new-", i)))
		cancel()
		_, err := store.Get(t.Context(), fmt.Sprint("new-", i))
		if (err == nil) != (created == nil) && !errors.Is(created, relayer.ErrOutcomeUnknown) {
			t.Fatalf("Create: error %v, and then Get: error %v", created, err)
		}
	}
}

func useAfterClose(t *testing.T, store relayer.Store) {
	waiting := store.Watch(t.Context(), "")
	one := mustCreate(t, store, sample("one"))
	w := watch(t, store)
	if _, ok := store.(io.Closer); !ok {
		t.Skip("the store has no Close")
	}
	ended := lastError(waiting, func() { closeStore(t, store) }) // and again at the end of the case
	wantError(t, "Watch of a store that is closed meanwhile", ended, relayer.ErrUnavailable)
	errs := errorsOf(t.Context(), store, one)
	_, errs["Get"] = store.Get(t.Context(), "one")
	_, errs["List"] = store.List(t.Context(), relayer.StoreQuery{Limit: 10})
	if _, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 10}); !errors.Is(err, errors.ErrUnsupported) {
		errs["History"] = err
		if importer, ok := store.(transfer.HistoryImporter); ok {
			errs["ImportHistory"] = importer.ImportHistory(t.Context(), past(one.Revision+1))
		}
	}
	for method, err := range errs {
		wantError(t, method, err, relayer.ErrUnavailable)
	}
	for _, w := range []watcher{w, watch(t, store)} {
		w.wantEnd(t, "Watch of a closed store", relayer.ErrUnavailable)
	}
}
