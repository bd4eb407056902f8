package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/plan"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
)

func TestNew_Actions(t *testing.T) {
	m := newManager(t)
	create(t, m, minimal("same"), minimal("changed"), minimal("moved"), minimal("other"))
	changed, moved := minimal("changed"), minimal("moved")
	changed.Name, moved.SignerID, moved.Network, moved.NetworkType = "new", "s2", "devnet", relayer.Solana
	desired := []relayer.CreateRequest{moved, minimal("new"), changed, minimal("same")}

	p := newPlan(t, m, desired)
	expectActions(t, p, plan.Blocked, plan.Create, plan.Update, plan.Unchanged, plan.Extra)
	expectChanges(t, p.Entries()[2], plan.Change{Path: "name", Old: `"n"`, New: `"new"`})
	if len(p.Entries()[0].Problems) != 4 || len(p.Entries()[0].Changes) > 0 || p.Err() == nil || !p.HasChanges() {
		t.Errorf("entry %+v, error %v", p.Entries()[0], p.Err())
	}
	expectActions(t, newPlan(t, m, desired, plan.Options{Prune: true}), plan.Blocked, plan.Create, plan.Update, plan.Unchanged, plan.Delete)

	unchanged := newPlan(t, m, []relayer.CreateRequest{minimal("same")})
	if unchanged.HasChanges() || unchanged.Err() != nil {
		t.Errorf("changes in %s", unchanged)
	}
}

// requestWith returns a minimal request with a difference.
func requestWith(id string, change func(*relayer.CreateRequest)) relayer.CreateRequest {
	req := minimal(id)
	change(&req)
	return req
}

// A plan shows the changes of each field, and makes the stored relayer equal to that of the file.
// Fields that the file omits are cleared, except the default of Solana.
func TestNew_Changes(t *testing.T) {
	labels := func(pairs map[string]string) relayer.CreateRequest {
		return requestWith("a", func(r *relayer.CreateRequest) { r.Labels = pairs })
	}
	settings := func(text string) relayer.CreateRequest {
		return requestWith("a", func(r *relayer.CreateRequest) { r.Settings = []byte(text) })
	}
	solana := func(policy relayer.SolanaPolicy) relayer.CreateRequest {
		return requestWith("a", func(r *relayer.CreateRequest) { r.NetworkType, r.Policy = relayer.Solana, &policy })
	}
	full := withURLs("a", "https://a.example/"+secret)
	full.NotificationID, full.Paused = "alerts", true
	full.Policy = &relayer.EVMPolicy{GasPriceCap: new(relayer.Gwei(100)), WhitelistReceivers: []string{}}
	for _, c := range []struct {
		stored, desired relayer.CreateRequest
		want            []plan.Change
	}{
		{full, minimal("a"), []plan.Change{
			{Path: "custom_rpc_urls", Old: `[{"url":"https://a.example/***","weight":100}]`},
			{Path: "notification_id", Old: `"alerts"`},
			{Path: "paused", Old: "true", New: "false"},
			{Path: "policies.gas_price_cap", Old: "100000000000"},
			{Path: "policies.whitelist_receivers", Old: "[]"},
		}},
		{solana(relayer.SolanaPolicy{
			FeePaymentStrategy: new(relayer.FeePaidByRelayer),
			SwapConfig:         &relayer.SolanaSwapConfig{CronSchedule: new("* * * * *"), MinBalanceThreshold: new(uint64(1))},
		}), solana(relayer.SolanaPolicy{SwapConfig: &relayer.SolanaSwapConfig{MinBalanceThreshold: new(uint64(2))}}), []plan.Change{
			{Path: "policies.fee_payment_strategy", Old: `"relayer"`, New: `"user"`},
			{Path: "policies.swap_config.cron_schedule", Old: `"* * * * *"`},
			{Path: "policies.swap_config.min_balance_threshold", Old: "1", New: "2"},
		}},
		{settings(`{"b":{"x":1,"y":[1]},"c":true}`), settings(` {"c":true, "b":{"y":[1],"x":1,"z":null}} `), nil},
		{settings(`{"n":"` + "\u00a0" + `€","l":[{"b":1.0,"a":2}]}`),
			settings(`{"l":[{"a":2,"b":1.0}],"n":"\u00a0€"}`), nil},
		{settings(`{"b":{"x":1,"y":[1]},"c":true}`), settings(`{"b":{"x":2,"z":"é"}}`), []plan.Change{
			{Path: "settings.b.x", Old: "1", New: "2"},
			{Path: "settings.b.y", Old: "[1]"},
			{Path: "settings.b.z", New: `"é"`},
			{Path: "settings.c", Old: "true"},
		}},
		{settings(`{"b":1}`), minimal("a"), []plan.Change{{Path: "settings", Old: `{"b":1}`}}},
		{labels(map[string]string{"kept": "1", "changed": "old", "team/removed": ""}), labels(map[string]string{"kept": "1", "changed": "new", "added": "x"}), []plan.Change{
			{Path: "labels.added", New: `"x"`},
			{Path: "labels.changed", Old: `"old"`, New: `"new"`},
			{Path: "labels.team/removed", Old: `""`},
		}},
		{labels(map[string]string{"kept": "1"}), minimal("a"), []plan.Change{{Path: "labels.kept", Old: `"1"`}}},
	} {
		m, want := newManager(t), newManager(t)
		create(t, m, c.stored)
		create(t, want, c.desired)
		expectNoChanges(t, m, parse(t, exported(t, m)).Relayers)
		p := newPlan(t, m, []relayer.CreateRequest{c.desired})
		expectChanges(t, p.Entries()[0], c.want...)
		mustApply(t, p)
		expectNoChanges(t, m, []relayer.CreateRequest{c.desired})
		if got := document(t, m, "a"); got != document(t, want, "a") {
			t.Errorf("stored %s, want %s", got, document(t, want, "a"))
		}
	}
}

