package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
)

func TestApply_Order(t *testing.T) {
	m := newManager(t)
	create(t, m, minimal("z"), minimal("old"))
	renamed := minimal("z")
	renamed.Name = "new"
	p := newPlan(t, m, []relayer.CreateRequest{minimal("b"), renamed, minimal("a")}, plan.WithPrune())
	want := []plan.Result{{ID: "b", Action: plan.Create}, {ID: "z", Action: plan.Update}, {ID: "a", Action: plan.Create}, {ID: "old", Action: plan.Delete}}
	if got := mustApply(t, p); !slices.Equal(got, want) {
		t.Errorf("results %v, want %v", got, want)
	}
	var ids []string
	for r, err := range m.All(t.Context(), relayer.Selector{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	if !slices.Equal(ids, []string{"z", "b", "a"}) {
		t.Errorf("stored %q", ids)
	}
}

func TestApply_ExtraIsKept(t *testing.T) {
	m := newManager(t)
	create(t, m, minimal("extra"))
	if results := mustApply(t, newPlan(t, m, nil)); len(results) > 0 {
		t.Errorf("results %v", results)
	}
	get(t, m, "extra")
}

// An apply leaves what only the host can set.
func TestApply_SystemDisabled(t *testing.T) {
	resolve := func(context.Context, string, relayer.NetworkType, string) (string, error) { return "0xfeed", nil }
	m := newManager(t, relayer.WithAddressResolver(resolve))
	create(t, m, minimal("a"))
	reason := relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "d"}
	if _, err := m.Disable(t.Context(), "a", reason); err != nil {
		t.Fatal(err)
	}
	changed := minimal("a")
	changed.Name, changed.Paused = "new", true
	mustApply(t, newPlan(t, m, []relayer.CreateRequest{changed}))
	if got := get(t, m, "a"); got.Name != "new" || !got.SystemDisabled || got.DisabledReason == nil || *got.DisabledReason != reason || got.Address != "0xfeed" {
		t.Errorf("got %v", got)
	}
}

// Every change by another writer between plan and apply is a conflict, and stays.
func TestApply_Conflict(t *testing.T) {
	rename := func(t *testing.T, m *relayer.Manager, id string) {
		if _, err := m.Patch(t.Context(), id, relayer.Patch{"name": "theirs"}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, m *relayer.Manager, id string) {
		if err := m.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	theirs := func(id string) relayer.CreateRequest {
		req := minimal(id)
		req.Name = "theirs"
		return req
	}
	for name, c := range map[string]struct {
		interfere func(t *testing.T, m *relayer.Manager)
		failed    string
		want      error
	}{
		"created":             {func(t *testing.T, m *relayer.Manager) { create(t, m, theirs("new")) }, "new", relayer.ErrExists},
		"updated":             {func(t *testing.T, m *relayer.Manager) { rename(t, m, "changed") }, "changed", relayer.ErrConflict},
		"deleted":             {func(t *testing.T, m *relayer.Manager) { remove(t, m, "changed") }, "changed", relayer.ErrNotFound},
		"deleted and created": {func(t *testing.T, m *relayer.Manager) { remove(t, m, "changed"); create(t, m, theirs("changed")) }, "changed", relayer.ErrConflict},
		"extra updated":       {func(t *testing.T, m *relayer.Manager) { rename(t, m, "extra") }, "extra", relayer.ErrConflict},
		"extra replaced":      {func(t *testing.T, m *relayer.Manager) { remove(t, m, "extra"); create(t, m, theirs("extra")) }, "extra", relayer.ErrConflict},
		"extra deleted":       {func(t *testing.T, m *relayer.Manager) { remove(t, m, "extra") }, "", nil},
	} {
		for _, isRemote := range []bool{false, true} {
			t.Run(fmt.Sprint(name, isRemote), func(t *testing.T) {
				m := newManager(t)
				create(t, m, minimal("changed"), minimal("extra"))
				var registry relayer.Registry = m
				if isRemote {
					registry = &remote{Registry: m}
				}
				changed := minimal("changed")
				changed.Name = "ours"
				p := newPlan(t, registry, []relayer.CreateRequest{changed, minimal("new"), minimal("last")}, plan.WithPrune())
				c.interfere(t, m)
				results, err := p.Apply(t.Context())
				if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.failed+": ") {
					t.Errorf("error %v, want %v of %s", err, c.want, c.failed)
				}
				for _, result := range results {
					if isFailed := result.ID == c.failed; (result.Err != nil) != isFailed {
						t.Errorf("result %v", result)
					}
				}
				get(t, m, "last")
				if c.want == relayer.ErrConflict || c.want == relayer.ErrExists {
					if got := get(t, m, c.failed); got.Name != "theirs" {
						t.Errorf("the relayer of the other writer was overwritten: %v", got)
					}
				}
			})
		}
	}
}

// Deletes wait until everything else has succeeded.
func TestApply_DeletesAfterFailure(t *testing.T) {
	moved := minimal("moved")
	moved.SignerID = "s2"
	for name, desired := range map[string][]relayer.CreateRequest{"blocked": {minimal("moved")}, "conflict": {moved, minimal("new")}} {
		m := newManager(t)
		create(t, m, moved, minimal("extra"))
		p := newPlan(t, m, desired, plan.WithPrune())
		if name == "conflict" {
			create(t, m, minimal("new"))
		}
		if _, err := p.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "no relayer was deleted because of the failures: 1 relayer left to delete") {
			t.Errorf("%s: error %v", name, err)
		}
		get(t, m, "extra")
	}
}

// refusing fails every create of one relayer, except a dry run.
type refusing struct {
	relayer.Registry
	id  string
	err error
}

func (r *refusing) Create(ctx context.Context, req relayer.CreateRequest, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	if req.ID == r.id && !isDryRun(options) {
		return nil, r.err
	}
	return r.Registry.Create(ctx, req, options...)
}

// A failure of one relayer does not stop the others. A failure of the registry does.
func TestApply_Failures(t *testing.T) {
	unauthorized := errors.New("unauthorized")
	for err, want := range map[error][]string{
		relayer.ErrExists: {"a", "b", "c"}, relayer.ErrConflict: {"a", "b", "c"}, &relayer.ValidationError{}: {"a", "b", "c"},
		relayer.ErrUnavailable: {"a", "b"}, relayer.ErrOutcomeUnknown: {"a", "b"}, context.DeadlineExceeded: {"a", "b"}, unauthorized: {"a", "b"},
	} {
		registry := &refusing{newManager(t), "b", err}
		results, got := newPlan(t, registry, []relayer.CreateRequest{minimal("a"), minimal("b"), minimal("c")}).Apply(t.Context())
		var ids []string
		for _, result := range results {
			ids = append(ids, result.ID)
		}
		if !slices.Equal(ids, want) || !errors.Is(got, err) || results[0].Err != nil || !errors.Is(results[1].Err, err) {
			t.Errorf("%v: results %v, error %v", err, results, got)
		}
		if isStopped := strings.Contains(got.Error(), "stopped: 1 change not tried"); isStopped != (len(want) == 2) {
			t.Errorf("%v: error %v", err, got)
		}
	}
}

// A rejected signer_id names the stored relayer that has the signer, in any words of the
// registry.
func TestApply_SignerHolder(t *testing.T) {
	otherNetwork := minimal("other")
	otherNetwork.Network = "mainnet"
	stored := newManager(t, relayer.WithExclusiveSigners())
	create(t, stored, otherNetwork, minimal("old"))
	plain := newManager(t)
	create(t, plain, otherNetwork, minimal("old"))
	rejected := &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "signer_id", Message: "must be unique"}}}
	otherField := &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "name", Message: "is used by another relayer"}}}
	for name, c := range map[string]struct {
		registry relayer.Registry
		want     string
	}{
		"exclusive signers": {stored, "choose another signer (relayer old has this signer)"},
		"other words":       {&refusing{plain, "new", rejected}, "new: invalid relayer: signer_id must be unique (relayer old has this signer)"},
		"another field":     {&refusing{plain, "new", otherField}, "new: invalid relayer: name is used by another relayer"},
	} {
		_, err := newPlan(t, c.registry, []relayer.CreateRequest{otherNetwork, minimal("old"), minimal("new")}).Apply(t.Context())
		if !errors.Is(err, relayer.ErrInvalid) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want the end %s", name, err, c.want)
		}
	}
}

// contextIgnorer ignores the end of a context.
type contextIgnorer struct{ relayer.Registry }

func (h contextIgnorer) Create(ctx context.Context, req relayer.CreateRequest, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return h.Registry.Create(context.WithoutCancel(ctx), req, options...)
}

func TestApply_Canceled(t *testing.T) {
	m := contextIgnorer{newManager(t)}
	p := newPlan(t, m, []relayer.CreateRequest{minimal("a"), minimal("b")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results, err := p.Apply(ctx)
	if !errors.Is(err, context.Canceled) || len(results) != 1 {
		t.Errorf("results %v, error %v", results, err)
	}
	expectActions(t, newPlan(t, m, []relayer.CreateRequest{minimal("a"), minimal("b")}), plan.Create, plan.Create)
}

// A relayer that is to be deleted, and that another writer has deleted, is no failure.
func TestApply_DeletedSince(t *testing.T) {
	m := newManager(t)
	create(t, m, minimal("old"))
	p := newPlan(t, m, nil, plan.WithPrune())
	if err := m.Delete(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	want := []plan.Result{{ID: "old", Action: plan.Delete}}
	if got := mustApply(t, p); !slices.Equal(got, want) {
		t.Errorf("results %v, want %v", got, want)
	}
}
