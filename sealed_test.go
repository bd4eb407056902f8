package relayer_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
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
		value := make([]byte, 32)
		copy(value, id)
		text += "key " + id + " " + base64.StdEncoding.EncodeToString(value) + "\n"
	}
	return must(keyring.Parse([]byte(text)))(t)
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
	return must(sealed.New(db, keys, options...))(t)
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

// The document is the same on a sealed store, so that clients see no difference.
func TestSealed_StoresNoURLInClear(t *testing.T) {
	s := newSealed(t)
	rec := storedRecord(t, s.store, "a")
	expectNoSecret(t, string(rec.Private)+string(rec.Document))
	if len(rec.Private) == 0 {
		t.Error("the record has no private part")
	}
	expectURLs(t, s.Manager, "a", firstURL, secondURL)
	if urls := urlsOf(mustGet(t, s.Manager, "a").CustomRPCURLs); !slices.Equal(urls, []string{firstURL, secondURL}) {
		t.Errorf("Get returned %q", urls)
	}
	mustCreate(t, s.Manager, minimal("none"))
	if rec := storedRecord(t, s.store, "none"); len(rec.Private) != 0 {
		t.Errorf("a relayer without URLs has the private part %q", rec.Private)
	}
	clear := newManager(t)
	mustCreate(t, clear, withURLs("a", firstURL, secondURL))
	if with, without := storedDocument(t, s.Manager, "a"), storedDocument(t, clear, "a"); with != without {
		t.Errorf("on a sealed store the document is\n%s\nand without\n%s", with, without)
	}
}

// hookedKeys call a function before each use, which can fail it.
type hookedKeys struct {
	keyring.Keyring
	before func(ctx context.Context, use string) error
}

func (k hookedKeys) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	if err := k.before(ctx, "seal"); err != nil {
		return nil, err
	}
	return k.Keyring.Seal(ctx, plaintext, associatedData)
}

func (k hookedKeys) Open(ctx context.Context, text, associatedData []byte) ([]byte, error) {
	if err := k.before(ctx, "open"); err != nil {
		return nil, err
	}
	return k.Keyring.Open(ctx, text, associatedData)
}

// away returns keys whose service does not respond.
func away(t testing.TB) sealed.Keys {
	return hookedKeys{ringOf(t, "k1"), func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}}
}

// needsNoSecret are operations that work on "a" without its key. Each changes it.
var needsNoSecret = []operation{
	(*relayer.Manager).Pause, (*relayer.Manager).Resume, disabling(relayer.DisabledReason{Type: relayer.NonceSyncFailed}), (*relayer.Manager).Enable,
	patching(`{"name":"patched","policies":{"eip1559_pricing":true}}`), patching(`{"name":"\"custom_rpc_urls\":\\"}`),
}

