package relayer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/examples/mapstore"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

// lines returns a history as lines of text, newest first, and checks its documents.
func lines(t *testing.T, m *relayer.Manager, query relayer.HistoryQuery) (lines []string, next uint64) {
	t.Helper()
	changes, next, err := m.History(t.Context(), query)
	mustSucceed(t, err)
	documents, documentsNext, err := m.Documents().History(t.Context(), query)
	if err != nil || len(documents) != len(changes) || documentsNext != next {
		t.Fatalf("%d documents before %d, error %v, want %d before %d", len(documents), documentsNext, err, len(changes), next)
	}
	for i, c := range changes {
		document := documents[i].Document
		name := "-"
		if c.Relayer != nil {
			name = c.Relayer.Name
			if !strings.Contains(string(document.JSON), `"name":"`+name+`"`) || c.Relayer.ID != c.ID || c.Relayer.Revision != c.Info.Revision {
				t.Errorf("%+v has the document %s", c, document.JSON)
			}
		} else if document.JSON != nil {
			t.Errorf("%+v has the document %s", c, document.JSON)
		}
		if i > 0 && c.Info.Revision >= changes[i-1].Info.Revision {
			t.Errorf("revision %d after %d", c.Info.Revision, changes[i-1].Info.Revision)
		}
		if strings.Contains(fmt.Sprintf("%+v %s", c, document.JSON), "KEY") {
			t.Errorf("the history has a secret: %+v", c)
		}
		info := document.LastChange()
		if info.PausedBy = nil; document.ID != c.ID || !reflect.DeepEqual(info, c.Info) || documents[i].Kind != c.Kind {
			t.Errorf("%+v differs from the document %+v", c, document)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s %q", c.Info.Actor, c.Info.Action, name, strings.Join(c.Info.Changed, "+"), c.Info.Reason))
	}
	return lines, next
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("history\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// mustChange patches a relayer as an actor, with a reason.
func mustChange(t *testing.T, m *relayer.Manager, actor, id string, patch []byte) {
	t.Helper()
	ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: actor})
	must(m.Patch(ctx, id, patch, relayer.Reason("by "+actor)))(t)
}

func TestHistory_OfOneRelayer(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, withURLs("r", "https://rpc.example/KEY"))
	mustCreate(t, m, minimal("other"))
	mustChange(t, m, "ann", "r", []byte(`{"paused":true,"name":"incident"}`))
	mustChange(t, m, "bob", "r", []byte(`{"paused":true}`)) // no change
	mustChange(t, m, "bob", "other", []byte(`{"name":"n2"}`))
	mustChange(t, m, "cat", "r", []byte(`{"custom_rpc_urls":[{"url":"https://rpc.example/KEY2"}]}`))
	if _, err := m.Create(t.Context(), minimal("r")); !errors.Is(err, relayer.ErrExists) {
		t.Fatal(err)
	}
	mustSucceed(t, m.Delete(t.Context(), "r"))
	mustCreate(t, m, minimal("r"))
	all := []string{
		` create n  ""`,
		` delete -  ""`,
		`cat update incident custom_rpc_urls "by cat"`,
		`ann update incident name+paused "by ann"`,
		` create n  ""`,
	}
	got, next := lines(t, m, relayer.HistoryQuery{ID: "r"})
	if wantLines(t, got, all...); next != 0 {
		t.Errorf("next %d", next)
	}
	var paged []string
	for query := (relayer.HistoryQuery{ID: "r", Limit: 2}); len(paged) < len(all); query.Before = next {
		got, next = lines(t, m, query)
		if paged = append(paged, got...); (next == 0) != (len(paged) == len(all)) {
			t.Errorf("after %d of %d the next page is before %d", len(paged), len(all), next)
		}
	}
	wantLines(t, paged, all...)
	if got, _ := lines(t, m, relayer.HistoryQuery{Limit: 3}); len(got) != 3 || got[0] != all[0] {
		t.Errorf("of all relayers: %q", got)
	}
	if got, _ := lines(t, m, relayer.HistoryQuery{ID: "r", Before: 1}); len(got) != 0 {
		t.Errorf("before the first: %q", got)
	}
}

