package relayer_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
)

// ringOf returns a keyring with these keys. The value of a key depends only on its ID.
func ringOf(t testing.TB, primary string, others ...string) keyring.Keyring {
	t.Helper()
	text := "relayer-keyring 1\nprimary " + primary + "\n"
	for _, id := range append([]string{primary}, others...) {
		text += "key " + id + " " + keyValue(id) + "\n"
	}
	ring := must(keyring.Parse([]byte(text)))(t)
	return ring
}

func keyValue(text string) string {
	value := make([]byte, 32)
	copy(value, text)
	return base64.StdEncoding.EncodeToString(value)
}

const (
	firstURL  = "https://first.example/v3/0123456789abcdef"
	secondURL = "https://user:password@second.example"
	thirdURL  = "wss://fedcba98765432100123.third.example:8546/?apikey=fedcba"
)

var secretParts = []string{"0123456789abcdef", "password", "apikey", "fedcba"}

func withURLs(id string, urls ...string) relayer.CreateRequest {
	req := minimal(id)
	for _, url := range urls {
		req.CustomRPCURLs = append(req.CustomRPCURLs, relayer.RPCConfig{URL: relayer.RPCURL(url)})
	}
	return req
}

// fixture is a store with the relayer "a", whose two URLs are sealed under the key "k1".
type fixture struct {
	store *memory.Store // the inner one
	*relayer.Manager
}

func newSealed(t testing.TB) fixture {
	t.Helper()
	store := memory.New()
	m := managerOf(t, sealing(t, store, ringOf(t, "k1")))
	mustCreate(t, m, withURLs("a", firstURL, secondURL))
	return fixture{store, m}
}

// sealing returns a store that seals what it stores in db.
func sealing(t testing.TB, db relayer.Store, keys sealed.Keys, options ...sealed.Option) *sealed.Store {
	t.Helper()
	store := must(sealed.New(db, keys, options...))(t)
	return store
}

