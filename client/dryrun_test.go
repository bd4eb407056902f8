package client_test

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

func TestDryRun(t *testing.T) {
	m := newManager(t)
	must(m.Create(t.Context(), evm("a")))(t)
	before := must(m.List(t.Context(), relayer.ListQuery{}))(t).Position
	runs := map[string]write{
		"update of nothing": {func(c call) (*relayer.Relayer, error) {
			return c.Update(c.ctx, "a", func(*relayer.Relayer) error { return nil }, c.options...)
		}, false, ""},
		"resume of nothing": {func(c call) (*relayer.Relayer, error) { return c.Resume(c.ctx, "a", c.options...) }, false, ""},
		"enable of nothing": {func(c call) (*relayer.Relayer, error) { return c.Enable(c.ctx, "a", c.options...) }, false, ""},
	}
	maps.Copy(runs, writes)
	for name, write := range runs {
		for _, registry := range []relayer.Registry{m, serveEngine(t, m)} {
			r, err := write.run(call{Registry: registry, ctx: t.Context(), options: []relayer.WriteOption{relayer.DryRun()}})
			if err != nil {
				t.Errorf("%T: %s: error %v", registry, name, err)
			}
			if want := (relayer.ChangeInfo{Changed: strings.Fields(write.changed)}); r != nil && !reflect.DeepEqual(r.LastChange, want) {
				t.Errorf("%T: %s: the last change is %#v, want %#v", registry, name, r.LastChange, want)
			}
			if r != nil && (r.Revision == 0) != strings.HasPrefix(name, "create") {
				t.Errorf("%T: %s: revision %d", registry, name, r.Revision)
			}
		}
	}
	if after := must(m.List(t.Context(), relayer.ListQuery{}))(t).Position; after != before {
		t.Errorf("the position is %s, want %s", after, before)
	}
}

// A dry run fails as the write would.
func TestDryRun_Errors(t *testing.T) {
	m := newManager(t)
	must(m.Create(t.Context(), evm("a")))(t)
	c := serve(t, m)
	dry := relayer.DryRun()
	_, exists := c.Create(t.Context(), evm("a"), dry)
	_, invalid := c.Patch(t.Context(), "a", []byte(`{"name":""}`), dry)
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
	if s.methods() != "GET PATCH PATCH" || s.seen[1].path != "/pre%20fix/api/v1/relayers/a?changes=true&dry_run=true" {
		t.Errorf("sent %s, %s", s.methods(), s.seen[1].path)
	}
}
