package relayer_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/memory"
)

// policyProblem returns the message with which a policy rejects a URL, or "". It fails
// unless every way to write the URL has the same result, with the index of the URL.
func policyProblem(t testing.TB, policy rpcguard.Policy, text string) string {
	t.Helper()
	ctx := context.Background()
	m := newManager(t, relayer.WithRPCPolicy(policy))
	mustCreate(t, m, minimal("a"))
	endpoints := []relayer.RPCConfig{{URL: relayer.RPCURL(text)}}
	members := `"custom_rpc_urls":[{"url":` + treeText(t, text) + `}]`
	req := minimal("b")
	req.CustomRPCURLs = endpoints
	_, createErr := m.Create(ctx, req)
	_, wireErr := m.Documents().Create(ctx, []byte(evmBody(members)))
	_, updateErr := m.Update(ctx, "a", func(r *relayer.Relayer) error { r.CustomRPCURLs = endpoints; return nil })
	_, patchErr := m.Documents().Patch(ctx, "a", []byte("{"+members+"}"))
	message := ""
	for i, err := range []error{createErr, wireErr, updateErr, patchErr} {
		got := ""
		if err != nil {
			problems := fieldErrors(t, err)
			wantFields(t, problems, "custom_rpc_urls[0].url")
			got = problems[0].Message
		}
		if i > 0 && got != message {
			t.Errorf("%s: one way in says %q, another %q", text, message, got)
		}
		message = got
	}
	return message
}

func TestRPCPolicy_EveryWayIn(t *testing.T) {
	policy := rpcguard.Policy{AllowedHosts: []string{"rpc.example", "geth"}, PublicOnly: true, RefuseUserInfo: true}
	for url, want := range map[string]string{
		"https://rpc.example": "", "http://geth:8545": "", "https://other.example": "must have a host that is allowed here",
		"http://169.254.169.254": "must not point at a cloud metadata service", "https://user@rpc.example": "must not contain user information",
	} {
		if got := policyProblem(t, policy, url); got != want {
			t.Errorf("%s: message %q, want %q", url, got, want)
		}
	}
	if got := policyProblem(t, rpcguard.Policy{PublicOnly: true}, "http://node.local"); got != "must point at a public address" {
		t.Errorf("a private name: message %q", got)
	}
}

// New returns the error of an invalid policy.
func TestRPCPolicy_Invalid(t *testing.T) {
	if _, err := relayer.New(memory.New(), relayer.WithRPCPolicy(rpcguard.Policy{AllowedHosts: []string{"10.0.0.1"}})); err == nil {
		t.Error("an invalid policy was accepted")
	}
}

// Each invalid URL has one problem, and the other problems are reported too.
func TestRPCPolicy_WithOtherProblems(t *testing.T) {
	urls := `"custom_rpc_urls":[{"url":"https://a.example"},{"url":"http://10.0.0.1"},{"url":"nothing"},{"url":"http://0"},{"weight":1},{"url":"http://127.1","weight":101}]`
	problems := problemsOf(t, evmBody(urls, `"id":"/"`), relayer.WithRPCPolicy(rpcguard.Policy{PublicOnly: true}))
	wantFields(t, problems, "id", "custom_rpc_urls[1].url", "custom_rpc_urls[2].url", "custom_rpc_urls[3].url", "custom_rpc_urls[4].url", "custom_rpc_urls[5].url", "custom_rpc_urls[5].weight")
}

