//go:build unix

package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/mirror"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/tests/internal/patchtest"
)

// permitEngine permits what a relaying engine needs, for the relayers of one team.
func permitEngine(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	switch access.Action {
	case relayer.ActionGet, relayer.ActionList, relayer.ActionWatch, relayer.ActionReveal, relayer.ActionDisable, relayer.ActionEnable:
		return httpapi.Allow(relayer.Selector{}.Where("label.team", "a")), nil
	}
	return httpapi.Decision{}, nil
}

// engine is a program in another process than the registry: it only has a client.
type engine struct {
	*client.Client
	view *mirror.Mirror
}

func startEngine(t *testing.T, manager *relayer.Manager) engine {
	t.Helper()
	api := newAPI(t, manager, httpapi.WithEngineOperations(), httpapi.WithAuthorizer(permitEngine))
	server := httptest.NewServer(api)
	t.Cleanup(server.Close) // after the end of the context, and so of the streams
	c := newClient(t, server.URL, &http.Transport{}, client.WithFullRPCURLs())
	view, err := mirror.Open(t.Context(), c, relayer.Selector{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(view.Close) // before the server, which waits for its streams
	return engine{c, view}
}

// await waits until the view has the revision of a relayer, and returns it.
func (e engine) await(t *testing.T, want *relayer.Relayer) *relayer.Relayer {
	t.Helper()
	for change := range e.view.Changes(t.Context()) {
		if change.After != nil && change.After.ID == want.ID && change.After.Revision == want.Revision {
			return change.After
		}
	}
	t.Fatalf("the view does not have %v", want)
	return nil
}

func endpoints(urls ...relayer.RPCURL) []relayer.RPCConfig {
	var list []relayer.RPCConfig
	for _, url := range urls {
		list = append(list, relayer.RPCConfig{URL: url, Weight: new(relayer.DefaultRPCWeight)})
	}
	return list
}

// unmasked returns the full URLs.
func unmasked(list []relayer.RPCConfig) (urls []string) {
	for _, endpoint := range list {
		urls = append(urls, endpoint.URL.Unmasked())
	}
	return urls
}

// The view of an engine has the full RPC URLs, and follows their changes.
func TestEngine_FullRPCURLs(t *testing.T) {
	manager := newManager(t, memory.New())
	ours := request("ours", "a")
	ours.CustomRPCURLs = endpoints("https://rpc.example/v2/first-key")
	created, err := manager.Create(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	e := startEngine(t, manager)
	if got := unmasked(e.await(t, created).CustomRPCURLs); !slices.Equal(got, []string{"https://rpc.example/v2/first-key"}) {
		t.Errorf("after the first read the URLs are %q", got)
	}
	for i := range 20 {
		want := fmt.Sprint("https://rpc.example/v2/key-", i)
		changed, err := manager.Patch(t.Context(), "ours", patchtest.JSON(map[string]any{"custom_rpc_urls": endpoints(relayer.RPCURL(want))}))
		if err != nil {
			t.Fatal(err)
		}
		if got := unmasked(e.await(t, changed).CustomRPCURLs); !slices.Equal(got, []string{want}) {
			t.Errorf("the URLs are %q, want %q", got, want)
		}
	}
	removed, err := manager.Patch(t.Context(), "ours", patchtest.JSON(map[string]any{"custom_rpc_urls": nil}))
	if err != nil {
		t.Fatal(err)
	}
	if got := e.await(t, removed).CustomRPCURLs; len(got) != 0 {
		t.Errorf("after their removal the URLs are %v", got)
	}
}

// An engine reports the health of its relayers, and sees the result in its view.
func TestEngine_DisableEnable(t *testing.T) {
	manager := newManager(t, memory.New())
	created, err := manager.Create(t.Context(), request("ours", "a"))
	if err != nil {
		t.Fatal(err)
	}
	e := startEngine(t, manager)
	e.await(t, created)
	reason := relayer.DisabledReason{Type: relayer.RPCValidationFailed, Details: "no response"}
	disabled, err := e.Disable(t.Context(), "ours", reason, relayer.IfRevision(created.Revision))
	if err != nil {
		t.Fatal(err)
	}
	if r := e.await(t, disabled); !r.SystemDisabled || *r.DisabledReason != reason {
		t.Errorf("the view has %v", r)
	}
	if _, err := e.Enable(t.Context(), "ours", relayer.IfRevision(created.Revision)); !errors.Is(err, relayer.ErrConflict) {
		t.Errorf("enable at a former revision: %v", err)
	}
	enabled, err := e.Enable(t.Context(), "ours")
	if err != nil {
		t.Fatal(err)
	}
	if r := e.await(t, enabled); r.SystemDisabled || r.DisabledReason != nil {
		t.Errorf("the view has %v", r)
	}
}

// The relayers of others do not exist for an engine, and it may do nothing else with its own.
func TestEngine_Permissions(t *testing.T) {
	manager := newManager(t, memory.New())
	for id, team := range map[string]string{"ours": "a", "theirs": "b"} {
		if _, err := manager.Create(t.Context(), request(id, team)); err != nil {
			t.Fatal(err)
		}
	}
	e := startEngine(t, manager)
	if _, err := e.view.Get(t.Context(), "theirs"); lengthOf(e.view) != 1 || !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("the view has %d relayers, and another team's: %v", lengthOf(e.view), err)
	}
	reason := relayer.DisabledReason{Type: "x"}
	for want, calls := range map[error]map[string]func() error{
		relayer.ErrNotFound: {
			"reveal":  func() error { _, err := e.RPCURLs(t.Context(), "theirs"); return err },
			"disable": func() error { _, err := e.Disable(t.Context(), "theirs", reason); return err },
			"enable":  func() error { _, err := e.Enable(t.Context(), "theirs"); return err },
		},
		client.ErrForbidden: {
			"create": func() error { _, err := e.Create(t.Context(), request("new", "a")); return err },
			"pause":  func() error { _, err := e.Pause(t.Context(), "ours"); return err },
			"delete": func() error { return e.Delete(t.Context(), "ours") },
		},
	} {
		for name, call := range calls {
			if err := call(); !errors.Is(err, want) {
				t.Errorf("%s: error %v, want %v", name, err, want)
			}
		}
	}

	// A relayer that changes teams leaves one view, and enters another.
	moved, err := manager.Patch(t.Context(), "theirs", patchtest.JSON(map[string]any{"labels": map[string]string{"team": "a"}}))
	if err != nil {
		t.Fatal(err)
	}
	e.await(t, moved)
	if _, err := e.Disable(t.Context(), "theirs", reason); err != nil {
		t.Error(err)
	}
	if _, err := manager.Patch(t.Context(), "theirs", patchtest.JSON(map[string]any{"labels": map[string]string{"team": "b"}})); err != nil {
		t.Fatal(err)
	}
	for change := range e.view.Changes(t.Context()) {
		if change.Kind == relayer.ChangeDeleted && change.Before.ID == "theirs" || lengthOf(e.view) == 1 {
			break
		}
	}
}
