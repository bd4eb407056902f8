package browser

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	bulkNames   = `[...document.querySelectorAll('#bulk-names li')].map((row) => (row.querySelector('label') ?? row).textContent)`
	bulkChosen  = `[...document.querySelectorAll('#bulk-names li:has(:checked) label')].map((label) => label.textContent)`
	bulkChanges = `[...document.querySelectorAll('#bulk-names .tag')].map((tag) => tag.textContent.replace(/, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/, ''))`
)

func (b *tab) expectPaused(want ...string) {
	b.t.Helper()
	want = append([]string{}, want...)
	b.goTo("paused=true&per_page=100", "Relayers")
	expect(b, want, rowIDs)
}

func TestBulk_Pause(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.goTo("label.team=payments", "Relayers")
	expect(b, []string{"r1", "r3", "r4", "r6"}, rowIDs)
	b.press("Pause all 4…")
	b.expectDialog("Pause 3 relayers?")
	b.expectText("4 relayers match label.team=payments. 1 of 4 already paused.")
	expect(b, []string{"Relayer 1 (r1)", "Relayer 3 (r3)", "Relayer 4 (r4)"}, bulkNames)
	expect(b, "bulk-cancel", `document.activeElement.id`)
	b.press("Pause 3 relayers")
	b.expectDialog("Done")
	b.expectText("3 relayers paused.")
	expect(b, false, `document.getElementById('bulk-names').checkVisibility()`)
	b.press("Close")
	b.expectDialog("")
	b.expectPaused("r1", "r3", "r4", "r6")

	b.press("Resume all 4…")
	b.expectDialog("Resume 4 relayers?")
	b.press("Cancel")
	b.expectDialog("")
	b.expectPaused("r1", "r3", "r4", "r6")
	b.goTo("page=1", "Relayers")
	expect(b, 6, rowIDs+`.length`)
	b.press("Resume all 6…")
	b.expectText("No filter is set: this is every relayer that you can see. 2 of 6 already resumed.")
	b.press("Resume 4 relayers")
	b.expectDialog("Done")
	b.press("Close")
	b.press("Resume all 6…")
	b.expectText("Nothing to resume.")
	b.press("Close")
	b.expectPaused()
}

// TestBulk_Failure checks that a pause needs no revision, that a resume of a relayer that
// another client has changed since is reported, and that it can be tried again.
func TestBulk_Failure(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.press("Pause all 6…")
	b.expectDialog("Pause 5 relayers?")
	b.server.do("PATCH", collection+"/r2", `{"name":"Other"}`, http.StatusOK)
	b.server.do("DELETE", collection+"/r3", "", http.StatusOK)
	b.press("Pause 5 relayers")
	b.expectDialog("Not every relayer is paused")
	b.expectText("4 relayers paused, 1 not paused.")
	expect(b, []string{"Relayer 3 (r3): There is no relayer r3."}, bulkNames)
	expect(b, false, `document.getElementById('bulk-confirm').checkVisibility()`)
	b.press("Close")
	b.expectPaused("r1", "r2", "r4", "r5", "r6")

	b.press("Resume all 5…")
	b.expectDialog("Resume 5 relayers?")
	b.server.do("PATCH", collection+"/r2", `{"name":"Another"}`, http.StatusOK)
	b.press("Resume 5 relayers")
	b.expectDialog("Not every relayer is resumed")
	expect(b, []string{"Other (r2): another client has changed it since"}, bulkNames)
	b.press("Try 1 relayer again")
	b.expectDialog("Resume 0 relayers?")
	expect(b, []string{" – changed since: update by api-key"}, bulkChanges)
	b.press("Another (r2)")
	b.press("Resume 1 relayer")
	b.expectDialog("Done")
	b.press("Close")
	b.expectPaused()
}

// TestBulk_Stop checks that the user can stop between two changes, and that a change that
// was sent counts.
func TestBulk_Stop(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*tab){
		"button": func(b *tab) { b.press("Stop") },
		"key":    func(b *tab) { b.keys(kb.Escape) },
		"back":   func(b *tab) { b.run(chromedp.NavigateBack()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openTeams(t)
			b.goTo("page=1", "Relayers")
			b.press("Pause all 6…")
			b.expectDialog("Pause 5 relayers?")
			b.holdResponse("PATCH")
			b.press("Pause 5 relayers")
			b.expectHeld()
			stop(b)
			if name != "button" {
				b.expectDialog("")
			}
			b.release()
			if name == "button" {
				b.expectText("1 relayer paused, 4 not tried.")
				b.press("Close")
			} else {
				b.expectStatus("1 relayer paused, 4 not tried.")
			}
			b.expectPaused("r1", "r6")
		})
	}
}

// The browser reports later that a dialog was closed.
func TestBulk_OpenAgain(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.press("Pause all 6…")
	b.expectDialog("Pause 5 relayers?")
	b.do(`document.getElementById('bulk-cancel').click(); document.getElementById('resume-all').click()`)
	b.expectDialog("Resume 1 relayer?")
}

// TestBulk_Limited checks that the page waits if the server has no time for a change, and
// stops if it cannot be reached.
func TestBulk_Limited(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.do(`(() => {
		const send = fetch;
		let patches = 0;
		window.fetch = (url, request) => {
			if (request.method !== 'PATCH') return send(url, request);
			patches++;
			if (patches === 2) return Promise.resolve(new Response('{}', { status: 503, headers: { 'Retry-After': '0.01' } }));
			return patches === 4 ? Promise.reject(new TypeError('Failed to fetch')) : send(url, request);
		};
	})()`)
	b.press("Pause all 6…")
	b.expectDialog("Pause 5 relayers?")
	b.press("Pause 5 relayers")
	b.expectDialog("Not every relayer is paused")
	b.expectText("2 relayers paused, 1 not paused, 2 not tried.")
	expect(b, []string{"Relayer 3 (r3): it is not known whether it was changed"}, bulkNames)
	b.press("Close")
}

// TestBulk_Many checks the list and a change of 10,000 relayers, of which the page reads
// 100 at once, and a relayer that is created meanwhile.
func TestBulk_Many(t *testing.T) {
	t.Parallel()
	const total = 10_000
	b := open(t)
	b.server.createMany(total)
	b.enter("Relayers")
	b.goTo(fmt.Sprintf("order=newest&page=%d", total/10), "Relayers")
	expect(b, "many-9", rowIDs+`[0]`)
	b.goTo("search=many-12", "Relayers")
	b.expectText("1–10 of 111 relayers selected")
	b.do(`(() => {
		const send = fetch;
		let reads = 0;
		window.fetch = async (url, request) => {
			if (url.includes('changes=true') && ++reads === 2) await window.meanwhile();
			return send(url, request);
		};
		window.meanwhile = () => new Promise((resolve) => { window.proceed = resolve; });
	})()`)
	b.press("Pause all 111…")
	expect(b, "function", `typeof window.proceed`)
	b.server.create("many-12-more", "More")
	b.do(`proceed()`)
	b.expectDialog("Pause 112 relayers?")
	expect(b, "More (many-12-more)", bulkNames+`.at(-1)`)
	b.press("Pause 112 relayers")
	b.expectDialog("Done")
	b.press("Close")
	b.goTo("paused=true", "Relayers")
	b.expectText("1–10 of 112 relayers selected")
	b.goTo("page=1", "Relayers")
	b.expectText("1–10 of 10001 relayers")
	b.press("Pause all 10001…")
	b.expectDialog("Pause 9889 relayers?")
	expect(b, 9889, bulkNames+`.length`)
	b.press("Cancel")
}
