package browser

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listReads is the number of requests for lists that have ended. The page reads a list with four, and
// once more after the first look for changes.
const listReads = `performance.getEntriesByType('resource').filter((read) => read.name.includes('?changes=')).length`

// follow opens a view of a server with three relayers, and waits until the page follows the changes.
func follow(b *tab, hash, title string) *tab {
	b.t.Helper()
	for i := 1; i <= 3; i++ {
		b.server.create(fmt.Sprintf("relayer-%d", i), fmt.Sprintf("Relayer %d", i))
	}
	b.goTo(hash, "Sign in")
	b.enter(title)
	expect(b, "Live", `document.getElementById('live').textContent`)
	if title == "Relayers" {
		expect(b, true, listReads+` >= 8`)
	}
	return b
}

// TestLive checks that a change of another client appears in the same row, and
// that created and deleted relayers appear and disappear. The focus stays in a row that moves, and the
// heading has it if the row is gone. A hidden tab sends no request, and a token that is not valid any more
// leads to the sign-in.
func TestLive(t *testing.T) {
	b := follow(open(t), "page=1", "Relayers")
	b.do(`window.row = document.querySelector('[data-id=relayer-2]')`)
	b.server.do("PATCH", collection+"/relayer-2", `{"name":"Renamed","paused":true}`, http.StatusOK)
	expect(b, []any{"Renamed", "Paused", true}, `((row) => [row.querySelector('a').textContent, row.querySelector('.pill').textContent, row === window.row])(document.querySelector('[data-id=relayer-2]'))`)
	b.server.create("relayer-4", "Relayer 4")
	expect(b, []string{"Renamed", "Relayer 1", "Relayer 3", "Relayer 4"}, `[...document.querySelectorAll('#rows a')].map((a) => a.textContent)`)
	b.expectText("1–4 of 4 relayers")
	b.do(`document.querySelector('[data-id=relayer-3] a').focus()`)
	b.server.do("PATCH", collection+"/relayer-3", `{"name":"Moved","paused":true}`, http.StatusOK)
	expect(b, []string{"relayer-2", "relayer-3", "relayer-1", "relayer-4"}, rowIDs)
	expect(b, "Moved", `document.activeElement.textContent`)
	b.server.do("DELETE", collection+"/relayer-3", "", http.StatusOK)
	expect(b, []string{"relayer-2", "relayer-1", "relayer-4"}, rowIDs)
	expect(b, "list-title", `document.activeElement.id`)

	b.goTo("relayer=relayer-1", "Relayer 1")
	b.do(`document.getElementById('pause').dispatchEvent(new MouseEvent('mousedown'))`)
	b.server.do("PATCH", collection+"/relayer-1", `{"name":"Shown","paused":true,"notification_id":"ops"}`, http.StatusOK)
	b.expectTitle("Shown")
	b.do(`document.getElementById('pause').dispatchEvent(new MouseEvent('click', { detail: 1 }))`)
	b.expectDialog("Pause Shown?") // as the button said
	b.press("Cancel")
	b.expectText("ops")
	expect(b, true, `/^Shown: update by api-key, [-: \d]{19}$/.test(document.getElementById('status').textContent)`)
	b.act("Resume") // the page has the ETag of the change
	b.expectStatus("Shown is resumed")
	b.server.do("DELETE", collection+"/relayer-1", "", http.StatusOK)
	b.expectTitle("There is no relayer relayer-1")

	b.goTo("page=1", "Relayers")
	b.do(`window.setHidden = (hidden) => {
		Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
		document.dispatchEvent(new Event('visibilitychange'));
	}`)
	b.do(`setHidden(true)`)
	expect(b, false, `document.getElementById('live').checkVisibility()`)
	b.do(`setTimeout(() => { window.requests = 0; setTimeout(() => { window.isIdle = window.requests === 0; }, 2000); }, 1000)`) // a request may be on its way
	b.intercept(`window.requests++; return send(url, request);`)
	b.server.do("PATCH", collection+"/relayer-2", `{"name":"Again"}`, http.StatusOK)
	expect(b, true, `window.isIdle`)
	b.do(`setHidden(false)`)
	expect(b, "Again", `document.querySelector('[data-id=relayer-2] a').textContent`)
	expect(b, "Live", `document.getElementById('live').textContent`)

	b.intercept(`return new Response('{"success":false,"data":null,"message":"Unauthorized"}', { status: 401 });`)
	b.server.create("late", "Late")
	b.expectTitle("Sign in")
	expect(b, tokenExpired, `document.getElementById('token-wrong').textContent`)
}

