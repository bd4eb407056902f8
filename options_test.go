package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/memory"
)

func TestExclusiveSigners_OneRelayerPerSigner(t *testing.T) { eachStore(t, testExclusiveSigners) }

func testExclusiveSigners(t *testing.T, store relayer.Store) {
	m := managerOf(t, store, relayer.WithExclusiveSigners())
	for round := range 20 {
		var creators sync.WaitGroup
		errs := make([]error, 32)
		for i := range errs {
			creators.Go(func() { _, errs[i] = m.Create(t.Context(), minimal(fmt.Sprintf("r-%d", i))) })
		}
		creators.Wait()
		var winners []string
		for i, err := range errs {
			if err == nil {
				winners = append(winners, fmt.Sprintf("r-%d", i))
				continue
			}
			wantFields(t, fieldErrors(t, err), "signer_id")
		}
		if len(winners) != 1 {
			t.Fatalf("round %d: %q have the signer, want one", round, winners)
		}
		must(m.Pause(t.Context(), winners[0]))(t)
		if _, err := m.Create(t.Context(), minimal("late")); !errors.Is(err, relayer.ErrInvalid) {
			t.Fatalf("round %d: after an update the signer was free: %v", round, err)
		}
		mustSucceed(t, m.Delete(t.Context(), winners[0]))
	}

	mustCreate(t, m, minimal("taken"))
	for name, change := range map[string]func(*relayer.CreateRequest){
		"another network":      func(r *relayer.CreateRequest) { r.Network = "mainnet" },
		"another network type": func(r *relayer.CreateRequest) { r.NetworkType = relayer.Solana },
		"another signer":       func(r *relayer.CreateRequest) { r.SignerID = "t" },
		"names run together":   func(r *relayer.CreateRequest) { r.Network, r.SignerID = "sepolia1", ":s" },
		"names too long":       func(r *relayer.CreateRequest) { r.SignerID = strings.Repeat("s", 10_000) },
		"a sharp s":            func(r *relayer.CreateRequest) { r.Network = "straße" },
	} {
		other := minimal("")
		change(&other)
		if _, err := m.Create(t.Context(), other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, same := range []struct{ network, signer string }{{"Sepolia", "s"}, {" sepolia\u00a0", "s"}, {"sepolia", "\ts "}, {"STRASSE", "s"}} {
		other := minimal("")
		other.Network, other.SignerID = same.network, same.signer
		wantFields(t, fieldErrors(t, second(m.Create(t.Context(), other))), "signer_id")
	}
	if _, err := m.Create(t.Context(), minimal("taken")); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("a taken ID, too: %v", err)
	}
}

// Two relayers that shared a signer before signers became exclusive can still be
// paused, which is the first step to resolve it.
func TestExclusiveSigners_SharedBefore(t *testing.T) {
	store := memory.New()
	lenient := managerOf(t, store)
	strict := managerOf(t, store, relayer.WithExclusiveSigners())
	for _, id := range []string{"first", "second"} {
		mustCreate(t, lenient, minimal(id))
	}
	for _, id := range []string{"first", "second"} {
		must(strict.Pause(t.Context(), id))(t)
	}
	must(strict.Create(t.Context(), minimal("third"), relayer.DryRun()))(t) // neither has the signer
	for _, id := range []string{"first", "second"} {
		must(strict.Patch(t.Context(), id, []byte(`{"name":"m"}`)))(t)
	}
	// The first relayer that was changed has the signer now.
	if _, err := strict.Create(t.Context(), minimal("third")); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("creating a third: %v", err)
	}
	mustSucceed(t, strict.Delete(t.Context(), "first"))
	must(strict.Patch(t.Context(), "second", []byte(`{"name":"n"}`)))(t)
	if _, err := strict.Create(t.Context(), minimal("third")); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("creating a third after the second has claimed the signer: %v", err)
	}
}

