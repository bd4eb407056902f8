//go:build unix

package sealing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/plan"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
	"github.com/go-relayer/relayer/store/transfer"
)

// The URLs of the relayer "a": the current one, an earlier one, the one of another database
// with the same keys, and one that a writer without the keys made up.
const (
	ownURL     = "https://rpc.example/own"
	earlierURL = "https://rpc.example/earlier"
	stagingURL = "https://rpc.example/staging"
	forgedURL  = "https://rpc.example/forged"
)

// outcomes are what operations return. Masked is the relayer with masked URLs, and sealed and
// corrupt are errors that match ErrSealed and ErrCorrupt.
type outcomes map[string]string

// forgeries are what a writer to the database without the keys can put in place of a sealed
// part, and what each operation returns with Only.
var forgeries = []struct {
	name  string
	forge func(f *fixture) []byte
	want  outcomes
}{
	{"none", func(f *fixture) []byte { return f.part("a") }, opened("own")},
	{"earlier revision", func(f *fixture) []byte { return f.earlier }, opened("earlier")},
	{"another database", func(f *fixture) []byte { return f.partOfOtherDatabase(f.key) }, opened("staging")},
	{"clear", func(*fixture) []byte { return []byte(`{"custom_rpc_urls":[{"url":"` + forgedURL + `","weight":100}]}`) },
		refused("corrupt", "corrupt", "1 clear")},
	{"swapped", func(f *fixture) []byte { return f.part("b") }, refused("sealed", "sealed", "ok")},
	{"truncated", func(f *fixture) []byte { p := f.part("a"); return p[:len(p)-1] }, refused("sealed", "sealed", "ok")},
	{"other key of the same name", func(f *fixture) []byte { return f.partOfOtherDatabase(f.otherKey) },
		refused("sealed", "nothing: sealed", "sealed")},
}

// opened are the outcomes of a part that the keys open.
func opened(url string) outcomes {
	return outcomes{
		"get": url, "list": "masked", "list in full": url, "stream": "masked", "stream in full": url,
		"reveal": url, "check": "ok", "count": "ok", "export": "masked", "export in full": url,
		"copy": "same", "reseal": "ok", "patch of the name": "masked", "patch of a weight": "masked", "new URLs": "own",
	}
}

// refused are the outcomes of a part whose URLs are not returned.
func refused(err, reseal, count string) outcomes {
	return outcomes{
		"get": "masked", "list": "masked", "list in full": "masked: " + err, "stream": "masked", "stream in full": "masked: " + err,
		"reveal": err, "check": err, "count": count, "export": "masked", "export in full": err,
		"copy": "same", "reseal": reseal, "patch of the name": "masked", "patch of a weight": err, "new URLs": "own",
	}
}

