package browser

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

const (
	// asksToLeave reports whether the browser asks before it leaves the page.
	asksToLeave = `!dispatchEvent(new Event('beforeunload', { cancelable: true }))`

	unsavedNote = "You have changes that are not saved. Save them, or press Cancel to discard them."
)

// TestUnsaved checks that the browser asks before what was entered is lost, and that the form is kept
// while the user opens another view. The edits of two relayers survive the back button, and are
// compared with what other clients have stored meanwhile.
func TestUnsaved(t *testing.T) {
	b := openFull(t, "evm")
	b.goTo("new", "New relayer")
	expect(b, false, asksToLeave)
	b.fill("New", "Name *")
	b.goTo("page=1", "Relayers")
	expect(b, true, asksToLeave)
	b.run(chromedp.NavigateBack())
	b.expectTitle("New relayer")
	expect(b, "New", findControl+`.value`, []string{"Name *"})
	b.do(`window.confirm = (question) => { window.question = question; return window.isSure; }`)
	b.do(`document.getElementById('leave').click()`)
	expect(b, "You have changes that are not saved. Discard them and sign out?", `window.question`)
	b.expectTitle("New relayer")
	b.do(`window.isSure = true, document.getElementById('leave').click()`)
	b.enter("New relayer")
	expect(b, "", findControl+`.value`, []string{"Name *"})
	expect(b, false, asksToLeave)

	for _, id := range []string{"evm", "stellar"} {
		b.goTo("relayer="+id, "Full "+id)
		b.edit()
		b.fill("Full "+id+"!", "Name *")
		b.run(chromedp.NavigateBack())
		b.expectTitle("Full " + id)
		b.expectStatus("Your changes to Full " + id + " are not saved. Open it again to save or discard them.")
	}
	expect(b, true, asksToLeave)
	b.server.do("PATCH", collection+"/evm", `{"paused":true}`, http.StatusOK)
	b.goTo("edit=stellar", "Edit Full stellar")
	b.expectText(unsavedNote)
	expect(b, "Full stellar!", findControl+`.value`, []string{"Name *"})
	b.saved("Full stellar! was changed")
	b.goTo("edit=evm", "Edit Full evm")
	b.expectText("This relayer was changed since you opened the form. When you save, the page shows what changed.")
	b.press("Save")
	b.expectConflict("paused")
	b.server.do("DELETE", collection+"/evm", "", http.StatusOK)
	b.press("Save")
	b.expectText("It was deleted, or the ID in the address is wrong. Your changes are not saved.")
	expect(b, false, asksToLeave)
}

// TestUnsaved_Live checks that changes of others and a resync take neither what the user types nor
// the focus, in the forms and in the search.
func TestUnsaved_Live(t *testing.T) {
	b := follow(open(t), "edit=relayer-1", "Edit Relayer 1")
	entered := func(want string) {
		t.Helper()
		expect(b, want, `document.activeElement.value`)
		b.keys("+")
		expect(b, want+"+", `document.activeElement.value`)
	}
	disturb := func() {
		t.Helper()
		reads := evaluate[float64](b, countReads)
		b.server.do("PATCH", collection+"/relayer-2", `{"paused":true}`, http.StatusOK)
		b.do(`sendEvent('event: resync\ndata: {}\n\n')`)
		expect(b, true, countReads+` > %s`, reads)
	}
	b.do(addEvents)
	expect(b, "function", `typeof window.sendEvent`)
	b.fill("Entered", "Name *")
	b.server.do("PATCH", collection+"/relayer-1", `{"name":"Renamed"}`, http.StatusOK)
	b.expectText("This relayer was changed since you opened the form. When you save, the page shows what changed.")
	disturb()
	entered("Entered")
	b.press("Save")
	b.expectConflict("name \u2068Relayer 1\u2069 → \u2068Renamed\u2069")
	b.server.do("DELETE", collection+"/relayer-1", "", http.StatusOK)
	b.expectText("This relayer was deleted since you opened the form.")
	b.goTo("new", "New relayer")
	b.fill("Typed", "Name *")
	disturb()
	entered("Typed")
	b.goTo("page=1", "Relayers")
	b.do(`document.getElementById('search').focus()`)
	b.insert("Sought")
	disturb()
	entered("Sought")
	b.search("team=payments")
	disturb()
	expect(b, true, `document.getElementById('search-wrong').textContent.startsWith('team is not a key.')`)
}

// addEvents lets a test add events to the change feed of the page, which connects again.
const addEvents = `(() => {
	const send = fetch;
	window.accessReads = 0;
	window.fetch = async (url, request) => {
		if (url.endsWith('/access')) accessReads++;
		const response = await send(url, request);
		if (!url.includes(':watch')) return response;
		const reader = response.body.getReader();
		const body = new ReadableStream({
			start(stream) { window.sendEvent = (text) => stream.enqueue(new TextEncoder().encode(text)); },
			async pull(stream) {
				const { done, value } = await reader.read();
				done ? stream.close() : stream.enqueue(value);
			},
		});
		return new Response(body, { status: response.status, headers: response.headers });
	};
	document.dispatchEvent(new Event('visibilitychange'));
})()`

// countReads is the number of times that the page has read what the user may do.
const countReads = `window.accessReads`
