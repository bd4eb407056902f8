package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
)

// exported returns the masked file of a registry.
func exported(t *testing.T, registry relayer.Registry) string {
	t.Helper()
	file, err := plan.Export(t.Context(), registry, relayer.Selector{})
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

func urlsOf(r *relayer.Relayer) (urls []string) {
	for _, endpoint := range r.CustomRPCURLs {
		urls = append(urls, string(endpoint.URL))
	}
	return urls
}

// A masked URL keeps the stored one wherever it is in the list, and never another one.
func TestApply_MaskedURLs(t *testing.T) {
	const (
		leaked, good, user = "https://h.example/v2/LEAKED", "https://h.example/v2/GOOD", "https://u:p@h.example/v2/USER"
		other, mask        = "https://other.example/KEY", "https://h.example/***"
		otherMask          = "https://other.example/***"
		userMask           = "https://***@h.example/***"
	)
	for name, c := range map[string]struct {
		stored, file, want []relayer.RPCURL // want is nil if the entry is blocked
	}{
		"one of two removed":               {[]relayer.RPCURL{leaked, good}, []relayer.RPCURL{mask}, nil},
		"one of two replaced":              {[]relayer.RPCURL{leaked, good}, []relayer.RPCURL{mask, "https://h.example/v2/NEW"}, nil},
		"one of two given in full":         {[]relayer.RPCURL{leaked, good}, []relayer.RPCURL{good}, []relayer.RPCURL{good}},
		"one of two in full, one masked":   {[]relayer.RPCURL{leaked, good}, []relayer.RPCURL{mask, good}, []relayer.RPCURL{leaked, good}},
		"one mask for two":                 {[]relayer.RPCURL{good}, []relayer.RPCURL{mask, mask}, nil},
		"one of two with user information": {[]relayer.RPCURL{user, good}, []relayer.RPCURL{mask}, nil},
		"both swapped":                     {[]relayer.RPCURL{user, good}, []relayer.RPCURL{mask, userMask}, nil},
		"both":                             {[]relayer.RPCURL{leaked, good}, []relayer.RPCURL{mask, mask}, []relayer.RPCURL{leaked, good}},
		"both, one added":                  {[]relayer.RPCURL{user, good}, []relayer.RPCURL{userMask, mask, other}, []relayer.RPCURL{user, good, other}},
		"both, one between removed":        {[]relayer.RPCURL{leaked, other, good}, []relayer.RPCURL{mask, mask}, []relayer.RPCURL{leaked, good}},
		"both, another moved":              {[]relayer.RPCURL{leaked, other, good}, []relayer.RPCURL{otherMask, mask, mask}, []relayer.RPCURL{other, leaked, good}},
		"unique, first removed":            {[]relayer.RPCURL{leaked, other}, []relayer.RPCURL{otherMask}, []relayer.RPCURL{other}},
		"unique, moved":                    {[]relayer.RPCURL{good, other}, []relayer.RPCURL{otherMask, mask}, []relayer.RPCURL{other, good}},
		"mask of a server":                 {[]relayer.RPCURL{other, user}, []relayer.RPCURL{mask}, []relayer.RPCURL{user}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t)
			create(t, m, withURLs("a", c.stored...))
			p := newPlan(t, m, []relayer.CreateRequest{withURLs("a", c.file...)})
			want := c.want
			if c.want == nil {
				expectActions(t, p, plan.Blocked)
				want = c.stored
			} else {
				mustApply(t, p)
			}
			var texts []string
			for _, url := range want {
				texts = append(texts, string(url))
			}
			if got := urlsOf(get(t, m, "a")); !slices.Equal(got, texts) {
				t.Errorf("stored %q, want %q", got, texts)
			}
		})
	}
}

