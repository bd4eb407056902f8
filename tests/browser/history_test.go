package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
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
	const field = "Reason"
	b, _ := openTokens(t, "alice "+token+" write+engine")
	b.fillServer()
	want := func(id, want string) {
		t.Helper()
		if got := b.server.reasonOf(id); got != want {
			t.Errorf("the last change of %s is %q, want %q", id, got, want)
		}
	}
	b.goTo("relayer=evm", "Sign in")
	b.enter("Full evm")
	b.press("Pause")
	b.fill("Störung 42\t✓", field)
	b.press("Pause")
	b.expectStatus("Full evm is paused")
	want("evm", "alice pause Störung 42 ✓")
	expect(b, "Paused alice · just now · Störung 42 ✓", `document.getElementById('one-state').textContent`)
	b.act("Resume")
	b.expectStatus("Full evm is resumed")
	want("evm", "alice resume ")
	b.edit()
	b.fill("Renamed", "Name *")
	b.fill(strings.Repeat("x", 300), field)
	b.saved("Renamed was changed")
	want("evm", "alice update "+strings.Repeat("x", 256))
	const shown = `['pause', 'disable', 'enable'].filter((id) => !document.getElementById(id).hidden)`
	expect(b, []string{"pause", "disable"}, shown)
	b.more("Disable")
	b.press("Disable")
	b.expectError("Enter a fault, such as BalanceCheckFailed", "Fault *")
	b.fill("RpcValidationFailed", "Fault *")
	b.fill("the node is down", field)
	b.press("Disable")
	b.expectStatus("Renamed is disabled")
	want("evm", "alice disable the node is down")
	b.expectText("RpcValidationFailed: the node is down")
	expect(b, []string{"pause", "enable"}, shown)
	b.more("Enable")
	b.fill("the node is up", field)
	b.press("Enable")
	b.expectStatus("Renamed is enabled")
	want("evm", "alice enable the node is up")
	b.more("Delete")
	b.fill("evm", "Type the ID to confirm *")
	b.fill("not used", field)
	b.press("Delete")
	b.expectTitle("Relayers")
	b.expectStatus("Renamed was deleted")
	want("evm", "alice delete not used")
}

// historyRows has the text of each change, without its time and its button.
const historyRows = `[...document.querySelectorAll('main > section:not([hidden]) li[data-id]')].map((row) => row.firstElementChild.textContent.replaceAll(/[\u2068\u2069]/g, ''))`

// TestHistory_Page finds what changed a relayer, restores a version, and creates a deleted one
// again. The page says why it shows no history, and reads it again.
func TestHistory_Page(t *testing.T) {
	b := open(t)
	b.fillServer()
	b.server.do("PATCH", collection+"/evm", `{"paused":true,"policies":{"gas_price_cap":200000000000,"whitelist_receivers":["0x2"]},"labels":{"tier":"2"}}`, http.StatusOK)
	b.server.do("PATCH", collection+"/evm", `{"name":"Renamed","custom_rpc_urls":[{"url":"https://rpc.example/other","weight":75},{"url":"https://backup.example/v2"}]}`, http.StatusOK)
	b.server.do("PATCH", collection+"/evm", `{"settings":{"hosts":"a"}}`, http.StatusOK)
	b.server.do("PATCH", collection+"/evm", `{"settings":{"hosts":["a","b"]}}`, http.StatusOK)
	b.server.do("PATCH", collection+"/evm", `{"paused":false}`, http.StatusOK)
	b.goTo("relayer=evm", "Sign in")
	b.enter("Renamed")
	first := "paused; gas price cap 100 → 200 gwei; whitelist receivers + 0x2, − 0xd8da6bf26964af9d7eed9e03e53415d37aa96045; label tier 1 → 2 by api-key"
	second := "name Full evm → Renamed; custom RPC URLs a part that is not visible here by api-key"
	third, fourth := "setting hosts not set → a by api-key", `setting hosts a → ["a","b"] by api-key`
	expect(b, []string{"resumed by api-key", fourth, third, second, first, "created by api-key"}, historyRows)
	b.goTo("changes=", "History")
	expect(b, []string{"evm resumed by api-key", "evm " + fourth, "evm " + third, "evm " + second, "evm " + first, "long created by api-key"}, historyRows+`.slice(0, 6)`)
	b.goTo("relayer=evm", "Renamed")
	expect(b, 6, historyRows+`.length`)
	b.press("Restore revision 1")
	b.expectTitle("Edit Renamed")
	b.saved("Full evm was changed")
	if got := b.server.stored("evm"); got.Name != "Full evm" || got.Paused || !strings.Contains(string(got.Policies), "100000000000") {
		t.Errorf("restored %+v, policies %s", got, got.Policies)
	}
	b.server.do("DELETE", collection+"/evm", "", http.StatusOK)
	b.goTo("relayer=evm", "There is no relayer evm")
	expect(b, "deleted by api-key", historyRows+`[0]`)
	b.press("Create it again")
	b.expectTitle("New relayer")
	b.press("Create the relayer")
	b.expectTitle("Full evm")
	expect(b, []any{"created by api-key", "deleted by api-key", 7}, `((rows) => [rows[0], rows[1], document.querySelectorAll('#one-history button').length])(`+historyRows+`)`)

	b.intercept(`return window.failure && url.includes('/history') ? new Response('{"success":false}', { status: window.failure }) : send(url, request);`)
	b.do(`window.failure = 503`)
	b.goTo("relayer=solana", "Full solana")
	b.expectText("The server is not available now. Try again later.")
	b.do(`(window.failure = 0, document.querySelector('#one-history > button').click())`) // before a refresh removes it
	expect(b, 1, historyRows+`.length`)
	b.do(`window.failure = 404`)
	b.goTo("relayer=stellar", "Full stellar")
	b.expectText("No history is stored.")
	expect(b, false, `document.querySelector('#one-history > button') !== null`)
}

