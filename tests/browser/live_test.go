package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// openLive opens a view and waits until the page follows the changes.
func openLive(t *testing.T, hash, title string) *tab {
	t.Helper()
	b := open(t)
	for i := 1; i <= 3; i++ {
		b.server.create(fmt.Sprintf("relayer-%d", i), fmt.Sprintf("Relayer %d", i))
	}
	b.goTo(hash, "Sign in")
	b.enter(title)
	expect(b, "Live", `document.getElementById('live').textContent`)
	return b
}

// TestLive_List checks that a change of another client appears in the same row, and
// that created and deleted relayers appear and disappear.
func TestLive_List(t *testing.T) {
	t.Parallel()
	b := openLive(t, "page=1", "Relayers")
	b.do(`window.row = document.querySelector('[data-id=relayer-2]')`)
	b.server.do("PATCH", collection+"/relayer-2", `{"name":"Renamed","paused":true}`, http.StatusOK)
	expect(b, []any{"Renamed", "Paused", true}, `((row) => [row.querySelector('a').textContent, row.querySelector('.pill').textContent, row === window.row])(document.querySelector('[data-id=relayer-2]'))`)
	b.server.create("relayer-4", "Relayer 4")
	expect(b, []string{"Relayer 1", "Renamed", "Relayer 3", "Relayer 4"}, `[...document.querySelectorAll('#rows a')].map((a) => a.textContent)`)
	b.expectText("1–4 of 4 relayers")
	b.server.do("DELETE", collection+"/relayer-1", "", http.StatusOK)
	expect(b, []string{"Renamed", "Relayer 3", "Relayer 4"}, `[...document.querySelectorAll('#rows a')].map((a) => a.textContent)`)
}

// TestLive_ListWithFocus checks that rows do not move while the focus is in one.
func TestLive_ListWithFocus(t *testing.T) {
	t.Parallel()
	b := openLive(t, "page=1", "Relayers")
	b.do(`document.querySelector('[data-id=relayer-2] a').focus()`)
	b.server.do("PATCH", collection+"/relayer-2", `{"name":"Renamed"}`, http.StatusOK)
	expect(b, "Renamed", `document.activeElement.textContent`)
	b.server.do("DELETE", collection+"/relayer-1", "", http.StatusOK)
	b.expectText("The list may have changed.")
	b.expectStatus("The list may have changed")
	expect(b, []any{"Deleted", 3.0, "Renamed"}, `[document.querySelector('[data-id=relayer-1] .pill').textContent, document.querySelectorAll('#rows tr').length, document.activeElement.textContent]`)
	b.press("Show the changes")
	expect(b, []any{2.0, "list-title", false}, `[document.querySelectorAll('#rows tr').length, document.activeElement.id, document.getElementById('list-note').checkVisibility()]`)
}

// TestLive_FocusWhileReading checks that a list that the page reads already does not take
// the focus from a row.
func TestLive_FocusWhileReading(t *testing.T) {
	t.Parallel()
	b := openLive(t, "page=1", "Relayers")
	b.do(holdReads)
	b.server.create("relayer-4", "Relayer 4")
	expect(b, true, `window.held.length >= 1`)
	b.do(`document.querySelector('[data-id=relayer-2] a').focus()`)
	b.do(`release()`)
	b.expectStatus("The list may have changed")
	expect(b, "Relayer 2", `document.activeElement.textContent`)
	b.do(`document.getElementById('list-title').focus()`)
}

const (
	pillColor = `getComputedStyle(document.querySelector('#rows .pill')).color`
	staleNote = `document.getElementById('stale').textContent`
)

// expectStale waits until the page shows old states as such. It returns their time.
func (b *tab) expectStale() time.Time {
	b.t.Helper()
	expect(b, true, pillColor+` === getComputedStyle(document.querySelector('#rows .mono')).color`)
	note := evaluate[string](b, staleNote)
	shown, found := strings.CutPrefix(strings.TrimSuffix(note, "."), "The server cannot be reached. The states are those of ")
	at, err := time.ParseInLocation(time.DateTime, shown, time.Local)
	if !found || err != nil {
		b.t.Fatalf("the page shows %q", note)
	}
	return at
}

// TestLive_ServerStopped checks that the page does not show states as current while the
// server is away.
func TestLive_ServerStopped(t *testing.T) {
	t.Parallel()
	begin := time.Now().Truncate(time.Second)
	b := openLive(t, "page=1", "Relayers")
	expect(b, false, pillColor+` === getComputedStyle(document.querySelector('#rows .mono')).color`)
	expect(b, "", staleNote)
	if err := b.server.process.Kill(); err != nil {
		t.Fatal(err)
	}
	expect(b, "Reconnecting", `document.getElementById('live').textContent`)
	if at := b.expectStale(); at.Before(begin) || at.After(time.Now()) {
		t.Errorf("the states are those of %s, want a time from %s to now", at, begin)
	}
}

