package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
)

// A URL without a hidden part is exported as it is stored.
func TestExport_UserInformation(t *testing.T) {
	m := newManager(t)
	create(t, m, withURLs("a", "https://user:"+secret+"@rpc.example", "https://"+secret+"@rpc.example:8545/path", "https://@c.example/", "HTTPS://Public.example/"))
	file := exported(t, m)
	for _, want := range []string{`"https://***@rpc.example"`, `"https://***@rpc.example:8545/***"`, `"https://***@c.example/"`, `"HTTPS://Public.example/"`} {
		if !strings.Contains(file, want) {
			t.Errorf("no %s in %s", want, file)
		}
	}
	desired := parse(t, file).Relayers
	expectNoChanges(t, m, desired)
	expectNoChanges(t, &remote{Registry: m}, desired)

	// The file does not create a relayer without the user information.
	p := newPlan(t, newManager(t), desired)
	expectActions(t, p, plan.Blocked)
	if got := len(p.Entries()[0].Problems); got != 3 {
		t.Errorf("%d problems, want 3: %s", got, p)
	}
}

// User information is removed with its endpoint, because a Manager takes the URL without
// it for a mask.
func TestNew_UserInformationRemoved(t *testing.T) {
	const full = "https://user:" + secret + "@rpc.example"
	for _, bare := range []relayer.RPCURL{"https://rpc.example", "https://rpc.example/"} {
		m := newManager(t)
		create(t, m, withURLs("a", full, "https://b.example"))
		without := []relayer.CreateRequest{withURLs("a", bare, "https://b.example")}
		p := newPlan(t, m, without)
		expectActions(t, p, plan.Blocked)
		if got := p.Entries()[0].Problems; len(got) != 1 || got[0].Field != "custom_rpc_urls[0].url" {
			t.Errorf("problems %v", got)
		}
		patch := `{"custom_rpc_urls":[{"url":"` + string(bare) + `"},{"url":"https://b.example"}]}`
		if _, err := m.Patch(t.Context(), "a", []byte(patch)); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("the Manager returned %v", err)
		}
		for _, urls := range [][]relayer.RPCURL{{"https://b.example"}, {bare, "https://b.example"}} {
			mustApply(t, newPlan(t, m, []relayer.CreateRequest{withURLs("a", urls...)}))
		}
		if got := texts(get(t, m, "a").CustomRPCURLs); !slices.Equal(got, []string{string(bare), "https://b.example"}) {
			t.Errorf("stored %q", got)
		}
	}
}

// For all pairs of URLs: an exported file has no changes, and without one of its endpoints it
// removes exactly that one or is blocked.
func TestExport_EveryPair(t *testing.T) {
	urls := []relayer.RPCURL{
		"https://h.example", "https://v@h.example", "https://h.example/1", "https://h.example/2", "https://u:p@h.example/3", "HTTPS://h.example/",
		"https://0123456789abcdefghij.a.h.example", "https://u:p@0123456789abcdefghij.a.h.example/6",
	}
	blocked, removed := 0, 0
	for i := range len(urls) * len(urls) {
		pair := []relayer.RPCURL{urls[i/len(urls)], urls[i%len(urls)]}
		m := newManager(t)
		create(t, m, withURLs("a", pair...))
		file := exported(t, m)
		expectNoChanges(t, m, parse(t, file).Relayers)
		for left := range pair {
			desired := parse(t, file).Relayers
			desired[0].CustomRPCURLs = slices.Delete(desired[0].CustomRPCURLs, 1-left, 2-left)
			p := newPlan(t, m, desired)
			if p.Entries()[0].Action == plan.Blocked {
				blocked++
				continue
			}
			removed++
			copied := newManager(t)
			create(t, copied, withURLs("a", pair...))
			mustApply(t, newPlan(t, copied, desired))
			if got := texts(get(t, copied, "a").CustomRPCURLs); !slices.Equal(got, []string{string(pair[left])}) {
				t.Fatalf("%q with only the endpoint %d: stored %q", []string{string(pair[0]), string(pair[1])}, left, got)
			}
		}
	}
	if blocked == 0 || removed == 0 {
		t.Errorf("%d files were blocked, and %d removed an endpoint", blocked, removed)
	}
}
