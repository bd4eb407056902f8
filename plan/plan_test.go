package plan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
	"github.com/go-relayer/relayer/store/memory"
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
	if len(p.Entries()[0].Problems) != 3 || len(p.Entries()[0].Changes) > 0 || p.Err() == nil || !p.HasChanges() {
		t.Errorf("entry %+v, error %v", p.Entries()[0], p.Err())
	}
	expectActions(t, newPlan(t, m, desired, plan.Options{Prune: true}), plan.Blocked, plan.Create, plan.Update, plan.Unchanged, plan.Delete)

	unchanged := newPlan(t, m, []relayer.CreateRequest{minimal("same")})
	if unchanged.HasChanges() || unchanged.Err() != nil {
		t.Errorf("changes in %s", unchanged)
	}
}

// Fields that the file omits are cleared, except the default of Solana.
func TestNew_OmittedFields(t *testing.T) {
	m := newManager(t)
	full := withURLs("a", "https://a.example/"+secret)
	full.NotificationID, full.Paused = "alerts", true
	cap := relayer.Gwei(100)
	full.Policy = &relayer.EVMPolicy{GasPriceCap: &cap, WhitelistReceivers: []string{}}
	solana := minimal("b")
	solana.NetworkType, solana.Policy = relayer.Solana, &relayer.SolanaPolicy{
		FeePaymentStrategy: new(relayer.FeePaidByRelayer),
		SwapConfig:         &relayer.SolanaSwapConfig{CronSchedule: new("* * * * *"), MinBalanceThreshold: new(uint64(1))},
	}
	create(t, m, full, solana)

	bare := minimal("b")
	bare.NetworkType, bare.Policy = relayer.Solana, &relayer.SolanaPolicy{SwapConfig: &relayer.SolanaSwapConfig{MinBalanceThreshold: new(uint64(2))}}
	desired := []relayer.CreateRequest{minimal("a"), bare}
	p := newPlan(t, m, desired)
	expectActions(t, p, plan.Update, plan.Update)
	expectChanges(t, p.Entries()[0],
		plan.Change{Path: "notification_id", Old: `"alerts"`},
		plan.Change{Path: "paused", Old: "true", New: "false"},
		plan.Change{Path: "policies.gas_price_cap", Old: "100000000000"},
		plan.Change{Path: "policies.whitelist_receivers", Old: "[]"},
		plan.Change{Path: "custom_rpc_urls[0]", Old: `{"url":"https://a.example/***","weight":100}`})
	expectChanges(t, p.Entries()[1],
		plan.Change{Path: "policies.fee_payment_strategy", Old: `"relayer"`, New: `"user"`},
		plan.Change{Path: "policies.swap_config.cron_schedule", Old: `"* * * * *"`},
		plan.Change{Path: "policies.swap_config.min_balance_threshold", Old: "1", New: "2"})
	mustApply(t, p)
	expectActions(t, newPlan(t, m, desired), plan.Unchanged, plan.Unchanged)
	if got := get(t, m, "a"); got.NotificationID != "" || got.CustomRPCURLs != nil || !reflect.DeepEqual(got.Policy, new(relayer.EVMPolicy)) {
		t.Errorf("got %v", got)
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

func TestNew_FullURLs(t *testing.T) {
	const base = "https://rpc.example/"
	for name, c := range map[string]struct {
		urls    []relayer.RPCURL
		changes []plan.Change
	}{
		"same":         {[]relayer.RPCURL{base + "1", "https://u:p@b.example", "wss://c.example"}, nil},
		"masked":       {[]relayer.RPCURL{base + "***", "https://***@b.example", "wss://c.example"}, nil},
		"hidden part":  {[]relayer.RPCURL{base + "2", "https://***@b.example", "wss://c.example"}, []plan.Change{{Path: "custom_rpc_urls[0].url", Old: `"` + base + `***"`, New: `"` + base + `***"`}}},
		"visible part": {[]relayer.RPCURL{base + "1", "https://***@b.example", "wss://d.example"}, []plan.Change{{Path: "custom_rpc_urls[2].url", Old: `"wss://c.example"`, New: `"wss://d.example"`}}},
		"fewer and masked": {[]relayer.RPCURL{base + "***", "https://u:p@b.example"}, []plan.Change{
			{Path: "custom_rpc_urls[2]", Old: `{"url":"wss://c.example","weight":100}`}}},
		"more": {[]relayer.RPCURL{base + "***", "https://***@b.example", "wss://c.example", base + "4"}, []plan.Change{
			{Path: "custom_rpc_urls[3]", New: `{"url":"` + base + `***","weight":100}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t)
			create(t, m, withURLs("a", base+"1", "https://u:p@b.example", "wss://c.example"))
			p := newPlan(t, m, []relayer.CreateRequest{withURLs("a", c.urls...)})
			expectChanges(t, p.Entries()[0], c.changes...)
			mustApply(t, p)
			expectActions(t, newPlan(t, m, []relayer.CreateRequest{withURLs("a", c.urls...)}), plan.Unchanged)
			if second := get(t, m, "a").CustomRPCURLs[1].URL; string(second) != "https://u:p@b.example" {
				t.Errorf("the mask of a URL replaced it: %s", string(second))
			}
		})
	}
}

func TestNew_Weights(t *testing.T) {
	const url = "https://rpc.example/" + secret
	for name, registry := range map[string]relayer.Registry{"full": newManager(t), "masked": &remote{Registry: newManager(t)}} {
		create(t, registry, withURLs("a", url))
		desired := withURLs("a", url)
		desired.CustomRPCURLs[0].Weight = new(0.5)
		p := newPlan(t, registry, []relayer.CreateRequest{desired})
		expectChanges(t, p.Entries()[0], plan.Change{Path: "custom_rpc_urls[0].weight", Old: "100", New: "0.5"})
		mustApply(t, p)
		if got := newPlan(t, registry, []relayer.CreateRequest{desired}); got.HasChanges() {
			t.Errorf("%s: after an apply: %s", name, got)
		}
	}
}

// A masked URL that the registry cannot complete blocks its entry.
func TestNew_MaskedURLInFile(t *testing.T) {
	const mask = "https://rpc.example/***"
	m := newManager(t)
	create(t, m, withURLs("a", "https://rpc.example/"+secret, "https://b.example/"+secret))
	differs := relayer.FieldError{Field: "custom_rpc_urls[0].url", Message: "must be the full URL: it is masked, and differs from the stored one"}
	partial := relayer.FieldError{Field: "custom_rpc_urls[0].url", Message: "must be the full URL: a change of one endpoint writes all"}
	for name, c := range map[string]struct {
		registry relayer.Registry
		desired  relayer.CreateRequest
		want     []relayer.FieldError
	}{
		"create":                     {m, withURLs("new", mask), []relayer.FieldError{differs}},
		"another host":               {m, withURLs("a", "https://other.example/***"), []relayer.FieldError{differs}},
		"more":                       {m, withURLs("a", mask, "https://b.example/***", "https://c.example/***"), []relayer.FieldError{{Field: "custom_rpc_urls[2].url", Message: differs.Message}}},
		"longer path":                {m, withURLs("a", "https://rpc.example/v2/***"), []relayer.FieldError{differs}},
		"user information":           {m, withURLs("a", "https://***@rpc.example/***"), []relayer.FieldError{differs}},
		"create, user information":   {m, withURLs("new", "https://***@rpc.example"), []relayer.FieldError{differs}},
		"masked registry":            {&remote{Registry: m}, withURLs("a", "https://other.example/***"), []relayer.FieldError{differs}},
		"masked registry, unchanged": {&remote{Registry: m}, withURLs("a", mask, "https://b.example/***"), nil},
		"masked registry, one full":  {&remote{Registry: m}, withURLs("a", mask, "https://c.example"), []relayer.FieldError{partial}},
	} {
		p := newPlan(t, c.registry, []relayer.CreateRequest{c.desired})
		if got := p.Entries()[0].Problems; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: problems %+v, want %+v", name, got, c.want)
		}
		if isBlocked := p.Entries()[0].Action == plan.Blocked; isBlocked != (c.want != nil) || p.HasChanges() {
			t.Errorf("%s: %s", name, p)
		}
	}
}

func TestNew_MaskedRegistry(t *testing.T) {
	m := newManager(t)
	stored := withURLs("a", "https://rpc.example/old")
	create(t, m, stored, minimal("b"))
	registry := &remote{Registry: m}
	desired := []relayer.CreateRequest{withURLs("a", "https://rpc.example/new"), minimal("b")}

	p := newPlan(t, registry, desired)
	expectActions(t, p, plan.Unchanged, plan.Unchanged)
	if !p.Entries()[0].MaskedURLs || p.Entries()[1].MaskedURLs {
		t.Errorf("entries %+v", p.Entries())
	}

	// A change of another field does not write the URLs.
	desired[0].Name = "new"
	mustApply(t, newPlan(t, registry, desired))
	if got := get(t, m, "a"); got.Name != "new" || string(got.CustomRPCURLs[0].URL) != "https://rpc.example/old" {
		t.Errorf("name %s, URL %s", got.Name, string(got.CustomRPCURLs[0].URL))
	}

	p = newPlan(t, registry, desired, plan.Options{SendRPCURLs: true})
	expectActions(t, p, plan.Update, plan.Unchanged)
	expectChanges(t, p.Entries()[0], plan.Change{Path: "custom_rpc_urls[0].url", Old: `"https://rpc.example/***"`, New: `"https://rpc.example/***"`})
	mustApply(t, p)
	if url := get(t, m, "a").CustomRPCURLs[0].URL; string(url) != "https://rpc.example/new" {
		t.Errorf("URL %s", string(url))
	}

	// A masked file has no URLs to send.
	desired[0].CustomRPCURLs[0].URL = "https://rpc.example/***"
	expectActions(t, newPlan(t, registry, desired[:1], plan.Options{SendRPCURLs: true}), plan.Unchanged, plan.Extra)
}

// A relayer without a revision is not changed, because that could overwrite the change of
// another writer.
func TestNew_NoRevisions(t *testing.T) {
	registry := &remote{Registry: newManager(t), withoutRevisions: true}
	create(t, registry, minimal("a"), minimal("b"), minimal("c"))
	renamed := minimal("b")
	renamed.Name = "new"
	p := newPlan(t, registry, []relayer.CreateRequest{minimal("a"), renamed, minimal("d")}, plan.Options{Prune: true})
	const want = `! blocked b
    the registry returns no revision, so that a change could overwrite that of another writer
+ create d
    name: "n", network: "sepolia", network_type: "evm", paused: false, signer_id: "s"
! blocked c
    the registry returns no revision, so that a change could overwrite that of another writer
1 to create, 0 to update, 0 to delete, 1 unchanged, 2 blocked
`
	if got := p.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// counting is a store that counts reads.
type counting struct {
	relayer.Store
	lists, gets int
}

func (c *counting) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	c.lists++
	return c.Store.List(ctx, query)
}

func (c *counting) Get(ctx context.Context, id string) (relayer.Record, error) {
	c.gets++
	return c.Store.Get(ctx, id)
}

// A plan of 1,000 relayers reads the pages once, and in the dry run the relayer that differs.
func TestNew_OnePassOfPages(t *testing.T) {
	store := &counting{Store: memory.New()}
	m, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	var desired []relayer.CreateRequest
	for i := range 1000 {
		desired = append(desired, withURLs(fmt.Sprint("r", i), relayer.RPCURL(fmt.Sprint("https://rpc.example/", i))))
	}
	create(t, m, desired...)
	desired[500].Name = "new"
	for name, registry := range map[string]relayer.Registry{"full": m, "masked": &remote{Registry: m}} {
		store.lists, store.gets = 0, 0
		p := newPlan(t, registry, desired)
		if store.lists > 12 || store.gets != 1 || !p.HasChanges() {
			t.Errorf("%s: %d lists, %d gets, want at most 12 and 1", name, store.lists, store.gets)
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
	_, err := plan.New(t.Context(), m, []relayer.CreateRequest{minimal("a"), minimal(""), minimal("a"), {ID: "b"}, unencodable, notUTF8}, plan.Options{})
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

func TestPlan_String(t *testing.T) {
	m := newManager(t)
	moved := minimal("moved")
	moved.SignerID = "s2"
	create(t, m, withURLs("a", "https://old.example/"+secret, "https://b.example/"+secret), minimal("moved"), minimal("same"), minimal("extra"))
	changed := withURLs("a", "https://new.example/"+secret, "https://b.example/other"+secret)
	changed.Name, changed.NotificationID = "\x1b[2J\u202e\u009b", "alerts"
	desired := []relayer.CreateRequest{changed, withURLs("new", "https://c.example/"+secret), moved, minimal("same")}
	const want = `~ update a
    name: "n" -> "\u001b[2J\u202e\u009b"
    notification_id: (not set) -> "alerts"
    custom_rpc_urls[0].url: "https://old.example/***" -> "https://new.example/***"
    custom_rpc_urls[1].url: "https://b.example/***" (the hidden part differs)
+ create new
    name: "n", network: "sepolia", network_type: "evm", paused: false, signer_id: "s"
    custom_rpc_urls[0]: {"url":"https://c.example/***","weight":100}
! blocked moved
    signer_id: must not be changed from "s" to "s2": delete the relayer first
? extra extra (not in the file: kept)
1 to create, 1 to update, 0 to delete, 1 unchanged, 1 extra, 1 blocked
`
	if got := newPlan(t, m, desired).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const wantMasked = `~ update a
    custom_rpc_urls[0].url: "https://old.example/***" (the hidden part may differ)
    custom_rpc_urls[1].url: "https://b.example/***" (the hidden part may differ)
- delete moved
- delete same
- delete extra
0 to create, 1 to update, 3 to delete, 0 unchanged
the RPC URLs of 1 relayer are masked: only their visible part was compared
`
	masked := newPlan(t, &remote{Registry: m}, []relayer.CreateRequest{withURLs("a", "https://old.example/x", "https://b.example/x")}, plan.Options{Prune: true, SendRPCURLs: true})
	if got := masked.String(); got != wantMasked {
		t.Errorf("got\n%s\nwant\n%s", got, wantMasked)
	}
}

// No form in which a plan or a configuration is printed shows the hidden part of a URL.
func TestPrint_NoSecrets(t *testing.T) {
	m := newManager(t)
	create(t, m, withURLs("a", "https://old.example/"+secret, "https://b.example/"+secret), withURLs("extra", "https://u:"+secret+"@x.example"))
	desired := []relayer.CreateRequest{withURLs("a", "https://new.example/"+secret), withURLs("new", "https://c.example/"+secret), withURLs("m", "https://c.example/"+secret+"/***")}
	p := newPlan(t, m, desired, plan.Options{Prune: true})
	config := parse(t, publicConfig)
	var texts []string
	for _, value := range []any{p, *p, p.Entries(), config, *config, p.Err()} {
		texts = append(texts, fmt.Sprintf("%v %+v %#v %s %q %d", value, value, value, value, value, value))
		encoded, err := json.Marshal(value)
		if _, isConfig := value.(*plan.Config); err != nil && !isConfig {
			t.Error(err)
		}
		texts = append(texts, string(encoded))
	}
	for _, text := range texts {
		if strings.Contains(text, secret) {
			t.Errorf("secret in %s", text)
		}
	}
}

func TestPlan_JSON(t *testing.T) {
	m := newManager(t)
	moved := minimal("moved")
	create(t, m, withURLs("a", "https://old.example/"+secret), moved)
	changed := withURLs("a", "https://new.example/"+secret)
	changed.NotificationID = "<alerts>"
	moved.SignerID = "s2"
	p := newPlan(t, m, []relayer.CreateRequest{changed, moved})
	const want = `{"entries":[{"id":"a","action":"update","changes":[{"path":"notification_id","new":"\"<alerts>\""},` +
		`{"path":"custom_rpc_urls[0].url","old":"\"https://old.example/***\"","new":"\"https://new.example/***\""}]},` +
		`{"id":"moved","action":"blocked","problems":[{"field":"signer_id","message":"must not be changed from \"s\" to \"s2\": delete the relayer first"}]}]}`
	for _, value := range []any{p, *p} {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil || strings.TrimSpace(text.String()) != want {
			t.Errorf("error %v, got\n%s\nwant\n%s", err, &text, want)
		}
	}
	unchecked, err := json.Marshal(newPlan(t, &withoutDryRuns{newManager(t), errors.ErrUnsupported}, []relayer.CreateRequest{minimal("a")}))
	if err != nil || !strings.HasSuffix(string(unchecked), `"unchecked":true}`) {
		t.Errorf("error %v, got %s", err, unchecked)
	}
	results, err := json.Marshal([]plan.Result{{ID: "a", Action: plan.Update}, {ID: "b", Action: plan.Create, Err: relayer.ErrExists}})
	if want := `[{"id":"a","action":"update"},{"id":"b","action":"create","error":"relayer already exists"}]`; err != nil || string(results) != want {
		t.Errorf("error %v, got %s, want %s", err, results, want)
	}
}

// shared is a registry that returns its own relayers, with marked URLs that it does not open.
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

func (*shared) RPCURLs(context.Context, string) ([]relayer.RPCConfig, error) {
	return nil, errors.ErrUnsupported
}

// The relayers of a registry are not changed.
func TestNew_SharedRelayers(t *testing.T) {
	m := newManager(t)
	create(t, m, withURLs("a", "https://a.example/"+secret), withURLs("b", "https://b.example/"+secret))
	registry := &shared{Registry: m, relayers: []*relayer.Relayer{get(t, m, "a"), get(t, m, "b")}}
	registry.relayers[1].CustomRPCURLs[0].URL = "https://b.example/***"
	newPlan(t, registry, []relayer.CreateRequest{withURLs("a", "https://c.example/")})
	if _, err := plan.Export(t.Context(), registry, relayer.Selector{}); err != nil {
		t.Fatal(err)
	}
	if got := string(registry.relayers[0].CustomRPCURLs[0].URL); got != "https://a.example/"+secret {
		t.Errorf("the URL of the registry is %s", got)
	}
}