// TestLive_ServerBack checks that the states are current again after an outage.
func TestLive_ServerBack(t *testing.T) {
	t.Parallel()
	b := openLive(t, "page=1", "Relayers")
	b.do(`window.send = fetch, window.fetch = async () => new Response('', { status: 502 })`)
	b.do(`document.dispatchEvent(new Event('visibilitychange'))`) // connects again
	b.expectStale()
	b.do(`window.fetch = window.send`)
	expect(b, "Live", `document.getElementById('live').textContent`)
	expect(b, "", staleNote)
	expect(b, false, pillColor+` === getComputedStyle(document.querySelector('#rows .mono')).color`)
}

func TestLive_Relayer(t *testing.T) {
	t.Parallel()
	b := openLive(t, "relayer=relayer-1", "Relayer 1")
	b.do(`document.querySelector('#one-cards .copy').focus()`)
	b.server.do("PATCH", collection+"/relayer-1", `{"name":"Renamed","paused":true,"notification_id":"ops"}`, http.StatusOK)
	b.expectTitle("Renamed")
	b.expectText("ops")
	b.expectStatus("Renamed was changed by another client")
	expect(b, "Copy the ID", `document.activeElement.ariaLabel`)
	// The page has the ETag of the change.
	b.press("Resume")
	b.expectStatus("Renamed is resumed")
	b.server.do("DELETE", collection+"/relayer-1", "", http.StatusOK)
	b.expectTitle("There is no relayer relayer-1")
}

// TestLive_EditNote checks that an open form keeps what was entered.
func TestLive_EditNote(t *testing.T) {
	t.Parallel()
	b := openLive(t, "relayer=relayer-1", "Relayer 1")
	b.press("Edit")
	b.fill("Entered", "Name, required")
	b.server.do("PATCH", collection+"/relayer-1", `{"name":"Renamed"}`, http.StatusOK)
	b.expectText("This relayer was changed since you opened the form. When you save, the page shows what changed.")
	expect(b, []string{"Entered", "Name, required"}, `[document.activeElement.value, document.activeElement.labels[0].textContent]`)
	b.press("Save")
	b.expectConflict([]string{"Name", "Relayer 1", "Renamed", "Entered"})
	b.press("Edit again")
	b.server.do("DELETE", collection+"/relayer-1", "", http.StatusOK)
	b.expectText("This relayer was deleted since you opened the form.")
}

// TestLive_NoFeed checks that the page works with a server that has no change feed.
func TestLive_NoFeed(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.press("Pause")
	b.expectStatus("Full evm is paused")
	expect(b, false, `document.getElementById('live').checkVisibility()`)
}

// TestLive_Reconnects checks that the page resumes after the last event that it got.
func TestLive_Reconnects(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.server.create("one", "One")
	b.do(`(() => {
		const send = fetch;
		window.resumed = [];
		window.fetch = (url, request) => {
			if (!url.includes(':watch')) return send(url, request);
			window.resumed.push(request.headers['Last-Event-ID'] ?? '');
			if (window.resumed.length > 2) return send(url, request);
			const event = ': heartbeat\n\nid: position-7\nevent: updated\ndata: {"etag":"\\"9\\"","relayer":{"id":"one","name":"From the feed","network":"n","network_type":"evm","address":"","paused":false,"system_disabled":false,"signer_id":"s","policies":{}}}\n\n';
			return Promise.resolve(window.resumed.length === 1 ? new Response(event) : new Response('', { status: 503 }));
		};
	})()`)
	b.enter("Relayers")
	expect(b, []string{"", "position-7", "position-7"}, `window.resumed`)
	expect(b, "Live", `document.getElementById('live').textContent`)
}

// holdReads delays the responses to gets and lists, except counts, until release is called, while the
// change feed goes on. It counts those that the page has handled.
const holdReads = `(() => {
	const send = fetch;
	window.held = [];
	window.reads = window.handled = 0;
	window.release = () => window.held.splice(0).forEach((resolve) => resolve());
	window.fetch = async (url, request) => {
		const response = await send(url, request);
		if (request.method !== 'GET' || url.endsWith('/access') || url.includes('per_page=0')) return response;
		const text = await response.text();
		window.reads++;
		await new Promise((resolve) => window.held.push(resolve));
		response.text = async () => {
			setTimeout(() => { window.handled++; });
			return text;
		};
		return response;
	};
})()`

