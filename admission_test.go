package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

// refuseDelete returns an admission that fails for every delete.
func refuseDelete(err error) relayer.Option {
	return relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionDelete {
			return err
		}
		return nil
	})
}

// recordAdmissions returns an option that appends a text for every admission.
func recordAdmissions(into *[]string) relayer.Option {
	return relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, changed *relayer.Relayer) error {
		text := func(r *relayer.Relayer) string {
			if r == nil {
				return "none"
			}
			return fmt.Sprintf("%s/%t", r.Name, r.Paused)
		}
		*into = append(*into, fmt.Sprintf("%s %s: %s to %s, dry run %t", o.Action, o.Actor.ID, text(old), text(changed), o.DryRun))
		return nil
	})
}

// An admission sees every write that changes something, except the emergency switches.
func TestAdmission_Actions(t *testing.T) {
	var got []string
	m := newManager(t, recordAdmissions(&got))
	ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "ann"})
	for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
		if _, err := m.Create(ctx, minimal("a"), options...); err != nil {
			t.Fatal(err)
		}
	}
	steps := []func(options ...relayer.WriteOption) error{
		func(o ...relayer.WriteOption) error {
			return second(m.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = "b"; return nil }, o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Update(ctx, "a", func(*relayer.Relayer) error { return nil }, o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Patch(ctx, "a", patchtest.JSON(map[string]any{"name": "c"}), o...))
		},
		func(o ...relayer.WriteOption) error { return second(m.Documents().Patch(ctx, "a", []byte(`{}`), o...)) },
		func(o ...relayer.WriteOption) error { return second(m.Pause(ctx, "a", o...)) },
		func(o ...relayer.WriteOption) error { return second(m.Resume(ctx, "a", o...)) },
		func(o ...relayer.WriteOption) error { return second(m.Resume(ctx, "a", o...)) },
		func(o ...relayer.WriteOption) error {
			return second(m.Documents().Patch(ctx, "a", []byte(`{"paused":true}`), o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Documents().Patch(ctx, "a", []byte(`{"paused":false}`), o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Documents().Patch(ctx, "a", []byte(`{"paused":true,"name":"d"}`), o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Disable(ctx, "a", relayer.DisabledReason{Type: "x"}, o...))
		},
		func(o ...relayer.WriteOption) error { return second(m.Enable(ctx, "a", o...)) },
		func(o ...relayer.WriteOption) error { return m.Delete(ctx, "a", o...) },
	}
	for _, step := range steps {
		for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
			if err := step(options...); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want []string
	for _, text := range []string{
		"create ann: none to n/false",
		"update ann: n/false to b/false",
		"update ann: b/false to c/false",
		"resume ann: c/true to c/false",
		"resume ann: c/true to c/false",
		"update ann: c/false to d/true",
		"enable ann: d/true to d/true",
		"delete ann: d/true to none",
	} {
		want = append(want, text+", dry run true", text+", dry run false")
	}
	if !slices.Equal(got, want) {
		t.Errorf("admissions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A refused write stores nothing, and the reason reaches its caller.
func TestAdmission_Refuse(t *testing.T) {
	writes := map[relayer.Action]func(ctx context.Context, m *relayer.Manager) error{
		relayer.ActionCreate: func(ctx context.Context, m *relayer.Manager) error { return second(m.Create(ctx, minimal("new"))) },
		relayer.ActionUpdate: func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Patch(ctx, "evm", patchtest.JSON(map[string]any{"name": "x"})))
		},
		relayer.ActionResume: func(ctx context.Context, m *relayer.Manager) error { return second(m.Resume(ctx, "evm")) },
		relayer.ActionEnable: func(ctx context.Context, m *relayer.Manager) error { return second(m.Enable(ctx, "evm")) },
		relayer.ActionDelete: func(ctx context.Context, m *relayer.Manager) error { return m.Delete(ctx, "evm") },
	}
	for action, write := range writes {
		for name, refusal := range map[string]error{
			"refusal":         relayer.Refuse("not now"),
			"wrapped refusal": fmt.Errorf("because: %w", relayer.Refuse("not now")),
			"ValidationError": &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "name", Message: "not now"}}},
		} {
			store := memory.New()
			all := registryOn(t, store)
			for _, err := range []error{second(all.Pause(t.Context(), "evm")), second(all.Disable(t.Context(), "evm", relayer.DisabledReason{Type: "x"}))} {
				if err != nil {
					t.Fatal(err)
				}
			}
			before := storedDocument(t, all, "evm")
			m := managerOf(t, store, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
				if o.Action != action {
					t.Errorf("admission of %s, want %s", o.Action, action)
				}
				return refusal
			}))
			err := write(t.Context(), m)
			if problems := fieldErrors(t, err); len(problems) != 1 || problems[0].Message != "not now" {
				t.Errorf("%s, %s: %v", action, name, err)
			}
			if storedDocument(t, all, "evm") != before || !errors.Is(second(all.Get(t.Context(), "new")), relayer.ErrNotFound) {
				t.Errorf("%s, %s: stored", action, name)
			}
		}
	}
}