func TestNew_KeepPaused(t *testing.T) {
	m := newManager(t)
	paused, running := minimal("paused"), minimal("running")
	paused.Paused = true
	create(t, m, paused, running)
	desired := []relayer.CreateRequest{minimal("paused"), running, minimal("new")}
	desired[1].Paused, desired[2].Paused = true, true

	expectActions(t, newPlan(t, m, desired), plan.Update, plan.Update, plan.Create)
	desired[0].Name = "renamed"
	p := newPlan(t, m, desired, plan.Options{KeepPaused: true})
	expectActions(t, p, plan.Update, plan.Unchanged, plan.Create)
	mustApply(t, p)
	if !get(t, m, "paused").Paused || get(t, m, "running").Paused || !get(t, m, "new").Paused {
		t.Error("paused of an existing relayer was changed, or that of a new one was not set")
	}
}

// Headers are compared like URLs: a plan sees a rotated value, and shows none.
func TestNew_Headers(t *testing.T) {
	with := func(url relayer.RPCURL, value relayer.Secret) relayer.CreateRequest {
		req := withURLs("a", url)
		req.CustomRPCURLs[0].Headers = map[string]relayer.Secret{"X-Key": value}
		return req
	}
	const url, shown = "https://rpc.example/key", `[{"url":"https://rpc.example/***","weight":100,"headers":{"X-Key":"***"}}]`
	m, served := newManager(t), newManager(t)
	for _, registry := range []relayer.Registry{m, sealedManager(t, memory.New(), keysOf(t, "k", keyText)), serve(t, served)} {
		create(t, registry, with(url, secret+"1"))
		expectActions(t, newPlan(t, registry, []relayer.CreateRequest{with(url, secret+"1")}), plan.Unchanged)
		expectActions(t, newPlan(t, registry, []relayer.CreateRequest{with("https://rpc.example/***", "***")}), plan.Unchanged)
		for _, masked := range []relayer.CreateRequest{with(url, "***"), with("https://rpc.example/***", secret+"1"), with("https://other.example/", "***")} {
			expectActions(t, newPlan(t, registry, []relayer.CreateRequest{masked}), plan.Blocked)
		}
		p := newPlan(t, registry, []relayer.CreateRequest{with(url, secret+"2")})
		expectChanges(t, p.Entries()[0], plan.Change{Path: "custom_rpc_urls", Old: shown, New: shown})
		encoded, err := json.Marshal(p.Entries())
		if text := fmt.Sprintf("%v %+v %s", p, p.Entries(), encoded); err != nil || strings.Contains(text, secret) {
			t.Errorf("the plan shows a header: %s, error %v", text, err)
		}
		mustApply(t, p)
		expectActions(t, newPlan(t, registry, []relayer.CreateRequest{with(url, secret+"2")}), plan.Unchanged)
		file := exported(t, registry)
		if strings.Contains(file, secret) || !strings.Contains(file, `"X-Key": "***"`) {
			t.Errorf("exported %s", file)
		}
		expectActions(t, newPlan(t, registry, parse(t, file).Relayers), plan.Unchanged)
	}
	r, err := m.RPCURLs(t.Context(), "a")
	if err != nil || r[0].Headers["X-Key"].Unmasked() != secret+"2" {
		t.Errorf("the registry has %v, error %v", r, err)
	}
}

