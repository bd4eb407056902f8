package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	// patience is how long a test waits for what must happen. A busy machine is slow.
	patience = 30 * time.Second

	pollInterval = 5 * time.Millisecond
)

// tab is a tab of a browser with the page open in it.
type tab struct {
	t      *testing.T
	server *server
	ctx    context.Context
	errors *pageErrors

	answers  chan bool   // the next answers to the questions of the browser
	answered chan string // the questions that it asked
}

// shared is the browser of the tests. It is started once, because that takes most of
// the time of a test.
var shared struct {
	sync.Once
	ctx     context.Context
	err     error
	profile string
	stop    func()
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

// open starts a server and shows its page in a browser context, which shares no
// storage with other tests. At the end of the test it checks that there were no page
// errors.
func open(t *testing.T, serverArgs ...string) *tab {
	t.Helper()
	needBrowser(t)
	shared.Do(startShared)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return newTab(t, startServer(t, serverArgs...), shared.ctx, chromedp.WithNewBrowserContext())
}

// openAlone is like open with a browser for this test only.
func openAlone(t *testing.T) (b *tab, profile string, stop func()) {
	t.Helper()
	needBrowser(t)
	profile, err := os.MkdirTemp("", "profile")
	if err != nil {
		t.Fatal(err)
	}
	// t.TempDir fails the test if the browser still writes while it is removed.
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	ctx, stop, err := startBrowser(profile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return newTab(t, startServer(t), ctx), profile, stop
}

// another opens a second tab, which shares the storage of the first one.
func (b *tab) another() *tab {
	b.t.Helper()
	return newTab(b.t, b.server, b.ctx)
}

func newTab(t *testing.T, s *server, parent context.Context, options ...chromedp.ContextOption) *tab {
	t.Helper()
	deadline, cancelDeadline := context.WithTimeout(parent, 5*time.Minute)
	t.Cleanup(cancelDeadline)
	ctx, cancel := chromedp.NewContext(deadline, options...)
	t.Cleanup(cancel)
	b := &tab{t: t, server: s, ctx: ctx, errors: newPageErrors(s.url), answers: make(chan bool, 1), answered: make(chan string, 100)}
	b.load()
	return b
}

// load opens the page in the tab.
func (b *tab) load() {
	b.t.Helper()
	for _, listener := range []func(any){b.errors.note, b.answer} {
		if err := chromedp.Listen(b.ctx, listener); err != nil {
			b.t.Fatal(err)
		}
	}
	b.run(chromedp.Func(b.errors.enable), chromedp.EmulateViewport(1000, 800), chromedp.Navigate(b.server.url+"/"))
	b.t.Cleanup(b.close)
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

// close closes the tab and reports the page errors.
func (b *tab) close() {
	b.t.Helper()
	if b.ctx.Err() != nil {
		return
	}
	if !b.t.Failed() {
		expect(b, []string{}, `violations`)
	}
	for _, problem := range b.errors.take() {
		b.t.Error(problem)
	}
	if err := chromedp.Cancel(b.ctx); err != nil {
		b.t.Error(err)
	}
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
	}
	for _, name := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-default-apps",
		"disable-extensions", "disable-breakpad", "disable-dev-shm-usage", "no-proxy-server",
	} {
		options = append(options, chromedp.Flag(name, true))
	}
	return options
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.errors)
	}
}

// evaluate returns the value of an expression.
func evaluate[T any](b *tab, expression string, args ...any) T {
	b.t.Helper()
	value, err := tryEvaluate[T](b, expression, args...)
	if err != nil {
		b.t.Fatalf("%v\n%s", err, b.errors)
	}
	return value
}

func tryEvaluate[T any](b *tab, expression string, args ...any) (T, error) {
	b.t.Helper()
	quoted := make([]any, len(args))
	for i, arg := range args {
		text, err := json.Marshal(arg)
		if err != nil {
			b.t.Fatal(err)
		}
		quoted[i] = string(text)
	}
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](fmt.Sprintf(expression, quoted...)))
	if err != nil {
		err = fmt.Errorf("%s: %w", fmt.Sprintf(expression, quoted...), err)
	}
	return value, err
}

// isNavigation reports whether an expression has no value because the browser is replacing
// the page.
func isNavigation(err error) bool {
	failed, ok := errors.AsType[*cdproto.Error](err)
	return ok && failed.Code == -32000
}

// do evaluates an expression for its side effects.
func (b *tab) do(expression string, args ...any) {
	b.t.Helper()
	evaluate[chromedp.Void](b, expression, args...)
}

