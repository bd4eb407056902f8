package browser

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// reasonOf returns who changed a relayer last, how and why.
func (s *server) reasonOf(id string) string {
	s.t.Helper()
	var envelope struct {
		Data []struct{ Actor, Action, Reason string }
	}
	if err := json.Unmarshal([]byte(s.do("GET", collection+"/"+id+"/history?per_page=1", "", http.StatusOK)), &envelope); err != nil || len(envelope.Data) != 1 {
		s.t.Fatalf("%+v, error %v", envelope, err)
	}
	last := envelope.Data[0]
	return last.Actor + " " + last.Action + " " + last.Reason
}

// TestReason gives a reason for every kind of change.
func TestReason(t *testing.T) {
	t.Parallel()
	const field = "Reason for the change"
	file := t.TempDir() + "/tokens"
	writeFile(t, file, "alice "+token+" write+engine\n")
	b := open(t, "--tokens-file", file)
	b.fillServer()
	want := func(id, want string) {
		t.Helper()
		if got := b.server.reasonOf(id); got != want {
			t.Errorf("the last change of %s is %q, want %q", id, got, want)
		}
	}
	b.goTo("relayer=evm", "Sign in")
	b.enter("Full evm")
	b.fill("Störung 42\t✓", field)
	b.press("Pause")
	b.expectStatus("Full evm is paused")
	want("evm", "alice pause Störung 42 ✓")
	expect(b, true, `/^Last change: pause by alice, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\. Reason: Störung 42 ✓$/.test(document.getElementById('one-change').textContent)`)
	b.press("Resume")
	b.expectStatus("Full evm is resumed")
	want("evm", "alice resume ")
	b.edit("evm")
	b.fill("Renamed", "Name, required")
	b.fill(strings.Repeat("x", 300), field)
	b.saved("Renamed was changed")
	want("evm", "alice update "+strings.Repeat("x", 256))
	b.press("Disable")
	b.fill("RpcValidationFailed", "Reason, required")
	b.fill("the node is down", field)
	b.press("Disable the relayer")
	b.expectStatus("Renamed is disabled")
	want("evm", "alice disable the node is down")
	b.fill("the node is up", field)
	b.press("Enable")
	b.expectStatus("Renamed is enabled")
	want("evm", "alice enable the node is up")
	b.press("Delete")
	b.fill("evm", "Type the ID to confirm")
	b.fill("not used", field)
	b.press("Delete the relayer")
	b.expectTitle("Relayers")
	b.expectStatus("Renamed was deleted")
	want("evm", "alice delete not used")
	b.press("Pause all 3…")
	b.expectDialog("Pause 2 relayers?")
	b.fill("incident 43", field)
	b.press("Pause 2 relayers")
	b.expectDialog("Done")
	b.press("Close")
	want("long", "alice pause incident 43")
	want("stellar", "alice pause incident 43")
	b.server.do("PATCH", collection+"/long", `{"name":"Short"}`, http.StatusOK)
	expect(b, true, `/^PausedAlice/i.test(document.querySelector('#rows tr[data-id=long] td:nth-child(3)').textContent)`)
	b.run(chromedp.EmulateViewport(1280, 844))
	expect(b, true, `((e) => /^alice, \d{4}-\d\d-\d\d \d\d:\d\d: incident 43$/.test(e.textContent) && e.scrollWidth <= e.clientWidth)(document.querySelector('#rows tr[data-id=stellar] .changed'))`)
}

const changeRows = `[...document.querySelectorAll('#change-table tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))`

// historyRows has the cells of each change between its time and its buttons.
const historyRows = `[...document.querySelectorAll('main > section:not([hidden]) tr[data-revision]')].map((row) => [...row.children].slice(1, -1).map((cell) => cell.textContent))`

// TestHistory_Page finds who paused a relayer, restores a version, and creates a deleted one
// again.
func TestHistory_Page(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.fillServer()
	b.server.do("PATCH", collection+"/evm", `{"name":"Renamed","paused":true,"policies":{"gas_price_cap":7},"labels":{"tier":"2"}}`, http.StatusOK)
	b.goTo("relayer=evm", "Sign in")
	b.enter("Renamed")
	expect(b, [][]string{{"api-key", "update", "Labels, tier; Name; Paused: Yes; Policy, Gas price cap", ""}, {"api-key", "create", "", ""}}, historyRows)
	b.do(`document.querySelectorAll('#one-history button[aria-label]')[0].click()`)
	expect(b, [][]string{
		{"Name", "Full evm", "Renamed"}, {"Paused", "No", "Yes"},
		{"Policy, Gas price cap", "100000000000 wei = 100 gwei", "7 wei = 0.000000007 gwei"}, {"Labels, tier", "1", "2"},
	}, changeRows)
	b.press("Close")
	b.do(`document.querySelectorAll('#one-history button[aria-label]')[1].click()`)
	b.expectText("The relayer was created.")
	b.press("Restore this version")
	b.expectDialog("Edit Renamed")
	b.saved("Full evm was changed")
	if got := b.server.stored("evm"); got.Name != "Full evm" || !got.Paused || !strings.Contains(string(got.Policies), "100000000000") {
		t.Errorf("restored %+v, policies %s", got, got.Policies)
	}
	b.server.do("DELETE", collection+"/evm", "", http.StatusOK)
	b.goTo("changes=&action=delete", "Changes")
	expect(b, [][]string{{"evm", "api-key", "delete", "", ""}}, historyRows)
	b.do(`document.querySelector('#changes-rows button[aria-label]').click()`)
	b.expectText("must be entered again")
	b.press("Create it again")
	b.expectTitle("New relayer")
	b.press("Create the relayer")
	b.expectTitle("Full evm")
}