// Changes of the slices after New have no effect.
func TestRPCPolicy_Copied(t *testing.T) {
	hosts, addresses := []string{"A.example"}, []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	m := newManager(t, relayer.WithRPCPolicy(rpcguard.Policy{AllowedHosts: hosts, AllowedAddresses: addresses}))
	if hosts[0] != "A.example" {
		t.Errorf("the host's list was changed to %q", hosts)
	}
	hosts[0], addresses[0] = "b.example", netip.MustParsePrefix("10.0.0.2/32")
	for text, isAllowed := range map[relayer.RPCURL]bool{"http://a.example": true, "http://10.0.0.1": true, "http://b.example": false, "http://10.0.0.2": false} {
		req := minimal("")
		req.CustomRPCURLs = []relayer.RPCConfig{{URL: text}}
		if _, err := m.Create(t.Context(), req); (err == nil) != isAllowed {
			t.Errorf("%s: error %v", string(text), err)
		}
	}
}

// hostKey is a label of a host that looks like a key.
const hostKey = "b33d000011112222333344445555aaaa"

// The policy is applied to the real host, and again only if the URL is given again: if it
// is sealed, a patch of another field does not have it.
func TestRPCPolicy_KeyInHost(t *testing.T) {
	const allowed, other = "https://" + hostKey + ".eth.rpc.example", "https://" + hostKey + "0.eth.rpc.example"
	policy := relayer.WithRPCPolicy(rpcguard.Policy{AllowedHosts: []string{hostKey + ".eth.rpc.example"}, PublicOnly: true})
	for name, store := range map[string]relayer.Store{"clear": memory.New(), "sealed": sealing(t, memory.New(), ringOf(t, "k1"))} {
		t.Run(name, func(t *testing.T) {
			m := managerOn(t, store, policy)
			mustCreate(t, m, withURLs("a", allowed))
			if r, err := m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": "changed"})); err != nil || r.Name != "changed" {
				t.Errorf("a patch of the name returned %v, error %v", r, err)
			}
			for _, url := range []string{other, "https://eth.rpc.example"} {
				problems := fieldErrors(t, second(m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"custom_rpc_urls": withURLs("", url).CustomRPCURLs}))))
				if problems[0] != (relayer.FieldError{Field: "custom_rpc_urls[0].url", Message: "must have a host that is allowed here"}) {
					t.Errorf("%s: %+v", url, problems)
				}
			}
			expectURLs(t, m, "a", allowed)
			if document := storedDocument(t, m, "a"); !strings.Contains(document, `"https://***.eth.rpc.example"`) || strings.Contains(document, hostKey) {
				t.Errorf("stored %s", document)
			}
			for id, err := range m.Check(t.Context()) {
				t.Errorf("check of %s: %v", id, err)
			}
		})
	}
}

// A relayer stored before the policy can be paused, deleted, and changed to comply.
func TestRPCPolicy_EnabledLater(t *testing.T) {
	ctx := t.Context()
	store := memory.New()
	before, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	req := minimal("a")
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://a.example"}, {URL: "http://127.0.0.1:8545"}}
	mustCreate(t, before, req)
	m, err := relayer.New(store, relayer.WithRPCPolicy(rpcguard.Policy{PublicOnly: true}))
	if err != nil {
		t.Fatal(err)
	}
	_, pauseErr := m.Pause(ctx, "a")
	_, resumeErr := m.Resume(ctx, "a")
	_, disableErr := m.Disable(ctx, "a", relayer.DisabledReason{Type: relayer.RPCValidationFailed})
	_, enableErr := m.Enable(ctx, "a")
	if err := errors.Join(pauseErr, resumeErr, disableErr, enableErr); err != nil {
		t.Error(err)
	}
	_, updateErr := m.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = "x"; return nil })
	_, patchErr := m.Documents().Patch(ctx, "a", []byte(`{"name":"x"}`))
	for _, err := range []error{updateErr, patchErr} {
		wantFields(t, fieldErrors(t, err), "custom_rpc_urls[1].url")
	}
	if _, err := m.Documents().Patch(ctx, "a", []byte(`{"name":"x","custom_rpc_urls":[{"url":"https://a.example"}]}`)); err != nil {
		t.Error(err)
	}
	if err := m.Delete(ctx, "a"); err != nil {
		t.Error(err)
	}
}
