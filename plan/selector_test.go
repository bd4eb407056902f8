package plan_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/plan"
)

// labeled returns a minimal request with a label.
func labeled(id, owner string) relayer.CreateRequest {
	return requestWith(id, func(r *relayer.CreateRequest) { r.Labels = map[string]string{"owner": owner} })
}

func selector(t testing.TB, text string) relayer.Selector {
	t.Helper()
	return must(relayer.ParseSelector(text))(t)
}

// registries returns a Manager, and a client of a server of it.
func registries(t *testing.T, m *relayer.Manager) map[string]relayer.Registry {
	return map[string]relayer.Registry{"manager": m, "client": serve(t, m)}
}

// A relayer outside of the selector is neither created, changed nor taken from its owner.
func TestWithSelector_Outside(t *testing.T) {
	m := newManager(t)
	create(t, m, labeled("leaves", "ci"), labeled("taken", "other"))
	desired := []relayer.CreateRequest{labeled("leaves", "other"), labeled("taken", "ci"), minimal("new"), labeled("fine", "ci")}
	const want = `! blocked leaves
    the selector label.owner=ci does not select the relayer of the file
! blocked taken
    the ID is taken by a relayer that this token or selector may not use, or another writer has created it: choose another ID, or make the plan again
! blocked new
    the selector label.owner=ci does not select the relayer of the file
+ create fine
    labels.owner: "ci"
    name: "n"
    network: "sepolia"
    network_type: "evm"
    paused: false
    signer_id: "s"
1 to create, 0 to update, 0 to delete, 0 unchanged, 3 blocked
`
	for name, registry := range registries(t, m) {
		p := newPlan(t, registry, desired, plan.Options{Prune: true, Selector: selector(t, "label.owner=ci")})
		if got := p.String(); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestWithSelector_StateOfRegistry(t *testing.T) {
	m := newManager(t)
	create(t, m, minimal("disabled"), minimal("paused"))
	must(m.Disable(t.Context(), "disabled", relayer.DisabledReason{Type: relayer.NonceSyncFailed}))(t)
	must(m.Pause(t.Context(), "paused"))(t)
	expectActions(t, newPlan(t, m, []relayer.CreateRequest{minimal("disabled")}, plan.Options{Selector: selector(t, "system_disabled=true")}), plan.Unchanged)
	paused := selector(t, "paused=true")
	expectActions(t, newPlan(t, m, []relayer.CreateRequest{minimal("paused")}, plan.Options{Selector: paused, KeepPaused: true}), plan.Unchanged)
	expectActions(t, newPlan(t, m, []relayer.CreateRequest{minimal("paused")}, plan.Options{Selector: paused}), plan.Blocked)
}

func TestExport_Selector(t *testing.T) {
	m := newManager(t)
	create(t, m, labeled("a", "ci"), labeled("b", "other"))
	for name, registry := range registries(t, m) {
		file := must(plan.Export(t.Context(), registry, selector(t, "label.owner=ci")))(t)
		desired := parse(t, string(file)).Relayers
		if len(desired) != 1 || desired[0].ID != "a" || desired[0].Labels["owner"] != "ci" {
			t.Errorf("%s: exported %s", name, file)
		}
		expectActions(t, newPlan(t, registry, desired), plan.Unchanged, plan.Extra)
	}
}

// What the registry would reject is blocked, and the rest can be applied.
func TestNew_RejectedByRegistry(t *testing.T) {
	m := newManager(t, relayer.WithNetworkRules(), relayer.WithExclusiveSigners(), relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionDelete && old.ID == "pending" {
			return relayer.Refuse("transactions are pending")
		}
		return nil
	}))
	pending, free := minimal("pending"), minimal("free")
	pending.SignerID, free.SignerID = "s1", "s2"
	create(t, m, pending, free)
	receivers := minimal("receivers")
	receivers.SignerID, receivers.Policy = "s3", &relayer.EVMPolicy{WhitelistReceivers: []string{"no address"}}
	second := minimal("second")
	second.SignerID = "s1"
	const want = `! blocked receivers
    policies.whitelist_receivers[0]: must be an address: 0x and 40 hex digits
! blocked second
    signer_id: is used by another relayer on this network: choose another signer
! blocked pending
    transactions are pending
- delete free
0 to create, 0 to update, 1 to delete, 0 unchanged, 3 blocked
`
	for name, registry := range registries(t, m) {
		p := newPlan(t, registry, []relayer.CreateRequest{receivers, second}, plan.Options{Prune: true})
		if got := p.String(); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// withoutDryRuns is a registry that has no dry runs, or does not permit them.
type withoutDryRuns struct {
	relayer.Registry
	err error
}

func (r *withoutDryRuns) Create(ctx context.Context, req relayer.CreateRequest, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	if isDryRun(options) {
		return nil, r.err
	}
	return r.Registry.Create(ctx, req, options...)
}

func (r *withoutDryRuns) Patch(ctx context.Context, id string, patch []byte, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	if isDryRun(options) {
		return nil, r.err
	}
	return r.Registry.Patch(ctx, id, patch, options...)
}

// silent is a registry whose dry runs do not say what would change.
type silent struct{ relayer.Registry }

func (r silent) Patch(ctx context.Context, id string, patch []byte, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	patched, err := r.Registry.Patch(ctx, id, patch, options...)
	if err == nil {
		patched.LastChange = relayer.ChangeInfo{}
	}
	return patched, err
}

// A plan that cannot compare RPC URLs does not claim that they are unchanged.
func TestNew_NotCompared(t *testing.T) {
	m := newManager(t)
	create(t, m, minimal("a"), withURLs("b", "https://rpc.example/"+secret))
	for _, registry := range []relayer.Registry{&withoutDryRuns{m, errors.ErrUnsupported}, &withoutDryRuns{m, client.ErrForbidden}, silent{m}} {
		for _, first := range []relayer.CreateRequest{minimal("new"), minimal("a"), renamed("a")} {
			_, err := plan.New(t.Context(), registry, []relayer.CreateRequest{first, withURLs("b", "https://rpc.example/"+secret)}, plan.Options{})
			if err == nil || !strings.HasPrefix(err.Error(), "b: the RPC URLs could not be compared") || strings.Contains(err.Error(), secret) {
				t.Errorf("%T: error %v", registry, err)
			}
		}
		expectActions(t, newPlan(t, registry, []relayer.CreateRequest{renamed("a"), withURLs("b", "https://rpc.example/***")}), plan.Update, plan.Unchanged)
	}
}

func TestNew_Unchecked(t *testing.T) {
	const note = "the registry has not checked the changes, and may reject some\n"
	for _, reason := range []error{errors.ErrUnsupported, client.ErrForbidden} {
		m := newManager(t)
		registry := &withoutDryRuns{m, reason}
		p := newPlan(t, registry, []relayer.CreateRequest{minimal("a")})
		if text := p.String(); !strings.HasSuffix(text, note) {
			t.Errorf("%v: the plan is\n%s", reason, text)
		}
		mustApply(t, p)
		if text := newPlan(t, registry, []relayer.CreateRequest{minimal("a")}).String(); strings.Contains(text, note) {
			t.Errorf("the plan is\n%s", text)
		}
	}
	failing := &withoutDryRuns{newManager(t), relayer.ErrUnavailable}
	if _, err := plan.New(t.Context(), failing, []relayer.CreateRequest{minimal("a")}, plan.Options{}); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

// If a proxy rejects some requests as if they had no route, a plan says that it is not checked, or
// why it cannot be made, and an apply makes the shown changes only.
func TestNew_ProxyRejectsWrites(t *testing.T) {
	for name, isRejected := range map[string]func(*http.Request) bool{
		"all writes": func(r *http.Request) bool { return r.Method != http.MethodGet },
		"dry runs":   func(r *http.Request) bool { return r.URL.Query().Has("dry_run") },
	} {
		for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed} {
			m := newManager(t)
			create(t, m, withURLs("b", "https://rpc.example/"+secret), minimal("c"))
			before := document(t, m, "c")
			registry := serveBehind(t, m, func(api http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !isRejected(r) {
						api.ServeHTTP(w, r)
						return
					}
					w.Header().Set("Content-Type", "text/html")
					w.WriteHeader(status)
				})
			})
			_, err := plan.New(t.Context(), registry, []relayer.CreateRequest{withURLs("b", "https://rpc.example/"+secret+"-2")}, plan.Options{})
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), fmt.Sprint("status ", status)) ||
				!strings.HasPrefix(err.Error(), "b: the RPC URLs could not be compared") || strings.Contains(err.Error(), secret) {
				t.Errorf("%s, status %d: error %v", name, status, err)
			}
			p := newPlan(t, registry, []relayer.CreateRequest{minimal("a"), withURLs("b", "https://rpc.example/***"), renamed("c")})
			expectActions(t, p, plan.Create, plan.Unchanged, plan.Update)
			if !strings.Contains(p.String(), "has not checked the changes") {
				t.Errorf("%s, status %d: the plan is\n%s", name, status, p)
			}
			prune := newPlan(t, registry, []relayer.CreateRequest{minimal("c")}, plan.Options{Prune: true})
			if name == "all writes" { // the relayer is not deleted already
				if _, err := prune.Apply(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("status %d: a delete: error %v", status, err)
				}
				get(t, m, "b")
			}
			// Another writer is faster.
			if name == "dry runs" {
				must(m.Pause(t.Context(), "c"))(t)
				before = document(t, m, "c")
			}
			_, err = p.Apply(t.Context())
			want := map[string]error{"all writes": errors.ErrUnsupported, "dry runs": relayer.ErrConflict}[name]
			if !errors.Is(err, want) || document(t, m, "c") != before {
				t.Errorf("%s, status %d: error %v, want %v, stored %s", name, status, err, want, document(t, m, "c"))
			}
		}
	}
}
