package browser

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), flags(browserPath(), shared.profile)...)
	ctx, cancel := chromedp.NewContext(allocator)
	shared.stop = func() {
		_ = chromedp.Cancel(ctx)
		cancel()
		cancelAllocator()
	}
	shared.ctx, shared.err = ctx, chromedp.Do(ctx)
}

// stopShared is called after the last test. It returns an error if the browser has written the
// token to a file.
func stopShared() error {
	if shared.stop == nil {
		return nil
	}
	shared.stop()
	defer os.RemoveAll(shared.profile)
	return filepath.WalkDir(shared.profile, func(path string, entry fs.DirEntry, err error) error {
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
