package browser

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// release passes on the response that is held, and waits until the page has handled it.
func (b *tab) release() {
	b.t.Helper()
	b.do(`release()`)
	expect(b, true, `window.isHandled === true`)
}

// documentState is the document without what the sign-in says and without the time for which the
// status is shown, and the values of its inputs.
const documentState = `(() => {
	const body = document.body.cloneNode(true);
	body.querySelector('#token-wrong').textContent = '';
	body.querySelector('#token').removeAttribute('aria-invalid');
	body.querySelector('#status').removeAttribute('class');
	return [document.title, ...body.outerHTML.split('\n'), ...[...document.querySelectorAll('input, select, textarea')].map((e) => e.value)];
})()`

// TestSignOut_Document checks that nothing that a user has loaded or entered is in the document
// after the sign-out, or if the token is revoked, even if a response arrives later. What is not saved
// is shown again after the next sign-in.
func TestSignOut_Document(t *testing.T) {
	b, file := openTokens(t, "alice "+token+" write+engine")
	b.do(`window.before = ` + documentState)
	b.fillServer()
	expectClean := func() {
		t.Helper()
		b.expectTitle("Sign in")
		b.expectDialog("")
		expect(b, []string{}, documentState+`.filter((line, index) => line !== before[index])`)
	}
	b.goTo("q=full", "Sign in")
	b.enter("Relayers")
	b.goTo("changes=&q=actor%3Dalice", "History")
	b.goTo("new", "New relayer")
	b.fill("Entered", "Name *")
	b.goTo("relayer=evm", "Full evm")
	expect(b, 1, historyRows+`.length`)
	b.press("Pause")
	b.fill("because", "Reason")
	b.do(`window.confirm = () => true`)
	b.holdResponse("PATCH")
	b.press("Pause")
	b.expectHeld()
	b.do(`document.getElementById('leave').click()`)
	expectClean()
	b.release()
	expectClean()
	expect(b, []any{false, "Relayers"}, `[document.getElementById('menu').checkVisibility(), document.title]`)
	b.blockFeed() // it would find the token revoked before Save is pressed
	b.goTo("new", "Sign in")
	b.enter("New relayer")
	expect(b, "", findControl+`.value`, []string{"Name *"})

	b.goTo("relayer=evm", "Full evm")
	b.edit()
	b.fill("Renamed", "Name *")
	b.server.reload(file, "alice another-token-0123 write\n")
	b.press("Save")
	expectClean()
	expect(b, tokenExpired, `document.getElementById('token-wrong').textContent`)
	expect(b, []any{"token", "", 0.0}, `[document.activeElement.id, document.activeElement.value, sessionStorage.length]`)
	b.enterToken("another-token-0123", "Edit Full evm")
	expect(b, "Renamed", findControl+`.value`, []string{"Name *"})
	b.saved("Renamed was changed")
}

// reload replaces the tokens of a running server.
func (s *server) reload(path, lines string) {
	s.t.Helper()
	writeFile(s.t, path, lines)
	if err := s.process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
	s.awaitLog("(file reloaded)")
}

const tokenExpired = "The server no longer accepts this token: it has expired or was revoked. Sign in with another token."

// shownActions lists the visible controls that change relayers.
const shownActions = `['create', 'edit-one', 'pause', 'more'].filter((id) => document.getElementById(id)?.checkVisibility())`