// A dry run and a create without URLs use no keys either.
func TestSealed_KeysNotUsedUnlessURLsChange(t *testing.T) {
	s := newSealed(t)
	unused := sealing(t, s.store, hookedKeys{ringOf(t, "k1"), func(_ context.Context, use string) error {
		t.Error("the keys are used to", use)
		return errors.New("forbidden")
	}})
	for name, m := range map[string]*relayer.Manager{
		"no sealed store": managerOf(t, s.store),
		"no keys":         managerOf(t, sealing(t, s.store, keyring.Keyring{})),
		"another key":     managerOf(t, sealing(t, s.store, ringOf(t, "k2"))),
		"keys are away":   managerOf(t, sealing(t, s.store, away(t))),
		"never used":      managerOf(t, unused),
		"with RPC policy": managerOf(t, unused, relayer.WithRPCPolicy(rpcguard.Policy{RefuseUserInfo: true})),
	} {
		t.Run(name, func(t *testing.T) {
			f := follow(t, m.Watch(t.Context(), relayer.WatchQuery{}))
			for i, call := range needsNoSecret {
				before := storedRecord(t, s.store, "a")
				expectMasked(t, must(call(m, t.Context(), "a"))(t))
				expectMasked(t, f.expect(relayer.ChangeUpdated, "a"))
				after := storedRecord(t, s.store, "a")
				if after.Revision == before.Revision || !bytes.Equal(after.Private, before.Private) {
					t.Errorf("operation %d: revision %d after %d; the private part changed: %t", i, after.Revision, before.Revision, !bytes.Equal(after.Private, before.Private))
				}
			}
			for _, r := range append(allOf(t, m, relayer.Selector{}), must(m.List(t.Context(), relayer.ListQuery{}))(t).Relayers...) {
				expectMasked(t, r)
			}
		})
	}
	m := managerOf(t, unused)
	mustSucceed(t, m.Delete(t.Context(), "a"))
	mustCreate(t, m, minimal("none"))
	expectMasked(t, must(m.Create(t.Context(), withURLs("b", firstURL), relayer.DryRun()))(t))
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
			calls := map[string]operation{
				"RPCURLs":                       operationsOn["RPC URLs"],
				"Update with an additional URL": updating(func(r *relayer.Relayer) { r.CustomRPCURLs = append(r.CustomRPCURLs, relayer.RPCConfig{URL: thirdURL}) }),
			}
			if !hasKeys {
				calls["Patch of the URLs"] = patching(`{"custom_rpc_urls":[{"url":"` + thirdURL + `"}]}`)
			}
			for operation, call := range calls {
				_, err := call(m, t.Context(), "a")
				if !errors.Is(err, relayer.ErrSealed) || !errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("%s: error %v does not match ErrSealed and ErrUnavailable", operation, err)
				}
				if errors.Is(err, errors.ErrUnsupported) == hasKeys {
					t.Errorf("%s: error %v must match ErrUnsupported only without keys", operation, err)
				}
				if hasKeys && !strings.Contains(err.Error(), "key k1: "+keyring.ErrUnknownKey.Error()) {
					t.Errorf("%s: error %v does not name the key k1", operation, err)
				}
			}
			_, err := m.Patch(t.Context(), "a", []byte(`{"custom_rpc_urls":[{"url":"https://first.example/***"},{"url":"ftp://x"}]}`))
			wantFields(t, fieldErrors(t, err), "custom_rpc_urls[0].url", "custom_rpc_urls[1].url")
			_, err = m.Documents().Patch(t.Context(), "a", fmt.Appendf(nil, `{"custom_rpc_urls":%s}`, must(json.Marshal(mustGet(t, m, "a").CustomRPCURLs))(t)))
			wantFields(t, fieldErrors(t, err), "custom_rpc_urls[0].url")
			expectMasked(t, mustGet(t, m, "a"))
			if after := storedRecord(t, s.store, "a"); after.Revision != before.Revision {
				t.Error("the record was changed")
			}
			expectMasked(t, must(updating(func(r *relayer.Relayer) {
				expectMasked(t, r)
				r.Name, r.CustomRPCURLs = "updated by "+name, slices.Clone(r.CustomRPCURLs)
			})(m, t.Context(), "a"))(t))
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
	must(m.Patch(t.Context(), "a", []byte(`{"custom_rpc_urls":[{"url":"`+thirdURL+`"},{"url":"https://second.example"}]}`)))(t)
	expectURLs(t, m, "a", thirdURL, "https://second.example")
	counts := must(store.Count(t.Context()))(t)
	if keys := slices.Collect(maps.Keys(counts.Keys)); len(keys) != 1 || keys[0].ID != "k2" || counts.Keys[keys[0]] != 1 || counts.Clear != 0 {
		t.Errorf("the counts are %+v", counts)
	}

	lost := managerOf(t, sealing(t, s.store, ringOf(t, "k4")))
	_, err := lost.Patch(t.Context(), "a", []byte(`{"custom_rpc_urls":[{"url":"`+thirdURL+`"}],"name":""}`))
	wantFields(t, fieldErrors(t, err), "name")
	expectURLs(t, m, "a", thirdURL, "https://second.example")

	for name, store := range map[string]relayer.Store{
		"no sealed store": s.store, "without keys": sealing(t, s.store, keyring.Keyring{}), "another key": sealing(t, s.store, ringOf(t, "k3")),
	} {
		mustCreate(t, s.Manager, withURLs(name[:2], firstURL))
		must(managerOf(t, store).Patch(t.Context(), name[:2], []byte(`{"custom_rpc_urls":null}`)))(t)
		if rec := storedRecord(t, s.store, name[:2]); len(rec.Private) != 0 {
			t.Errorf("%s: after clearing, the private part has %d bytes", name, len(rec.Private))
		}
	}
}

func TestSealed_CanceledOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	keys := hookedKeys{ringOf(t, "k1"), func(context.Context, string) error { cancel(); return ctx.Err() }}
	m := managerOf(t, sealing(t, newSealed(t).store, keys))
	_, err := m.Patch(ctx, "a", []byte(`{"custom_rpc_urls":[{"url":"`+thirdURL+`"}]}`), relayer.DryRun())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Members of the private part that a newer version added are kept.