// TestHistory_Late checks that the response to an earlier read does not replace a newer history, and that
// the newer one has as many changes as the user has asked for. A second press of a button waits for the first
// one, and a late form does not replace another view. The history of all does not say "Live".
func TestHistory_Late(t *testing.T) {
	b := open(t)
	b.server.create("one", "Name 0")
	for i := range 22 {
		b.server.do("PATCH", collection+"/one", fmt.Sprintf(`{"name":"Name %d"}`, i+1), http.StatusOK)
	}
	b.goTo("relayer=one", "Sign in")
	b.enter("Name 22")
	expect(b, true, `performance.getEntriesByType('resource').filter((read) => read.name.includes('/history?')).length >= 4`) // twice: for the view, and after the first look for changes
	expect(b, 20, historyRows+`.length`)
	b.holdResponse("GET")
	b.press("Older changes")
	b.expectHeld()
	b.server.do("PATCH", collection+"/one", `{"name":"Newest"}`, http.StatusOK)
	expect(b, 24, historyRows+`.length`)
	b.release()
	expect(b, "name Name 22 → Newest by api-key", historyRows+`[0]`)
	expect(b, true, `document.getElementById('live').checkVisibility()`)
	pressTwice := func(button string) {
		t.Helper()
		b.holdResponse("GET")
		b.press(button)
		b.expectHeld()
		b.intercept(`window.isRepeated ||= /one.changes|before=/.test(url); return send(url, request);`)
		b.do(`window.isRepeated = false`)
		b.press(button)
		expect(b, false, `isRepeated`)
	}
	pressTwice("Restore revision 20")
	b.goTo("changes=", "History")
	b.release()
	expect(b, "#changes=", `location.hash`)
	expect(b, false, `document.getElementById('live').checkVisibility()`)
	expect(b, 20, historyRows+`.length`)
	pressTwice("Older changes")
	b.release()
	expect(b, 24, historyRows+`.length`)
}

// TestHistory_Large checks that changes of a list of the maximum length do not block the page for long.
func TestHistory_Large(t *testing.T) {
	b := open(t)
	b.server.do("POST", collection, `{"id":"long","name":"Long","network":"n","network_type":"solana","paused":false,"signer_id":"s"}`, http.StatusCreated)
	tokens := make([]string, 10_000)
	for i := range tokens {
		tokens[i] = fmt.Sprintf(`{"mint":"%d"}`, i)
	}
	for i := range 20 {
		tokens[i] = fmt.Sprintf(`{"mint":"new%d"}`, i)
		b.server.do("PATCH", collection+"/long", `{"policies":{"allowed_tokens":[`+strings.Join(tokens, ",")+`]}}`, http.StatusOK)
	}
	b.goTo("changes=", "Sign in")
	begin := time.Now()
	b.enter("History")
	expect(b, `long allowed tokens + {"mint":"new19"}, − {"mint":"19"} by api-key`, historyRows+`[0]`)
	if waited := time.Since(begin); waited > patience {
		t.Errorf("the history was shown after %s, want at most %s", waited, patience)
	}
}

