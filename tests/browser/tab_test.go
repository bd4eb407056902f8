package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	// patience is how long a test waits for what must happen. A busy machine is slow.
	patience     = 30 * time.Second
	pollInterval = 5 * time.Millisecond
)

// tab is a window with the page of a server open in it.
type tab struct {
	t      *testing.T
	server *server
	ctx    context.Context
	errors *pageErrors
}

// open starts a server and shows its page, next to other tests. At the end of the test it checks that
// there were no page errors.
func open(t *testing.T, serverArgs ...string) *tab {
	t.Helper()
	t.Parallel()
	return openAlone(t, serverArgs...)
}

// openAlone is open for a test that opens several servers, or must run alone.
func openAlone(t *testing.T, serverArgs ...string) *tab {
	t.Helper()
	window := takeWindow(t)
	return newTab(t, startServer(t, serverArgs...), window)
}

// another opens the page of the same server in a second window.
func (b *tab) another() *tab {
	b.t.Helper()
	return newTab(b.t, b.server, takeWindow(b.t))
}

// newTab opens the page of a server in a window.
func newTab(t *testing.T, s *server, window context.Context) *tab {
	t.Helper()
	ctx, cancel := context.WithTimeout(window, 5*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t: t, server: s, ctx: ctx, errors: &pageErrors{server: s.url}}
	for _, listener := range []func(any){b.errors.note, b.answer} {
		if err := chromedp.Listen(ctx, listener); err != nil {
			t.Fatal(err)
		}
	}
	b.useScheme("light")
	b.run(chromedp.EmulateViewport(1000, 800), chromedp.Navigate(s.url+"/"))
	t.Cleanup(func() {
		b.check()
		b.leave(window)
	})
	return b
}

// check reports the page errors.
func (b *tab) check() {
	b.t.Helper()
	if !b.t.Failed() && b.ctx.Err() == nil {
		expect(b, []string{}, `violations`)
	}
	for _, problem := range b.errors.take() {
		b.t.Error(problem)
	}
}

// leave ends the requests of the page. It keeps the window for the next test, if it
// still works.
func (b *tab) leave(window context.Context) {
	stop := chromedp.Evaluate[chromedp.Void](`fetch = () => new Promise(() => {}), stop()`)
	if _, err := chromedp.Run(b.ctx, stop); err != nil || b.t.Failed() {
		_ = chromedp.Cancel(window)
		return
	}
	windows <- window
}

// intercept replaces fetch in the page by a function of url and request, which may call send. The
// body may keep values in the page.
func (b *tab) intercept(body string, args ...any) {
	b.t.Helper()
	b.do(`((send) => { window.fetch = async (url, request) => { `+body+` }; })(fetch)`, args...)
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.errors.take())
	}
}

// evaluate returns the value of an expression.
func evaluate[T any](b *tab, expression string, args ...any) T {
	b.t.Helper()
	expression = quote(b, expression, args)
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", expression, err, b.errors.take())
	}
	return value
}

// quote formats an expression with arguments in the notation of JavaScript.
func quote(b *tab, expression string, args []any) string {
	b.t.Helper()
	quoted := make([]any, len(args))
	for i, arg := range args {
		text, err := json.Marshal(arg)
		if err != nil {
			b.t.Fatal(err)
		}
		quoted[i] = string(text)
	}
	return fmt.Sprintf(expression, quoted...)
}

// do evaluates an expression for its side effects.
func (b *tab) do(expression string, args ...any) {
	b.t.Helper()
	evaluate[chromedp.Void](b, expression, args...)
}

// expect waits until an expression has the value, in this page or in the next one. An exception is
// a value too: an element may not exist yet. The page itself compares the values again and again,
// because a message takes much longer.
func expect[T any](b *tab, want T, expression string, args ...any) {
	b.t.Helper()
	wanted, err := json.Marshal(want)
	if err != nil {
		b.t.Fatal(err)
	}
	expression = quote(b, expression, args)
	script := fmt.Sprintf(`(async () => {
		const want = JSON.stringify(%s);
		for (const start = performance.now(); ; await new Promise((next) => setTimeout(next, %d))) {
			let got;
			try {
				got = JSON.stringify(%s);
			} catch (error) {
				got = String(error);
			}
			if (got === want) return '';
			if (performance.now() - start > 1000) return String(got);
		}
	})()`, wanted, pollInterval.Milliseconds(), expression)
	got := "not known"
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		result, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
		failed, isOfBrowser := errors.AsType[*cdproto.Error](err)
		switch {
		case isOfBrowser && failed.Code == -32000: // it is replacing the page
			time.Sleep(pollInterval)
		case err != nil:
			b.t.Fatalf("%s: %v\n%s", expression, err, b.errors.take())
		case result == "":
			return
		default:
			got = result
		}
	}
	b.t.Fatalf("%s is %s, want %s\n%s", expression, got, wanted, evaluate[string](b, visible+`.innerText`))
}