// expect waits until an expression has the value, in this page or in the next one.
func expect[T any](b *tab, want T, expression string, args ...any) {
	b.t.Helper()
	var got T
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pollInterval) {
		var err error
		got, err = tryEvaluate[T](b, expression, args...)
		if err != nil && !isNavigation(err) {
			b.t.Fatalf("%v\n%s", err, b.errors)
		}
		if err == nil && reflect.DeepEqual(got, want) {
			return
		}
	}
	b.t.Fatalf("%s is %v, want %v\n%s", fmt.Sprintf(expression, args...), got, want, b.text())
}

// visible is the open dialog, or else the content of the page.
const visible = `(document.querySelector('dialog[open]') ?? document.querySelector('main'))`

// text returns the visible text of the page.
func (b *tab) text() string {
	b.t.Helper()
	return evaluate[string](b, visible+`.innerText`)
}

// expectText waits until the page shows the text.
func (b *tab) expectText(want string) {
	b.t.Helper()
	expect(b, true, visible+`.innerText.includes(%s)`, want)
}

func (b *tab) expectTitle(want string) {
	b.t.Helper()
	expect(b, want, `[...document.querySelectorAll('h1')].filter((h) => h.checkVisibility()).map((h) => h.textContent).join()`)
}

// findControl returns the visible control at a path: the legends of its fieldsets,
// the outermost first, and its label.
const findControl = `((path) => {
	const section = document.querySelector('dialog[open]') ?? document.querySelector('main > section:not([hidden])');
	const all = (selector) => [...section.querySelectorAll(selector)].filter((e) => e.checkVisibility());
	const label = path.pop();
	let group = null;
	for (const legend of path) {
		group = all('fieldset').find((f) => f.parentElement.closest('fieldset') === group && f.firstElementChild.textContent === legend);
	}
	const nameOf = (e) => e.ariaLabel ?? e.textContent;
	const found = all('label, button, a').filter((l) => l.closest('fieldset') === group && nameOf(l) === label);
	if (found.length !== 1) throw new Error(found.length + ' controls ' + label);
	return found[0].control ?? found[0];
})(%s)`

// press clicks the control at the path. Like a click of the mouse it moves the focus.
func (b *tab) press(path ...string) {
	b.t.Helper()
	b.do(`((control) => { control.focus(); control.click(); })(`+findControl+`)`, path)
}

// fill replaces the value of a field as if it was pasted.
func (b *tab) fill(value string, path ...string) {
	b.t.Helper()
	b.do(`(() => { const c = `+findControl+`; c.focus(); c.select(); })()`, path)
	if value == "" {
		b.run(chromedp.KeyEvent(kb.Delete))
		return
	}
	b.run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: value})
		return err
	}))
}

// choose selects an option by its text.
func (b *tab) choose(option string, path ...string) {
	b.t.Helper()
	b.do(`((select, text) => {
		select.focus();
		select.value = [...select.options].find((o) => o.text === text).value;
		select.dispatchEvent(new Event('change', { bubbles: true }));
	})(`+findControl+`, %s)`, path, option)
}

// enter submits the token and waits for the view with the title.
func (b *tab) enter(title string) {
	b.t.Helper()
	b.enterToken(token, title)
}

func (b *tab) enterToken(token, title string) {
	b.t.Helper()
	b.fill(token, "Bearer token")
	b.press("Sign in")
	b.expectTitle(title)
}

// expectDialog waits for a dialog with the title, or for no dialog if it is "".
func (b *tab) expectDialog(title string) {
	b.t.Helper()
	expect(b, title, `document.querySelector('dialog[open] h2')?.textContent ?? ''`)
}

func (b *tab) expectStatus(want string) {
	b.t.Helper()
	expect(b, want, `document.getElementById('status').textContent`)
}

func (b *tab) goTo(hash, title string) {
	b.t.Helper()
	b.do(`location.hash = %s`, hash)
	b.expectTitle(title)
}

// answer answers a question of the browser, such as whether to leave the page.
func (b *tab) answer(event any) {
	question, ok := event.(*page.EventJavascriptDialogOpening)
	if !ok {
		return
	}
	isAccepted := true
	select {
	case isAccepted = <-b.answers:
	default:
		b.errors.add("an unexpected question: %s %s", question.Type, question.Message)
	}
	// A listener must not wait for the browser.
	go func() {
		_ = chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: isAccepted})
			return err
		}))
		b.answered <- string(question.Type) + " " + question.Message
	}()
}

// expectQuestion runs a script, and gives an answer to the question that the browser
// asks then.
func (b *tab) expectQuestion(want string, accept bool, script string) {
	b.t.Helper()
	b.answers <- accept
	b.do(`(setTimeout(() => { ` + script + ` }), 0)`)
	select {
	case question := <-b.answered:
		if question != want {
			b.t.Errorf("the question is %q, want %q", question, want)
		}
	case <-time.After(patience):
		b.t.Fatalf("%s: no question, want %q", script, want)
	}
}