// The registry compares full RPC URLs, so that a plan is exact on every registry, also about
// parts that it does not show.
func TestNew_FullURLs(t *testing.T) {
	const base = "https://rpc.example/"
	const stored = `[{"url":"https://rpc.example/***","weight":100},{"url":"https://b.example","weight":100}]`
	listed := func(url string, weight string) string {
		return `[{"url":"` + url + `","weight":` + weight + `},{"url":"https://b.example","weight":100}]`
	}
	for name, c := range map[string]struct {
		urls   []relayer.RPCURL
		weight float64
		want   string // the new list; empty if nothing changes
	}{
		"same":           {[]relayer.RPCURL{base + "1", "https://u:p@b.example"}, 100, ""},
		"hidden path":    {[]relayer.RPCURL{base + "2", "https://u:p@b.example"}, 100, stored},
		"hidden user":    {[]relayer.RPCURL{base + "1", "https://u:q@b.example"}, 100, stored},
		"visible part":   {[]relayer.RPCURL{"https://c.example", "https://u:p@b.example"}, 100, listed("https://c.example", "100")},
		"weight":         {[]relayer.RPCURL{base + "1", "https://u:p@b.example"}, 0.5, listed(base+"***", "0.5")},
		"fewer":          {[]relayer.RPCURL{base + "1"}, 100, `[{"url":"https://rpc.example/***","weight":100}]`},
		"other order":    {[]relayer.RPCURL{"https://u:p@b.example", base + "1"}, 100, `[{"url":"https://b.example","weight":100},{"url":"https://rpc.example/***","weight":100}]`},
		"none":           {nil, 100, ""},
		"masks are kept": {[]relayer.RPCURL{base + "***", "https://***@b.example"}, 100, ""},
		"of a server":    {[]relayer.RPCURL{base + "***", "https://b.example"}, 100, ""},
	} {
		t.Run(name, func(t *testing.T) {
			served := newManager(t)
			for _, registry := range []relayer.Registry{newManager(t), sealedManager(t, memory.New(), keysOf(t, "k", keyText)), serve(t, served)} {
				create(t, registry, withURLs("a", base+"1", "https://u:p@b.example"))
				desired := withURLs("a", c.urls...)
				for i := range c.urls[:min(1, len(c.urls))] {
					desired.CustomRPCURLs[i].Weight = &c.weight
				}
				p := newPlan(t, registry, []relayer.CreateRequest{desired})
				switch {
				case c.urls == nil:
					expectChanges(t, p.Entries()[0], plan.Change{Path: "custom_rpc_urls", Old: stored})
				case c.want == "":
					expectActions(t, p, plan.Unchanged)
				default:
					expectChanges(t, p.Entries()[0], plan.Change{Path: "custom_rpc_urls", Old: stored, New: c.want})
				}
				mustApply(t, p)
				expectActions(t, newPlan(t, registry, []relayer.CreateRequest{desired}), plan.Unchanged)
				full, err := registry.RPCURLs(t.Context(), "a")
				if _, isServed := registry.(*relayer.Manager); !isServed {
					full, err = served.RPCURLs(t.Context(), "a")
				}
				want := desired.CustomRPCURLs
				if strings.Contains(name, "of a server") || strings.Contains(name, "masks") {
					want = withURLs("a", base+"1", "https://u:p@b.example").CustomRPCURLs
				}
				if got := fmt.Sprint(texts(full)); err != nil || got != fmt.Sprint(texts(want)) {
					t.Errorf("%T: stored %s, error %v", registry, got, err)
				}
			}
		})
	}
}

// texts returns full URLs.
func texts(endpoints []relayer.RPCConfig) (all []string) {
	for _, endpoint := range endpoints {
		all = append(all, endpoint.URL.Unmasked())
	}
	return all
}