func TestSealed_UnknownMembersKept(t *testing.T) {
	rec, store := newer["evm"], storeOf(t, newer["evm"])
	sealed := sealing(t, store, ringOf(t, "k1"))
	for _, err := range sealed.Reseal(t.Context()) {
		mustSucceed(t, err)
	}
	m := managerOf(t, sealed)
	opened := func() []string {
		return unknownOf(t, must(sealed.Open(t.Context(), storedRecord(t, store, rec.ID)))(t))
	}
	want := slices.DeleteFunc(opened(), func(member string) bool { return strings.HasPrefix(member, "custom_rpc_urls") })
	endpoints := must(m.RPCURLs(t.Context(), rec.ID))(t)
	must(m.Patch(t.Context(), rec.ID, patchOfURLs(t, append(endpoints, relayer.RPCConfig{URL: thirdURL}))))(t)
	if got := opened(); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the unknown members are %q, want %q", got, want)
	}
}

func storeOf(t *testing.T, records ...relayer.Record) *memory.Store {
	t.Helper()
	store := memory.New()
	for _, rec := range records {
		must(store.Create(t.Context(), rec))(t)
	}
	return store
}

// A private part that does not fit its document is damage for each read of full URLs and for Check.
// It prevents no change of the rest, and a patch of all URLs repairs it.
func TestPatch_DamagedPrivatePart(t *testing.T) {
	const first, second, third = `{"url":"` + firstURL + `","weight":100}`, `{"url":"` + secondURL + `","weight":100}`, `{"url":"` + thirdURL + `","weight":100}`
	for name, private := range map[string]string{
		"none":          "",
		"no JSON":       "{",
		"another kind":  `{"custom_rpc_urls":"` + firstURL + `"}`,
		"no URLs":       "{}",
		"a URL less":    `{"custom_rpc_urls":[` + first + `]}`,
		"a URL more":    `{"custom_rpc_urls":[` + first + `,` + second + `,` + third + `]}`,
		"another host":  `{"custom_rpc_urls":[` + first + `,` + third + `]}`,
		"another order": `{"custom_rpc_urls":[` + second + `,` + first + `]}`,
	} {
		for _, isSealing := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sealing=%t", name, isSealing), func(t *testing.T) {
				testDamagedPrivatePart(t, private, isSealing)
			})
		}
	}
}

func testDamagedPrivatePart(t *testing.T, private string, isSealing bool) {
	db := memory.New()
	var store relayer.Store = db
	if isSealing {
		store = sealing(t, db, ringOf(t, "k1"))
	}
	m := managerOf(t, store, refuseNothing)
	mustCreate(t, m, withURLs("a", firstURL, secondURL))
	damage := func() relayer.Record {
		return editRecord(t, db, "a", func(rec *relayer.Record) { rec.Private = []byte(private) })
	}
	rec := damage()
	expectCorrupt(t, "RPCURLs", rec, second(m.RPCURLs(t.Context(), "a")))
	if read, err := m.Documents().WithFullURLs().Get(t.Context(), "a"); err != nil || !errors.Is(read.SealError, relayer.ErrCorrupt) {
		t.Errorf("Get of full URLs returned %v, %v, want ErrCorrupt", read.SealError, err)
	}
	if got := checked(t, m); !slices.Equal(got, []string{"a private part"}) {
		t.Errorf("Check found %q", got)
	}
	for _, write := range []operation{(*relayer.Manager).Pause, patching(`{"name":"other"}`)} {
		expectMasked(t, must(write(m, t.Context(), "a"))(t))
	}
	if after := storedRecord(t, db, "a"); !isSealing && string(after.Private) != private {
		t.Errorf("the private part became %q", after.Private)
	}
	_, err := updating(func(r *relayer.Relayer) { r.CustomRPCURLs = r.CustomRPCURLs[:1] })(m, t.Context(), "a")
	expectCorrupt(t, "Update that keeps a URL", rec, err)
	for _, urls := range [][]string{{thirdURL}, nil} {
		damage()
		must(m.Documents().Patch(t.Context(), "a", patchOfURLs(t, withURLs("", urls...).CustomRPCURLs)))(t)
		expectURLs(t, m, "a", urls...)
	}
}