// Filters select changes by actor, action and time. A filter that selects none is no unknown relayer.
func TestHistory_Filters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		began := time.Now()
		mustCreate(t, m, named("r", "n0"))
		for i, actor := range []string{"ann", "bob", "ann"} {
			time.Sleep(time.Hour)
			mustChange(t, m, actor, "r", fmt.Appendf(nil, `{"name":"n%d"}`, i+1))
		}
		after := func(hours time.Duration) time.Time { return began.Add(hours * time.Hour) }
		for want, query := range map[string]relayer.HistoryQuery{
			"n3 n1":    {Actor: "ann"},
			"n0":       {Action: relayer.ActionCreate},
			"n3 n2":    {Since: after(2)},
			"n1 n0":    {Until: after(2)},
			"n2":       {Actor: "bob", Action: relayer.ActionUpdate, Since: after(1), Until: after(3)},
			"":         {Actor: "cat"},
			"n3 n2 n1": {Since: after(1).Add(-time.Second)},
		} {
			for _, id := range []string{"r", ""} {
				query.ID = id
				changes, next, err := m.History(t.Context(), query)
				var names []string
				for _, change := range changes {
					names = append(names, change.Relayer.Name)
				}
				if got := strings.Join(names, " "); err != nil || next != 0 || got != want {
					t.Errorf("%+v: %q before %d, error %v, want %q", query, got, next, err, want)
				}
			}
		}
	})
}

// pastStore has a history with the given times, newest first. Like a store that looks up few times,
// it dates only the last change of a page.
type pastStore struct {
	relayer.Store
	times []time.Time
	calls int
}

func (s *pastStore) History(_ context.Context, query relayer.HistoryQuery) (page []relayer.RecordChange, err error) {
	s.calls++
	for i, at := range s.times {
		revision := uint64(len(s.times) - i)
		if len(page) < query.Limit && (query.Before == 0 || revision < query.Before) {
			note := fmt.Appendf(nil, `{"revision":%d,"time":%q}`, revision, at.Format(time.RFC3339))
			page = append(page, relayer.RecordChange{Kind: relayer.ChangeDeleted, Record: relayer.Record{ID: "r", Revision: revision, Note: note}})
			page[len(page)-1].Time = at
			if len(page) > 1 {
				page[len(page)-2].Time = time.Time{}
			}
		}
	}
	return page, nil
}

// A change that was made while the clock was behind does not hide the ones before it, even at the end of
// a page. A search by time does not read all that is older.
func TestHistory_ClockWasBehind(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	store := &pastStore{Store: memory.New(), times: []time.Time{now, now.AddDate(0, 0, -1), now.Add(-time.Minute)}}
	for range 5000 {
		store.times = append(store.times, now.AddDate(0, 0, -2))
	}
	manager := must(relayer.New(store))(t)
	for _, limit := range []int{1, 20} {
		changes, next, err := manager.History(t.Context(), relayer.HistoryQuery{Since: now.Add(-time.Hour), Limit: limit + 1})
		if err != nil || next != 0 || len(changes) != 2 || changes[1].Info.Revision != 5001 {
			t.Errorf("limit %d: changes %+v, next %d, error %v", limit+1, changes, next, err)
		}
	}
	changes, next, err := manager.History(t.Context(), relayer.HistoryQuery{Since: now.Add(-time.Hour), Limit: 1})
	if err != nil || next != 5003 || len(changes) != 1 { // its first page of the store ends with the wrong time
		t.Errorf("limit 1: changes %+v, next %d, error %v", changes, next, err)
	}
	if store.calls > 8 {
		t.Errorf("%d calls of the store", store.calls)
	}
}