// A masked URL in a file keeps the stored URLs, or blocks the entry.
func TestNew_MaskedURLInFile(t *testing.T) {
	const mask, otherMask = "https://rpc.example/***", "https://b.example/***"
	m := newManager(t)
	create(t, m, withURLs("a", "https://rpc.example/"+secret, "https://b.example/"+secret, "wss://c.example"))
	moved := withURLs("a", mask, otherMask, "wss://c.example")
	moved.CustomRPCURLs[1].Weight = new(1.0)
	for name, c := range map[string]struct {
		desired relayer.CreateRequest
		want    []int // positions with a problem
	}{
		"same":                     {withURLs("a", mask, otherMask, "wss://c.example"), nil},
		"create":                   {withURLs("new", mask, "https://c.example"), []int{0}},
		"create, user information": {withURLs("new", "https://***@rpc.example"), []int{0}},
		"another host":             {withURLs("a", "https://other.example/***", otherMask, "wss://c.example"), []int{0, 1}},
		"longer path":              {withURLs("a", "https://rpc.example/v2/***", otherMask, "wss://c.example"), []int{0, 1}},
		"more":                     {withURLs("a", mask, otherMask, "wss://c.example", "wss://d.example"), []int{0, 1}},
		"fewer":                    {withURLs("a", mask, otherMask), []int{0, 1}},
		"other order":              {withURLs("a", otherMask, mask, "wss://c.example"), []int{0, 1}},
		"weight":                   {moved, []int{0, 1}},
		"one in full":              {withURLs("a", mask, "https://b.example/"+secret, "wss://c.example"), []int{0}},
	} {
		for _, registry := range []relayer.Registry{m, &remote{Registry: m}} {
			p := newPlan(t, registry, []relayer.CreateRequest{c.desired})
			var want []relayer.FieldError
			for _, i := range c.want {
				want = append(want, relayer.FieldError{Field: fmt.Sprintf("custom_rpc_urls[%d].url", i), Message: "must be the full URL, not the masked one that responses show"})
			}
			if got := p.Entries()[0].Problems; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: problems %+v, want %+v", name, got, want)
			}
			if isBlocked := p.Entries()[0].Action == plan.Blocked; isBlocked != (want != nil) || p.HasChanges() {
				t.Errorf("%s: %s", name, p)
			}
		}
	}
}

// A relayer without a revision is not changed, because that could overwrite the change of
// another writer.
func TestNew_NoRevisions(t *testing.T) {
	registry := &remote{Registry: newManager(t), withoutRevisions: true}
	create(t, registry, minimal("a"), minimal("b"), minimal("c"))
	p := newPlan(t, registry, []relayer.CreateRequest{minimal("a"), renamed("b"), minimal("d")}, plan.Options{Prune: true})
	const want = `! blocked b
    relayer: update b: relayer has no revision
+ create d
    name: "n"
    network: "sepolia"
    network_type: "evm"
    paused: false
    signer_id: "s"
! blocked c
    relayer: delete c: relayer has no revision
1 to create, 0 to update, 0 to delete, 1 unchanged, 2 blocked
`
	if got := p.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	many := &remote{Registry: newManager(t), withoutRevisions: true}
	create(t, many, fleet(40)...) // more than are tried at once
	for _, entry := range newPlan(t, many, nil, plan.Options{Prune: true, MaxDeletes: 40}).Entries() {
		if entry.Action != plan.Blocked {
			t.Fatalf("%s is %s", entry.ID, entry.Action)
		}
	}
}

// counting is a store that counts reads.
type counting struct {
	relayer.Store
	lists, gets atomic.Int64
}

func (c *counting) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	c.lists.Add(1)
	return c.Store.List(ctx, query)
}

func (c *counting) Get(ctx context.Context, id string) (relayer.Record, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, id)
}

// A plan of 300 relayers reads the pages once, and in the dry run the relayers that differ or
// have full RPC URLs.
func TestNew_OnePassOfPages(t *testing.T) {
	store := &counting{Store: memory.New()}
	m := must(relayer.New(store))(t)
	desired := fleet(300)
	create(t, m, desired...)
	masked := parse(t, exported(t, m)).Relayers
	for gets, relayers := range map[int64][]relayer.CreateRequest{300: desired, 1: masked} {
		relayers[150].Name = "new"
		store.lists.Store(0)
		store.gets.Store(0)
		p := newPlan(t, m, relayers)
		if store.lists.Load() > 4 || store.gets.Load() != gets || !p.HasChanges() {
			t.Errorf("%d lists, %d gets, want at most 4 and %d", store.lists.Load(), store.gets.Load(), gets)
		}
	}
}