func TestNew_InvalidOptions(t *testing.T) {
	if m, err := relayer.New(nil); err == nil || m != nil {
		t.Errorf("no store: %v, %v", m, err)
	}
	for name, option := range map[string]relayer.Option{
		"empty option":     {},
		"nil resolver":     relayer.WithAddressResolver(nil),
		"nil admission":    relayer.WithAdmission(nil),
		"nil observer":     relayer.WithObserver(nil),
		"no room per page": relayer.WithMaxPerPage(0),
		"negative pages":   relayer.WithMaxPerPage(-1),
		"too large pages":  relayer.WithMaxPerPage(math.MaxInt32 + 1),
		"no room at all":   relayer.WithMaxRelayerSize(0),
		"RPC policy":       relayer.WithRPCPolicy(rpcguard.Policy{AllowedHosts: []string{"10.0.0.1"}}),
		"settings":         relayer.WithSettings[map[string]int](),
		"rule of settings": relayer.WithSettings[struct {
			A string `validate:"no_such_rule"`
		}](),
	} {
		if m, err := relayer.New(memory.New(), relayer.WithMaxPerPage(1), option); err == nil || m != nil {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

func TestNew_OptionTwice(t *testing.T) {
	m := newManager(t, withAddress("first"), withAddress("last"), relayer.WithRPCPolicy(rpcguard.Policy{}), relayer.WithRPCPolicy(rpcguard.Policy{PublicOnly: true}))
	if r := mustCreate(t, m, minimal("a")); r.Address != "last" {
		t.Errorf("the address is %q", r.Address)
	}
	wantFields(t, fieldErrors(t, second(m.Create(t.Context(), withURLs("b", "http://10.0.0.1/")))), "custom_rpc_urls[0].url")
}

// selectedDamage is a store whose selections have a damaged record, because its terms are unknown.
// So do the selections of store/bolt.
type selectedDamage struct{ relayer.Store }

func (s selectedDamage) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	const damaged = 4
	listing, err := s.Store.List(ctx, query)
	if query.Terms == nil || query.After >= damaged {
		return listing, err
	}
	listing.Total++
	if query.Limit > 0 {
		listing.Records, err = nil, &relayer.CorruptError{Sequence: damaged, Err: errors.New("damaged")}
	}
	return listing, err
}

func TestNewWriteSettings(t *testing.T) {
	revisions := []uint64{1, 2}
	shared := relayer.IfRevision(revisions...)
	revisions[0] = 9
	for _, test := range []struct {
		options []relayer.WriteOption
		want    relayer.WriteSettings
		err     error
	}{
		{nil, relayer.WriteSettings{}, nil},
		{[]relayer.WriteOption{relayer.DryRun()}, relayer.WriteSettings{DryRun: true}, nil},
		{[]relayer.WriteOption{relayer.IfRevision()}, relayer.WriteSettings{Revisions: []uint64{}}, nil},
		{[]relayer.WriteOption{relayer.IfRevision(3, 1, 2)}, relayer.WriteSettings{Revisions: []uint64{3, 1, 2}}, nil},
		{[]relayer.WriteOption{relayer.IfRevision(3, 1, 2), relayer.DryRun(), relayer.IfRevision(2, 3, 4)}, relayer.WriteSettings{Revisions: []uint64{3, 2}, DryRun: true}, nil},
		{[]relayer.WriteOption{relayer.IfRevision(1), relayer.IfRevision(2)}, relayer.WriteSettings{Revisions: []uint64{}}, nil},
		{[]relayer.WriteOption{relayer.IfRevision(), relayer.IfRevision(2)}, relayer.WriteSettings{Revisions: []uint64{}}, nil},
		{[]relayer.WriteOption{relayer.IfRevision(1, 0)}, relayer.WriteSettings{}, relayer.ErrNoRevision},
		{[]relayer.WriteOption{relayer.IfRevision(1), relayer.IfRevision(0)}, relayer.WriteSettings{Revisions: []uint64{1}}, relayer.ErrNoRevision},
		{[]relayer.WriteOption{relayer.IfRevision(0), relayer.IfRevision(1)}, relayer.WriteSettings{Revisions: []uint64{1}}, relayer.ErrNoRevision},
		{[]relayer.WriteOption{relayer.IfRevision(0), relayer.DryRun(), relayer.Reason("why")}, relayer.WriteSettings{DryRun: true, Reason: "why"}, relayer.ErrNoRevision},
		{[]relayer.WriteOption{relayer.Reason("two\nlines"), relayer.DryRun()}, relayer.WriteSettings{DryRun: true}, relayer.ErrInvalid},
		{[]relayer.WriteOption{relayer.PausedBy(""), relayer.PausedBy("two\nlines"), relayer.DryRun()}, relayer.WriteSettings{DryRun: true}, relayer.ErrInvalid},
	} {
		got, err := relayer.NewWriteSettings(test.options...)
		if !reflect.DeepEqual(got, test.want) || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("settings %+v, error %v, want %+v, %v", got, err, test.want, test.err)
		}
	}
	// An option can be used again, and is not changed by its caller.
	for range 2 {
		got, err := relayer.NewWriteSettings(shared, relayer.IfRevision(1))
		if err != nil || !slices.Equal(got.Revisions, []uint64{1}) {
			t.Errorf("settings %+v, error %v", got, err)
		}
	}
}

// The empty option is an error of every write, and has no effect.
func TestWriteOption_Empty(t *testing.T) {
	m := registry(t)
	before := storedDocument(t, m, "evm")
	for name, write := range writes {
		if _, err := write(m, t.Context(), "evm", relayer.WriteOption{}); err == nil || errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := storedDocument(t, m, "evm"); after != before {
		t.Errorf("stored %s", after)
	}
}

// writes are writes of the relayer "evm", and a create. The relayer is nil for a delete.
var writes = map[string]operation{
	"create": func(m *relayer.Manager, ctx context.Context, _ string, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		req := withURLs("new", "https://rpc.example/key")
		req.SignerID = "free"
		return m.Create(ctx, req, o...)
	},
	"update":            updating(func(r *relayer.Relayer) { r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://other.example/key"}} }),
	"update of nothing": updating(func(*relayer.Relayer) {}),
	"patch":             patching(`{"policies":{"gas_price_cap":7},"labels":{"a":"b"}}`),
	"empty patch":       patching(`{}`),
	"pause":             (*relayer.Manager).Pause,
	"resume":            (*relayer.Manager).Resume,
	"disable":           disabling(relayer.DisabledReason{Type: "x", Details: "https://rpc.example/key"}),
	"enable":            (*relayer.Manager).Enable,
	"delete":            deleting,
}

// recordsOf returns all records of a store, printed with their private parts.
func recordsOf(t *testing.T, store relayer.Store) string {
	t.Helper()
	listing := must(store.List(t.Context(), relayer.StoreQuery{Limit: 1000}))(t)
	var text strings.Builder
	for _, rec := range listing.Records {
		fmt.Fprintf(&text, "%v %q\n", rec, rec.Private)
	}
	return text.String()
}

// A dry run returns what the write returns, and stores and publishes nothing.
func TestDryRun_Result(t *testing.T) {
	for name, write := range writes {
		for _, isSealed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sealed %t", name, isSealed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var observed []relayer.Operation
					store := memory.New()
					db := relayer.Store(store)
					if isSealed {
						db = sealing(t, store, ringOf(t, "k1"))
					}
					m := registryOn(t, db, withAddress("0xfeed"), relayer.WithExclusiveSigners(),
						atEnd(func(operation relayer.Operation, _ error) { observed = append(observed, operation) }))
					var revision uint64
					if name != "create" {
						revision = mustGet(t, m, "evm").Revision
					}
					before := recordsOf(t, store)
					changes := 0
					watched := m.Watch(t.Context(), relayer.WatchQuery{})
					go func() {
						for range watched {
							changes++
						}
					}()
					observed = nil
					got := must(write(m, t.Context(), "evm", relayer.DryRun(), relayer.IfRevision(max(revision, 1))))(t)
					if len(observed) != 1 || !observed[0].DryRun || observed[0].OldRevision != revision || observed[0].Revision != revision || observed[0].Changed != nil {
						t.Errorf("observed %+v", observed)
					}
					synctest.Wait()
					if after := recordsOf(t, store); after != before || changes != 0 {
						t.Errorf("%d changes, stored\n%s\nwant\n%s", changes, after, before)
					}
					want := must(write(m, t.Context(), "evm"))(t)
					if want == nil && got == nil {
						return
					}
					if got.Revision != revision || !reflect.DeepEqual(got.LastChange, relayer.ChangeInfo{Changed: got.LastChange.Changed}) {
						t.Errorf("revision %d, want the current one, %d, and no last change: %+v", got.Revision, revision, got.LastChange)
					}
					want.Revision, want.LastChange = got.Revision, got.LastChange
					if !reflect.DeepEqual(got, want) {
						t.Errorf("a dry run returns %v, the write %v", got, want)
					}
				})
			})
		}
	}
}