func TestHistory_Errors(t *testing.T) {
	m := newManager(t)
	for _, id := range []string{"unknown", "no id", strings.Repeat("a", 65)} {
		if _, _, err := m.History(t.Context(), relayer.HistoryQuery{ID: id}); !errors.Is(err, relayer.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	_, _, err := m.History(t.Context(), relayer.HistoryQuery{Limit: -1})
	wantFields(t, fieldErrors(t, err), "per_page")
	_, _, err = m.History(t.Context(), relayer.HistoryQuery{Action: relayer.ActionReveal})
	wantFields(t, fieldErrors(t, err), "action")
	if _, _, err := managerOf(t, new(mapstore.Store)).History(t.Context(), relayer.HistoryQuery{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a store without history: %v", err)
	}
	if page, _, err := m.History(t.Context(), relayer.HistoryQuery{}); err != nil || len(page) != 0 {
		t.Errorf("an empty store: %+v, %v", page, err)
	}
}

// TestHistory_DamagedOldest: a change that is damaged in an open file is an error for a page that
// reads it, and not for the pages before it.
func TestHistory_DamagedOldest(t *testing.T) {
	path := t.TempDir() + "/relayers.db"
	store := must(bolt.Open(t.Context(), path))(t)
	defer store.Close()
	m := managerOf(t, store)
	mustCreate(t, m, named("r", "oldest"))
	mustChange(t, m, "ann", "r", []byte(`{"name":"second"}`))
	mustChange(t, m, "bob", "r", []byte(`{"name":"third"}`))
	file := must(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer file.Close()
	content := must(io.ReadAll(file))(t)
	for at := range content {
		if bytes.HasPrefix(content[at:], []byte(`"name":"oldest"`)) {
			must(file.WriteAt([]byte("O"), int64(at+len(`"name":"`))))(t)
		}
	}
	for _, id := range []string{"r", ""} {
		got, next := lines(t, m, relayer.HistoryQuery{ID: id, Limit: 1})
		wantLines(t, got, `bob update third name "by bob"`)
		for _, query := range []relayer.HistoryQuery{{ID: id}, {ID: id, Limit: 1, Before: next}, {ID: id, Before: 2}} {
			for _, view := range []*relayer.Manager{m, m.Within(mustParse(t, "network=sepolia"))} {
				if got, _, err := view.History(t.Context(), query); len(got) != 0 || !errors.Is(err, relayer.ErrCorrupt) {
					t.Errorf("History(%+v): %v, error %v", query, got, err)
				}
			}
		}
	}
}

// TestHistory_UndecodableDocument: such a change ends the page before it, and is the error of a
// page that begins with it. The next page has the changes before.
func TestHistory_UndecodableDocument(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	mustCreate(t, m, named("r", "first"))
	mustChange(t, m, "ann", "r", []byte(`{"name":"second"}`))
	for _, document := range []string{`[7]`, `{"na`, string(storedRecord(t, store, "r").Document)} {
		editRecord(t, store, "r", func(rec *relayer.Record) { rec.Document = []byte(document) })
	}
	got, next := lines(t, m, relayer.HistoryQuery{ID: "r"})
	wantLines(t, got, `ann update second name "by ann"`)
	for _, damaged := range []uint64{4, 3} {
		_, _, err := m.History(t.Context(), relayer.HistoryQuery{ID: "r", Before: next})
		if corrupt, ok := errors.AsType[*relayer.CorruptError](err); !ok || corrupt.ID != "r" || !strings.Contains(err.Error(), fmt.Sprintf("revision %d", damaged)) {
			t.Errorf("before %d: error %v, want one that names revision %d", next, err, damaged)
		}
		next = damaged
	}
	got, _ = lines(t, m, relayer.HistoryQuery{ID: "r", Before: next})
	wantLines(t, got, `ann update second name "by ann"`, ` create first  ""`)
}

// Each team sees its part of the history of a relayer that moved between them. Sealing under
// another key stores the record and its note again.
func TestHistory_OfView(t *testing.T) {
	store := memory.New()
	all := managerOf(t, store)
	req := named("r", "first")
	req.Labels = map[string]string{"team": "risk"}
	mustCreate(t, all, req)
	mustChange(t, all, "ann", "r", []byte(`{"name":"second"}`))
	mustChange(t, all, "admin", "r", []byte(`{"name":"moved","labels":{"team":"payments"}}`))
	editRecord(t, store, "r", func(*relayer.Record) {})
	mustChange(t, all, "bob", "r", []byte(`{"name":"third"}`))
	mustSucceed(t, all.Delete(t.Context(), "r"))
	moved := `admin update moved labels.team+name "by admin"`
	for scope, want := range map[string][]string{
		"label.team=risk":     {`admin update -  "by admin"`, `ann update second name "by ann"`, ` create first  ""`},
		"label.team=payments": {` delete -  ""`, `bob update third name "by bob"`, `admin update moved  "by admin"`, `admin update moved  "by admin"`},
		"":                    {` delete -  ""`, `bob update third name "by bob"`, moved, moved, `ann update second name "by ann"`, ` create first  ""`},
	} {
		t.Run(scope, func(t *testing.T) {
			view := all.Within(mustParse(t, scope))
			for _, id := range []string{"r", ""} {
				got, _ := lines(t, view, relayer.HistoryQuery{ID: id})
				wantLines(t, got, want...)
				var paged []string
				for query := (relayer.HistoryQuery{ID: id, Limit: 1}); ; {
					got, next := lines(t, view, query)
					paged = append(paged, got...)
					if query.Before = next; next == 0 {
						break
					}
				}
				wantLines(t, paged, want...)
			}
		})
	}
	if _, _, err := all.Within(mustParse(t, "label.team=other")).History(t.Context(), relayer.HistoryQuery{ID: "r"}); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("a team that never had it: %v", err)
	}
}

// A view of full URLs returns documents that differ from others by the URLs only.
func TestDocuments_WithFullURLs(t *testing.T) {
	for _, isSealed := range []bool{false, true} {
		t.Run(fmt.Sprint("sealed ", isSealed), func(t *testing.T) {
			store := memory.New()
			m := managerOf(t, store)
			if isSealed {
				m = managerOf(t, sealing(t, store, ringOf(t, "k1")))
			}
			none := minimal("none")
			none.CustomRPCURLs = []relayer.RPCConfig{}
			mustCreate(t, m, none)
			if r := mustGet(t, m, "none"); r.CustomRPCURLs == nil {
				t.Error("an empty list is read as nil")
			}
			full := m.Documents().WithFullURLs()
			watched := full.Watch(t.Context(), relayer.WatchQuery{})
			mustCreate(t, m, withURLs("r", "https://user:pw@a.example/v2/\"<KEY", "wss://b.example/é"))
			masked := must(m.Documents().Get(t.Context(), "r"))(t)
			want := strings.NewReplacer(`https://a.example/***`, `https://user:pw@a.example/v2/\"<KEY`, `wss://b.example/***`, `wss://b.example/é`).Replace(string(masked.JSON))
			if got := must(full.Get(t.Context(), "r"))(t); string(got.JSON) != want || got.SealError != nil || got.Revision != masked.Revision {
				t.Errorf("got %s, want %s", got.JSON, want)
			}
			page := must(full.List(t.Context(), relayer.ListQuery{}))(t)
			if len(page.Documents) != 2 || string(page.Documents[1].JSON) != want || string(page.Documents[0].JSON) != storedDocument(t, m, "none") || page.Documents[0].SealError != nil {
				t.Errorf("listed %+v", page)
			}
			for change, err := range watched {
				if err != nil || string(change.Document.JSON) != want {
					t.Errorf("watched %s, %v", change.Document.JSON, err)
				}
				break
			}
			for keys, other := range map[string]relayer.Store{"no keys": store, "other keys": sealing(t, store, ringOf(t, "other"))} {
				locked := must(managerOf(t, other).Documents().WithFullURLs().Get(t.Context(), "r"))(t)
				if isSealed != (string(locked.JSON) == string(masked.JSON)) || isSealed != errors.Is(locked.SealError, relayer.ErrSealed) {
					t.Errorf("%s: %s, seal error %v", keys, locked.JSON, locked.SealError)
				}
			}
		})
	}
}

// forgetful is a store whose feed has the current private parts only.
type forgetful struct{ relayer.Store }

func (s forgetful) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	changes := s.Store.Watch(ctx, after)
	return func(yield func(relayer.RecordChange, error) bool) {
		for change, err := range changes {
			if current, _ := s.Get(ctx, change.Record.ID); current.Revision != change.Record.Revision {
				change.Record.Private = nil
			}
			if !yield(change, err) {
				return
			}
		}
	}
}

// TestDocuments_SupersededURLs: a change whose URLs the store no longer has is masked, and is
// not damaged.
func TestDocuments_SupersededURLs(t *testing.T) {
	m := managerOf(t, sealing(t, forgetful{memory.New()}, ringOf(t, "k1")))
	watched := m.Documents().WithFullURLs().Watch(t.Context(), relayer.WatchQuery{})
	mustCreate(t, m, withURLs("r", "https://a.example/v2/key"))
	mustCreate(t, m, minimal("none"))
	mustCreate(t, m, withURLs("gone", "https://a.example/v2/key"))
	must(m.Pause(t.Context(), "r"))(t)
	mustSucceed(t, m.Delete(t.Context(), "gone"))
	var got []string
	for change, err := range watched {
		mustSucceed(t, err)
		d := change.Document
		isDamage := errors.Is(d.SealError, relayer.ErrSealed) || errors.Is(d.SealError, relayer.ErrCorrupt)
		got = append(got, fmt.Sprint(change.Kind, " ", d.ID, " full ", strings.Contains(string(d.JSON), "key"), " error ", d.SealError != nil, " damage ", isDamage))
		if change.Kind == relayer.ChangeDeleted {
			break
		}
	}
	want := []string{
		"created r full false error true damage false", "created none full false error false damage false",
		"created gone full false error true damage false", "updated r full true error false damage false",
		"deleted gone full false error false damage false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// longHistory has 1,500 changes of one relayer, which was paused after the first one only.
type longHistory struct{ relayer.Store }

func (longHistory) History(_ context.Context, query relayer.HistoryQuery) (changes []relayer.RecordChange, _ error) {
	revision := uint64(1500)
	if query.Before > 0 {
		revision = query.Before - 1
	}
	for ; revision > 0 && len(changes) < query.Limit; revision-- {
		rec := relayer.Record{ID: "r", Revision: revision, Terms: []string{fmt.Sprint("paused=", revision == 1)}}
		changes = append(changes, relayer.RecordChange{Kind: relayer.ChangeUpdated, Record: rec})
	}
	return changes, nil
}

// A page of all relayers ends after about 1,000 changes, in a view or with a filter. One of a single
// relayer has no bound.
func TestHistory_Bound(t *testing.T) {
	all := managerOf(t, longHistory{memory.New()})
	paused := all.Within(mustParse(t, "paused=true"))
	for query, want := range map[relayer.HistoryQuery]int{{ID: "r"}: 1, {}: 0, {Actor: "nobody"}: 0} {
		m := paused
		if query.Actor != "" {
			m = all
		}
		page, next, err := m.History(t.Context(), query)
		if err != nil || len(page) != want || (next > 0) != (want == 0) {
			t.Errorf("%+v: %d changes, next %d, error %v", query, len(page), next, err)
		}
	}
}