func TestSealed_Away(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSealed(t)
		m := managerOf(t, sealing(t, s.store, away(t)))
		for name, call := range map[string]operation{
			"RPCURLs": operationsOn["RPC URLs"],
			"Create": func(m *relayer.Manager, ctx context.Context, _ string, _ ...relayer.WriteOption) (*relayer.Relayer, error) {
				return m.Create(ctx, withURLs("b", firstURL))
			},
			"Patch": patching(`{"custom_rpc_urls":[{"url":"` + thirdURL + `"}]}`),
		} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := call(m, ctx, "a"); !errors.Is(err, relayer.ErrSealed) || !errors.Is(err, context.DeadlineExceeded) {
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
	"second list with the same masks": func(rec *relayer.Record) { // decoders that ignore case
		rec.Document = append(rec.Document[:len(rec.Document)-1:len(rec.Document)-1],
			`,"Custom_RPC_URLs":[{"url":"https://first.example/***","weight":100},{"url":"https://second.example","weight":100}]}`...)
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
			before := storedRecord(t, s.store, "a")
			rec := editRecord(t, s.store, "a", contradict)
			if bytes.Equal(rec.Document, before.Document) {
				t.Fatal("the document was not changed")
			}
			read := must(s.Documents().WithFullURLs().Get(t.Context(), "a"))(t)
			expectCorrupt(t, "Get", rec, read.SealError)
			if endpoints, err := s.RPCURLs(t.Context(), "a"); err == nil && strings.Contains(fmt.Sprintf("%+q", urlsOf(endpoints)), "evil") {
				t.Errorf("RPCURLs returned %q", urlsOf(endpoints))
			}
			must(s.List(t.Context(), relayer.ListQuery{}))(t)
			damaged := 0
			for id, err := range s.Check(t.Context()) {
				damaged++
				expectCorrupt(t, "Check of "+id, rec, err)
			}
			if isFound := damaged == 1; isFound == strings.HasSuffix(name, "same masks") { // which Check does not compare
				t.Errorf("Check found %d damaged relayers", damaged)
			}
			for _, url := range []string{thirdURL, thirdURL} { // replaced by another list, and by the same one
				must(s.Patch(t.Context(), "a", patchOfURLs(t, withURLs("", url).CustomRPCURLs)))(t)
				expectURLs(t, s.Manager, "a", url)
				editRecord(t, s.store, "a", contradict)
			}
		})
	}
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
			before, calls, uses := storedRecord(t, s.store, "a"), 0, make(map[string]int)
			m := managerOf(t, sealing(t, s.store, hookedKeys{ringOf(t, "k2", "k1"), func(_ context.Context, use string) error {
				uses[use]++
				return nil
			}}))
			var want []string
			updated, err := m.Update(t.Context(), "a", func(r *relayer.Relayer) error {
				if calls++; !slices.Equal(urlsOf(r.CustomRPCURLs), []string{firstURL, secondURL}) {
					t.Errorf("the function got %q", urlsOf(r.CustomRPCURLs))
				}
				test.change(r)
				want = urlsOf(r.CustomRPCURLs)
				return nil
			})
			mustSucceed(t, err)
			if calls != 1 || uses["open"] != 1 || uses["seal"] != test.seals {
				t.Errorf("%d calls and the uses %v, want 1, 1 open and %d seals", calls, uses, test.seals)
			}
			after := storedRecord(t, s.store, "a")
			if isKept := bytes.Equal(after.Private, before.Private); after.Revision == before.Revision || isKept != (test.seals == 0 && len(want) > 0) {
				t.Errorf("the private part is the same: %t", isKept)
			}
			if isChanged := slices.Contains(updated.LastChange.Changed, "custom_rpc_urls"); isChanged != (len(want) == 0 || test.seals > 0) {
				t.Errorf("the change has the paths %q", updated.LastChange.Changed)
			}
			expectURLs(t, m, "a", want...)
		})
	}
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
	if rec := storedRecord(t, store, "r"); bytes.Contains(rec.Private, []byte("SECRET")) || len(rec.Private) == 0 {
		t.Errorf("the private part is %q", rec.Private)
	}
	value := func(r *relayer.Relayer) relayer.Secret { return r.CustomRPCURLs[0].Headers["X-Key"] }
	if got := value(allOf(t, m, relayer.Selector{})[0]); !got.IsMasked() {
		t.Errorf("listed %q", got.Unmasked())
	}
	// Without the key the list is kept, or replaced whole.
	blind := managerOf(t, sealing(t, store, ringOf(t, "k2")))
	if kept := must(updating(func(r *relayer.Relayer) { r.Name = "x" })(blind, ctx, "r"))(t); !value(kept).IsMasked() {
		t.Errorf("kept %v", kept)
	}
	_, err := updating(func(r *relayer.Relayer) {
		r.CustomRPCURLs[0].URL, r.CustomRPCURLs[1].URL = "https://a.example/v2/KEY", "https://b.example"
	})(blind, ctx, "r")
	if !errors.Is(err, relayer.ErrSealed) {
		t.Errorf("full URLs with masked headers: error %v", err)
	}
	if got := value(mustGet(t, m, "r")); got != "SECRET-1" {
		t.Errorf("opened %q", got.Unmasked())
	}
}