// A dry run fails as the write does.
func TestDryRun_Errors(t *testing.T) {
	fault := errors.New("resolver is out of reach")
	options := []relayer.Option{
		relayer.WithNetworkRules(),
		relayer.WithMaxRelayerSize(2000),
		relayer.WithExclusiveSigners(),
		relayer.WithAddressResolver(func(_ context.Context, req relayer.CreateRequest) (string, error) {
			switch req.SignerID {
			case "unknown":
				return "", relayer.ErrUnknownSigner
			case "broken":
				return "", fault
			}
			return "0x" + strings.Repeat("f", 40), nil
		}),
		refusing(relayer.ActionDelete, relayer.Refuse("transactions are pending")),
	}
	create := func(change func(*relayer.CreateRequest)) operation {
		req := minimal("new")
		req.SignerID = "free"
		change(&req)
		return func(m *relayer.Manager, ctx context.Context, _ string, o ...relayer.WriteOption) (*relayer.Relayer, error) {
			return m.Create(ctx, req, o...)
		}
	}
	// on calls an operation on another relayer, or with a condition.
	on := func(id string, call operation, more ...relayer.WriteOption) operation {
		return func(m *relayer.Manager, ctx context.Context, _ string, o ...relayer.WriteOption) (*relayer.Relayer, error) {
			return call(m, ctx, id, append(o, more...)...)
		}
	}
	other := relayer.IfRevision(99)
	for name, c := range map[string]struct {
		write operation
		want  error
	}{
		"taken ID":                  {create(func(r *relayer.CreateRequest) { r.ID = "a" }), relayer.ErrExists},
		"taken ID, invalid":         {create(func(r *relayer.CreateRequest) { r.ID, r.Name = "a", "" }), relayer.ErrInvalid},
		"taken signer":              {create(func(r *relayer.CreateRequest) { r.SignerID = "s" }), relayer.ErrInvalid},
		"taken ID, signer":          {create(func(r *relayer.CreateRequest) { r.ID, r.SignerID = "a", "s" }), relayer.ErrExists},
		"signer, letter case":       {create(func(r *relayer.CreateRequest) { r.SignerID, r.Network = "s", "SEPOLIA" }), relayer.ErrInvalid},
		"signer on another network": {create(func(r *relayer.CreateRequest) { r.SignerID, r.Network = "s", "mainnet" }), nil},
		"unknown signer":            {create(func(r *relayer.CreateRequest) { r.SignerID = "unknown" }), relayer.ErrInvalid},
		"broken resolver":           {create(func(r *relayer.CreateRequest) { r.SignerID = "broken" }), fault},
		"too large":                 {create(func(r *relayer.CreateRequest) { r.Name = strings.Repeat("n", 2000) }), relayer.ErrInvalid},
		"masked URL":                {create(func(r *relayer.CreateRequest) { r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://a.example/***"}} }), relayer.ErrInvalid},
		"unknown ID":                {on("b", patchingDocument(`{"name":"x"}`)), relayer.ErrNotFound},
		"impossible ID":             {on("a b", patchingDocument(`{}`)), relayer.ErrNotFound},
		"invalid patch":             {patchingDocument(`{"name":"","x":1}`), relayer.ErrInvalid},
		"patch too large":           {patchingDocument(`{"name":"` + strings.Repeat("n", 2000) + `"}`), relayer.ErrInvalid},
		"valid patch":               {patchingDocument(`{"name":"x"}`), nil},
		"conflict of update":        {on("a", updating(func(r *relayer.Relayer) { r.Name += "x" }), other), relayer.ErrConflict},
		"conflict of pause":         {on("a", (*relayer.Manager).Pause, other), relayer.ErrConflict},
		"conflict of empty":         {on("a", patchingDocument(`{}`), relayer.IfRevision()), relayer.ErrConflict},
		"conflict of delete":        {on("a", deleting, other), relayer.ErrConflict},
		"no revision":               {on("a", (*relayer.Manager).Resume, relayer.IfRevision(0)), relayer.ErrNoRevision},
		"refused delete":            {deleting, relayer.ErrInvalid},
		"unknown delete":            {on("b", deleting), relayer.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			m := managerOf(t, store, options...)
			mustCreate(t, m, minimal("a"))
			before := recordsOf(t, store)
			_, got := c.write(m, t.Context(), "a", relayer.DryRun())
			if after := recordsOf(t, store); after != before {
				t.Errorf("stored\n%s", after)
			}
			_, want := c.write(m, t.Context(), "a")
			if !errors.Is(got, c.want) || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("a dry run returns %v, the write %v, want %v", got, want, c.want)
			}
		})
	}
}

// A dry run of a create finds the signer of any other relayer, also outside of a view, and
// next to damaged records.
func TestDryRun_ExclusiveSigners(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store, relayer.WithExclusiveSigners())
	for i := range 150 {
		req := minimal(fmt.Sprintf("r%03d", i))
		req.Network = fmt.Sprint("network-", i)
		mustCreate(t, m, req)
	}
	for _, c := range []struct {
		network, signer string
		isUsed          bool
	}{
		{"network-149", "s", true}, {" Network-120 ", "s", true}, {"network-120", " s ", true}, {"network-150", "s", false}, {"network-149", "other", false},
	} {
		for name, m := range map[string]*relayer.Manager{
			"Manager": m, "view": m.Within(mustParse(t, "id=new")), "damaged record": managerOf(t, selectedDamage{store}, relayer.WithExclusiveSigners()),
		} {
			req := minimal("new")
			req.Network, req.SignerID = c.network, c.signer
			_, err := m.Create(t.Context(), req, relayer.DryRun())
			if err == nil != !c.isUsed {
				t.Errorf("%+v, %s: %v", c, name, err)
			} else if c.isUsed {
				wantFields(t, fieldErrors(t, err), "signer_id")
			}
		}
	}
}