// TestAccess checks that the page shows only the relayers of the token and offers only what it may do,
// and says which they are, also after the tokens file has changed. An error of the selector leads to the
// field.
func TestAccess(t *testing.T) {
	const scoped, narrowed, limits = "scoped-token-0123456789", "narrowed-token-0123456789", "label.team=payments|risk,network=mainnet"
	b, file := openTokens(t, "alice "+token+" write\nbob "+scoped+" write label.team=payments\ncarol "+narrowed+" write "+limits)
	for _, id := range []string{"one", "two", "three"} {
		b.server.create(id, id)
	}
	b.server.do("PATCH", collection+"/two", `{"labels":{"team":"payments"}}`, http.StatusOK)
	b.enterToken(scoped, "Relayers")
	b.expectText("1–1 of 1 relayer")
	expect(b, []string{"two"}, rowIDs)
	access := "On " + strings.TrimPrefix(b.server.url, "http://") + ". Only relayers with label.team="
	expect(b, []string{"bob", access + "payments"}, `['principal', 'access'].map((id) => document.getElementById(id).textContent)`)
	expect(b, "Live", `document.getElementById('live').textContent`)
	b.server.do("PATCH", collection+"/three", `{"labels":{"team":"payments"}}`, http.StatusOK)
	expect(b, []string{"two", "three"}, rowIDs)
	b.server.do("PATCH", collection+"/two", `{"labels":{"team":"risk"}}`, http.StatusOK)
	expect(b, []string{"three"}, rowIDs)
	expect(b, []string{"create"}, shownActions)
	b.goTo("relayer=three", "three")
	expect(b, []string{"create", "edit-one", "pause", "more"}, shownActions)
	b.server.reload(file, "alice "+token+" write\nbob "+scoped+" read label.team=risk\ncarol "+narrowed+" write "+limits+"\n")
	b.do(`document.dispatchEvent(new Event('visibilitychange'))`) // reads the access again
	b.expectTitle("There is no relayer three")
	b.goTo("page=1", "Relayers")
	expect(b, []string{"two"}, rowIDs)
	expect(b, access+"risk", `document.getElementById('access').textContent`)
	expect(b, []string{}, shownActions)
	b.goTo("relayer=two", "two")
	expect(b, []string{}, shownActions)
	b.goTo("new", "Not permitted")
	b.expectText("This token may not create relayers.")
	b.do(`document.getElementById('leave').click()`)
	expect(b, "", `document.getElementById('principal').textContent`)

	b.goTo("relayer=one", "Sign in")
	b.enterToken(narrowed, "There is no relayer one")
	b.expectText("It was deleted, or the ID in the address is wrong. Or it is outside of what this token may see: " + limits + ".")
	b.begin("treasury", "evm")
	b.expectText("This token may create only relayers with " + limits + ".")
	b.press("Create the relayer")
	b.expectText("The relayer was not created")
	b.expectError(`must be "mainnet", to which the access is limited`, "Network *")
	b.expectError(`team must be "payments" or "risk", to which the access is limited`, "Labels")
	b.fill("mainnet", "Network *")
	b.fill("team=risk", "Labels")
	b.press("Create the relayer")
	b.expectTitle("Relayer treasury")
}

// TestName checks that the name of the registry is in the header, with a color of its own, and in
// the title.
func TestName(t *testing.T) {
	colors := make(map[string]bool)
	for _, name := range []string{"production", "staging"} {
		b := openAlone(t, "--name", name)
		expect(b, name+" – Relayers", `document.title`)
		b.server.create("one", "One")
		b.enter("Relayers")
		b.goTo("relayer=one", "One")
		expect(b, []any{"One – " + name + " – Relayers", name, true}, `[document.title, document.getElementById('registry').textContent, document.getElementById('registry').checkVisibility()]`)
		colors[evaluate[string](b, `getComputedStyle(document.getElementById('registry')).backgroundColor`)] = true
	}
	if len(colors) != 2 {
		t.Errorf("the names have the colors %v", colors)
	}
}

// replaceInResponses changes the responses that the page gets: relayerd has no host
// application that disables relayers, and does not fail on demand.
func (b *tab) replaceInResponses(old, replacement string) {
	b.t.Helper()
	b.intercept(`
		const response = await send(url, request);
		const text = (await response.text()).replaceAll(%s, %s);
		return new Response(text, { status: response.status, headers: response.headers });`, old, replacement)
}

// respond makes every request of the page fail with a status: a response of the API, or with the header Via
// that of a proxy.
func (b *tab) respond(status int, headers map[string]string) {
	b.t.Helper()
	b.intercept(`
		if (%s === 0) throw new TypeError('Failed to fetch');
		const body = %[2]s?.Via ? '<h1>Bad Gateway</h1>' : '{"success":false,"data":null,"message":"Some Message"}';
		return new Response(body, { status: %[1]s, headers: %[2]s ?? {} });`, status, headers)
}