func TestNew_InvalidInput(t *testing.T) {
	m := newManager(t)
	if _, err := plan.New(t.Context(), nil, nil, plan.Options{}); err == nil {
		t.Error("nil registry: no error")
	}
	unencodable := withURLs("c", "https://x.example")
	unencodable.CustomRPCURLs[0].Weight = new(math.NaN())
	notUTF8 := minimal("d")
	notUTF8.Name = "\xff"
	_, err := plan.New(t.Context(), m, nil, plan.Options{Selector: relayer.Selector{}.Where("owner", "ci")})
	expectProblems(t, err, relayer.FieldError{Field: "owner", Message: "is not a known key of a selector"})
	_, err = plan.New(t.Context(), m, []relayer.CreateRequest{minimal("a"), minimal(""), minimal("a"), {ID: "b"}, unencodable, notUTF8}, plan.Options{})
	expectAllProblems(t, err, []relayer.FieldError{
		{Field: "relayers[1].id", Message: "is required"},
		{Field: "relayers[2].id", Message: "must be unique: relayers[0] has the same"},
		{Field: "relayers[3].name", Message: "must not be empty"},
		{Field: "relayers[3].network", Message: "must not be empty"},
		{Field: "relayers[3].network_type", Message: "must not be empty"},
		{Field: "relayers[3].signer_id", Message: "must not be empty"},
		{Field: "relayers[4].custom_rpc_urls[0].weight", Message: "must be a finite number, and not -0"},
		{Field: "relayers[5].name", Message: "must be UTF-8"},
	})
}

// A create shows every field, with the hidden parts of its URLs masked.
func TestPlan_String(t *testing.T) {
	m := newManager(t)
	moved := requestWith("moved", func(r *relayer.CreateRequest) { r.SignerID = "s2" })
	create(t, m, withURLs("a", "https://old.example/"+secret), withURLs("b", "https://b.example/"+secret), minimal("moved"), minimal("same"), minimal("extra"))
	changed := withURLs("a", "https://new.example/"+secret)
	changed.Name, changed.NotificationID = "\x1b[2J\u202e\u009b", "alerts"
	full := withURLs("new", "https://"+secret+"@a.example", "https://b.example/"+secret)
	full.NotificationID, full.Paused, full.CustomRPCURLs[1].Weight = "alerts\x1b", true, new(0.0)
	full.Policy = &relayer.EVMPolicy{GasPriceCap: new(relayer.MustParseAmount("7")), WhitelistReceivers: []string{}}
	desired := []relayer.CreateRequest{changed, withURLs("b", "https://b.example/other"+secret), full, moved, minimal("same")}
	const want = `~ update a
    custom_rpc_urls: [{"url":"https://old.example/***","weight":100}] -> [{"url":"https://new.example/***","weight":100}]
    name: "n" -> "\u001b[2J��"
    notification_id: (not set) -> "alerts"
~ update b
    custom_rpc_urls: [{"url":"https://b.example/***","weight":100}] (a hidden part differs)
+ create new
    custom_rpc_urls: [{"url":"https://a.example","weight":100},{"url":"https://b.example/***","weight":0}]
    name: "n"
    network: "sepolia"
    network_type: "evm"
    notification_id: "alerts\u001b"
    paused: true
    policies.gas_price_cap: 7
    policies.whitelist_receivers: []
    signer_id: "s"
! blocked moved
    signer_id: cannot be changed
? extra extra (not in the file: kept)
1 to create, 2 to update, 0 to delete, 1 unchanged, 1 extra, 1 blocked
`
	if got := newPlan(t, m, desired).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// No form in which a plan or a configuration is printed shows the hidden part of a URL.
func TestPrint_NoSecrets(t *testing.T) {
	m := newManager(t)
	create(t, m, withURLs("a", "https://old.example/"+secret, "https://b.example/"+secret), withURLs("extra", "https://u:"+secret+"@x.example"))
	desired := []relayer.CreateRequest{withURLs("a", "https://new.example/"+secret), withURLs("new", "https://c.example/"+secret), withURLs("m", "https://c.example/"+secret+"/***")}
	p := newPlan(t, m, desired, plan.Options{Prune: true})
	config := parse(t, publicConfig)
	for _, value := range []any{p, *p, p.Entries(), config, *config, p.Err()} {
		encoded, err := json.Marshal(value)
		if _, isConfig := value.(*plan.Config); err != nil && !isConfig {
			t.Error(err)
		}
		text := fmt.Sprintf("%v %+v %#v %s %q %d %s", value, value, value, value, value, value, encoded)
		if strings.Contains(text, secret) {
			t.Errorf("secret in %s", text)
		}
	}
}

// shared is a registry that returns its own relayers.
type shared struct {
	relayer.Registry
	relayers []*relayer.Relayer
}

func (s *shared) All(context.Context, relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		for _, r := range s.relayers {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// rejecting is a registry that rejects every create.
type rejecting struct{ shared }

func (r *rejecting) Create(context.Context, relayer.CreateRequest, ...relayer.WriteOption) (*relayer.Relayer, error) {
	return nil, &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "x\x1b", Message: "is wrong\x1b\nextra"}}}
}