// TestLive_Access checks that the page reads what the token may do before it shows a view, even if a read
// of it has failed, and that it notices that the token may do more. A second of the page is short here: it
// reads what the token may do every 30 seconds.
func TestLive_Access(t *testing.T) {
	b, file := openTokens(t, "alice "+token+" read")
	b.do(`((wait) => { window.setTimeout = (act, time) => wait(act, time === 1000 ? 50 : time); })(setTimeout)`)
	b.intercept(`
		if (window.isLost || !url.endsWith('/access')) return send(url, request);
		window.isLost = true;
		return new Response('{}', { status: 503 });`)
	b.enter("The request failed")
	b.press("Show all relayers")
	b.expectTitle("Relayers")
	expect(b, "Live", `document.getElementById('live').textContent`)
	expect(b, false, `document.getElementById('create').checkVisibility()`)
	writeFile(t, file, "alice "+token+" write\n")
	expect(b, true, `document.getElementById('create').checkVisibility()`)
	b.server.create("one", "One")
	expect(b, []string{"Pause these 1…"}, offers)
	b.goTo("relayer=one", "One")
	expect(b, true, `document.getElementById('more').checkVisibility()`)
	writeFile(t, file, "alice "+token+" read\n")
	expect(b, false, `document.getElementById('more').checkVisibility()`)
}

// TestLive_BetweenReads checks that a relayer does not vanish from the list if it is resumed after the
// page has read the active relayers, and before it reads the paused ones. A read that fails is repeated, and
// the page does not say "Live" until it succeeds. The same applies to a read that hangs.
func TestLive_BetweenReads(t *testing.T) {
	b := follow(open(t), "page=1", "Relayers")
	b.server.do("PATCH", collection+"/relayer-2", `{"paused":true}`, http.StatusOK)
	expect(b, []string{"relayer-2", "relayer-1", "relayer-3"}, rowIDs)
	b.intercept(`
		if (!window.hold && url.includes('system_disabled=false&paused=true')) await new Promise((release) => { window.hold = release; });
		const response = await send(url, request);
		window.isActiveRead ||= window.hold && url.includes('system_disabled=false&paused=false');
		return response;`)
	b.do(`(window.least = 3, new MutationObserver(() => { least = Math.min(least, document.querySelectorAll('#rows tr').length); }).observe(document.getElementById('rows'), { childList: true }))`)
	b.server.do("PATCH", collection+"/relayer-1", `{"name":"Renamed"}`, http.StatusOK)
	expect(b, true, `isActiveRead`)
	b.server.do("PATCH", collection+"/relayer-2", `{"paused":false}`, http.StatusOK)
	b.do(`hold()`)
	expect(b, []string{"relayer-1", "relayer-2", "relayer-3"}, rowIDs)
	expect(b, 3, `least`)
	b.intercept(`
		return window.isBack || !url.includes('?changes=') ? send(url, request) : new Response('{}', { status: 503 });`)
	b.server.do("PATCH", collection+"/relayer-3", `{"name":"Found"}`, http.StatusOK)
	expect(b, "Reconnecting", `document.getElementById('live').textContent`)
	b.do(`window.isBack = true`)
	expect(b, "Found", `document.querySelector('[data-id=relayer-3] a').textContent`)
	expect(b, "Live", `document.getElementById('live').textContent`)
	b.holdResponse("GET")
	b.server.do("PATCH", collection+"/relayer-3", `{"name":"Late"}`, http.StatusOK)
	b.expectHeld()
	expect(b, "Reconnecting", `document.getElementById('live').textContent`)
	b.release()
	expect(b, "Live", `document.getElementById('live').textContent`)
}

const (
	pillColor = `getComputedStyle(document.querySelector('#rows .pill')).color`
	staleNote = `document.getElementById('stale').textContent`
)

// expectStale waits until the page shows old states as such. It returns their time. The response to
// an earlier request may still arrive, and then the page shows them as current for a moment.
func (b *tab) expectStale() time.Time {
	b.t.Helper()
	expect(b, true, `(window.note = `+staleNote+`) !== '' && `+pillColor+` === getComputedStyle(document.querySelector('#rows .mono')).color`)
	note := evaluate[string](b, `window.note`)
	shown, found := strings.CutPrefix(strings.TrimSuffix(note, ". What you see may be out of date."), "The server cannot be reached since ")
	at, err := time.ParseInLocation(time.DateTime, shown, time.Local)
	if !found || err != nil {
		b.t.Fatalf("the page shows %q", note)
	}
	return at
}

