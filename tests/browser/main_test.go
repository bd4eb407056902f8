// Package browser tests the web page of relayerd in a real browser, which
// also enforces the page's Content Security Policy.
//
// The tests are skipped if there is no browser. If CI is set, they fail instead. The
// same applies to npm, which downloads axe-core. They prefer
// chromium-headless-shell, which needs half of the time of chromium. CHROMIUM names a
// browser that is not in PATH as one of these. The flag -screenshots saves
// a picture of each view.
package browser

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/page"
	"github.com/go-relayer/relayer/store/memory"
)

// token is a text that occurs nowhere else, so that a search for it finds leaks.
const token = "Token-7f3a91c2d4e85b60"

const collection = "/api/v1/relayers"

var (
	// serverBinary is relayerd, built once for all tests.
	serverBinary string

	// browser is the browser of the tests; nil if there is none.
	browser context.Context

	// windows are those that no test uses. Tests use them one after the other, because to open
	// a window takes longer than a short test. Each test has a server with another port, so that
	// its page has another origin and shares no storage with other tests.
	windows = make(chan context.Context, 100)
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run builds the server, starts the browser and runs the tests. It returns an error if the browser
// has written the token to a file.
func run(m *testing.M) (int, error) {
	path := browserPath()
	if path == "" {
		return m.Run(), nil
	}
	directory, err := os.MkdirTemp("", "browser")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(directory)
	serverBinary = filepath.Join(directory, "relayerd")
	build := exec.Command("go", "build", "-o", serverBinary, ".")
	build.Dir = "../../cmd/relayerd"
	if output, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, output)
	}
	profile := filepath.Join(directory, "profile")
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), flags(path, profile)...)
	defer cancelAllocator()
	ctx, cancel := chromedp.NewContext(allocator)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		return 0, err
	}
	browser = ctx
	code := m.Run()
	_ = chromedp.Cancel(ctx)
	return code, filepath.WalkDir(profile, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), token) {
			return fmt.Errorf("the token is in %s", path)
		}
		return err
	})
}

// browserPath returns the path of the browser, or "" if there is none or -short is set.
func browserPath() string {
	if testing.Short() {
		return ""
	}
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// takeWindow returns a window that no test uses. It is closed with the browser.
func takeWindow(t *testing.T) context.Context {
	t.Helper()
	if browser == nil {
		skipUnlessCI(t, "no browser: install chromium, or set CHROMIUM to the path of one")
	}
	select {
	case window := <-windows:
		return window
	default:
	}
	window, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	if err := chromedp.Do(window, chromedp.Func(enableEvents)); err != nil {
		cancel()
		t.Fatal(err)
	}
	return window
}

// skipUnlessCI skips the test, or fails it if CI is set.
func skipUnlessCI(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// flags configures a browser that can connect only to this machine.
func flags(path, profile string) []chromedp.ExecAllocatorOption {
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.Headless,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-features", "SpareRendererForSitePerProcess"),
	}
	for _, name := range []string{
		"no-sandbox", "no-first-run", "no-default-browser-check", "disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-default-apps",
		"disable-extensions", "disable-breakpad", "disable-dev-shm-usage", "no-proxy-server",
	} {
		options = append(options, chromedp.Flag(name, true))
	}
	return options
}

// server is a running relayerd.
type server struct {
	t       *testing.T
	url     string
	process *os.Process
	log     string // the path of its output
}

func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{t: t, log: filepath.Join(t.TempDir(), "log")}
	output, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	command := exec.Command(serverBinary, append([]string{"serve", "--addr", "127.0.0.1:0", "--drain-delay", "0", "--db", "memory"}, args...)...)
	if !slices.Contains(args, "--tokens-file") {
		command.Env = append(os.Environ(), "API_KEY="+token)
	}
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	s.process = command.Process
	s.url = "http://" + s.awaitLog(`msg=serving address=(\S+)`)
	return s
}

// awaitLog waits until the log matches a pattern with a group, and returns the text of the group.
func (s *server) awaitLog(pattern string) string {
	s.t.Helper()
	var log []byte
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pollInterval) {
		log, _ = os.ReadFile(s.log) // nothing matches until it can be read
		if found := regexp.MustCompile(pattern).FindSubmatch(log); found != nil {
			return string(found[1])
		}
	}
	s.t.Fatalf("the log has no %s: %s", pattern, log)
	return ""
}

// openList is like open, and signs in.
func openList(t *testing.T, serverArgs ...string) *tab {
	t.Helper()
	b := open(t, serverArgs...)
	b.enter("Relayers")
	return b
}

// openTokens is like open for a server with a tokens file, whose path it returns.
func openTokens(t *testing.T, lines string, serverArgs ...string) (b *tab, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "tokens")
	writeFile(t, file, lines+"\n")
	return open(t, append(serverArgs, "--tokens-file", file)...), file
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// do sends a request to the API without a browser.
func (s *server) do(method, path, body string, wantStatus int) string {
	s.t.Helper()
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != wantStatus {
		s.t.Fatalf("%s %s returned %d %s, error %v", method, path, response.StatusCode, content, err)
	}
	return string(content)
}

// create creates a relayer with the required fields only.
func (s *server) create(id, name string) {
	s.t.Helper()
	s.do("POST", collection, fmt.Sprintf(
		`{"id":%q,"name":%q,"network":"sepolia","network_type":"evm","paused":false,"signer_id":"s"}`, id, name), http.StatusCreated)
}

// createMany creates relayers many-0, many-1 and so on, in this order.
func (s *server) createMany(count int) {
	s.t.Helper()
	for i := range count {
		s.create(fmt.Sprint("many-", i), fmt.Sprint("Many ", i))
	}
}

// TestTrustHost mounts the page and the API at prefixes of a host that authenticates requests with
// a cookie: the page asks for no token, and says so if the host signs the user out. It says which relayers
// a user who may read all may change.
func TestTrustHost(t *testing.T) {
	t.Parallel()
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(manager, httpapi.TrustHost(), httpapi.WithAuthorizer(func(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
		if access.Actor.ID == "carol" || access.Action == relayer.ActionGet || access.Action == relayer.ActionList {
			return httpapi.Allow(relayer.Selector{}), nil
		}
		payments, err := relayer.ParseSelector("label.team=payments")
		return httpapi.Allow(payments), err
	}))
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
	b.do(`document.cookie = 'user=dave; Path=/'`)
	b.run(chromedp.Reload())
	b.expectTitle("Relayer one")
	b.act("Pause")
	b.expectText("Not paused: This token may not change this relayer.")
	b.press("Cancel")
	b.edit()
	b.fill("Renamed", "Name *")
	b.press("Save")
	b.expectText("The relayer was not changed: This token may not change this relayer.")
	b.goTo("new", "New relayer")
	b.expectText("This token may create only relayers with label.team=payments.")
	b.goTo("page=1", "Relayers")
	b.pressOffer("Pause these 1…")
	b.expectText("these are all that you can see. Only relayers with label.team=payments are changed.")
	b.press("Pause")
	b.expectStatus("0 relayers paused")
	isSignedOut.Store(true)
	b.do(`dispatchEvent(new HashChangeEvent('hashchange'))`)
	b.expectTitle("Signed out")
	expect(b, false, `document.body.textContent.includes('Relayer one')`)
	b.do(`document.cookie = 'user=; Path=/; Max-Age=0'`) // cookies have no port: the next test in this window would have it
}
