package browser

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/page"
	"github.com/go-relayer/relayer/store/memory"
)

// TestTrustHost mounts the page and the API at prefixes of a host that authenticates requests with
// a cookie: the page asks for no token, and says so if the host signs the user out.
func TestTrustHost(t *testing.T) {
	t.Parallel()
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(manager, httpapi.TrustHost())
	if err != nil {
		t.Fatal(err)
	}
	var isSignedOut atomic.Bool
	mux := http.NewServeMux()
	mux.Handle("/admin/", http.StripPrefix("/admin", page.Handler("/registry/api/v1", page.TrustHost())))
	mux.HandleFunc("/registry/", func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("user")
		if err != nil || r.Header.Get("Authorization") != "" || isSignedOut.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		ctx := relayer.WithActor(r.Context(), relayer.Actor{ID: cookie.Value})
		http.StripPrefix("/registry", api).ServeHTTP(w, r.WithContext(ctx))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "user", Value: "carol", Path: "/"})
		http.Redirect(w, r, "/admin/", http.StatusFound)
	})
	host := httptest.NewServer(mux)
	t.Cleanup(host.Close)
	window := takeWindow(t)
	b := newTab(t, &server{t: t, url: host.URL}, window)
	b.expectTitle("Relayers")
	b.expectText("There are no relayers yet.")
	b.begin("one", "evm")
	b.press("Create the relayer")
	b.expectTitle("Relayer one")
	expect(b, []any{"carol", true}, `[document.getElementById('principal').textContent, document.getElementById('leave').hidden]`)
	expect(b, []string{"created by carol"}, historyRows)
	isSignedOut.Store(true)
	b.do(`dispatchEvent(new HashChangeEvent('hashchange'))`)
	b.expectTitle("Signed out")
	expect(b, false, `document.body.textContent.includes('Relayer one')`)
	b.do(`document.cookie = 'user=; Path=/; Max-Age=0'`) // cookies have no port: the next test in this window would have it
}