func TestFailure_Texts(t *testing.T) {
	b := open(t)
	b.server.create("long", "Full long")
	b.enter("Relayers")
	b.goTo("relayer=long", "Full long")
	const unreachable, unknown = "The server cannot be reached.", "It is not known whether this took effect: "
	proxy := map[string]string{"Via": "1.1 proxy", "Retry-After": "2"}
	for _, c := range []struct {
		status  int
		headers map[string]string
		text    string
		outcome string // of a write, before the text
		retry   bool
	}{
		{0, nil, unreachable, unknown, true},
		{429, map[string]string{"Retry-After": "7"}, "Too many requests. Try again in 7 s.", "Not paused: ", true},
		{503, map[string]string{"Retry-After": "2"}, "The server is not available now. Try again in 2 s.", "Not paused: ", true},
		{503, nil, "The server is not available now. Try again later.", "Not paused: ", true},
		{500, map[string]string{"X-Request-Id": "abc"}, "The server had an internal error. Its log has the cause under the request ID abc.", unknown, true},
		{500, proxy, unreachable, unknown, true},
		{503, proxy, unreachable, unknown, true},
		{520, proxy, unreachable, unknown, true},
		{403, nil, "This token may not read this relayer.", "Not paused: ", false},
	} {
		b.respond(c.status, c.headers)
		if c.status != 403 {
			b.act("Pause")
			expect(b, c.outcome+c.text, `document.getElementById('act-wrong').textContent`)
		}
		b.do(`dispatchEvent(new HashChangeEvent('hashchange'))`)
		expect(b, c.text, `document.getElementById('problem-text').textContent`)
		expect(b, c.retry, `document.getElementById('again').checkVisibility()`)
		b.run(chromedp.Reload())
		b.enter("Full long")
	}
}

// loseResponse makes the page lose the response to the next change, after the server has
// stored it.
func (b *tab) loseResponse() {
	b.t.Helper()
	b.intercept(`
		const response = await send(url, request);
		if (request.method === 'GET') return response;
		window.fetch = send;
		throw new TypeError('Failed to fetch');`)
}

// TestFailure_NoResponse checks that the page says that an outcome is not known, and reads the relayer
// again, that a second attempt finds the change of the first one, and that it does not wait forever for a
// server that keeps the connection open.
func TestFailure_NoResponse(t *testing.T) {
	b := openFull(t, "evm")
	b.loseResponse()
	b.act("Pause")
	b.expectText("It is not known whether this took effect: The server cannot be reached.")
	expect(b, "Paused", `document.querySelector('#one-state .pill').textContent`)
	b.press("Cancel")
	b.loseResponse()
	b.act("Resume")
	b.expectText("It is not known whether this took effect: The server cannot be reached.")
	b.press("Resume")
	b.expectDialog("")
	b.expectStatus("Full evm is resumed")
	b.loseResponse()
	b.more("Delete")
	b.fill("evm", "Type the ID to confirm *")
	b.press("Delete")
	b.expectTitle("There is no relayer evm")
	b.goTo("relayer=solana", "Full solana")
	b.edit()
	b.fill("Renamed", "Name *")
	if err := b.server.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.server.process.Signal(syscall.SIGCONT) }()
	b.press("Save")
	expect(b, "Saving", `document.getElementById('edit-note').textContent`)
	b.do(`location.hash = 'page=1'`)
	expect(b, "Waiting for the server", `document.getElementById('waiting').textContent`)
	b.do(`((timeout) => { AbortSignal.timeout = () => timeout.call(AbortSignal, 100); })(AbortSignal.timeout)`)
	b.goTo("page=2", "The request failed")
	b.expectText("The server cannot be reached.")
}