// TestLive_StaleList checks that a list that is older than a change does not undo it.
func TestLive_StaleList(t *testing.T) {
	t.Parallel()
	b := openLive(t, "page=1", "Relayers")
	b.do(holdReads)
	b.server.create("relayer-4", "Relayer 4")
	expect(b, true, `window.held.length >= 1`)
	b.server.do("PATCH", collection+"/relayer-2", `{"name":"Renamed"}`, http.StatusOK)
	expect(b, "Renamed", `document.querySelector('[data-id=relayer-2] a').textContent`)
	b.do(`release()`)
	expect(b, true, `window.reads >= 2`)
	b.do(`release()`)
	expect(b, "Renamed", `document.querySelector('[data-id=relayer-2] a').textContent`)
}

// TestLive_StaleRelayer checks the same for the page of a relayer.
func TestLive_StaleRelayer(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.server.create("one", "One")
	b.goTo("relayer=one", "Sign in")
	b.enter("One")
	b.do(holdReads)
	b.do(`document.dispatchEvent(new Event('visibilitychange'))`) // connects again, which reads the relayer
	expect(b, true, `window.held.length >= 1`)
	b.server.do("PATCH", collection+"/one", `{"name":"Renamed"}`, http.StatusOK)
	b.expectTitle("Renamed")
	b.do(`release()`)
	expect(b, true, `window.handled >= 1`)
	expect(b, "Renamed", `document.getElementById('one-title').textContent`)
}

// TestLive_Silence checks that the page connects again if the stream stays open without
// the comments that the server sends. A timeout of 45 seconds passes at once.
func TestLive_Silence(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.server.create("one", "One")
	b.do(`(() => {
		const [send, later] = [fetch, setTimeout];
		let streams = 0;
		window.setTimeout = (act, milliseconds) => later(act, milliseconds === 45000 && streams === 1 ? 100 : milliseconds);
		window.fetch = (url, request) => {
			if (!url.includes(':watch') || streams++ > 0) return send(url, request);
			return Promise.resolve(new Response(new ReadableStream({ start(stream) {
				stream.enqueue(new TextEncoder().encode(': heartbeat\n\n'));
				request.signal.addEventListener('abort', () => stream.error(request.signal.reason));
			} })));
		};
	})()`)
	b.enter("Relayers")
	expect(b, "Reconnecting", `document.getElementById('live').textContent`)
	expect(b, "Live", `document.getElementById('live').textContent`)
}

// TestLive_DeletedWhileEditing checks that the focus is not lost with the form of a
// relayer that another client has deleted.
func TestLive_DeletedWhileEditing(t *testing.T) {
	t.Parallel()
	b := openLive(t, "relayer=relayer-1", "Relayer 1")
	b.press("Edit")
	b.fill("Entered", "Name, required")
	b.server.do("DELETE", collection+"/relayer-1", "", http.StatusOK)
	b.expectTitle("There is no relayer relayer-1")
	expect(b, "Entered", findControl+`.value`, []string{"Name, required"})
	b.press("Save")
	b.expectDialog("")
	expect(b, "problem-title", `document.activeElement.id`)
}

// TestLive_HiddenTab checks that a hidden tab holds no connection, and shows the
// current relayers when it is visible again.
func TestLive_HiddenTab(t *testing.T) {
	t.Parallel()
	b := openLive(t, "page=1", "Relayers")
	b.do(`window.setHidden = (hidden) => {
		Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
		document.dispatchEvent(new Event('visibilitychange'));
	}`)
	b.do(`setHidden(true)`)
	expect(b, false, `document.getElementById('live').checkVisibility()`)
	b.server.do("PATCH", collection+"/relayer-2", `{"name":"Renamed"}`, http.StatusOK)
	b.server.do("GET", collection, "", http.StatusOK)
	expect(b, "Relayer 2", `document.querySelector('[data-id=relayer-2] a').textContent`)
	b.do(`setHidden(false)`)
	expect(b, "Renamed", `document.querySelector('[data-id=relayer-2] a').textContent`)
	expect(b, "Live", `document.getElementById('live').textContent`)
}

// TestLive_TokenRevoked checks that the end of the stream leads to the sign-in.
func TestLive_TokenRevoked(t *testing.T) {
	t.Parallel()
	b := openLive(t, "page=1", "Relayers")
	b.do(`window.fetch = async () => new Response('{"success":false,"data":null,"message":"Unauthorized"}', { status: 401 })`)
	b.server.create("late", "Late")
	b.expectTitle("Sign in")
	expect(b, tokenExpired, `document.getElementById('token-wrong').textContent`)
}