// operations are in an order in which none changes what the next one finds, except the last.
var operations = []struct {
	name string
	run  func(f *fixture) string
}{
	{"get", func(f *fixture) string { return relayerOutcome(f.m.Get(f.t.Context(), "a")) }},
	{"list", func(f *fixture) string {
		page, err := f.m.List(f.t.Context(), relayer.ListQuery{})
		if err != nil {
			return outcome("", err)
		}
		return relayerOutcome(page.Relayers[0], nil)
	}},
	{"list in full", func(f *fixture) string {
		page, err := f.m.Documents().WithFullURLs().List(f.t.Context(), relayer.ListQuery{})
		if err != nil {
			return outcome("", err)
		}
		if page.Documents[1].SealError != nil {
			f.t.Errorf("the forged part of a has the effect %v on b", page.Documents[1].SealError)
		}
		return documentOutcome(page.Documents[0])
	}},
	{"stream", func(f *fixture) string {
		for change, err := range f.m.Watch(f.t.Context(), relayer.WatchQuery{After: f.toggled()}) {
			return relayerOutcome(change.Relayer, err)
		}
		return "ended"
	}},
	{"stream in full", func(f *fixture) string {
		for change, err := range f.m.Documents().WithFullURLs().Watch(f.t.Context(), relayer.WatchQuery{After: f.toggled()}) {
			if err != nil {
				return outcome("", err)
			}
			return documentOutcome(change.Document)
		}
		return "ended"
	}},
	{"reveal", func(f *fixture) string {
		endpoints, err := f.m.RPCURLs(f.t.Context(), "a")
		return outcome(fmt.Sprintf("%+q", urlsOf(endpoints)), err)
	}},
	{"check", func(f *fixture) string {
		for id, err := range f.m.Check(f.t.Context()) {
			f.expectID(id, err)
			return outcome("ok", err)
		}
		return "ok"
	}},
	{"count", func(f *fixture) string {
		counts, err := f.m.store.Count(f.t.Context())
		if err == nil && counts.Clear > 0 {
			return fmt.Sprint(counts.Clear, " clear")
		}
		return outcome("ok", err)
	}},
	{"export", func(f *fixture) string {
		file, err := plan.Export(f.t.Context(), f.m.Manager, relayer.Selector{}.Where("id", "a"))
		return outcome(string(file), err)
	}},
	{"copy", func(f *fixture) string {
		copied := memory.New()
		if err := transfer.Copy(f.t.Context(), copied, f.store); err != nil {
			return outcome("", err)
		}
		if string(get(f.t, copied, "a").Private) != string(f.part("a")) {
			return "changed"
		}
		return "same"
	}},
	{"reseal", func(f *fixture) string { return f.reseal() }},
	{"patch of the name", func(f *fixture) string {
		return relayerOutcome(f.m.Patch(f.t.Context(), "a", []byte(`{"name":"patched"}`)))
	}},
	{"patch of a weight", func(f *fixture) string {
		return relayerOutcome(f.m.Update(f.t.Context(), "a", func(r *relayer.Relayer) error {
			r.CustomRPCURLs[0].Weight = new(7.0)
			return nil
		}))
	}},
	{"new URLs", func(f *fixture) string {
		if _, err := f.m.Patch(f.t.Context(), "a", patchOf(relayer.RPCConfig{URL: ownURL})); err != nil {
			return outcome("", err)
		}
		return relayerOutcome(f.m.Get(f.t.Context(), "a"))
	}},
}

// fixture is a store with the sealed relayers "a" and "b".
type fixture struct {
	t             *testing.T
	store         relayer.Store
	key, otherKey keyring.Keyring // with the same name
	m             sealedManager
	earlier       []byte
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, store: memory.New(), key: ringWith(t, "k1", "value"), otherKey: ringWith(t, "k1", "other")}
	f.m = f.manager(f.key)
	for _, id := range []string{"a", "b"} {
		f.create(f.m, id, earlierURL)
	}
	f.earlier = f.part("a")
	mustGet(f.m.Patch(t.Context(), "a", patchOf(relayer.RPCConfig{URL: ownURL})))(t)
	return f
}

func (f *fixture) manager(ring keyring.Keyring) sealedManager {
	m := mustGet(managerWith(f.store, ring, sealed.Only()))(f.t)
	return m
}

func (f *fixture) create(m sealedManager, id, url string) {
	f.t.Helper()
	mustGet(m.Create(f.t.Context(), definition(id, []relayer.RPCConfig{{URL: relayer.RPCURL(url)}})))(f.t)
}

func (f *fixture) part(id string) []byte { return get(f.t, f.store, id).Private }

// partOfOtherDatabase returns the part of a relayer with the ID "a".
func (f *fixture) partOfOtherDatabase(ring keyring.Keyring) []byte {
	other := &fixture{t: f.t, store: memory.New()}
	other.create(other.manager(ring), "a", stagingURL)
	return other.part("a")
}

// write stores a private part, as a program without the keys does.
func (f *fixture) write(private []byte) {
	f.t.Helper()
	rec := get(f.t, f.store, "a")
	rec.Private = private
	mustGet(f.store.Update(f.t.Context(), rec))(f.t)
}

// toggled changes whether the relayer is paused, and returns the position before the change.
func (f *fixture) toggled() (position string) {
	f.t.Helper()
	page, err := f.m.List(f.t.Context(), relayer.ListQuery{})
	if err == nil && page.Relayers[0].Paused {
		_, err = f.m.Resume(f.t.Context(), "a")
	} else if err == nil {
		_, err = f.m.Pause(f.t.Context(), "a")
	}
	must(f.t, err)
	return page.Position
}