// TestHistory_Filter selects changes by actor, action and time. A long change unfolds.
func TestHistory_Filter(t *testing.T) {
	b := openTeams(t)
	b.server.do("PATCH", collection+"/r1", `{"paused":true}`, http.StatusOK)
	b.server.do("PATCH", collection+"/r2", `{"name":"New","notification_id":"ops","labels":{"team":"new","tier":"new","region":"new"},"policies":{"gas_price_cap":1,"min_balance":2,"whitelist_receivers":["0x1"]}}`, http.StatusOK)
	b.goTo("changes=", "History")
	expect(b, 8, historyRows+`.length`)
	for _, c := range []struct {
		text string
		want int // differs from the one before
	}{
		{"actor=api-key action=create since=2000-01-02T03:04", 6}, {"actor=nobody", 0}, {"actor=api-key,action=pause since=1h", 1}, {"until=30min", 0},
		{"until=2099-01-02T03:04 since=2d", 8}, {"until=2000-01-02", 0},
	} {
		b.fillSearch("changes-search", c.text)
		expect(b, c.want, historyRows+`.length`)
		expect(b, c.text, `document.getElementById('changes-search').value`)
	}
	b.expectText("No change matches.")
	expect(b, 0, `performance.getEntriesByType('resource').filter((read) => read.name.includes('/history?before')).length`)
	b.fillSearch("changes-search", "action=update") // the version before is not in the list
	expect(b, true, historyRows+`[0]?.startsWith('r2 name Relayer 2 → New; ')`)
	expect(b, false, `document.querySelector('.history details ul').checkVisibility()`)
	b.do(`document.querySelector('.history summary').click()`)
	expect(b, 8, `document.querySelectorAll('.history details[open] li').length`)
	b.expectText("gas price cap not set → 0.000000001 gwei")
	b.server.do("PATCH", collection+"/r2", `{"paused":true}`, http.StatusOK) // between two updates
	b.server.do("PATCH", collection+"/r2", `{"labels":{"tier":"2"}}`, http.StatusOK)
	b.fillSearch("changes-search", "action=update since=1h")
	expect(b, "r2 label tier new → 2 by api-key", historyRows+`[0]`)
	for _, wrong := range []string{"x", "2"} {
		b.fillSearch("changes-search", "since="+wrong)
		b.expectText("since must be a time such as 2026-01-02T15:04:05Z")
		b.fillSearch("changes-search", "alice")
		b.expectText("alice is not a key. Keys are actor, action, since and until.")
	}
	b.useTimeZone("Asia/Tokyo")
	b.intercept(`window.asked = new URL(url, location).searchParams.get('since') ?? window.asked; return send(url, request);`)
	b.fillSearch("changes-search", "since=2026-01-31")
	expect(b, "2026-01-30T15:00:00.000Z", `window.asked`)
	b.useTimeZone("")
	b.fillSearch("changes-search", "alice")
	expect(b, []string{}, historyRows)
}

func (b *tab) useTimeZone(name string) {
	b.t.Helper()
	b.run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
		return err
	}))
}

// TestHistory_MovedOut checks that a relayer that left the selection of the token is neither
// restored nor created again.
func TestHistory_MovedOut(t *testing.T) {
	b := openTeams(t, "ops "+token+" write\npayments narrowed-token-0123456789 write label.team=payments")
	b.server.do("PATCH", collection+"/r1", `{"labels":{"team":"other"}}`, http.StatusOK)
	b.do(`document.getElementById('leave').click()`)
	b.expectTitle("Sign in")
	b.enterToken("narrowed-token-0123456789", "Relayers")
	b.goTo("changes=&q=action%3Dupdate", "History")
	expect(b, []string{"r1 changed by ops, after which this token may not see it"}, historyRows)
	b.goTo("relayer=r1", "There is no relayer r1")
	expect(b, 2, historyRows+`.length`)
	expect(b, 1, `document.querySelectorAll('.history button').length`)
}
