package client_test

import (
	"errors"
	"testing"

	"github.com/go-relayer/relayer"
)

// dryRuns are writes that would change relayer a, or create relayer new.
var dryRuns = map[string]func(t *testing.T, g relayer.Registry) error{
	"create": func(t *testing.T, g relayer.Registry) error {
		created, err := g.Create(t.Context(), changed(func(r *relayer.CreateRequest) { r.ID = "new" }), relayer.DryRun())
		if err == nil && (created.ID != "new" || created.Revision != 0) {
			t.Errorf("created %v", created)
		}
		return err
	},
	"patch": func(t *testing.T, g relayer.Registry) error {
		patched, err := g.Patch(t.Context(), "a", relayer.Patch{"name": "new"}, relayer.DryRun())
		if err == nil && patched.Name != "new" {
			t.Errorf("patched %v", patched)
		}
		return err
	},
	"update": func(t *testing.T, g relayer.Registry) error {
		_, err := g.Update(t.Context(), "a", func(r *relayer.Relayer) error { r.Name = "new"; return nil }, relayer.DryRun())
		return err
	},
	"update of nothing": func(t *testing.T, g relayer.Registry) error {
		same, err := g.Update(t.Context(), "a", func(*relayer.Relayer) error { return nil }, relayer.DryRun())
		if err == nil && same.LastChange != (relayer.Note{}) {
			t.Errorf("the last change is %+v", same.LastChange)
		}
		return err
	},
	"pause": func(t *testing.T, g relayer.Registry) error {
		paused, err := g.Pause(t.Context(), "a", relayer.DryRun())
		if err == nil && (!paused.Paused || paused.LastChange != (relayer.Note{})) {
			t.Errorf("paused %v, last change %+v", paused, paused.LastChange)
		}
		return err
	},
	"resume of nothing": func(t *testing.T, g relayer.Registry) error {
		same, err := g.Resume(t.Context(), "a", relayer.DryRun())
		if err == nil && same.LastChange != (relayer.Note{}) {
			t.Errorf("the last change is %+v", same.LastChange)
		}
		return err
	},
	"delete": func(t *testing.T, g relayer.Registry) error { return g.Delete(t.Context(), "a", relayer.DryRun()) },
}

func TestDryRun(t *testing.T) {
	m := newManager(t)
	if _, err := m.Create(t.Context(), evm("a")); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, m)
	for name, run := range dryRuns {
		if err := run(t, serve(t, m)); err != nil {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if after := snapshot(t, m); after != before {
		t.Errorf("the relayers are %s, want %s", after, before)
	}
}

func snapshot(t *testing.T, g relayer.Registry) string {
	t.Helper()
	all, err := allOf(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return printed(all)
}

// A dry run fails as the write would.
func TestDryRun_Errors(t *testing.T) {
	m := newManager(t)
	if _, err := m.Create(t.Context(), evm("a")); err != nil {
		t.Fatal(err)
	}
	c := serve(t, m)
	dry := relayer.DryRun()
	_, exists := c.Create(t.Context(), evm("a"), dry)
	_, invalid := c.Patch(t.Context(), "a", relayer.Patch{"name": ""}, dry)
	_, unknown := c.Pause(t.Context(), "unknown", dry)
	conflict := c.Delete(t.Context(), "a", dry, relayer.IfRevision(99))
	_, disable := c.Disable(t.Context(), "a", relayer.DisabledReason{Type: "x"}, dry)
	for want, err := range map[error]error{
		relayer.ErrExists: exists, relayer.ErrInvalid: invalid, relayer.ErrNotFound: unknown, relayer.ErrConflict: conflict, errors.ErrUnsupported: disable,
	} {
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}

// A server that does not know dry runs would ignore the parameter and carry out the write.
func TestDryRun_OpenZeppelinRelayer(t *testing.T) {
	c := clientOf(t, &publicServer{relayers: make(map[string]map[string]any)})
	if _, err := c.Create(t.Context(), evm("a")); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, c)
	for name, run := range dryRuns {
		want := errors.ErrUnsupported
		switch name {
		case "update":
			want = relayer.ErrNoRevision
		case "update of nothing":
			want = nil // nothing is sent
		}
		if err := run(t, c); !errors.Is(err, want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if after := snapshot(t, c); after != before {
		t.Errorf("the relayers are %s, want %s", after, before)
	}
}

// Only a response of the API shows that the server has dry runs.
func TestDryRun_Proxy(t *testing.T) {
	for name, probe := range map[string]step{
		"404": html(404), "403": html(403), "400": html(400), "405": fail(405, "Method Not Allowed"), "redirect": respond(302, "", "", "Location", "/login"),
	} {
		c, s := scripted(t, once, probe, stored(t, evm("a"), 200, 1))
		if err := c.Delete(t.Context(), "a", relayer.DryRun()); err == nil || s.methods() != "POST" {
			t.Errorf("%s: sent %s, error %v", name, s.methods(), err)
		}
	}
	for name, probe := range map[string]step{"invalid": fail(400, "Bad Request"), "forbidden": fail(403, "Forbidden")} {
		c, s := scripted(t, once, probe, stored(t, evm("a"), 200, 1))
		_, err := c.Pause(t.Context(), "a", relayer.DryRun())
		if err != nil || s.methods() != "POST PATCH" || s.seen[1].path != "/prefix/api/v1/relayers/a?changes=true&dry_run=true" {
			t.Errorf("%s: sent %s, error %v", name, s.methods(), err)
		}
	}
}