// reseal rotates to a new key. The key of the fixture remains primary in f.m.
func (f *fixture) reseal() string {
	f.t.Helper()
	before := f.part("b")
	result := "ok"
	for id, err := range f.manager(ringWith(f.t, "k2", "new", "k1", "value")).store.Reseal(f.t.Context()) {
		switch {
		case err != nil && id == "":
			result = "nothing: " + outcome("", err)
			f.expectFingerprints(err)
		case err != nil:
			f.expectID(id, err)
			result = outcome("", err)
		}
	}
	if isSame := string(before) == string(f.part("b")); isSame != strings.HasPrefix(result, "nothing") {
		f.t.Errorf("reseal returned %s; the part of b is the same: %t", result, isSame)
	}
	f.m = f.manager(ringWith(f.t, "k2", "new", "k1", "value"))
	return result
}

// expectID checks that damage is reported with the ID of the relayer.
func (f *fixture) expectID(id string, err error) {
	f.t.Helper()
	if id != "a" {
		f.t.Errorf("the error of %q is %v", id, err)
	}
	if corrupt, isCorrupt := errors.AsType[*relayer.CorruptError](err); isCorrupt && (corrupt.ID != "a" || corrupt.Sequence != get(f.t, f.store, "a").Sequence) {
		f.t.Errorf("the damage is of %q with the sequence %d", corrupt.ID, corrupt.Sequence)
	}
}

func (f *fixture) expectFingerprints(err error) {
	f.t.Helper()
	for _, ring := range []keyring.Keyring{f.key, f.otherKey} {
		if fingerprint := ring.Keys()[0].Fingerprint; !strings.Contains(err.Error(), fingerprint) {
			f.t.Errorf("the error does not have the fingerprint %s: %v", fingerprint, err)
		}
	}
}

func get(t *testing.T, store relayer.Store, id string) relayer.Record {
	t.Helper()
	rec := mustGet(store.Get(t.Context(), id))(t)
	rec.Private = append([]byte(nil), rec.Private...)
	return rec
}

func urlsOf(endpoints []relayer.RPCConfig) (urls []string) {
	for _, endpoint := range endpoints {
		urls = append(urls, endpoint.URL.Unmasked())
	}
	return urls
}

func relayerOutcome(r *relayer.Relayer, err error) string {
	if err != nil {
		return outcome("", err)
	}
	return outcome(fmt.Sprintf("%+q", urlsOf(r.CustomRPCURLs)), nil)
}

func documentOutcome(document relayer.Document) string {
	text := outcome(string(document.JSON), nil)
	if document.SealError != nil {
		text += ": " + outcome("", document.SealError)
	}
	return text
}

func outcome(text string, err error) string {
	switch {
	case errors.Is(err, relayer.ErrCorrupt) && !errors.Is(err, relayer.ErrSealed):
		return "corrupt"
	case errors.Is(err, relayer.ErrSealed) && !errors.Is(err, relayer.ErrCorrupt):
		return "sealed"
	case err != nil:
		return err.Error()
	}
	for name, url := range map[string]string{"own": ownURL, "earlier": earlierURL, "staging": stagingURL, "forged": forgedURL} {
		if strings.Contains(text, url) {
			return name
		}
	}
	if strings.Contains(text, "/***") {
		return "masked"
	}
	return text
}

func TestForgedPart_EveryOperation(t *testing.T) {
	t.Parallel()
	for _, forgery := range forgeries {
		t.Run(forgery.name, func(t *testing.T) {
			f := newFixture(t)
			f.write(forgery.forge(f))
			for _, operation := range operations {
				if got, want := operation.run(f), forgery.want[operation.name]; got != want {
					t.Errorf("%s: %s, want %s", operation.name, got, want)
				}
			}
		})
	}
}

// Without Only a part in clear is returned, and the next reseal makes it genuine.
func TestForgedPart_ClearIsAcceptedWithoutOnly(t *testing.T) {
	f := newFixture(t)
	f.write([]byte(`{"custom_rpc_urls":[{"url":"` + forgedURL + `","weight":100}]}`))
	lax := mustGet(managerWith(f.store, ringWith(t, "k2", "new", "k1", "value")))(t)
	lax.reseal(t)
	f.m = f.manager(ringWith(t, "k2", "new"))
	if got := relayerOutcome(f.m.Get(t.Context(), "a")); got != "forged" {
		t.Errorf("the URL is %s, want the forged one", got)
	}
}
