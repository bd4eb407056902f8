package browser

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// shared is the browser of the tests. They use its windows one after the other, because
// to open a window takes longer than a short test. Each test has a server with another
// port, so that its page has another origin and shares no storage with other tests.
var shared struct {
	sync.Once
	ctx     context.Context
	err     error
	profile string
	stop    func()

	mu   sync.Mutex
	free []context.Context // windows
}

func startShared() {
	if shared.profile, shared.err = os.MkdirTemp("", "profile"); shared.err != nil {
		return
	}
	shared.ctx, shared.stop, shared.err = startBrowser(shared.profile)
}

// stopShared is called after the last test.
func stopShared() {
	if shared.stop != nil {
		shared.stop()
	}
	if shared.profile != "" {
		_ = os.RemoveAll(shared.profile)
	}
}

// startBrowser starts a browser that writes its files to the profile.
func startBrowser(profile string) (context.Context, func(), error) {
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), flags(browserPath(), profile)...)
	ctx, cancel := chromedp.NewContext(allocator)
	stop := sync.OnceFunc(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
		cancelAllocator()
	})
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return ctx, stop, nil
}

// takeWindow returns a window that no test uses.
func takeWindow(t *testing.T) context.Context {
	t.Helper()
	needBrowser(t)
	shared.Do(startShared)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if last := len(shared.free) - 1; last >= 0 {
		window := shared.free[last]
		shared.free = shared.free[:last]
		return window
	}
	return newWindow(t, shared.ctx)
}

// newWindow opens a window, which is closed with its browser.
func newWindow(t *testing.T, browser context.Context) context.Context {
	t.Helper()
	window, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	if err := chromedp.Do(window, chromedp.Func(enableEvents)); err != nil {
		cancel()
		t.Fatal(err)
	}
	return window
}

func putBack(window context.Context) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.free = append(shared.free, window)
}

func needBrowser(t *testing.T) {
	t.Helper()
	if browserPath() == "" {
		skipUnlessCI(t, "no browser: install chromium, or set CHROMIUM to the path of one")
	}
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
		chromedp.NoSandbox,
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-features", "SpareRendererForSitePerProcess"),
	}
	for _, name := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-default-apps",
		"disable-extensions", "disable-breakpad", "disable-dev-shm-usage", "no-proxy-server",
	} {
		options = append(options, chromedp.Flag(name, true))
	}
	return options
}