// TestHistory_Filter selects changes by actor, action and time. Words are not broken.
func TestHistory_Filter(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.server.do("PATCH", collection+"/r1", `{"paused":true}`, http.StatusOK)
	b.server.do("PATCH", collection+"/r2", `{"name":"New","notification_id":"ops","labels":{"team":"new","tier":"new","region":"new"},"policies":{"gas_price_cap":1,"min_balance":2,"whitelist_receivers":["0x1"]}}`, http.StatusOK)
	b.goTo("changes=", "Changes")
	expect(b, 8, historyRows+`.length`)
	b.run(chromedp.EmulateViewport(1280, 844))
	expect(b, []string{}, `[...document.querySelectorAll('#changes-rows :is(thead th, [data-title=Action], button)')].filter((e) => {
		const text = document.createRange();
		text.selectNodeContents(e);
		return text.getClientRects().length > 1;
	}).map((e) => e.textContent)`)
	filter := func(who, action, from, to string, want int) {
		t.Helper()
		b.fill(who, "Who")
		b.choose(action, "Action")
		b.do(`document.getElementById('changes-since').value = %s, document.getElementById('changes-until').value = %s`, from, to)
		b.press("Filter")
		expect(b, want > 0, `document.querySelector('#changes-rows table')?.checkVisibility()`)
		expect(b, want, historyRows+`.length`)
		expect(b, []string{who, from, to}, `['actor', 'since', 'until'].map((name) => document.getElementById('changes-' + name).value)`)
	}
	// Each number differs from the one before.
	filter("api-key", "create", "2000-01-02T03:04", "2099-01-02T03:04", 6)
	filter("nobody", "Any", "", "", 0)
	filter("api-key", "pause", "2000-01-02T03:04", "", 1)
	filter("", "Any", "2099-01-02T03:04", "", 0)
	filter("", "Any", "", "", 8)
	filter("", "Any", "", "2000-01-02T03:04", 0)
	b.expectText("No change matches.")
}

// TestHistory_MovedOut checks that a relayer that left the selection of the token is neither
// restored nor created again.
func TestHistory_MovedOut(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/tokens"
	writeFile(t, file, "ops "+token+" write\npayments narrowed-token-0123456789 write label.team=payments\n")
	b := openTeams(t, "--tokens-file", file)
	b.server.do("PATCH", collection+"/r1", `{"labels":{"team":"other"}}`, http.StatusOK)
	b.do(`document.getElementById('leave').click()`)
	b.expectTitle("Sign in")
	b.enterToken("narrowed-token-0123456789", "Relayers")
	b.goTo("changes=&action=update", "Changes")
	expect(b, [][]string{{"r1", "ops", "update", "", ""}}, historyRows)
	b.press("Details of revision 7")
	b.expectText("After this change the relayer is outside of what this token may see.")
	expect(b, false, `document.getElementById('change-restore').checkVisibility()`)
	b.press("Close")
}

// TestHistory_InvalidFilter checks that the page shows what is wrong with a link.
func TestHistory_InvalidFilter(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.goTo("changes=&since=x&until=+275760-09-13T00:00:00Z", "Changes")
	b.expectText("since must be a time such as 2026-01-02T15:04:05Z")
	expect(b, []string{"", ""}, `['since', 'until'].map((name) => document.getElementById('changes-' + name).value)`)
}

// TestHistory_Failure checks that the page says why it shows no history, and reads it again.
func TestHistory_Failure(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	expect(b, 1, historyRows+`.length`)
	b.do(`(() => {
		const send = fetch;
		window.status = 503;
		window.fetch = (url, request) => Number(window.status) !== 200 && url.includes('/history') ? Promise.resolve(new Response('{}', { status: window.status })) : send(url, request);
	})()`)
	b.press("Details of revision 1")
	b.expectStatus("The server is not available now. Try again later.")
	b.goTo("relayer=solana", "Full solana")
	b.expectText("The server is not available now. Try again later.")
	b.do(`window.status = 200`)
	b.press("Try again")
	expect(b, 1, historyRows+`.length`)
	b.do(`window.status = 404`)
	b.goTo("relayer=stellar", "Full stellar")
	b.expectText("No history is stored.")
	expect(b, false, `document.querySelector('#one-history > button').checkVisibility()`)
}