func reseal(t *testing.T, store *sealed.Store) {
	t.Helper()
	for id, err := range store.Reseal(t.Context()) {
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
}

func expectCounts(t *testing.T, store *sealed.Store, want string) {
	t.Helper()
	counts, err := store.Count(t.Context())
	ids := make(map[string]int)
	for key, count := range counts.Keys {
		ids[key.ID] += count
	}
	if got := fmt.Sprint(counts.Clear, ids); err != nil || got != want {
		t.Errorf("the counts are %s with error %v, want %s", got, err, want)
	}
}

func storedRecord(t testing.TB, store relayer.Store, id string) relayer.Record {
	t.Helper()
	rec := must(store.Get(context.Background(), id))(t)
	return rec
}

func urlsOf(endpoints []relayer.RPCConfig) []string {
	var urls []string
	for _, endpoint := range endpoints {
		urls = append(urls, endpoint.URL.Unmasked())
	}
	return urls
}

func expectURLs(t testing.TB, m *relayer.Manager, id string, want ...string) {
	t.Helper()
	endpoints, err := m.RPCURLs(context.Background(), id)
	if err != nil || !slices.Equal(urlsOf(endpoints), want) {
		t.Errorf("the URLs of %s are %q with error %v, want %q", id, urlsOf(endpoints), err, want)
	}
}

func expectMasked(t testing.TB, r *relayer.Relayer) {
	t.Helper()
	if len(r.CustomRPCURLs) == 0 {
		t.Error("the relayer has no URLs")
	}
	for _, endpoint := range r.CustomRPCURLs {
		if !endpoint.URL.IsMasked() {
			t.Errorf("the URL %s is not masked", endpoint.URL.Unmasked())
		}
		expectNoSecret(t, endpoint.URL.Unmasked())
	}
}

func expectNoSecret(t testing.TB, text string) {
	t.Helper()
	for _, part := range secretParts {
		if strings.Contains(text, part) {
			t.Errorf("found %q in %q", part, text)
		}
	}
}

func TestSealed_StoresNoURLInClear(t *testing.T) {
	s := newSealed(t)
	rec := storedRecord(t, s.store, "a")
	expectNoSecret(t, string(rec.Private)+string(rec.Document))
	if len(rec.Private) == 0 {
		t.Error("the record has no private part")
	}
	expectURLs(t, s.Manager, "a", firstURL, secondURL)
	if r, err := s.Get(t.Context(), "a"); err != nil || !slices.Equal(urlsOf(r.CustomRPCURLs), []string{firstURL, secondURL}) {
		t.Errorf("Get returned %q and %v", urlsOf(r.CustomRPCURLs), err)
	}
	mustCreate(t, s.Manager, minimal("none"))
	if rec := storedRecord(t, s.store, "none"); len(rec.Private) != 0 {
		t.Errorf("a relayer without URLs has the private part %q", rec.Private)
	}
}

// The document is the same on a sealed store, so that clients see no difference.
func TestSealed_SameDocument(t *testing.T) {
	clear := newManager(t)
	mustCreate(t, clear, withURLs("a", firstURL, secondURL))
	s := newSealed(t)
	if with, without := storedDocument(t, s.Manager, "a"), storedDocument(t, clear, "a"); with != without {
		t.Errorf("on a sealed store the document is\n%s\nand without\n%s", with, without)
	}
}

// forbidden are keys that fail the test if they are used.
type forbidden struct {
	keyring.Keyring
	t *testing.T
}

func (f forbidden) Seal(context.Context, []byte, []byte) ([]byte, error) {
	f.t.Error("Seal was called")
	return nil, errors.New("forbidden")
}

func (f forbidden) Open(context.Context, []byte, []byte) ([]byte, error) {
	f.t.Error("Open was called")
	return nil, errors.New("forbidden")
}

// away are keys whose service does not respond.
type away struct{ keyring.Keyring }

func (away) Seal(ctx context.Context, _, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (away) Open(ctx context.Context, _, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// needsNoSecret are the operations that work on "a" without its key. Each changes it.
var needsNoSecret = []struct {
	name string
	call func(context.Context, *relayer.Manager) (*relayer.Relayer, error)
}{
	{"Pause", func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) { return m.Pause(ctx, "a") }},
	{"Resume", func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) { return m.Resume(ctx, "a") }},
	{"Disable", func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) {
		return m.Disable(ctx, "a", relayer.DisabledReason{Type: relayer.NonceSyncFailed})
	}},
	{"Enable", func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) { return m.Enable(ctx, "a") }},
	{"Patch", func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) {
		return m.Patch(ctx, "a", patchtest.JSON(map[string]any{"name": "patched", "policies": &relayer.EVMPolicy{EIP1559Pricing: new(true)}}))
	}},
	{"Patch with the name of the URLs in a value", func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) {
		return m.Patch(ctx, "a", patchtest.JSON(map[string]any{"name": `"custom_rpc_urls":\`}))
	}},
}

func TestSealed_KeysNotUsedUnlessURLsChange(t *testing.T) {
	s := newSealed(t)
	policy := relayer.WithRPCPolicy(rpcguard.Policy{RefuseUserInfo: true})
	for name, m := range map[string]*relayer.Manager{
		"no sealed store": managerOf(t, s.store),
		"no keys":         managerOf(t, sealing(t, s.store, keyring.Keyring{})),
		"another key":     managerOf(t, sealing(t, s.store, ringOf(t, "k2"))),
		"keys are away":   managerOf(t, sealing(t, s.store, away{ringOf(t, "k1")})),
		"never used":      managerOf(t, sealing(t, s.store, forbidden{ringOf(t, "k1"), t})),
		"with RPC policy": managerOf(t, sealing(t, s.store, forbidden{ringOf(t, "k1"), t}), policy),
	} {
		t.Run(name, func(t *testing.T) {
			for _, operation := range needsNoSecret {
				before := storedRecord(t, s.store, "a")
				r, err := operation.call(t.Context(), m)
				if err != nil {
					t.Fatalf("%s: %v", operation.name, err)
				}
				expectMasked(t, r)
				after := storedRecord(t, s.store, "a")
				if after.Revision == before.Revision || !bytes.Equal(after.Private, before.Private) {
					t.Errorf("%s: revision %d after %d; the private part changed: %t", operation.name,
						after.Revision, before.Revision, !bytes.Equal(after.Private, before.Private))
				}
			}
			page, err := m.List(t.Context(), relayer.ListQuery{Page: 1, PerPage: 10})
			if err != nil || len(page.Relayers) != 1 {
				t.Fatalf("the list is %v with error %v", page, err)
			}
			expectMasked(t, page.Relayers[0])
			for r, err := range m.All(t.Context(), relayer.Selector{}) {
				if err != nil {
					t.Fatal(err)
				}
				expectMasked(t, r)
			}
		})
	}
	if m := managerOf(t, sealing(t, s.store, forbidden{ringOf(t, "k1"), t})); m.Delete(t.Context(), "a") != nil {
		t.Error("the relayer was not deleted")
	}
}

func TestSealed_WatchMasked(t *testing.T) {
	s := newSealed(t)
	m := managerOf(t, sealing(t, s.store, forbidden{ringOf(t, "k1"), t}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := m.Watch(ctx, relayer.WatchQuery{})
	must(m.Pause(t.Context(), "a"))(t)
	for change, err := range changes {
		if err != nil {
			t.Fatal(err)
		}
		expectMasked(t, change.Relayer)
		break
	}
}

// Only what needs the secret fails, with an error that names the key.
func TestSealed_MissingKey(t *testing.T) {
	s := newSealed(t)
	for name, store := range map[string]relayer.Store{
		"no sealed store": s.store,
		"no keys":         sealing(t, s.store, keyring.Keyring{}),
		"another key":     sealing(t, s.store, ringOf(t, "k2")),
	} {
		t.Run(name, func(t *testing.T) {
			m, hasKeys := managerOf(t, store), name == "another key"
			before := storedRecord(t, s.store, "a")
			expectSealed := func(operation string, err error) {
				t.Helper()
				if !errors.Is(err, relayer.ErrSealed) || !errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("%s: error %v does not match ErrSealed and ErrUnavailable", operation, err)
				}
				if errors.Is(err, errors.ErrUnsupported) == hasKeys {
					t.Errorf("%s: error %v must match ErrUnsupported only without keys", operation, err)
				}
				if hasKeys && (!errors.Is(err, keyring.ErrUnknownKey) || !strings.Contains(err.Error(), "k1")) {
					t.Errorf("%s: error %v does not name the key k1", operation, err)
				}
			}
			_, err := m.RPCURLs(t.Context(), "a")
			expectSealed("RPCURLs", err)
			_, err = m.Update(t.Context(), "a", func(r *relayer.Relayer) error {
				r.CustomRPCURLs = append(r.CustomRPCURLs, relayer.RPCConfig{URL: thirdURL})
				return nil
			})
			expectSealed("Update with an additional URL", err)
			if !hasKeys {
				_, err = m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: thirdURL}}}))
				expectSealed("Patch of the URLs", err)
			}
			r, err := m.Get(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			expectMasked(t, r)
			if after := storedRecord(t, s.store, "a"); after.Revision != before.Revision {
				t.Error("the record was changed")
			}
			r, err = m.Update(t.Context(), "a", func(r *relayer.Relayer) error {
				expectMasked(t, r)
				r.Name, r.CustomRPCURLs = "updated by "+name, slices.Clone(r.CustomRPCURLs)
				return nil
			})
			if err != nil {
				t.Fatalf("Update of the name: %v", err)
			}
			expectMasked(t, r)
			if after := storedRecord(t, s.store, "a"); !bytes.Equal(after.Private, before.Private) {
				t.Error("Update of the name changed the private part")
			}
		})
	}
}

// If the key is lost, URLs can be replaced and cleared, but not kept.
func TestSealed_LostKey(t *testing.T) {
	s := newSealed(t)
	store := sealing(t, s.store, ringOf(t, "k2"))
	m := managerOf(t, store)
	body := `{"custom_rpc_urls":[{"url":"` + thirdURL + `"},{"url":"https://second.example"}]}`
	must(m.Documents().Patch(t.Context(), "a", []byte(body)))(t)
	expectURLs(t, m, "a", thirdURL, "https://second.example")
	expectCounts(t, store, "0 map[k2:1]")

	lost := managerOf(t, sealing(t, s.store, ringOf(t, "k4")))
	_, err := lost.Documents().Patch(t.Context(), "a", []byte(`{"custom_rpc_urls":[{"url":"`+thirdURL+`"}],"name":""}`))
	if invalid, ok := errors.AsType[*relayer.ValidationError](err); !ok || invalid.Fields[0].Field != "name" {
		t.Errorf("an invalid replacement returned %v", err)
	}
	expectURLs(t, m, "a", thirdURL, "https://second.example")

	for name, store := range map[string]relayer.Store{
		"no sealed store": s.store, "without keys": sealing(t, s.store, keyring.Keyring{}), "another key": sealing(t, s.store, ringOf(t, "k3")),
	} {
		mustCreate(t, s.Manager, withURLs(name[:2], firstURL))
		m := managerOf(t, store)
		if _, err := m.Documents().Patch(t.Context(), name[:2], []byte(`{"custom_rpc_urls":null}`)); err != nil {
			t.Errorf("%s: clearing the URLs: %v", name, err)
		}
		if rec := storedRecord(t, s.store, name[:2]); len(rec.Private) != 0 {
			t.Errorf("%s: after clearing, the private part has %d bytes", name, len(rec.Private))
		}
	}
}

// Members of the private part that a newer version added are kept.
func TestSealed_UnknownMembersKept(t *testing.T) {
	ring := ringOf(t, "k1")
	rec := newer["evm"]
	store := storeOf(t, rec)
	reseal(t, sealing(t, store, ring))
	m := managerOf(t, sealing(t, store, ring))
	before := openedRecord(t, ring, store, rec.ID)
	endpoints := must(m.RPCURLs(t.Context(), rec.ID))(t)
	must(m.Patch(t.Context(), rec.ID, patchtest.JSON(map[string]any{"name": "m", "custom_rpc_urls": append(endpoints, relayer.RPCConfig{URL: thirdURL})})))(t)
	want := slices.DeleteFunc(unknownOf(t, before), func(member string) bool { return strings.HasPrefix(member, "custom_rpc_urls") })
	got := unknownOf(t, openedRecord(t, ring, store, rec.ID))
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the unknown members are %q, want %q", got, want)
	}
}

func openedRecord(t *testing.T, keys sealed.Keys, store relayer.Store, id string) relayer.Record {
	t.Helper()
	opened := must(sealing(t, store, keys).Open(t.Context(), storedRecord(t, store, id)))(t)
	return opened
}

func storeOf(t *testing.T, records ...relayer.Record) *memory.Store {
	t.Helper()
	store := memory.New()
	for _, rec := range records {
		must(store.Create(t.Context(), rec))(t)
	}
	return store
}

// A sealed part is not bound to a revision, because changes without its key carry it over. An older
// part of the same relayer is therefore accepted if the document shows its URLs (docs/security.md
// says so).
func TestSealed_ReplayOfOlderRevision(t *testing.T) {
	s := newSealed(t)
	older := storedRecord(t, s.store, "a").Private
	replay := func(url relayer.RPCURL) relayer.Record {
		must(s.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: url}, {URL: secondURL}}})))(t)
		rec := storedRecord(t, s.store, "a")
		rec.Private = older
		must(s.store.Update(t.Context(), rec))(t)
		return rec
	}
	replay(firstURL + "fedcba")
	expectURLs(t, s.Manager, "a", firstURL, secondURL)
	rec := replay(thirdURL)
	expectCorrupt(t, "RPCURLs", rec, second(s.RPCURLs(t.Context(), "a")))
}

// A private part that does not fit its document is damage for each read of full URLs and for Check.
// It prevents no change of the rest, and a patch of all URLs repairs it.
func TestPatch_DamagedPrivatePart(t *testing.T) {
	admitted := relayer.WithAdmission(func(context.Context, relayer.Operation, *relayer.Relayer, *relayer.Relayer) error { return nil })
	patch := func(urls []relayer.RPCConfig) []byte { return patchtest.JSON(map[string]any{"custom_rpc_urls": urls}) }
	for name, private := range map[string]string{
		"none":          "",
		"no JSON":       "{",
		"another kind":  `{"custom_rpc_urls":"` + firstURL + `"}`,
		"no URLs":       "{}",
		"a URL less":    `{"custom_rpc_urls":[{"url":"` + firstURL + `","weight":100}]}`,
		"a URL more":    `{"custom_rpc_urls":[{"url":"` + firstURL + `","weight":100},{"url":"` + secondURL + `","weight":100},{"url":"` + thirdURL + `","weight":100}]}`,
		"another host":  `{"custom_rpc_urls":[{"url":"` + firstURL + `","weight":100},{"url":"` + thirdURL + `","weight":100}]}`,
		"another order": `{"custom_rpc_urls":[{"url":"` + secondURL + `","weight":100},{"url":"` + firstURL + `","weight":100}]}`,
	} {
		for _, isSealing := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sealing=%t", name, isSealing), func(t *testing.T) {
				db := memory.New()
				var store relayer.Store = db
				if isSealing {
					store = sealing(t, db, ringOf(t, "k1"))
				}
				m := managerOf(t, store, admitted)
				mustCreate(t, m, withURLs("a", firstURL, secondURL))
				rec := storedRecord(t, db, "a")
				if rec.Private = []byte(private); second(db.Update(t.Context(), rec)) != nil {
					t.Fatal("not stored")
				}
				expectCorrupt(t, "RPCURLs", rec, second(m.RPCURLs(t.Context(), "a")))
				if read, err := m.Documents().WithFullURLs().Get(t.Context(), "a"); err != nil || !errors.Is(read.SealError, relayer.ErrCorrupt) {
					t.Errorf("Get of full URLs returned %v, %v, want ErrCorrupt", read.SealError, err)
				}
				if got := checked(t, m); !slices.Equal(got, []string{"a private part"}) {
					t.Errorf("Check found %q", got)
				}
				for _, write := range []func() (*relayer.Relayer, error){
					func() (*relayer.Relayer, error) { return m.Pause(t.Context(), "a") },
					func() (*relayer.Relayer, error) { return m.Patch(t.Context(), "a", []byte(`{"name":"other"}`)) },
				} {
					r := must(write())(t)
					expectMasked(t, r)
				}
				if after := storedRecord(t, db, "a"); !isSealing && string(after.Private) != private {
					t.Errorf("the private part became %q", after.Private)
				}
				kept := func(r *relayer.Relayer) error {
					r.CustomRPCURLs = r.CustomRPCURLs[:1]
					return nil
				}
				expectCorrupt(t, "Update that keeps a URL", rec, second(m.Update(t.Context(), "a", kept)))
				for _, urls := range [][]relayer.RPCConfig{{{URL: thirdURL}}, nil} {
					if rec.Revision = storedRecord(t, db, "a").Revision; second(db.Update(t.Context(), rec)) != nil {
						t.Fatal("not stored")
					}
					if _, err := m.Documents().Patch(t.Context(), "a", patch(urls)); err != nil {
						t.Fatalf("a patch of all URLs: %v", err)
					}
					if endpoints, err := m.RPCURLs(t.Context(), "a"); err != nil || len(endpoints) != len(urls) {
						t.Errorf("after the repair RPCURLs returned %d, %v", len(endpoints), err)
					}
				}
			})
		}
	}
}

func TestSealed_Away(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSealed(t)
		m := managerOf(t, sealing(t, s.store, away{ringOf(t, "k1")}))
		for name, call := range map[string]func(context.Context) error{
			"RPCURLs": func(ctx context.Context) error { return second(m.RPCURLs(ctx, "a")) },
			"Create":  func(ctx context.Context) error { return second(m.Create(ctx, withURLs("b", firstURL))) },
			"Patch": func(ctx context.Context) error {
				return second(m.Patch(ctx, "a", patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: thirdURL}}})))
			},
		} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := call(ctx); !errors.Is(err, relayer.ErrSealed) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s returned %v, want ErrSealed and the error of the context", name, err)
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("%s returned after %v, want 1s", name, took)
			}
			cancel()
		}
		mustCreate(t, m, minimal("b"))
	})
}

// expectCorrupt checks that damage is reported with the ID and the sequence of the relayer.
func expectCorrupt(t testing.TB, operation string, rec relayer.Record, err error) {
	t.Helper()
	corrupt, ok := errors.AsType[*relayer.CorruptError](err)
	if !ok || corrupt.ID != rec.ID || corrupt.Sequence != rec.Sequence || errors.Is(err, relayer.ErrSealed) || !strings.Contains(err.Error(), rec.ID) {
		t.Errorf("%s returned %v, want a CorruptError of %s and %d", operation, err, rec.ID, rec.Sequence)
	}
	expectNoSecret(t, fmt.Sprint(err))
}

// contradictions are documents that show another URL than the private part, written by
// somebody without the key.
var contradictions = map[string]func(rec *relayer.Record){
	"URL without a private part": func(rec *relayer.Record) {
		rec.Private = nil
		rec.Document = bytes.ReplaceAll(rec.Document, []byte("first.example/***"), []byte("evil.example/"))
	},
	"escaped name without a private part": func(rec *relayer.Record) {
		rec.Private = nil
		rec.Document = bytes.ReplaceAll(rec.Document, []byte(`"custom_rpc_urls"`), []byte(`"custom\u005frpc_urls"`))
	},
	"second list under another name": func(rec *relayer.Record) {
		rec.Document = append(rec.Document[:len(rec.Document)-1:len(rec.Document)-1], `,"Custom_RPC_URLs":[{"url":"https://evil.example"},{"url":"https://evil.example"}]}`...)
	},
	"second URL under another name": func(rec *relayer.Record) {
		rec.Document = bytes.ReplaceAll(rec.Document, []byte(`"weight":100`), []byte(`"weight":100,"URL":"https://evil.example"`))
	},
	"one endpoint more": func(rec *relayer.Record) {
		rec.Document = bytes.ReplaceAll(rec.Document, []byte(`"custom_rpc_urls":[`), []byte(`"custom_rpc_urls":[{"url":"https://evil.example"},`))
	},
	"no endpoints": func(rec *relayer.Record) {
		rec.Document = bytes.ReplaceAll(rec.Document, []byte(`"custom_rpc_urls"`), []byte(`"other"`))
	},
}

// The full URLs are those of the private part, or none.
func TestDocuments_ContradictsPrivatePart(t *testing.T) {
	for name, contradict := range contradictions {
		t.Run(name, func(t *testing.T) {
			s := newSealed(t)
			rec := storedRecord(t, s.store, "a")
			document := string(rec.Document)
			contradict(&rec)
			if string(rec.Document) == document {
				t.Fatal("the document was not changed")
			}
			must(s.store.Update(t.Context(), rec))(t)
			read := must(s.Documents().WithFullURLs().Get(t.Context(), "a"))(t)
			expectCorrupt(t, "Get", rec, read.SealError)
			if endpoints, err := s.RPCURLs(t.Context(), "a"); err == nil && strings.Contains(fmt.Sprintf("%+q", urlsOf(endpoints)), "evil") {
				t.Errorf("RPCURLs returned %q", urlsOf(endpoints))
			}
			if _, err := s.List(t.Context(), relayer.ListQuery{}); err != nil {
				t.Error(err)
			}
			damaged := 0
			for id, err := range s.Check(t.Context()) {
				damaged++
				expectCorrupt(t, "Check of "+id, rec, err)
			}
			if damaged != 1 {
				t.Errorf("Check found %d damaged relayers, want 1", damaged)
			}
		})
	}
}

// A second list that shows the same masks hides the full URLs from decoders that ignore case.
func TestDocuments_SecondMaskedList(t *testing.T) {
	s := newSealed(t)
	rec := storedRecord(t, s.store, "a")
	list := member(t, rec.Document, "custom_rpc_urls")
	rec.Document = append(bytes.TrimSuffix(rec.Document, []byte("}")), `,"Custom_RPC_URLs":`+list+`}`...)
	must(s.store.Update(t.Context(), rec))(t)
	read := must(s.Documents().WithFullURLs().Get(t.Context(), "a"))(t)
	expectCorrupt(t, "Get", rec, read.SealError)
}

// FuzzSealedPart stores any bytes as the private part of a relayer.
func FuzzSealedPart(f *testing.F) {
	s := newSealed(f)
	rec := storedRecord(f, s.store, "a")
	f.Add(rec.Private)
	f.Add([]byte{1})
	f.Add([]byte("{}"))
	f.Add([]byte(`{"custom_rpc_urls":[{"url":"https://x.example","weight":100}]}`))
	f.Add([]byte{2, 3})
	f.Fuzz(func(t *testing.T, private []byte) {
		store := memory.New()
		changed := rec
		changed.Private = private
		if _, err := store.Create(t.Context(), changed); err != nil {
			t.Skip(err)
		}
		for _, on := range []relayer.Store{sealing(t, store, ringOf(t, "k1")), sealing(t, store, ringOf(t, "m2", "k1"), sealed.Off()), store} {
			m := managerOf(t, on)
			endpoints, err := m.RPCURLs(t.Context(), "a")
			if err == nil && len(private) > 0 && private[0] != '{' && !slices.Equal(urlsOf(endpoints), []string{firstURL, secondURL}) {
				t.Errorf("a sealed part that was never sealed has the URLs %q", urlsOf(endpoints))
			}
			// None of these panics.
			_, _ = m.Get(t.Context(), "a")
			_, _ = m.List(t.Context(), relayer.ListQuery{Page: 1, PerPage: 10})
			_, _ = m.Pause(t.Context(), "a")
			_, _ = m.Update(t.Context(), "a", func(r *relayer.Relayer) error { r.Name = "n"; return nil })
		}
	})
}

// counting are keys that count their uses.
type counting struct {
	keyring.Keyring
	seals, opens *int
}

func (k counting) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	*k.seals++
	return k.Keyring.Seal(ctx, plaintext, associatedData)
}

func (k counting) Open(ctx context.Context, text, associatedData []byte) ([]byte, error) {
	*k.opens++
	return k.Keyring.Open(ctx, text, associatedData)
}

// Update calls the function and opens the URLs once, and seals them if their values differ. It
// makes no difference whether the function copies the list or changes it in place.
func TestUpdate_SealedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *relayer.Relayer)
		seals  int
	}{
		"name":          {func(r *relayer.Relayer) { r.Name = "m" }, 0},
		"same elements": {func(r *relayer.Relayer) { r.Name, r.CustomRPCURLs[0].URL = "m", firstURL }, 0},
		"copied list":   {func(r *relayer.Relayer) { r.Name, r.CustomRPCURLs = "m", slices.Clone(r.CustomRPCURLs) }, 0},
		"new list": {func(r *relayer.Relayer) {
			r.Name = "m"
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: firstURL, Weight: new(100.0)}, {URL: secondURL}}
		}, 0},
		"weight":           {func(r *relayer.Relayer) { r.CustomRPCURLs[0].Weight = new(7.0) }, 1},
		"element in place": {func(r *relayer.Relayer) { r.CustomRPCURLs[0].URL = thirdURL }, 1},
		"element of a copy": {func(r *relayer.Relayer) {
			r.CustomRPCURLs = slices.Clone(r.CustomRPCURLs)
			r.CustomRPCURLs[0].URL = thirdURL
		}, 1},
		"order":       {func(r *relayer.Relayer) { slices.Reverse(r.CustomRPCURLs) }, 1},
		"secret only": {func(r *relayer.Relayer) { r.CustomRPCURLs[0].URL += "0" }, 1},
		"no list":     {func(r *relayer.Relayer) { r.CustomRPCURLs = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSealed(t)
			before, calls, seals, opens := storedRecord(t, s.store, "a"), 0, 0, 0
			m := managerOf(t, sealing(t, s.store, counting{ringOf(t, "k2", "k1"), &seals, &opens}))
			var want []string
			updated, err := m.Update(t.Context(), "a", func(r *relayer.Relayer) error {
				if calls++; !slices.Equal(urlsOf(r.CustomRPCURLs), []string{firstURL, secondURL}) {
					t.Errorf("the function got %q", urlsOf(r.CustomRPCURLs))
				}
				test.change(r)
				want = urlsOf(r.CustomRPCURLs)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if calls != 1 || opens != 1 || seals != test.seals {
				t.Errorf("%d calls, %d opens and %d seals, want 1, 1 and %d", calls, opens, seals, test.seals)
			}
			after := storedRecord(t, s.store, "a")
			if isKept := bytes.Equal(after.Private, before.Private); after.Revision == before.Revision || isKept != (test.seals == 0 && len(want) > 0) {
				t.Errorf("the private part is the same: %t", isKept)
			}
			if isChanged := slices.Contains(updated.LastChange.Changed, "custom_rpc_urls"); isChanged != (len(want) == 0 || seals > 0) {
				t.Errorf("the change has the paths %q", updated.LastChange.Changed)
			}
			expectURLs(t, m, "a", want...)
		})
	}
}

// A dry run and a create without URLs use no keys.
func TestSealed_DryRun(t *testing.T) {
	s := newSealed(t)
	m := managerOf(t, sealing(t, s.store, forbidden{ringOf(t, "k1"), t}))
	mustCreate(t, m, minimal("none"))
	r := must(m.Create(t.Context(), withURLs("b", firstURL), relayer.DryRun()))(t)
	expectMasked(t, r)
}

// clearStore is an Opener of a host: nothing is sealed.
type clearStore struct{ relayer.Store }

func (clearStore) Open(_ context.Context, rec relayer.Record) (relayer.Record, error) {
	return rec, nil
}

// A Manager masks what its store opens, whether or not it is sealed.
func TestOpener_ClearParts(t *testing.T) {
	m := managerOf(t, clearStore{memory.New()})
	created := must(m.Create(t.Context(), withURLs("a", firstURL)))(t)
	expectMasked(t, created)
	view := m.Within(mustParse(t, "id=a"))
	expectURLs(t, view, "a", firstURL)
	if r, err := view.Get(t.Context(), "a"); err != nil || r.CustomRPCURLs[0].URL != firstURL {
		t.Errorf("Get returned %v and %v", urlsOf(r.CustomRPCURLs), err)
	}
}

// The values of headers are sealed with the URLs.
func TestSealed_Headers(t *testing.T) {
	ctx := t.Context()
	store := memory.New()
	m := managerOf(t, sealing(t, store, ringOf(t, "k1")))
	mustCreateDocument(t, m, evmBody(`"id":"r",`+keyHeader))
	rec := storedRecord(t, store, "r")
	if bytes.Contains(rec.Private, []byte("SECRET")) || len(rec.Private) == 0 {
		t.Errorf("the private part is %q", rec.Private)
	}
	if r, err := m.Get(ctx, "r"); err != nil || r.CustomRPCURLs[0].Headers["X-Key"] != "SECRET-1" {
		t.Errorf("opened %v, error %v", r, err)
	}
	listed, err := m.List(ctx, relayer.ListQuery{})
	if err != nil || !listed.Relayers[0].CustomRPCURLs[0].Headers["X-Key"].IsMasked() {
		t.Errorf("listed %v, error %v", listed.Relayers, err)
	}
	// Without the key the list is kept, or replaced whole.
	blind := managerOf(t, sealing(t, store, ringOf(t, "k2")))
	kept, err := blind.Update(ctx, "r", func(r *relayer.Relayer) error { r.Name = "x"; return nil })
	if err != nil || !kept.CustomRPCURLs[0].Headers["X-Key"].IsMasked() {
		t.Errorf("kept %v, error %v", kept, err)
	}
	_, err = blind.Update(ctx, "r", func(r *relayer.Relayer) error {
		r.CustomRPCURLs[0].URL, r.CustomRPCURLs[1].URL = "https://a.example/v2/KEY", "https://b.example"
		return nil
	})
	if !errors.Is(err, relayer.ErrSealed) {
		t.Errorf("full URLs with masked headers: error %v", err)
	}
	if r, err := m.Get(ctx, "r"); err != nil || r.CustomRPCURLs[0].Headers["X-Key"] != "SECRET-1" {
		t.Errorf("opened %v, error %v", r, err)
	}
}
