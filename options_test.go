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
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/memory"
)

func TestExclusiveSigners_OneRelayerPerSigner(t *testing.T) { eachStore(t, testExclusiveSigners) }

func testExclusiveSigners(t *testing.T, store relayer.Store) {
	m := managerOf(t, store, relayer.WithExclusiveSigners())
	request := func(id string) relayer.CreateRequest {
		return relayer.CreateRequest{ID: id, Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
	}
	for round := range 20 {
		var creators sync.WaitGroup
		errs := make([]error, 32)
		for i := range errs {
			creators.Go(func() { _, errs[i] = m.Create(t.Context(), request(fmt.Sprintf("r-%d", i))) })
		}
		creators.Wait()
		winner := -1
		for i, err := range errs {
			var invalid *relayer.ValidationError
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Fatalf("round %d: %d and %d both have the signer", round, winner, i)
			case !errors.As(err, &invalid) || invalid.Fields[0].Field != "signer_id":
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: no relayer has the signer", round)
		}
		id := fmt.Sprintf("r-%d", winner)
		if _, err := m.Pause(t.Context(), id); err != nil {
			t.Fatalf("round %d: pausing the winner: %v", round, err)
		}
		if _, err := m.Create(t.Context(), request("late")); !errors.Is(err, relayer.ErrInvalid) {
			t.Fatalf("round %d: after an update the signer was free: %v", round, err)
		}
		mustSucceed(t, m.Delete(t.Context(), id))
	}

	must(m.Create(t.Context(), request("taken")))(t)
	for name, change := range map[string]func(*relayer.CreateRequest){
		"another network":      func(r *relayer.CreateRequest) { r.Network = "mainnet" },
		"another network type": func(r *relayer.CreateRequest) { r.NetworkType = relayer.Solana },
		"another signer":       func(r *relayer.CreateRequest) { r.SignerID = "t" },
		"names run together":   func(r *relayer.CreateRequest) { r.Network, r.SignerID = "sepolia1", ":s" },
		"names too long":       func(r *relayer.CreateRequest) { r.SignerID = strings.Repeat("s", 10_000) },
	} {
		other := request("")
		change(&other)
		if _, err := m.Create(t.Context(), other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	street := request("")
	street.Network = "straße"
	mustCreate(t, m, street)
	for _, same := range []struct{ network, signer string }{{"Sepolia", "s"}, {" sepolia\u00a0", "s"}, {"sepolia", "\ts "}, {"STRASSE", "s"}} {
		other := request("")
		other.Network, other.SignerID = same.network, same.signer
		wantFields(t, fieldErrors(t, second(m.Create(t.Context(), other))), "signer_id")
	}
	if _, err := m.Create(t.Context(), request("taken")); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("a taken ID, too: %v", err)
	}
	if _, err := registry(t).Create(t.Context(), relayer.CreateRequest{Name: "n", Network: "testnet", NetworkType: relayer.EVM, SignerID: "s-evm"}); err != nil {
		t.Errorf("without the option: %v", err)
	}
}

// Two relayers that shared a signer before signers became exclusive can still be
// paused, which is the first step to resolve it.
func TestExclusiveSigners_SharedBefore(t *testing.T) {
	store := memory.New()
	lenient := managerOf(t, store)
	strict := managerOf(t, store, relayer.WithExclusiveSigners())
	request := relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}
	for _, id := range []string{"first", "second"} {
		request.ID = id
		must(lenient.Create(t.Context(), request))(t)
	}
	for _, id := range []string{"first", "second"} {
		if r, err := strict.Pause(t.Context(), id); err != nil || !r.Paused {
			t.Errorf("pausing %s: %v", id, err)
		}
		if _, err := strict.Documents().Patch(t.Context(), id, []byte(`{"name":"m"}`)); err != nil {
			t.Errorf("patching %s: %v", id, err)
		}
	}
	// The first relayer that was changed has the signer now.
	request.ID = "third"
	if _, err := strict.Create(t.Context(), request); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("creating a third: %v", err)
	}
	mustSucceed(t, strict.Delete(t.Context(), "first"))
	must(strict.Resume(t.Context(), "second"))(t)
	if _, err := strict.Create(t.Context(), request); !errors.Is(err, relayer.ErrInvalid) {
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
	} {
		if m, err := relayer.New(memory.New(), relayer.WithMaxPerPage(1), option); err == nil || m != nil {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

func TestNew_OptionTwice(t *testing.T) {
	resolvesTo := func(address string) relayer.Option {
		return relayer.WithAddressResolver(func(context.Context, relayer.CreateRequest) (string, error) { return address, nil })
	}
	m := newManager(t, resolvesTo("first"), resolvesTo("last"),
		relayer.WithRPCPolicy(rpcguard.Policy{}), relayer.WithRPCPolicy(rpcguard.Policy{PublicOnly: true}))
	if r := mustCreate(t, m, minimal("a")); r.Address != "last" {
		t.Errorf("the address is %q", r.Address)
	}
	wantFields(t, fieldErrors(t, second(m.Create(t.Context(), withURLs("b", "http://10.0.0.1/")))), "custom_rpc_urls[0].url")
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
	for name, operation := range operationsOn {
		err := operation(t.Context(), m, "evm", relayer.WriteOption{})
		if isRead := slices.Contains([]string{"get", "get document", "RPC URLs"}, name); (err == nil) != isRead || errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.Create(t.Context(), minimal("new"), relayer.WriteOption{}); err == nil {
		t.Error("create: no error")
	}
	if after := storedDocument(t, m, "evm"); after != before {
		t.Errorf("stored %s", after)
	}
}

// dryRunSubjects are registries that a dry run must not change: one with many states, and
// one of sealed relayers.
func dryRunSubjects(t *testing.T) map[string]func() (relayer.Store, *relayer.Manager) {
	t.Helper()
	return map[string]func() (relayer.Store, *relayer.Manager){
		"clear": func() (relayer.Store, *relayer.Manager) {
			store := memory.New()
			return store, registryOn(t, store, relayer.WithAddressResolver(fixedAddress))
		},
		"sealed": func() (relayer.Store, *relayer.Manager) {
			store := memory.New()
			return store, registryOn(t, sealing(t, store, ringOf(t, "k1")))
		},
	}
}

// writes are writes with their results. The relayer is nil for a delete.
var writes = map[string]func(ctx context.Context, m *relayer.Manager, options ...relayer.WriteOption) (*relayer.Relayer, error){
	"create": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Create(ctx, withURLs("new", "https://rpc.example/key"), o...)
	},
	"update": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Update(ctx, "evm", func(r *relayer.Relayer) error {
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://other.example/key"}}
			return nil
		}, o...)
	},
	"update of nothing": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Update(ctx, "evm", func(*relayer.Relayer) error { return nil }, o...)
	},
	"patch": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Patch(ctx, "evm", patchtest.JSON(map[string]any{"policies": map[string]any{"gas_price_cap": 7}, "labels": map[string]string{"a": "b"}}), o...)
	},
	"empty patch": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Patch(ctx, "evm", patchtest.JSON(map[string]any{}), o...)
	},
	"pause": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Pause(ctx, "evm", o...)
	},
	"resume": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Resume(ctx, "evm", o...)
	},
	"disable": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Disable(ctx, "evm", relayer.DisabledReason{Type: "x", Details: "https://rpc.example/key"}, o...)
	},
	"enable": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Enable(ctx, "evm", o...)
	},
	"delete": func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) (*relayer.Relayer, error) {
		return nil, m.Delete(ctx, "evm", o...)
	},
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
	for subject, open := range dryRunSubjects(t) {
		for name, write := range writes {
			t.Run(subject+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, m := open()
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
					got := must(write(t.Context(), m, relayer.DryRun(), relayer.IfRevision(max(revision, 1))))(t)
					synctest.Wait()
					if after := recordsOf(t, store); after != before || changes != 0 {
						t.Errorf("%d changes, stored\n%s\nwant\n%s", changes, after, before)
					}
					want := must(write(t.Context(), m))(t)
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
		refuseDelete(relayer.Refuse("transactions are pending")),
	}
	create := func(change func(*relayer.CreateRequest)) func(context.Context, *relayer.Manager, ...relayer.WriteOption) error {
		req := minimal("new")
		req.SignerID = "free"
		change(&req)
		return func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) error {
			return second(m.Create(ctx, req, o...))
		}
	}
	patch := func(id, patch string) func(context.Context, *relayer.Manager, ...relayer.WriteOption) error {
		return func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) error {
			return second(m.Documents().Patch(ctx, id, []byte(patch), o...))
		}
	}
	with := func(operation string, id string, more ...relayer.WriteOption) func(context.Context, *relayer.Manager, ...relayer.WriteOption) error {
		return func(ctx context.Context, m *relayer.Manager, o ...relayer.WriteOption) error {
			return operationsOn[operation](ctx, m, id, append(o, more...)...)
		}
	}
	for name, c := range map[string]struct {
		write func(context.Context, *relayer.Manager, ...relayer.WriteOption) error
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
		"unknown ID":                {patch("b", `{"name":"x"}`), relayer.ErrNotFound},
		"impossible ID":             {patch("a b", `{}`), relayer.ErrNotFound},
		"invalid patch":             {patch("a", `{"name":"","x":1}`), relayer.ErrInvalid},
		"patch too large":           {patch("a", `{"name":"`+strings.Repeat("n", 2000)+`"}`), relayer.ErrInvalid},
		"valid patch":               {patch("a", `{"name":"x"}`), nil},
		"conflict of update":        {with("update", "a", relayer.IfRevision(99)), relayer.ErrConflict},
		"conflict of pause":         {with("pause", "a", relayer.IfRevision(99)), relayer.ErrConflict},
		"conflict of empty":         {with("empty patch", "a", relayer.IfRevision()), relayer.ErrConflict},
		"conflict of delete":        {with("delete", "a", relayer.IfRevision(99)), relayer.ErrConflict},
		"no revision":               {with("resume", "a", relayer.IfRevision(0)), relayer.ErrNoRevision},
		"refused delete":            {with("delete", "a"), relayer.ErrInvalid},
		"unknown delete":            {with("delete", "b"), relayer.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			m := managerOf(t, store, options...)
			mustCreate(t, m, minimal("a"))
			before := recordsOf(t, store)
			got := c.write(t.Context(), m, relayer.DryRun())
			if after := recordsOf(t, store); after != before {
				t.Errorf("stored\n%s", after)
			}
			want := c.write(t.Context(), m)
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
	same := managerOf(t, oneDamaged{store, 3}, relayer.WithExclusiveSigners())
	for name, c := range map[string]struct {
		change func(*relayer.CreateRequest)
		isUsed bool
	}{
		"last network":   {func(r *relayer.CreateRequest) { r.Network = "network-149" }, true},
		"letter case":    {func(r *relayer.CreateRequest) { r.Network = " Network-120 " }, true},
		"spaces":         {func(r *relayer.CreateRequest) { r.Network, r.SignerID = "network-120", " s " }, true},
		"unused network": {func(r *relayer.CreateRequest) { r.Network = "network-150" }, false},
		"unused signer":  {func(r *relayer.CreateRequest) { r.Network, r.SignerID = "network-149", "other" }, false},
	} {
		req := minimal("new")
		c.change(&req)
		for manager, m := range map[string]*relayer.Manager{"Manager": m, "view": m.Within(mustParse(t, "id=new")), "damaged record": same} {
			_, err := m.Create(t.Context(), req, relayer.DryRun())
			if !c.isUsed {
				if err != nil {
					t.Errorf("%s, %s: %v", name, manager, err)
				}
				continue
			}
			if err == nil {
				t.Errorf("%s, %s: no error", name, manager)
				continue
			}
			wantFields(t, fieldErrors(t, err), "signer_id")
		}
	}
}

// A dry run is observed as one operation.
func TestDryRun_Observed(t *testing.T) {
	for name, write := range writes {
		var got []relayer.Operation
		m := registry(t, relayer.WithExclusiveSigners(), atEnd(func(operation relayer.Operation, _ error) { got = append(got, operation) }))
		got = nil
		req := func() error {
			if name == "create" {
				free := withURLs("new", "https://rpc.example/key")
				free.SignerID = "free"
				return second(m.Create(t.Context(), free, relayer.DryRun()))
			}
			return second(write(t.Context(), m, relayer.DryRun()))
		}
		mustSucceed(t, req())
		if len(got) != 1 || !got[0].DryRun || got[0].OldRevision != got[0].Revision || (got[0].Revision == 0) != (name == "create") || got[0].Changed != nil {
			t.Errorf("%s: observed %+v", name, got)
		}
	}
}

// A damaged relayer can be deleted; its dry run deletes nothing.
func TestDryRun_DeleteDamaged(t *testing.T) {
	store := unreadableStore{memory.New(), "damaged", func(uint64) error {
		t.Error("deleted")
		return nil
	}}
	if err := managerOf(t, store).Delete(t.Context(), "damaged", relayer.DryRun()); err != nil {
		t.Error(err)
	}
}