// TestFailure_SignIn checks that the page shows that it waits for the description of the fields, that it does
// not wait forever, and that the user can try again.
func TestFailure_SignIn(t *testing.T) {
	b := open(t)
	b.do(`AbortSignal.timeout = () => (window.late = new AbortController()).signal`)
	b.intercept(`
		if (window.isBack || !url.endsWith('/openapi.json')) return send(url, request);
		return new Promise((_, fail) => { request.signal?.addEventListener('abort', () => fail(request.signal.reason)); });`)
	b.fill(token, "Bearer token")
	b.press("Sign in")
	expect(b, "Waiting for the server", `document.getElementById('waiting').textContent`)
	b.do(`late.abort(new DOMException('', 'TimeoutError'))`)
	b.expectTitle("The request failed")
	b.expectText("The server cannot be reached.")
	b.do(`window.isBack = true`)
	b.press("Try again")
	b.expectTitle("Relayers")
}

// TestList_Paging checks that pages continue over the states, whose lists are those of the API.
func TestList_Paging(t *testing.T) {
	b, _ := openTokens(t, "ops "+token+" write+engine")
	b.server.createMany(170)
	want := make(map[string][]string) // by state
	for i := range 170 {
		id := fmt.Sprint("many-", i)
		state := "active"
		switch i % 5 {
		case 0:
			state = "disabled"
			b.server.do("PUT", collection+"/"+id+"/disabled_reason", `{"type":"NonceSyncFailed"}`, http.StatusOK)
		case 1, 2:
			state = "paused"
			b.server.do("PATCH", collection+"/"+id, `{"paused":true}`, http.StatusOK)
		}
		want[state] = append(want[state], id)
	}
	all := slices.Concat(want["disabled"], want["paused"], want["active"])
	b.enter("Relayers")
	expect(b, "All 170, Active 68, Paused 68, Disabled 34", stateCounts)
	for page := range 4 {
		start, end := 50*page, min(50*page+50, 170)
		expect(b, all[start:end], rowIDs)
		b.expectText(fmt.Sprintf("%d–%d of 170 relayers", start+1, end))
		expect(b, page == 0, `document.getElementById('previous').ariaDisabled === 'true'`)
		if page < 3 {
			b.press("Next")
		}
	}
	expect(b, []string{"151–170 of 170 relayers", "true"}, `[document.getElementById('status').textContent, document.getElementById('next').ariaDisabled]`)
	b.press("Previous")
	expect(b, all[100:150], rowIDs)
	b.do(`document.querySelector('#rows a').click()`)
	expect(b, "one-title", `document.activeElement.id`)
	b.run(chromedp.NavigateBack())
	b.expectTitle("Relayers")
	expect(b, all[100:150], rowIDs)
	b.press("Active 68")
	expect(b, want["active"][:50], rowIDs)
	b.press("Next")
	expect(b, want["active"][50:], rowIDs)
	b.goTo("page=9", "Relayers")
	b.expectText("Page 9 is empty. There are 170 relayers.")
	b.press("Previous")
	expect(b, all[150:], rowIDs)
	b.goTo("page=2&state=disabled", "Relayers")
	b.expectText("Page 2 is empty. There are 34 relayers.")
	b.press("Previous")
	expect(b, want["disabled"], rowIDs)
	b.goTo("page=many&state=constructor", "Relayers")
	expect(b, all[:50], rowIDs)
}

// errorOf is the error next to a field that describes the field.
const errorOf = `((control) => {
	const wrong = control.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id)).find((e) => e.className === 'wrong');
	return control.getAttribute('aria-invalid') === 'true' && wrong.parentElement.contains(control) ? wrong.innerText : '';
})(` + findControl + `)`

func (b *tab) expectError(want string, path ...string) {
	b.t.Helper()
	expect(b, want, errorOf, path)
}

func (b *tab) expectErrorStart(want string, path ...string) {
	b.t.Helper()
	expect(b, true, errorOf+`.startsWith(%s)`, path, want)
}

