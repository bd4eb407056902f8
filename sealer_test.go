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
)

// ringOf returns a keyring with these keys. The value of a key depends only on its ID.
func ringOf(t testing.TB, primary string, others ...string) keyring.Keyring {
	t.Helper()
	text := "relayer-keyring 1\nprimary " + primary + "\n"
	for _, id := range append([]string{primary}, others...) {
		text += "key " + id + " " + keyValue(id) + "\n"
	}
	ring, err := keyring.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
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

// sealed is a store with the relayer "a", whose two URLs are sealed under the key "k1".
type sealed struct {
	store *memory.Store
	*relayer.Manager
}

func newSealed(t testing.TB) sealed {
	t.Helper()
	store := memory.New()
	m := managerOn(t, store, relayer.WithSealer(ringOf(t, "k1")))
	mustCreate(t, m, withURLs("a", firstURL, secondURL))
	return sealed{store, m}
}

func managerOn(t testing.TB, store relayer.Store, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	m, err := relayer.New(store, options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func storedRecord(t testing.TB, store relayer.Store, id string) relayer.Record {
	t.Helper()
	rec, err := store.Get(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
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

func TestSealer_StoresNoURLInClear(t *testing.T) {
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

// The document is the same with a sealer, so that clients see no difference.
func TestSealer_SameDocument(t *testing.T) {
	clear := newManager(t)
	mustCreate(t, clear, withURLs("a", firstURL, secondURL))
	s := newSealed(t)
	if with, without := storedDocument(t, s.Manager, "a"), storedDocument(t, clear, "a"); with != without {
		t.Errorf("with a sealer the document is\n%s\nand without\n%s", with, without)
	}
}

// forbidden is a sealer that fails the test if it is called.
type forbidden struct{ t *testing.T }

func (f forbidden) Seal(context.Context, []byte, []byte) ([]byte, error) {
	f.t.Error("Seal was called")
	return nil, errors.New("forbidden")
}

func (f forbidden) Open(context.Context, []byte, []byte) ([]byte, error) {
	f.t.Error("Open was called")
	return nil, errors.New("forbidden")
}

// away is a sealer whose service does not respond.
type away struct{}

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
	{"Update", func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) {
		return m.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = "updated"; return nil })
	}},
}

func TestSealer_NotCalledUnlessURLsChange(t *testing.T) {
	s := newSealed(t)
	for name, options := range map[string][]relayer.Option{
		"no sealer":       nil,
		"another key":     {relayer.WithSealer(ringOf(t, "k2"))},
		"sealer is away":  {relayer.WithSealer(away{})},
		"never called":    {relayer.WithSealer(forbidden{t})},
		"with RPC policy": {relayer.WithSealer(forbidden{t}), relayer.WithRPCPolicy(rpcguard.Policy{RefuseUserInfo: true})},
	} {
		t.Run(name, func(t *testing.T) {
			m := managerOn(t, s.store, options...)
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
			if _, err := m.Update(t.Context(), "a", func(r *relayer.Relayer) error { r.Name = "n"; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	if m := managerOn(t, s.store, relayer.WithSealer(forbidden{t})); m.Delete(t.Context(), "a") != nil {
		t.Error("the relayer was not deleted")
	}
}

func TestSealer_WatchMasked(t *testing.T) {
	s := newSealed(t)
	m := managerOn(t, s.store, relayer.WithSealer(forbidden{t}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := m.Watch(ctx, relayer.WatchQuery{})
	if _, err := m.Pause(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for change, err := range changes {
		if err != nil {
			t.Fatal(err)
		}
		expectMasked(t, change.Relayer)
		break
	}
}

// Only what needs the secret fails, with an error that names the key.
func TestSealer_MissingKey(t *testing.T) {
	s := newSealed(t)
	for name, options := range map[string][]relayer.Option{
		"no sealer":   nil,
		"another key": {relayer.WithSealer(ringOf(t, "k2"))},
	} {
		t.Run(name, func(t *testing.T) {
			m := managerOn(t, s.store, options...)
			before := storedRecord(t, s.store, "a")
			expectSealed := func(operation string, err error) {
				t.Helper()
				if !errors.Is(err, relayer.ErrSealed) || !errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("%s: error %v does not match ErrSealed and ErrUnavailable", operation, err)
				}
				if errors.Is(err, errors.ErrUnsupported) != (options == nil) {
					t.Errorf("%s: error %v must match ErrUnsupported only without a sealer", operation, err)
				}
				if options != nil && (!errors.Is(err, keyring.ErrUnknownKey) || !strings.Contains(err.Error(), "k1")) {
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
			if options == nil {
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
		})
	}
}

// If the key is lost, URLs can be replaced and cleared, but not kept.
func TestSealer_LostKey(t *testing.T) {
	s := newSealed(t)
	m := managerOn(t, s.store, relayer.WithSealer(ringOf(t, "k2")))
	body := `{"custom_rpc_urls":[{"url":"` + thirdURL + `"},{"url":"https://second.example"}]}`
	if _, err := m.Documents().Patch(t.Context(), "a", []byte(body)); err != nil {
		t.Fatal(err)
	}
	expectURLs(t, m, "a", thirdURL, "https://second.example")
	expectCounts(t, m, "0 map[k2:1]")

	lost := managerOn(t, s.store, relayer.WithSealer(ringOf(t, "k4")))
	_, err := lost.Documents().Patch(t.Context(), "a", []byte(`{"custom_rpc_urls":[{"url":"`+thirdURL+`"}],"name":""}`))
	if invalid, ok := errors.AsType[*relayer.ValidationError](err); !ok || invalid.Fields[0].Field != "name" {
		t.Errorf("an invalid replacement returned %v", err)
	}
	expectURLs(t, m, "a", thirdURL, "https://second.example")

	for name, options := range map[string][]relayer.Option{"no sealer": nil, "another key": {relayer.WithSealer(ringOf(t, "k3"))}} {
		mustCreate(t, s.Manager, withURLs(name[:2], firstURL))
		m := managerOn(t, s.store, options...)
		if _, err := m.Documents().Patch(t.Context(), name[:2], []byte(`{"custom_rpc_urls":null}`)); err != nil {
			t.Errorf("%s: clearing the URLs: %v", name, err)
		}
		if rec := storedRecord(t, s.store, name[:2]); len(rec.Private) != 0 {
			t.Errorf("%s: after clearing, the private part has %d bytes", name, len(rec.Private))
		}
	}
}

func TestSealer_UpdateOfURLs(t *testing.T) {
	s := newSealed(t)
	_, err := s.Update(t.Context(), "a", func(r *relayer.Relayer) error {
		r.CustomRPCURLs = append(r.CustomRPCURLs, relayer.RPCConfig{URL: thirdURL})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expectURLs(t, s.Manager, "a", firstURL, secondURL, thirdURL)
	_, err = s.Update(t.Context(), "a", func(r *relayer.Relayer) error {
		r.CustomRPCURLs = slices.Delete(r.CustomRPCURLs, 0, 1)
		r.CustomRPCURLs[0].Weight = new(5.0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expectURLs(t, s.Manager, "a", secondURL, thirdURL)
	expectNoSecret(t, string(storedRecord(t, s.store, "a").Private))
	if endpoints, _ := s.RPCURLs(t.Context(), "a"); *endpoints[0].Weight != 5 {
		t.Errorf("the weight is %v, want 5", *endpoints[0].Weight)
	}
}

func TestSealer_MaskedURLsRejected(t *testing.T) {
	s := newSealed(t)
	shown, err := s.Pause(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	before := storedRecord(t, s.store, "a")
	for _, urls := range [][]string{
		{"https://first.example/***", "https://second.example"},
		{shown.CustomRPCURLs[0].URL.Unmasked(), shown.CustomRPCURLs[1].URL.Unmasked()},
		{firstURL, "https://second.example/"},
		{thirdURL, "https://first.example/***"},
	} {
		var endpoints []relayer.RPCConfig
		for _, url := range urls {
			endpoints = append(endpoints, relayer.RPCConfig{URL: relayer.RPCURL(url)})
		}
		_, err := s.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"custom_rpc_urls": endpoints}))
		if !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("a patch with the URLs %q returned %v, want ErrInvalid", urls, err)
		}
	}
	if after := storedRecord(t, s.store, "a"); after.Revision != before.Revision {
		t.Error("the record was changed")
	}
}

// Sealing is randomized, but the same content is no change.
func TestSealer_SameContentIsNoChange(t *testing.T) {
	s := newSealed(t)
	before := storedRecord(t, s.store, "a")
	calls := map[string]func() (*relayer.Relayer, error){
		"same URLs": func() (*relayer.Relayer, error) {
			return s.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: firstURL}, {URL: secondURL}}}))
		},
		"empty patch": func() (*relayer.Relayer, error) { return s.Patch(t.Context(), "a", patchtest.JSON(map[string]any{})) },
		"empty update": func() (*relayer.Relayer, error) {
			return s.Update(t.Context(), "a", func(*relayer.Relayer) error { return nil })
		},
		"cloned list": func() (*relayer.Relayer, error) {
			return s.Update(t.Context(), "a", func(r *relayer.Relayer) error {
				r.CustomRPCURLs = slices.Clone(r.CustomRPCURLs)
				return nil
			})
		},
	}
	for name, call := range calls {
		if _, err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after := storedRecord(t, s.store, "a"); after.Revision != before.Revision || !bytes.Equal(after.Private, before.Private) {
			t.Errorf("%s: the record was changed", name)
		}
	}
}

// Members of the private part that a newer version added are kept.
func TestSealer_UnknownMembersKept(t *testing.T) {
	ring := ringOf(t, "k1")
	rec := newer["evm"]
	store := storeOf(t, rec)
	m := managerOn(t, store, relayer.WithSealer(ring))
	reseal(t, m)
	before := openedRecord(t, ring, store, rec.ID)
	endpoints, err := m.RPCURLs(t.Context(), rec.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Patch(t.Context(), rec.ID, patchtest.JSON(map[string]any{"name": "m", "custom_rpc_urls": append(endpoints, relayer.RPCConfig{URL: thirdURL})})); err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(unknownOf(t, before), func(member string) bool { return strings.HasPrefix(member, "custom_rpc_urls") })
	got := unknownOf(t, openedRecord(t, ring, store, rec.ID))
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the unknown members are %q, want %q", got, want)
	}
}

func openedRecord(t *testing.T, sealer relayer.Sealer, store relayer.Store, id string) relayer.Record {
	t.Helper()
	opened := storeOf(t, storedRecord(t, store, id))
	reseal(t, managerOn(t, opened, relayer.WithUnsealing(sealer)))
	return storedRecord(t, opened, id)
}

func storeOf(t *testing.T, records ...relayer.Record) *memory.Store {
	t.Helper()
	store := memory.New()
	for _, rec := range records {
		if _, err := store.Create(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// tamperings change what is stored of "a".
var tamperings = map[string]func(t *testing.T, s sealed, rec *relayer.Record){
	"truncated": func(_ *testing.T, _ sealed, rec *relayer.Record) { rec.Private = rec.Private[:len(rec.Private)-1] },
	"only mark": func(_ *testing.T, _ sealed, rec *relayer.Record) { rec.Private = rec.Private[:1] },
	"bit changed": func(_ *testing.T, _ sealed, rec *relayer.Record) {
		rec.Private[len(rec.Private)/2] ^= 1
	},
	"moved from another relayer": func(t *testing.T, s sealed, rec *relayer.Record) {
		mustCreate(t, s.Manager, withURLs("b", firstURL, secondURL))
		rec.Private = storedRecord(t, s.store, "b").Private
	},
}

func TestSealer_TamperedPart(t *testing.T) {
	for name, tamper := range tamperings {
		t.Run(name, func(t *testing.T) {
			s := newSealed(t)
			rec := storedRecord(t, s.store, "a")
			tamper(t, s, &rec)
			if _, err := s.store.Update(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			if _, err := s.RPCURLs(t.Context(), "a"); !errors.Is(err, relayer.ErrSealed) {
				t.Errorf("RPCURLs returned %v, want ErrSealed", err)
			}
			r, err := s.Get(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			expectMasked(t, r)
			if _, err := s.List(t.Context(), relayer.ListQuery{Page: 1, PerPage: 10}); err != nil {
				t.Error(err)
			}
			if _, err := s.Pause(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			if err := s.Delete(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A sealed part is not bound to a revision, because changes without its key carry it over.
// The older part of the same relayer is therefore accepted (docs/security.md says so).
func TestSealer_ReplayOfOlderRevision(t *testing.T) {
	s := newSealed(t)
	older := storedRecord(t, s.store, "a").Private
	if _, err := s.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: thirdURL}, {URL: thirdURL}}})); err != nil {
		t.Fatal(err)
	}
	rec := storedRecord(t, s.store, "a")
	rec.Private = older
	if _, err := s.store.Update(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	expectURLs(t, s.Manager, "a", firstURL, secondURL)
}

func TestSealer_Away(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSealed(t)
		m := managerOn(t, s.store, relayer.WithSealer(away{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, operation := range needsNoSecret {
			if _, err := operation.call(ctx, m); err != nil {
				t.Errorf("%s: %v", operation.name, err)
			}
		}
		if _, err := m.List(ctx, relayer.ListQuery{Page: 1, PerPage: 10}); err != nil || ctx.Err() != nil {
			t.Errorf("the list failed or waited: %v", err)
		}
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

func TestSealer_InvalidOptions(t *testing.T) {
	off := relayer.WithUnsealing(ringOf(t, "k1"))
	for name, options := range map[string][]relayer.Option{
		"nil":                       {relayer.WithSealer(nil)},
		"nil, unsealing":            {relayer.WithUnsealing(nil)},
		"nil pointer":               {relayer.WithSealer((*keyring.Keyring)(nil))},
		"keyring without keys":      {relayer.WithSealer(keyring.Keyring{})},
		"without keys, unsealing":   {relayer.WithUnsealing(keyring.Keyring{})},
		"unsealing and sealed only": {off, relayer.WithSealedOnly()},
		"sealed only and unsealing": {relayer.WithSealedOnly(), off},
	} {
		if _, err := relayer.New(memory.New(), options...); err == nil {
			t.Errorf("%s: New returned no error", name)
		}
	}
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

// Somebody without the key has stored URLs in clear.
func TestSealedOnly_ClearPart(t *testing.T) {
	for name, options := range map[string][]relayer.Option{
		"with a sealer":    {relayer.WithSealedOnly(), relayer.WithSealer(ringOf(t, "k1"))},
		"without a sealer": {relayer.WithSealedOnly()},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			mustCreate(t, managerOn(t, store), withURLs("a", firstURL, secondURL))
			m := managerOn(t, store, options...)
			rec := storedRecord(t, store, "a")
			expectCorrupt(t, "RPCURLs", rec, second(m.RPCURLs(t.Context(), "a")))
			for id, err := range m.Check(t.Context()) {
				expectCorrupt(t, "Check of "+id, rec, err)
			}
			for _, read := range []func() (*relayer.Relayer, error){
				func() (*relayer.Relayer, error) { return m.Get(t.Context(), "a") },
				func() (*relayer.Relayer, error) { return m.Pause(t.Context(), "a") },
				func() (*relayer.Relayer, error) {
					return m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": "m"}))
				},
			} {
				r, err := read()
				if err != nil {
					t.Fatal(err)
				}
				expectMasked(t, r)
			}
			if after := storedRecord(t, store, "a"); !bytes.Equal(after.Private, rec.Private) {
				t.Errorf("the private part is %q", after.Private)
			}
			_, err := m.Update(t.Context(), "a", func(r *relayer.Relayer) error {
				r.CustomRPCURLs = r.CustomRPCURLs[:1]
				return nil
			})
			expectCorrupt(t, "Update that keeps a URL", rec, err)
			if _, err := m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"custom_rpc_urls": nil})); err != nil {
				t.Errorf("removing the URLs: %v", err)
			}
			if _, err := m.RPCURLs(t.Context(), "a"); err != nil {
				t.Errorf("after the repair RPCURLs returned %v", err)
			}
		})
	}
}

func TestSealedOnly_NewURLsWithoutSealer(t *testing.T) {
	store := memory.New()
	m := managerOn(t, store, relayer.WithSealedOnly())
	if _, err := m.Create(t.Context(), withURLs("a", firstURL)); !errors.Is(err, relayer.ErrSealed) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Create returned %v, want ErrSealed and ErrUnsupported", err)
	}
	mustCreate(t, m, minimal("a"))
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
			if _, err := s.store.Update(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			read, err := s.Documents().WithFullURLs().Get(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
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

// FuzzSealedPart stores any bytes as the private part of a relayer.
func FuzzSealedPart(f *testing.F) {
	s := newSealed(f)
	rec := storedRecord(f, s.store, "a")
	f.Add(rec.Private)
	f.Add([]byte{1})
	f.Add([]byte("{}"))
	f.Add([]byte(`{"custom_rpc_urls":["https://x.example"]}`))
	f.Add([]byte{2, 3})
	f.Fuzz(func(t *testing.T, private []byte) {
		store := memory.New()
		changed := rec
		changed.Private = private
		if _, err := store.Create(t.Context(), changed); err != nil {
			t.Skip(err)
		}
		for _, option := range []relayer.Option{relayer.WithSealer(ringOf(t, "k1")), relayer.WithUnsealing(ringOf(t, "m2", "k1")), relayer.WithExclusiveSigners()} {
			m := managerOn(t, store, option)
			endpoints, err := m.RPCURLs(t.Context(), "a")
			if err == nil && len(private) > 0 && private[0] == 1 && !slices.Equal(urlsOf(endpoints), []string{firstURL, secondURL}) {
				t.Errorf("a sealed part that was never sealed has the URLs %q", urlsOf(endpoints))
			}
			// None of these panics.
			_, _ = m.Get(t.Context(), "a")
			_, _ = m.List(t.Context(), relayer.ListQuery{Page: 1, PerPage: 10})
			_, _ = m.Pause(t.Context(), "a")
			_, _ = m.CountSealed(t.Context())
		}
	})
}

func BenchmarkCreate_Sealing(b *testing.B) {
	body := evmBody(`"custom_rpc_urls":[{"url":"` + firstURL + `"},{"url":"` + thirdURL + `"}]`)
	for name, options := range map[string][]relayer.Option{"clear": nil, "sealed": {relayer.WithSealer(ringOf(b, "k1"))}} {
		b.Run(name, func(b *testing.B) {
			m := newManager(b, options...)
			for b.Loop() {
				mustCreateDocument(b, m, body)
			}
		})
	}
}

func BenchmarkGet_Sealing(b *testing.B) {
	for name, options := range map[string][]relayer.Option{"clear": nil, "sealed": {relayer.WithSealer(ringOf(b, "k1"))}} {
		b.Run(name, func(b *testing.B) {
			m := newManager(b, options...)
			mustCreate(b, m, withURLs("a", firstURL, secondURL))
			for b.Loop() {
				if _, err := m.Documents().Get(b.Context(), "a"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// brokenSealer is a sealer that fails.
type brokenSealer struct{ err error }

func (s brokenSealer) Seal(context.Context, []byte, []byte) ([]byte, error) { return nil, s.err }

func (s brokenSealer) Open(context.Context, []byte, []byte) ([]byte, error) { return nil, s.err }

// The error of a sealer says nothing about the request, and its URLs are masked.
func TestSealer_Fault(t *testing.T) {
	invalid := &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "key", Message: "Post https://vault.example/KEY: refused"}}}
	for _, fault := range []error{relayer.ErrExists, relayer.ErrNotFound, relayer.ErrOutcomeUnknown, invalid} {
		store := memory.New()
		req := withURLs("a", "https://rpc.example/v2/KEY")
		_, sealing := managerOn(t, store, relayer.WithSealer(brokenSealer{fault})).Create(t.Context(), req)
		mustCreate(t, managerOn(t, store, relayer.WithSealer(ringOf(t, "k1"))), req)
		_, opening := managerOn(t, store, relayer.WithSealer(brokenSealer{fault})).RPCURLs(t.Context(), "a")
		for name, err := range map[string]error{"sealing": sealing, "opening": opening} {
			_, isInvalid := errors.AsType[*relayer.ValidationError](err)
			if !errors.Is(err, relayer.ErrSealed) || errors.Is(err, fault) && fault != invalid || isInvalid || errors.Is(err, relayer.ErrInvalid) || strings.Contains(err.Error(), "KEY") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