// visible is the open dialog, or else the content of the page.
const visible = `(document.querySelector('dialog[open]') ?? document.querySelector('main'))`

// expectText waits until the page shows the text.
func (b *tab) expectText(want string) {
	b.t.Helper()
	expect(b, true, visible+`.innerText.includes(%s)`, want)
}

func (b *tab) expectTitle(want string) {
	b.t.Helper()
	expect(b, want, `[...document.querySelectorAll('h1')].filter((h) => h.checkVisibility()).map((h) => h.textContent).join()`)
}

// findControl returns the visible control at a path: the names of the groups around it,
// the outermost first, and its label. It unfolds the groups.
const findControl = `((path) => {
	const view = document.querySelector('dialog[open]') ?? document.querySelector('main > section:not([hidden])');
	const all = (selector) => [...view.querySelectorAll(selector)].filter((e) => e.checkVisibility());
	const groups = '.section';
	const label = path.pop();
	let group = null;
	for (const name of path) {
		group = all(groups).find((g) => g.parentElement.closest(groups) === group && g.firstElementChild.textContent === name);
		if (!group) throw new Error('no group ' + name);
		if (group.open === false) group.firstElementChild.click();
	}
	const nameOf = (e) => e.ariaLabel ?? e.textContent;
	const found = all('label, button, a').filter((l) => l.closest(groups) === group && nameOf(l) === label);
	if (found.length !== 1) throw new Error(found.length + ' controls ' + label);
	return found[0].control ?? found[0];
})(%s)`

// press clicks the control at the path. Like a click of the mouse it moves the focus.
func (b *tab) press(path ...string) {
	b.t.Helper()
	b.do(`((control) => { control.focus(); control.click(); })(`+findControl+`)`, path)
}

// act presses an action of the relayer, and confirms it.
func (b *tab) act(name string) {
	b.t.Helper()
	b.press(name)
	expect(b, true, `document.getElementById('act-dialog').open`)
	b.press(name)
}

// more presses an action in the menu of the relayer.
func (b *tab) more(name string) {
	b.t.Helper()
	b.do(`document.querySelector('#more-menu:not(:popover-open)')?.showPopover()`)
	b.press(name)
}

// fill replaces the value of a field as if it was pasted.
func (b *tab) fill(value string, path ...string) {
	b.t.Helper()
	b.do(`(() => { const c = `+findControl+`; c.focus(); c.select(); })()`, path)
	if value == "" {
		b.run(chromedp.KeyEvent(kb.Delete))
		return
	}
	b.insert(value)
}

// insert enters a text into the focused field at once.
func (b *tab) insert(text string) {
	b.t.Helper()
	b.run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: text})
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

// answer lets the browser leave a page with entries that are not saved. The browser must ask nothing
// else.
func (b *tab) answer(event any) {
	question, ok := event.(*page.EventJavascriptDialogOpening)
	if !ok {
		return
	}
	if string(question.Type) != "beforeunload" {
		b.errors.add("an unexpected question: %s", question.Message)
	}
	// A listener must not wait for the browser.
	go func() {
		_ = chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
			return err
		}))
	}()
}

// pageErrors collects what must not happen in a page: errors, warnings, console
// output, and requests to other servers or with the token in the URL.
type pageErrors struct {
	server string

	mu   sync.Mutex
	list []string
}

// enableEvents makes the browser report all events, beginning before the page is loaded.
func enableEvents(ctx context.Context, target *chromedp.Target) error {
	const keepViolations = `window.violations = []; addEventListener('securitypolicyviolation', (e) => violations.push(e.effectiveDirective))`
	_, keeping := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: keepViolations})
	_, logging := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
	_, tracking := cdp.Call(ctx, target, network.Enable, network.EnableParams{})
	_, running := cdp.Call(ctx, target, runtime.Enable, cdp.Empty{})
	return errors.Join(keeping, logging, tracking, running)
}

func (p *pageErrors) note(event any) {
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		p.add("console: %s", event.Type)
	case *runtime.EventExceptionThrown:
		p.add("exception: %s", event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		// The browser logs responses with 400 and 401 by default.
		isRefusal := event.Entry.Source == log.EntrySourceNetwork && strings.HasPrefix(event.Entry.URL, p.server) && strings.Contains(event.Entry.URL, "/api/v1/")
		if !isRefusal && (event.Entry.Level == log.EntryLevelError || event.Entry.Level == log.EntryLevelWarning) {
			p.add("%s: %s", event.Entry.Source, event.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		address := event.Request.URL
		if !strings.HasPrefix(address, p.server+"/") && !strings.HasPrefix(address, "data:") && address != "about:blank" {
			p.add("request to %s", address)
		}
		if strings.Contains(address, token) {
			p.add("the token is in the URL %s", address)
		}
	}
}

func (p *pageErrors) add(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// take returns and clears the list.
func (p *pageErrors) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}