// TestContentSecurityPolicy_Blocks checks that the policy blocks injected code and
// requests.
func TestContentSecurityPolicy_Blocks(t *testing.T) {
	b := open(t)
	b.expectTitle("Sign in")
	const attempt = `(() => { try { %s; return ''; } catch (error) { return error.name; } })()`
	for _, code := range []string{
		`document.body.innerHTML = '<img src=x onerror=alert(1)>'`,
		`document.body.appendChild(document.createElement('script')).text = 'window.ran = true'`,
	} {
		if name := evaluate[string](b, strings.Replace(attempt, "%s", code, 1)); name != "TypeError" {
			t.Errorf("%s: error %q, want TypeError", code, name)
		}
	}
	b.do(`document.body.setAttribute('style', 'display: none')`)
	b.do(`(() => { const image = document.createElement('img'); image.src = '/icon.png'; document.body.append(image); })()`)
	b.do(`fetch('http://127.0.0.2/').catch(() => 0)`)
	b.do(`(() => { const frame = document.createElement('iframe'); frame.src = '/'; document.body.append(frame); })()`)
	b.do(`HTMLFormElement.prototype.submit.call(document.getElementById('enter-form'))`)
	for _, directive := range []string{"require-trusted-types-for", "style-src-attr", "img-src", "connect-src", "frame-src", "form-action"} {
		expect(b, true, `violations.includes(%s)`, directive)
	}
	expect(b, "undefined", `typeof window.ran`)
	for _, problem := range b.errors.take() {
		isOfPolicy := strings.Contains(problem, "Content Security Policy") || strings.Contains(problem, "requires 'Trusted")
		if !isOfPolicy {
			t.Error(problem)
		}
	}
	b.do(`violations.length = 0`)
}

// TestToken checks that the page has the token only in memory, and loses it when it is closed or
// reloaded, unless the user keeps it in the tab until the sign-out.
func TestToken(t *testing.T) {
	b := open(t)
	for given, message := range map[string]string{
		"wrong":     "The server does not accept this token",
		"two wörds": "The server does not accept this token",
		"":          "Enter the bearer token",
	} {
		b.fill(given, "Bearer token")
		b.press("Sign in")
		expect(b, message, `document.getElementById('token-wrong').innerText`)
		expect(b, []string{"token", "true", ""}, `[document.activeElement.id, document.activeElement.getAttribute('aria-invalid'), document.activeElement.value]`)
		expect(b, false, `document.getElementById('menu').checkVisibility()`)
	}
	b.server.create("one", "One")
	expectStored := func(want int) {
		t.Helper()
		expect(b, []any{0, want, "", false, ""}, `[localStorage.length, sessionStorage.length, document.cookie, location.href.includes(%s), document.getElementById('token').value]`, token)
		expect(b, false, `document.documentElement.outerHTML.includes(%s)`, token)
		expect(b, false, `Object.values(window).some((value) => value === %s)`, token)
		expect(b, false, `[...document.querySelectorAll('input, textarea')].some((input) => input.value.includes(%s))`, token)
	}
	b.enter("Relayers")
	b.press("One")
	b.expectTitle("One")
	expectStored(0)
	b.run(chromedp.Reload())
	b.enter("One")
	b.run(chromedp.Navigate("about:blank"), chromedp.NavigateBack())
	b.expectTitle("Sign in")
	b.press("Keep the token in this tab")
	b.enter("One")
	b.run(chromedp.Reload())
	b.expectTitle("One")
	b.run(chromedp.Navigate("about:blank"), chromedp.NavigateBack())
	b.expectTitle("One")
	expectStored(1)
	b.do(`document.getElementById('leave').click()`)
	b.expectTitle("Sign in")
	expectStored(0)
	b.run(chromedp.Reload())
	b.expectTitle("Sign in")
	expect(b, "token", `document.activeElement.id`)
}

