package client_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
)

// dryRuns are writes that would change relayer a, or create relayer new.
var dryRuns = map[string]func(t *testing.T, g relayer.Registry) error{
	"create": func(t *testing.T, g relayer.Registry) error {
		created, err := g.Create(t.Context(), changed(func(r *relayer.CreateRequest) { r.ID = "new" }), relayer.DryRun())
		if err == nil && (created.ID != "new" || created.Revision != 0 || !slices.Contains(created.LastChange.Changed, "policies.gas_price_cap")) {
			t.Errorf("created %v, last change %+v", created, created.LastChange)
		}
		return err
	},
	"patch": func(t *testing.T, g relayer.Registry) error {
		patched, err := g.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": "new"}), relayer.DryRun())
		expectChanged(t, patched, err, "name")
		if err == nil && patched.Revision != 1 {
			t.Errorf("revision %d", patched.Revision)
		}
		return err
	},
	"update": func(t *testing.T, g relayer.Registry) error {
		updated, err := g.Update(t.Context(), "a", func(r *relayer.Relayer) error { r.Name = "new"; return nil }, relayer.DryRun())
		expectChanged(t, updated, err, "name")
		return err
	},
	"update of nothing": func(t *testing.T, g relayer.Registry) error {
		same, err := g.Update(t.Context(), "a", func(*relayer.Relayer) error { return nil }, relayer.DryRun())
		expectChanged(t, same, err)
		return err
	},
	"pause": func(t *testing.T, g relayer.Registry) error {
		paused, err := g.Pause(t.Context(), "a", relayer.DryRun())
		expectChanged(t, paused, err, "paused")
		return err
	},
	"resume of nothing": func(t *testing.T, g relayer.Registry) error {
		same, err := g.Resume(t.Context(), "a", relayer.DryRun())
		expectChanged(t, same, err)
		return err
	},
	"disable": func(t *testing.T, g relayer.Registry) error {
		disabled, err := g.Disable(t.Context(), "a", relayer.DisabledReason{Type: "x"}, relayer.DryRun())
		expectChanged(t, disabled, err, "disabled_reason.details", "disabled_reason.type", "system_disabled")
		return err
	},
	"enable of nothing": func(t *testing.T, g relayer.Registry) error {
		same, err := g.Enable(t.Context(), "a", relayer.DryRun())
		expectChanged(t, same, err)
		return err
	},
	"delete": func(t *testing.T, g relayer.Registry) error { return g.Delete(t.Context(), "a", relayer.DryRun()) },
}

// expectChanged checks what a dry run of a change of relayer a would change.
func expectChanged(t *testing.T, r *relayer.Relayer, err error, want ...string) {
	t.Helper()
	want = append([]string{}, want...)
	if err == nil && !reflect.DeepEqual(r.LastChange, relayer.ChangeInfo{Changed: want}) {
		t.Errorf("the last change is %#v, want %q", r.LastChange, want)
	}
}

func TestDryRun(t *testing.T) {
	m := newManager(t)
	must(m.Create(t.Context(), evm("a")))(t)
	before := snapshot(t, m)
	for name, run := range dryRuns {
		for _, registry := range []relayer.Registry{m, serveEngine(t, m)} {
			if err := run(t, registry); err != nil {
				t.Errorf("%T: %s: error %v", registry, name, err)
			}
		}
	}
	if after := snapshot(t, m); after != before {
		t.Errorf("the relayers are %s, want %s", after, before)
	}
}

func snapshot(t *testing.T, g relayer.Registry) string {
	t.Helper()
	all := must(allOf(t.Context(), g))(t)
	return printed(all)
}

// A dry run fails as the write would.
func TestDryRun_Errors(t *testing.T) {
	m := newManager(t)
	must(m.Create(t.Context(), evm("a")))(t)
	c := serve(t, m)
	dry := relayer.DryRun()
	_, exists := c.Create(t.Context(), evm("a"), dry)
	_, invalid := c.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": ""}), dry)
	_, unknown := c.Pause(t.Context(), "unknown", dry)
	conflict := c.Delete(t.Context(), "a", dry, relayer.IfRevision(99))
	_, disable := c.Disable(t.Context(), "a", relayer.DisabledReason{Type: "x"}, dry) // not enabled by the host
	for want, err := range map[error]error{
		relayer.ErrExists: exists, relayer.ErrInvalid: invalid, relayer.ErrNotFound: unknown, relayer.ErrConflict: conflict, errors.ErrUnsupported: disable,
	} {
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}

// Only a response of the API shows that the server has dry runs.
func TestDryRun_Proxy(t *testing.T) {
	for name, probe := range map[string]step{
		"404": html(404), "403": html(403), "400": html(400), "200": html(200), "unknown": fail(404, "Not Found"), "redirect": respond(302, "", "", "Location", "/login"),
	} {
		c, s := scripted(t, once, probe, stored(t, evm("a"), 200, 1))
		if err := c.Delete(t.Context(), "a", relayer.DryRun()); err == nil || s.methods() != "GET" {
			t.Errorf("%s: sent %s, error %v", name, s.methods(), err)
		}
	}
	c, s := scripted(t, once, respondJSON(200, `{"success":true,"data":{}}`), stored(t, evm("a"), 200, 1), stored(t, evm("a"), 200, 1))
	for range 2 {
		if _, err := c.Pause(t.Context(), "a", relayer.DryRun()); err != nil {
			t.Error(err)
		}
	}
	if s.methods() != "GET PATCH PATCH" || s.seen[1].path != "/prefix/api/v1/relayers/a?changes=true&dry_run=true" {
		t.Errorf("sent %s, %s", s.methods(), s.seen[1].path)
	}
}