// Endpoints with the same mask differ visibly only by their weights, so that a changed
// weight may mean another order.
func TestNew_WeightsOfEqualMasks(t *testing.T) {
	m := newManager(t)
	stored := withURLs("a", "https://h.example/1", "https://h.example/2", "https://other.example/3")
	stored.CustomRPCURLs[0].Weight = new(50.0)
	create(t, m, stored)
	desired := parse(t, exported(t, m)).Relayers
	endpoints := desired[0].CustomRPCURLs
	endpoints[2].Weight = new(1.0)
	p := newPlan(t, m, desired)
	expectChanges(t, p.Entries()[0], plan.Change{Path: "custom_rpc_urls[2].weight", Old: "100", New: "1"})
	endpoints[0], endpoints[1] = endpoints[1], endpoints[0]
	p = newPlan(t, m, desired)
	expectActions(t, p, plan.Blocked)
	if got := p.Entries()[0].Problems[0]; got.Field != "custom_rpc_urls[0].url" || got.Message != "must be the full URL: several endpoints have this mask, and the file changes their number, order or weights" {
		t.Errorf("problem %v", got)
	}
}

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

	desired[0].CustomRPCURLs[0].Weight = new(1.0)
	expectActions(t, newPlan(t, &remote{Registry: m}, desired), plan.Blocked)
	mustApply(t, newPlan(t, m, desired))
	if got := urlsOf(get(t, m, "a")); got[0] != "https://user:"+secret+"@rpc.example" {
		t.Errorf("stored %q", got)
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
		const message = "must not be the stored URL without its user information: to remove the user information, apply the file without this endpoint first"
		if got := p.Entries()[0].Problems; len(got) != 1 || got[0] != (relayer.FieldError{Field: "custom_rpc_urls[0].url", Message: message}) {
			t.Errorf("problems %v", got)
		}
		if _, err := m.Patch(t.Context(), "a", relayer.Patch{"custom_rpc_urls": without[0].CustomRPCURLs}); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("the Manager returned %v", err)
		}
		for _, urls := range [][]relayer.RPCURL{{"https://b.example"}, {bare, "https://b.example"}} {
			mustApply(t, newPlan(t, m, []relayer.CreateRequest{withURLs("a", urls...)}))
		}
		if got := urlsOf(get(t, m, "a")); !slices.Equal(got, []string{string(bare), "https://b.example"}) {
			t.Errorf("stored %q", got)
		}
	}
}

func TestNew_UserInformationChanged(t *testing.T) {
	m := newManager(t)
	create(t, m, withURLs("a", "https://user:"+secret+"@rpc.example"))
	for url, want := range map[relayer.RPCURL]plan.Change{
		"https://user:new" + secret + "@rpc.example": {Path: "custom_rpc_urls[0].url", Old: `"https://***@rpc.example"`, New: `"https://***@rpc.example"`},
		"https://other.example":                      {Path: "custom_rpc_urls[0].url", Old: `"https://***@rpc.example"`, New: `"https://other.example"`},
	} {
		expectChanges(t, newPlan(t, m, []relayer.CreateRequest{withURLs("a", url)}).Entries()[0], want)
	}
}

// For all triples of URLs: an exported file has no changes, and without one of its
// endpoints it removes exactly that one or is blocked.
func TestExport_EveryTriple(t *testing.T) {
	urls := []relayer.RPCURL{
		"https://h.example", "https://h.example/", "https://u:p@h.example", "https://v@h.example", "https://h.example/1", "https://h.example/2",
		"https://u:p@h.example/3", "HTTPS://h.example", "wss://h.example/5", "https://0123456789abcdefghij.a.h.example", "https://u:p@0123456789abcdefghij.a.h.example/6",
	}
	blocked, removed := 0, 0
	for _, first := range urls {
		for _, second := range urls {
			for _, third := range urls {
				m := newManager(t)
				create(t, m, withURLs("a", first, second, third))
				file := exported(t, m)
				expectNoChanges(t, m, parse(t, file).Relayers)
				for i := range 3 {
					desired, want := parse(t, file).Relayers, urlsOf(get(t, m, "a"))
					desired[0].CustomRPCURLs = slices.Delete(desired[0].CustomRPCURLs, i, i+1)
					p := newPlan(t, m, desired)
					if p.Entries()[0].Action == plan.Blocked {
						blocked++
						continue
					}
					removed++
					copied := newManager(t)
					create(t, copied, withURLs("a", first, second, third))
					mustApply(t, newPlan(t, copied, desired))
					if got := urlsOf(get(t, copied, "a")); !slices.Equal(got, slices.Delete(want, i, i+1)) {
						t.Fatalf("%q without the endpoint %d: stored %q", []string{string(first), string(second), string(third)}, i, got)
					}
				}
			}
		}
	}
	if blocked == 0 || removed == 0 {
		t.Errorf("%d files were blocked, and %d removed an endpoint", blocked, removed)
	}
}