// A server can send any text, which must not control the terminal or look like another line.
func TestPlan_String_ControlCharacters(t *testing.T) {
	registry := &rejecting{shared{newManager(t), []*relayer.Relayer{{ID: "a\x1b\nb", Name: "n"}}}}
	const want = `! blocked new
    x�: is wrong��extra
? extra a��b (not in the file: kept)
0 to create, 0 to update, 0 to delete, 0 unchanged, 1 extra, 1 blocked
`
	if got := newPlan(t, registry, []relayer.CreateRequest{minimal("new")}).String(); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// The relayers of a registry are not changed.
func TestNew_SharedRelayers(t *testing.T) {
	m := newManager(t)
	create(t, m, withURLs("a", "https://a.example/"+secret), withURLs("b", "https://b.example/"+secret))
	registry := &shared{Registry: m, relayers: []*relayer.Relayer{get(t, m, "a"), get(t, m, "b")}}
	registry.relayers[1].CustomRPCURLs[0].URL = "https://b.example/***"
	newPlan(t, registry, []relayer.CreateRequest{withURLs("a", "https://c.example/")})
	must(plan.Export(t.Context(), registry, relayer.Selector{}))(t)
	if got := string(registry.relayers[0].CustomRPCURLs[0].URL); got != "https://a.example/"+secret {
		t.Errorf("the URL of the registry is %s", got)
	}
}

func TestExport_Format(t *testing.T) {
	m := newManager(t)
	most := must(relayer.ParseAmount("115792089237316195423570985008687907853269984665640564039457584007913129639935"))(t)
	first := withURLs("z", "https://a.example/"+secret+"?a=1&b=<>")
	first.Name, first.Policy = "<&>", &relayer.EVMPolicy{MinBalance: &most}
	create(t, m, first, minimal("a"))
	const want = `{
  "relayers": [
    {
      "id": "z",
      "name": "<&>",
      "network": "sepolia",
      "network_type": "evm",
      "paused": false,
      "signer_id": "s",
      "custom_rpc_urls": [
        {
          "url": "https://a.example/***",
          "weight": 100
        }
      ],
      "policies": {
        "min_balance": "115792089237316195423570985008687907853269984665640564039457584007913129639935"
      }
    },
    {
      "id": "a",
      "name": "n",
      "network": "sepolia",
      "network_type": "evm",
      "paused": false,
      "signer_id": "s",
      "policies": {}
    }
  ]
}
`
	masked, err := plan.Export(t.Context(), m, relayer.Selector{})
	if err != nil || string(masked) != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, masked, want)
	}
	if empty, err := plan.Export(t.Context(), newManager(t), relayer.Selector{}); err != nil || string(empty) != "{\n  \"relayers\": []\n}\n" {
		t.Errorf("error %v, got %s", err, empty)
	}
}