// TestName_Odd checks that a user can see and open a relayer whose name has no visible character, that
// a name that is written from right to left does not reorder the words around it, and that a long
// one neither hides the rest of the list nor fills a dialog or the status.
func TestName_Odd(t *testing.T) {
	const shortened = "A long name A long name A long name A long name A long name …"
	b := open(t)
	names := map[string]string{" ": "(blank name)", "\u200b": "(blank name)", "\u202e": "(blank name)", "\u3164": "(blank name)",
		"שלום": "\u2068שלום\u2069", "\u2069\u202elive": "\u2068\ufffd\ufffdlive\u2069", strings.Repeat("A long name ", 80): shortened}
	ids := make(map[string]string)
	for name := range names {
		ids[name] = fmt.Sprint("odd-", len(ids))
		b.server.create(ids[name], name)
	}
	b.goTo("relayer=%D7%A9", "Sign in")
	b.enter("There is no relayer \u2068ש\u2069")
	expect(b, "There is no relayer \u2068ש\u2069 – Relayers", `document.title`)
	b.goTo("page=1", "Relayers")
	expect(b, 4, `[...document.querySelectorAll('#rows a')].filter((a) => a.textContent === '(blank name)' && a.checkVisibility()).length`)
	for _, width := range []int64{375, 1000} {
		b.run(chromedp.EmulateViewport(width, 800))
		expect(b, true, `[...document.querySelectorAll('#rows tr')].every((row) => row.offsetHeight < 120)`)
	}
	for name, inSentence := range names {
		b.do(`location.hash = %s`, "relayer="+ids[name])
		expect(b, inSentence+" – Relayers", `document.title`)
		b.more("Delete")
		b.expectDialog("Delete " + inSentence + "?")
		b.press("Cancel")
		b.act("Pause")
		b.expectStatus(inSentence + " is paused")
		b.edit()
		b.expectTitle("Edit " + inSentence)
	}
}

// reordered lists the visible and announced texts of the page with a character that reorders the
// words around it. An isolated text does not.
const reordered = `(() => {
	const texts = [...document.querySelectorAll('title, body *')].flatMap((e) => [
		...[...e.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data),
		e.title, e.ariaLabel, e.dataset?.title, e.closest('datalist') ? e.value : '',
	]);
	return texts.filter((text) => /[\u202a-\u202e\u2066-\u2069]/.test(text?.replace(/\u2068[^\u2066-\u2069]*\u2069/g, '')));
})()`

// TestText_NotReordered checks that no text of others reorders the words around it, in any view.
func TestText_NotReordered(t *testing.T) {
	const rlo = "\u202e"
	b, _ := openTokens(t, "alice "+token+" write+engine")
	b.server.do("POST", collection, `{"id":"odd","name":"Name \u202eodd","network":"net\u202e","network_type":"evm","paused":false,"signer_id":"sign\u202e",
		"notification_id":"note\u202e","labels":{"team":"pay\u202e"},"policies":{"whitelist_receivers":["0x\u202e"]},"custom_rpc_urls":[{"url":"https://rpc.example/key"}]}`, http.StatusCreated)
	b.server.do("PATCH", collection+"/odd", `{"name":"Other \u202ename","labels":{"team":"risk\u202e"}}`, http.StatusOK)
	b.server.do("PUT", collection+"/odd/disabled_reason", `{"type":"Odd\u202e","details":"details\u202e"}`, http.StatusOK)
	check := func(view string) {
		t.Helper()
		if found := evaluate[[]string](b, reordered); len(found) > 0 {
			t.Errorf("%s shows %q", view, found)
		}
	}
	b.goTo("relayer=odd", "Sign in")
	b.enter("Other \ufffdname")
	b.press("Pause")
	b.fill("because"+rlo, "Reason")
	check("pause")
	b.press("Pause")
	b.expectText("because\ufffd")
	expect(b, 4, historyRows+`.length`)
	check("relayer")
	b.edit()
	b.fill(rlo+strings.Repeat("x", 200), "Labels")
	b.press("Save")
	expect(b, true, `document.getElementById('edit-note').textContent.startsWith('The relayer was not changed')`)
	check("edit")
	b.press("Cancel")
	b.goTo("changes=", "History")
	expect(b, 4, historyRows+`.length`)
	check("changes")
	b.goTo("relayer=%E2%80%AEid", "There is no relayer \u2068\ufffdid\u2069")
	check("problem")
	b.goTo("q=network%3Da%E2%80%AE+x%E2%80%AE%3D1", "Relayers")
	b.expectText("is not a key.")
	check("search")
	b.goTo("page=1", "Relayers")
	expect(b, 1, rowIDs+`.length`)
	b.do(`document.getElementById('search').focus()`)
	b.insert("=")
	expect(b, true, `document.querySelectorAll('#suggestions option').length > 8`)
	check("list")
	b.goTo("q=team%E2%80%AE", "Relayers")
	b.expectText("No relayer matches.")
	check("search without a match")
}