// Any other error of an admission or of the address resolver is a fault of the server: it
// has the errors and types of the host, and no meaning of this package.
func TestHook_Fault(t *testing.T) {
	host := errors.New("queue is out of reach")
	_, unknown := newManager(t).Get(t.Context(), "queue")
	sentinels := map[string]error{
		"not found": relayer.ErrNotFound, "exists": relayer.ErrExists, "conflict": relayer.ErrConflict, "unavailable": relayer.ErrUnavailable,
		"unknown outcome": relayer.ErrOutcomeUnknown, "corrupt": relayer.ErrCorrupt, "sealed": relayer.ErrSealed, "claimed": relayer.ErrClaimed,
		"gap": relayer.ErrGap, "invalid": relayer.ErrInvalid, "no revision": relayer.ErrNoRevision, "unknown signer": relayer.ErrUnknownSigner,
		"unknown format": relayer.ErrUnknownFormat, "newer format": relayer.ErrNewerFormat,
		"unsupported": errors.ErrUnsupported,
	}
	faults := map[string]error{"get of another registry": unknown}
	for name, sentinel := range sentinels {
		faults[name] = fmt.Errorf("%w: %w", sentinel, errors.Join(host, &hostError{7}))
	}
	for name, fault := range faults {
		calls := 0
		m := registry(t, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
			if o.Action != relayer.ActionDelete {
				return nil
			}
			calls++
			return fault
		}))
		err := m.Delete(t.Context(), "evm")
		if err == nil || calls != 1 || !strings.Contains(err.Error(), "delete evm: admission: ") {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
		mustGet(t, m, "evm")
		wantFault := func(hook string, err error) {
			for other, sentinel := range sentinels {
				if errors.Is(err, sentinel) {
					t.Errorf("%s of %s matches %s", name, hook, other)
				}
			}
			if typed, ok := errors.AsType[*hostError](err); name != "get of another registry" && (!errors.Is(err, host) || !ok || typed.code != 7) {
				t.Errorf("%s of %s does not match the error of the host: %v", name, hook, err)
			}
		}
		wantFault("an admission", err)
		if name == "unknown signer" {
			continue // means that the request is invalid
		}
		resolve := func(context.Context, relayer.CreateRequest) (string, error) { return "", fault }
		_, err = newManager(t, relayer.WithAddressResolver(resolve)).Create(t.Context(), minimal("new"))
		wantFault("a resolver", err)
	}
	m := registry(t, refuseDelete(fmt.Errorf("waiting: %w", context.DeadlineExceeded)))
	if err := m.Delete(t.Context(), "evm"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
}

type hostError struct{ code int }

func (e *hostError) Error() string { return fmt.Sprint("code ", e.code) }

// All admissions must admit a write. The first refusal ends it.
func TestAdmission_Several(t *testing.T) {
	var got []string
	admit := func(name string, err error) relayer.Option {
		return relayer.WithAdmission(func(context.Context, relayer.Operation, *relayer.Relayer, *relayer.Relayer) error {
			got = append(got, name)
			return err
		})
	}
	m := newManager(t, admit("a", nil), admit("b", relayer.Refuse("no")), admit("c", nil))
	if _, err := m.Create(t.Context(), minimal("a")); !errors.Is(err, relayer.ErrInvalid) {
		t.Error(err)
	}
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("called %q", got)
	}
}

// The relayers of an admission are copies: a change of them is not stored.
func TestAdmission_Copies(t *testing.T) {
	spoil := relayer.WithAdmission(func(_ context.Context, _ relayer.Operation, old, changed *relayer.Relayer) error {
		for _, r := range []*relayer.Relayer{old, changed} {
			if r == nil {
				continue
			}
			r.Name, r.Labels["team"], r.CustomRPCURLs[0].URL = "spoiled", "spoiled", "https://spoiled.example"
			*r.Policy.(*relayer.EVMPolicy) = relayer.EVMPolicy{PrivateTransactions: new(true)}
		}
		return nil
	})
	m := newManager(t, spoil, spoil)
	req := minimal("a")
	req.Labels = map[string]string{"team": "payments"}
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://rpc.example/key"}}
	created := mustCreate(t, m, req)
	updated, err := m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": "new"}))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*relayer.Relayer{"created": created, "updated": updated, "stored": mustGet(t, m, "a")} {
		if strings.Contains(fmt.Sprint(r), "spoiled") || strings.Contains(fmt.Sprint(r), "private") || r.CustomRPCURLs[0].URL != "https://rpc.example/key" {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// Old and New have the full RPC URLs, or masked ones if they are sealed.
func TestAdmission_RPCURLs(t *testing.T) {
	for name, c := range map[string]struct {
		store relayer.Store
		want  bool // masked
	}{"clear": {memory.New(), false}, "sealed": {sealing(t, memory.New(), ringOf(t, "k1")), true}} {
		calls := 0
		m := managerOn(t, c.store, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, changed *relayer.Relayer) error {
			for _, r := range []*relayer.Relayer{old, changed} {
				if r != nil && r.CustomRPCURLs[0].URL.IsMasked() != c.want {
					t.Errorf("%s, %s: URL %q", name, o.Action, r.CustomRPCURLs[0].URL.Unmasked())
				}
			}
			calls++
			return nil
		}))
		mustCreate(t, m, withURLs("a", firstURL))
		if _, err := m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": "new"})); err != nil {
			t.Error(err)
		}
		if err := m.Delete(t.Context(), "a"); err != nil || calls != 3 {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
}

// An admission is called again with the relayer that another writer has stored.
func TestAdmission_LostRace(t *testing.T) {
	store := memory.New()
	other := registryOn(t, store)
	var got []string
	m := managerOf(t, store, relayer.WithAdmission(func(_ context.Context, _ relayer.Operation, old, _ *relayer.Relayer) error {
		got = append(got, old.Name)
		if len(got) == 1 {
			return second(other.Patch(context.Background(), "evm", patchtest.JSON(map[string]any{"name": "faster"})))
		}
		return nil
	}))
	if err := m.Delete(t.Context(), "evm"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"n", "faster"}; !slices.Equal(got, want) {
		t.Errorf("called with %q, want %q", got, want)
	}
}