// A relayer that a newer version has stored would make the whole file invalid.
func TestExport_NewerRelayer(t *testing.T) {
	for document, want := range map[string]string{
		`"network_type":"fictional","policies":{"max_sats":1}`:                           "network_type must be one of evm,",
		`"network_type":"solana","policies":{"swap_config":{"strategy":"later-swap"}}`:   "policies.swap_config.strategy must be one of",
		`"network_type":"solana","policies":{"fee_payment_strategy":"user","later":"x"}`: "",
	} {
		store := memory.New()
		m := must(relayer.New(store))(t)
		record := relayer.Record{ID: "a", Document: []byte(`{"id":"a","name":"n","network":"x","signer_id":"s",` + document + `}`)}
		must(store.Create(t.Context(), record))(t)
		if want == "" {
			expectNoChanges(t, m, parse(t, exported(t, m)).Relayers)
			continue
		}
		file, err := plan.Export(t.Context(), m, relayer.Selector{})
		if !errors.Is(err, relayer.ErrInvalid) || !strings.Contains(err.Error(), "the relayer a: ") || !strings.Contains(err.Error(), want) || file != nil {
			t.Errorf("%s: file %s, error %v", document, file, err)
		}
	}
}

func expectNoChanges(t *testing.T, registry relayer.Registry, relayers []relayer.CreateRequest) {
	t.Helper()
	if p := newPlan(t, registry, relayers, plan.Options{Prune: true}); p.HasChanges() || p.Err() != nil {
		t.Errorf("changes:\n%s", p)
	}
}

// An export or a plan without a damaged relayer would remove it.
func TestExport_DamagedRecord(t *testing.T) {
	store := memory.New()
	must(store.Create(t.Context(), relayer.Record{ID: "a", Document: []byte("{")}))(t)
	m := must(relayer.New(store))(t)
	create(t, m, minimal("b"))
	if file, err := plan.Export(t.Context(), m, relayer.Selector{}); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("Export: %s, error %v", file, err)
	}
	if p, err := plan.New(t.Context(), m, nil, plan.Options{}); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("New: %+v, error %v", p, err)
	}
}

const (
	sealedPath = "https://a.example/" + secret
	sealedHost = "https://b.example/"

	otherKeyText = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY="

	keyText = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
)

// keysOf returns a keyring of one key.
func keysOf(t *testing.T, id, value string) keyring.Keyring {
	t.Helper()
	return must(keyring.Parse([]byte("relayer-keyring 1\nprimary " + id + "\nkey " + id + " " + value + "\n")))(t)
}

func sealedManager(t *testing.T, db relayer.Store, keys sealed.Keys) *relayer.Manager {
	t.Helper()
	return must(relayer.New(must(sealed.New(db, keys))(t)))(t)
}

// sealedManagers returns Managers of one store, without its key and with another one.
// The relayer "a" in the store has two sealed URLs.
func sealedManagers(t *testing.T) (without, wrong *relayer.Manager) {
	t.Helper()
	store := memory.New()
	create(t, sealedManager(t, store, keysOf(t, "k", keyText)), withURLs("a", sealedPath, sealedHost))
	return must(relayer.New(store))(t), sealedManager(t, store, keysOf(t, "k", otherKeyText))
}

// Without the key a plan does not claim that URLs are unchanged.
func TestNew_SealedURLs(t *testing.T) {
	without, wrong := sealedManagers(t)
	same := withURLs("a", sealedPath, sealedHost)
	stored := parse(t, exported(t, without)).Relayers[0]
	renamed := stored
	renamed.Name = "renamed"
	otherKey := withURLs("a", sealedPath+"2", sealedHost)
	otherHost := withURLs("a", sealedPath, "https://c.example/")
	for name, c := range map[string]struct {
		manager *relayer.Manager
		desired relayer.CreateRequest
		want    plan.Action
	}{
		"same, without the key":          {without, same, plan.Blocked},
		"same, with the wrong key":       {wrong, same, plan.Update}, // it replaces what cannot be opened
		"hidden part, without the key":   {without, otherKey, plan.Blocked},
		"visible part, without the key":  {without, otherHost, plan.Blocked},
		"exported, without the key":      {without, stored, plan.Unchanged},
		"another field, without the key": {without, renamed, plan.Update},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlan(t, c.manager, []relayer.CreateRequest{c.desired})
			// A wrapper has the same relayers.
			if wrapped := newPlan(t, struct{ relayer.Registry }{c.manager}, []relayer.CreateRequest{c.desired}); wrapped.String() != p.String() {
				t.Errorf("the plan of a wrapped Manager is\n%s\nand that of the Manager\n%s", wrapped, p)
			}
			if got := p.Entries()[0].Action; got != c.want {
				t.Errorf("the action is %s, want %s\n%v", got, c.want, p)
			}
			if strings.Contains(p.String(), secret) {
				t.Errorf("the plan has a secret:\n%v", p)
			}
		})
	}
}