// TestLive_Outage checks that the page does not say "Live" while a proxy cannot reach the server, or
// the server does not answer and its connections stay open, and that it is live again after it.
func TestLive_Outage(t *testing.T) {
	b := follow(open(t), "page=1", "Relayers")
	expectLive := func() {
		t.Helper()
		expect(b, "Live", `document.getElementById('live').textContent`)
		expect(b, "", staleNote)
		expect(b, false, pillColor+` === getComputedStyle(document.querySelector('#rows .mono')).color`)
	}
	b.intercept(`return window.isBack ? send(url, request) : new Response('', { status: 503 });`)
	b.expectStale()
	b.do(`window.RealDate = Date, Date = class extends Date { constructor(...given) { super(...(given.length > 0 ? given : [0])); } static now() { return 0; } }`)
	b.do(`window.isBack = true`) // and the clock steps back
	expectLive()
	b.do(`Date = RealDate`)
	signal := func(signal syscall.Signal) {
		if err := b.server.process.Signal(signal); err != nil {
			t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	stopped := time.Now()
	b.do(`document.dispatchEvent(new Event('visibilitychange'))`) // it reads first what the user may do
	b.expectStale()
	waited := time.Since(stopped)
	t.Logf("the page noticed it after %s", waited)
	if waited > 20*time.Second { // the time limit of other requests is 30 s
		t.Errorf("the page said that it is live for %s, want at most 20 s", waited)
	}
	expect(b, "Reconnecting", `document.getElementById('live').textContent`)
	signal(syscall.SIGCONT)
	expectLive()
	begin := time.Now().Truncate(time.Second)
	if err := b.server.process.Kill(); err != nil {
		t.Fatal(err)
	}
	expect(b, "Reconnecting", `document.getElementById('live').textContent`)
	if at := b.expectStale(); at.Before(begin.Add(-10*time.Second)) || at.After(time.Now()) {
		t.Errorf("the states are those of %s, want a time soon before %s", at, begin)
	}
	b.intercept(`window.isLast = true; return new Promise(() => {});`)
	expect(b, true, `window.isLast`)
	// Events of a page that is left. An uncaught exception fails the test.
	b.do(`dispatchEvent(new Event('pagehide')); document.dispatchEvent(new Event('visibilitychange'))`)
	expect(b, 0, `document.body.children.length`)
}

// TestLive_UnderLoad checks that no count and no filtered list is older than 2 seconds while
// other relayers change all the time. Other tests would delay the browser.
func TestLive_UnderLoad(t *testing.T) {
	const perSecond, seconds = 20, 5
	all := follow(openAlone(t), "page=1", "Relayers")
	all.server.createMany(13)
	paused := all.another()
	paused.goTo("state=paused", "Sign in")
	paused.enter("Relayers")
	expect(paused, "Live", `document.getElementById('live').textContent`)
	for _, b := range []*tab{all, paused} {
		expect(b, "All 16, Active 16, Paused 0, Disabled 0", stateCounts)
		b.intercept(`window.reads++; return send(url, request);`)
		b.do(`(() => {
			window.seen = [];
			window.reads = 0;
			const note = () => seen.push([Date.now(), Number(document.querySelector('#states a:nth-child(3) strong').textContent), document.querySelectorAll('#rows tr').length]);
			window.delay = 0;
			let last = performance.now();
			setInterval(() => { const now = performance.now(); delay = Math.max(delay, now - last - 50); last = now; }, 50);
			new MutationObserver(note).observe(document.getElementById('list'), { subtree: true, childList: true, characterData: true });
		})()`)
	}
	var pausedAt []time.Time
	var slowest time.Duration
	ticker := time.NewTicker(time.Second / perSecond)
	defer ticker.Stop()
	for i := range seconds * perSecond {
		<-ticker.C
		begin := time.Now()
		all.server.do("PATCH", fmt.Sprintf("%s/relayer-%d", collection, i%3+1), fmt.Sprintf(`{"name":"Name %d"}`, i), http.StatusOK)
		slowest = max(slowest, time.Since(begin))
		if len(pausedAt) < 13 && i >= len(pausedAt)*seconds*perSecond/13 {
			all.server.do("PATCH", fmt.Sprintf("%s/many-%d", collection, len(pausedAt)), `{"paused":true}`, http.StatusOK)
			pausedAt = append(pausedAt, time.Now())
		}
	}
	all.expectShown(pausedAt, slowest, "count of all", 1)
	paused.expectShown(pausedAt, slowest, "count of the paused", 1)
	paused.expectShown(pausedAt, slowest, "filtered list", 2)
	if most := 4 * 3 * seconds * 2; evaluate[int](all, `reads`) > most {
		t.Errorf("the page sent more than %d requests", most)
	}
}

// expectShown checks that 2 seconds after each pause a number that the page has noted counts it.
// On a busy machine the delays of the server and of the browser come on top, for the refresh that
// the page may have begun before the pause and for the next one.
func (b *tab) expectShown(pausedAt []time.Time, slowest time.Duration, what string, column int) {
	b.t.Helper()
	expect(b, float64(len(pausedAt)), `window.seen.at(-1)[%s]`, column)
	seen := evaluate[[][]float64](b, `window.seen`)
	longest := time.Duration(0)
	for i, at := range pausedAt {
		first := slices.IndexFunc(seen, func(noted []float64) bool { return noted[column] > float64(i) })
		longest = max(longest, time.UnixMilli(int64(seen[first][0])).Sub(at))
	}
	delay := slowest + time.Duration(evaluate[float64](b, `delay`))*time.Millisecond
	b.t.Logf("%s: at most %s old, delays of %s", what, longest, delay)
	if most := 2*time.Second + 2*delay; longest > most {
		b.t.Errorf("the %s was %s old, want at most %s", what, longest, most)
	}
}