// A URL without a hidden part is exported as it is stored.
func TestExport_UserInformation(t *testing.T) {
	m := newManager(t)
	create(t, m, withURLs("a", "https://user:"+secret+"@rpc.example", "https://"+secret+"@rpc.example:8545/path", "https://@c.example/", "HTTPS://Public.example/"))
	file := exported(t, m)
	for _, want := range []string{`"https://***@rpc.example"`, `"https://***@rpc.example:8545/***"`, `"https://***@c.example/"`, `"HTTPS://Public.example/"`} {
		if !strings.Contains(file, want) {
			t.Errorf("no %s in %s", want, file)
		}
	}
	desired := parse(t, file).Relayers
	expectNoChanges(t, m, desired)
	expectNoChanges(t, &remote{Registry: m}, desired)

	// The file does not create a relayer without the user information.
	p := newPlan(t, newManager(t), desired)
	expectActions(t, p, plan.Blocked)
	if got := len(p.Entries()[0].Problems); got != 3 {
		t.Errorf("%d problems, want 3: %s", got, p)
	}
}

// User information is removed with its endpoint, because a Manager takes the URL without
// it for a mask.
func TestNew_UserInformationRemoved(t *testing.T) {
	const full = "https://user:" + secret + "@rpc.example"
	for _, bare := range []relayer.RPCURL{"https://rpc.example", "https://rpc.example/"} {
		m := newManager(t)
		create(t, m, withURLs("a", full, "https://b.example"))
		without := []relayer.CreateRequest{withURLs("a", bare, "https://b.example")}
		p := newPlan(t, m, without)
		expectActions(t, p, plan.Blocked)
		if got := p.Entries()[0].Problems; len(got) != 1 || got[0].Field != "custom_rpc_urls[0].url" {
			t.Errorf("problems %v", got)
		}
		for _, urls := range [][]relayer.RPCURL{{"https://b.example"}, {bare, "https://b.example"}} {
			mustApply(t, newPlan(t, m, []relayer.CreateRequest{withURLs("a", urls...)}))
		}
		if got := texts(get(t, m, "a").CustomRPCURLs); !slices.Equal(got, []string{string(bare), "https://b.example"}) {
			t.Errorf("stored %q", got)
		}
	}
}

// For all pairs of URLs: an exported file has no changes, and without one of its endpoints it
// removes exactly that one or is blocked.
func TestExport_EveryPair(t *testing.T) {
	urls := []relayer.RPCURL{
		"https://h.example", "https://v@h.example", "https://h.example/1", "https://h.example/2", "https://u:p@h.example/3", "HTTPS://h.example/",
		"https://0123456789abcdefghij.a.h.example", "https://u:p@0123456789abcdefghij.a.h.example/6",
	}
	blocked, removed := 0, 0
	for i := range len(urls) * len(urls) {
		pair := []relayer.RPCURL{urls[i/len(urls)], urls[i%len(urls)]}
		m := newManager(t)
		create(t, m, withURLs("a", pair...))
		file := exported(t, m)
		expectNoChanges(t, m, parse(t, file).Relayers)
		for left := range pair {
			desired := parse(t, file).Relayers
			desired[0].CustomRPCURLs = slices.Delete(desired[0].CustomRPCURLs, 1-left, 2-left)
			p := newPlan(t, m, desired)
			if p.Entries()[0].Action == plan.Blocked {
				blocked++
				continue
			}
			removed++
			copied := newManager(t)
			create(t, copied, withURLs("a", pair...))
			mustApply(t, newPlan(t, copied, desired))
			if got := texts(get(t, copied, "a").CustomRPCURLs); !slices.Equal(got, []string{string(pair[left])}) {
				t.Fatalf("%q with only the endpoint %d: stored %q", []string{string(pair[0]), string(pair[1])}, left, got)
			}
		}
	}
	if blocked == 0 || removed == 0 {
		t.Errorf("%d files were blocked, and %d removed an endpoint", blocked, removed)
	}
}
