package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// stored returns a relayer as the API returns it.
func (s *server) stored(id string) (relayer struct {
	Name           string          `json:"name"`
	Paused         bool            `json:"paused"`
	NotificationID string          `json:"notification_id"`
	CustomRPCURLs  json.RawMessage `json:"custom_rpc_urls"`
	Policies       json.RawMessage `json:"policies"`
}) {
	s.t.Helper()
	envelope := struct{ Data any }{&relayer}
	if err := json.Unmarshal([]byte(s.do("GET", collection+"/"+id, "", http.StatusOK)), &envelope); err != nil {
		s.t.Fatal(err)
	}
	return relayer
}

// looks matches the requests by which the page looks for changes.
const looks = `endsWith('?after=&per_page=0')`

// awaitLook waits until the page has begun to look for changes after this call, and got the response.
func (b *tab) awaitLook() {
	b.t.Helper()
	const count = `performance.getEntriesByType('resource').filter((read) => read.name.` + looks + `).length`
	expect(b, true, count+` > 1 + %s`, evaluate[float64](b, count))
}

// blockFeed keeps changes of other clients from the page.
func (b *tab) blockFeed() {
	b.t.Helper()
	b.intercept(`return url.` + looks + ` ? new Response('', { status: 404 }) : send(url, request);`)
}

// holdResponse keeps the response of the next request with the method, except for a look for changes,
// until the script calls release. isHandled becomes true after the page has handled it. As in a browser, the
// response of a canceled request is lost.
func (b *tab) holdResponse(method string) {
	b.t.Helper()
	b.do(`window.release = window.isHandled = undefined; window.holding = %s`, method)
	b.intercept(`
		const response = await send(url, request);
		if (request.method !== window.holding || url.` + looks + ` || url.endsWith('/access')) return response;
		window.holding = undefined;
		const text = await response.text();
		await new Promise((resolve) => { window.release = resolve; });
		response.text = async () => {
			setTimeout(() => { window.isHandled = true; });
			request.signal.throwIfAborted();
			return text;
		};
		return response;`)
}

func (b *tab) expectHeld() {
	b.t.Helper()
	expect(b, "function", `typeof window.release`)
}

// openFull opens the page of a relayer that has every field. The page does not follow
// changes, so that it keeps the revision that it has read.
func openFull(t *testing.T, id string) *tab {
	t.Helper()
	b := open(t)
	b.fillServer()
	b.blockFeed()
	b.goTo("relayer="+id, "Sign in")
	b.enter("Full " + id)
	return b
}

// edit opens the form of the relayer.
func (b *tab) edit() {
	b.t.Helper()
	b.press("Edit")
	expect(b, true, `document.getElementById('edit-title').checkVisibility()`)
}

// saved submits the form and waits until the relayer is shown.
func (b *tab) saved(status string) {
	b.t.Helper()
	b.press("Save")
	expect(b, true, `document.getElementById('one-title').checkVisibility()`)
	b.expectStatus(status)
}

// TestEdit_Fields changes fields. URLs are replaced only if the user asks for it, and the masked ones
// are not sent.
func TestEdit_Fields(t *testing.T) {
	const urls = "Custom RPC URLs"
	b := openFull(t, "evm")
	b.edit()
	expect(b, "= 100 gwei", humanOf, []string{policies, "Gas price cap (wei)"})
	b.fill("New name", "Name *")
	b.fill("", "Notification ID")
	b.fill("1e21", policies, "Gas price cap (wei)")
	expect(b, "= 1000 ether", humanOf, []string{policies, "Gas price cap (wei)"})
	b.choose("Not set", policies, "EIP-1559 pricing")
	b.choose("Yes", policies, "Private transactions")
	b.fill("", policies, "Whitelist receivers")
	b.saved("New name was changed")
	b.expectTitle("New name")
	expect(b, "one-title", `document.activeElement.id`)

	if got := b.server.stored("evm"); got.Name != "New name" || got.NotificationID != "" {
		t.Errorf("the relayer is %+v", got)
	}
	b.expectPolicies("evm", `{"gas_price_cap":1000000000000000000000,"min_balance":500000000000000000,"private_transactions":true}`)

	b.edit()
	b.fill("50", urls, "Endpoint 1", "Weight")
	b.press("Save")
	b.expectError("must be the full URL, not the masked one that responses show", urls, "Endpoint 1", "URL *")
	b.fill("wss://new.example/KEY", urls, "Endpoint 1", "URL *")
	b.press(urls, "Endpoint 2", "Remove endpoint 2")
	b.saved("New name was changed")
	b.expectURLs(`[{"url":"wss://new.example/***","weight":50}]`)
	b.edit()
	b.press(urls, "Endpoint 1", "Remove endpoint 1")
	b.saved("New name was changed")
	b.expectURLs("")
	b.edit()
	b.press(urls, "Add an endpoint")
	b.fill("https://again.example", urls, "Endpoint 1", "URL *")
	b.fill("Host=Secret-4b1d", urls, "Endpoint 1", "Headers")
	b.press("Save")
	b.expectErrorStart("Host must not be", urls, "Endpoint 1", "Headers")
	b.fill("X-Api-Key=Secret-4b1d", urls, "Endpoint 1", "Headers")
	b.saved("New name was changed")
	b.expectURLs(`[{"url":"https://again.example","weight":100,"headers":{"X-Api-Key":"***"}}]`)
	b.expectText("X-Api-Key")
	expect(b, false, `document.body.outerHTML.includes('Secret-4b1d')`)
}

// TestEdit_Unchanged checks that fields that the user did not touch are not sent, nor those that the form
// does not have, that "Cancel" discards what was entered, and that the problems of a save are shown even if
// the user has opened another view.
func TestEdit_Unchanged(t *testing.T) {
	b := openFull(t, "evm")
	b.edit()
	b.fill("Unsaved", "Name *")
	b.press("Cancel")
	b.expectTitle("Full evm")
	b.edit()
	expect(b, "Full evm", findControl+`.value`, []string{"Name *"})
	b.fill("", "Name *")
	b.holdResponse("PATCH")
	b.countWrites()
	b.press("Save")
	b.expectHeld()
	b.press("Save")
	expect(b, 1, `writes.length`)
	b.goTo("page=1", "Relayers")
	b.release()
	b.expectStatus("The relayer was not changed: name must not be empty")
	b.goTo("edit=evm", "Edit Full evm")
	b.expectText(unsavedNote)
	b.press("Cancel")
	b.expectTitle("Full evm")
	b.intercept(`window.body = request.body ?? window.body; return send(url, request);`)
	for _, id := range []string{"evm", "solana", "stellar"} {
		b.goTo("relayer="+id, "Full "+id)
		b.do(`window.body = undefined`)
		before := b.server.stored(id)
		b.edit()
		b.saved("Nothing was changed")
		b.edit()
		b.fill("other", "Notification ID")
		b.saved("Full " + id + " was changed")
		expect(b, `{"notification_id":"other"}`, `window.body`)
		after := b.server.stored(id)
		if string(after.Policies) != string(before.Policies) || string(after.CustomRPCURLs) != string(before.CustomRPCURLs) {
			t.Errorf("%s: the relayer is\n%s, want\n%s", id, after.Policies, before.Policies)
		}
	}
	b.replaceInResponses(`"policies":{`, `"policies":{"later":7,`)
	b.goTo("relayer=evm", "Full evm")
	b.edit()
	b.fill("6", policies, "Min balance (wei)")
	b.saved("Full evm was changed")
	expect(b, `{"policies":{"min_balance":6}}`, `window.body`)
}

// openNext creates a relayer whose ID is its network type, and opens its form.
func (b *tab) openNext(networkType, policies string) {
	b.t.Helper()
	b.server.do("POST", collection, fmt.Sprintf(`{"id":%[1]q,"name":"Full %[1]s","network":"testnet","network_type":%[1]q,"paused":false,"signer_id":"s","policies":%[2]s}`, networkType, policies), http.StatusCreated)
	b.goTo("relayer="+networkType, "Full "+networkType)
	b.edit()
}

func (b *tab) expectPolicies(id, want string) {
	b.t.Helper()
	if got := string(b.server.stored(id).Policies); got != want {
		b.t.Errorf("the policies are %s, want %s", got, want)
	}
}

func (b *tab) expectURLs(want string) {
	b.t.Helper()
	if got := string(b.server.stored("evm").CustomRPCURLs); got != want {
		b.t.Errorf("the URLs are %s, want %s", got, want)
	}
}

// TestEdit_Stored checks that no empty object remains, which network rules could reject, that what
// the user does not change stays exactly as it is, and that pasted lists of addresses are split. A group
// whose last field the user clears keeps the fields that another client has set meanwhile. A problem of
// the settings names its path, and a member or a label that is left out is removed.
func TestEdit_Stored(t *testing.T) {
	b := open(t)
	b.blockFeed()
	b.enter("Relayers")
	b.openNext("stellar", `{"max_fee":1,"swap_config":{"strategies":["soroswap"]}}`)
	b.fill("", policies, "Swap config", "Strategies")
	b.saved("Full stellar was changed")
	b.expectPolicies("stellar", `{"max_fee":1}`)
	b.edit()
	b.fill("", policies, "Max fee (stroops)")
	b.saved("Full stellar was changed")
	b.expectPolicies("stellar", `{}`)
	b.server.do("PATCH", collection+"/stellar", `{"policies":{"swap_config":{"strategies":["soroswap"]}}}`, http.StatusOK)
	b.edit()
	b.fill("", policies, "Swap config", "Strategies")
	b.server.do("PATCH", collection+"/stellar", `{"policies":{"max_fee":5,"swap_config":{"min_balance_threshold":7}}}`, http.StatusOK)
	b.press("Save")
	b.expectConflict("max fee not set → 0.0000005 XLM; swap config min balance threshold not set → 0.0000007 XLM")
	b.saved("Full stellar was changed")
	b.expectPolicies("stellar", `{"max_fee":5,"swap_config":{"min_balance_threshold":7}}`)

	b.openNext("solana", `{"allowed_tokens":[{"mint":"a","symbol":"","swap_config":{}},{"mint":"b","swap_config":{"min_amount":1}}]}`)
	b.fill("B", policies, "Allowed tokens", "Token 2", "Symbol")
	b.fill("", policies, "Allowed tokens", "Token 2", "Swap config", "Min amount (smallest units)")
	b.saved("Full solana was changed")
	b.expectPolicies("solana", `{"allowed_tokens":[{"mint":"a","symbol":"","swap_config":{}},{"mint":"b","symbol":"B"}],"fee_payment_strategy":"user"}`)

	b.openNext("evm", `{"min_balance":5,"whitelist_receivers":["one, stored","","two\nlines"]}`)
	b.fill("6", policies, "Min balance (wei)")
	b.saved("Full evm was changed")
	b.expectPolicies("evm", `{"min_balance":6,"whitelist_receivers":["one, stored","","two\nlines"]}`)
	b.edit()
	b.fill("0x1, 0x2 0x3\t0x4,\n,\n0x5", policies, "Whitelist receivers")
	b.saved("Full evm was changed")
	b.expectPolicies("evm", `{"min_balance":6,"whitelist_receivers":["0x1","0x2","0x3","0x4","0x5"]}`)

	b.edit()
	b.fill(`{"max_in_flight": 8, "exact": 18446744073709551616, "odd": {"deep": [1`, "Settings (JSON)")
	b.press("Save")
	b.expectErrorStart("must be", "Settings (JSON)")
	for _, settings := range []string{`{"exact":18446744073709551616,"max_in_flight":8,"odd":{"deep":[1]}}`, `{"_seconds":1,"max_in_flight":8,"odd":{}}`, `{"max_in_flight":9}`} {
		b.fill(settings, "Settings (JSON)")
		b.saved("Full evm was changed")
		b.edit()
		expect(b, settings, findControl+`.value.replace(/\s/g, '')`, []string{"Settings (JSON)"})
	}
	b.press("Cancel")
	b.expectTitle("Full evm")
	expect(b, "setting _seconds 1 → not set; setting max_in_flight 8 → 9 by api-key", historyRows+`[0]`)

	b.server.do("PATCH", collection+"/evm", `{"labels":{"team":"risk","tier":"1"}}`, http.StatusOK)
	b.edit()
	expect(b, "team=risk\ntier=1", findControl+`.value`, []string{"Labels"})
	b.fill("team=payments\n\nteam=again\napp.kubernetes.io/name", "Labels")
	b.press("Save")
	b.expectErrorStart("team (again) must have a key of 1 to 63 characters", "Labels")
	b.fill("team=payments\n\napp.kubernetes.io/name", "Labels")
	b.server.do("PATCH", collection+"/evm", `{"labels":{"a.b/c":"new"}}`, http.StatusOK)
	b.press("Save")
	b.expectConflict("label a.b/c not set → \u2068new\u2069")
	b.saved("Full evm was changed")
	expect(b, []string{"a.b/c=new", "app.kubernetes.io/name=", "team=payments"}, `[...document.querySelectorAll('#one-cards .chip')].map((chip) => chip.textContent)`)
}

// TestEdit_Large counts the texts that the page writes for the form of a long list: their number for each
// row must not grow with the list. The numbers of the rows have no gap after one is removed.
func TestEdit_Large(t *testing.T) {
	const rows = 200
	tokens := []string{policies, "Allowed tokens"}
	b := open(t)
	b.enter("Relayers")
	b.do(`((text) => {
		window.texts = 0;
		Object.defineProperty(Node.prototype, 'textContent', { ...text, set(value) { texts++; text.set.call(this, value); } });
	})(Object.getOwnPropertyDescriptor(Node.prototype, 'textContent'))`)
	b.openNext("solana", `{"allowed_tokens":[`+strings.Repeat(`{"mint":"a"},`, rows-1)+`{"mint":"b"}]}`)
	if texts := evaluate[int](b, `texts`); texts > 100*rows {
		t.Errorf("the page wrote %d texts for %d rows", texts, rows)
	}
	b.press(append(tokens, "Token 1", "Remove token 1")...)
	expect(b, "b", findControl+`.value`, append(tokens, fmt.Sprint("Token ", rows-1), "Mint *"))
	b.press(append(tokens, "Add a token")...)
	expect(b, "", findControl+`.value`, append(tokens, fmt.Sprint("Token ", rows), "Mint *"))
}

// TestEdit_UnusualValues shows and edits a relayer with an empty name of a setting, with a line break in
// another one, and with a line separator in a label. A network type that the page does not know has no
// fields to edit.
func TestEdit_UnusualValues(t *testing.T) {
	b := openFull(t, "evm")
	b.server.do("PATCH", collection+"/evm", `{"labels":{"tier":"1\u20282"},"settings":{"":7,"\n.":8}}`, http.StatusOK)
	b.goTo("page=1", "Relayers")
	b.goTo("relayer=evm", "Full evm")
	b.expectText(`""`)
	expect(b, "label tier 1 → 1\u20282; setting \"\" not set → 7; setting \n. not set → 8 by api-key", historyRows+`[0]`)
	b.edit()
	b.fill("Renamed", "Name *")
	b.saved("Renamed was changed")
	expect(b, "name Full evm → Renamed by api-key", historyRows+`[0]`)

	b.replaceInResponses(`"network_type":"evm"`, `"network_type":"later"`)
	b.goTo("page=1", "Relayers")
	b.goTo("relayer=evm", "Renamed")
	b.expectText("later")
	b.edit()
	b.saved("Nothing was changed")
	b.more("Duplicate")
	b.expectTitle("New relayer")
}

// expectConflict waits for the note that the relayer in the form was changed.
func (b *tab) expectConflict(differences string) {
	b.t.Helper()
	expect(b, true, `document.getElementById('edit-note').textContent.includes(%s)`, "("+differences+"). Save again to apply your changes to the current revision.")
}

// TestConflict changes the same relayer in two tabs. A second save keeps what others have changed
// meanwhile, and a third revision is a conflict again.
func TestConflict(t *testing.T) {
	first := openFull(t, "evm")
	first.edit()
	first.fill("From the first", "Name *")
	first.fill("", "Notification ID")
	first.fill("5", policies, "Gas price cap (wei)")
	second := first.another()
	second.enter("Relayers")
	second.goTo("relayer=evm", "Full evm")
	second.act("Pause")
	second.expectStatus("Full evm is paused")
	second.edit()
	second.fill("From the second", "Name *")
	second.fill("7", policies, "Min balance (wei)")
	second.saved("From the second was changed")
	first.press("Save")
	first.expectConflict("name \u2068Full evm\u2069 → \u2068From the second\u2069; paused; min balance 0.5 ether → 0.000000007 gwei")
	expect(first, "From the first", findControl+`.value`, []string{"Name *"})
	second.act("Resume")
	second.expectStatus("From the second is resumed")
	first.press("Save")
	first.expectConflict("resumed")
	first.press("Save")
	first.expectTitle("From the first")
	got := first.server.stored("evm")
	const policies = `{"eip1559_pricing":true,"gas_price_cap":5,"min_balance":7,"private_transactions":false,"whitelist_receivers":["0xd8da6bf26964af9d7eed9e03e53415d37aa96045"]}`
	if got.Name != "From the first" || got.Paused || got.NotificationID != "" || string(got.Policies) != policies {
		t.Errorf("the relayer is %+v, policies %s", got, got.Policies)
	}
}

// TestPause_Unconditional checks that a pause does not need the current revision, and that a
// resume and a delete do: the dialog says who changed the relayer, and can be confirmed again. Each
// change by another client comes while the dialog is open, because the page reads the relayer again after
// each of its own changes.
func TestPause_Unconditional(t *testing.T) {
	b := openFull(t, "evm")
	rename := func(name string) {
		t.Helper()
		b.server.do("PATCH", collection+"/evm", `{"name":"`+name+`"}`, http.StatusOK)
	}
	conflict := func(done string) {
		t.Helper()
		expect(b, true, `/^Another client changed this relayer since you saw it: update by api-key, .*\. Not `+done+`\. Confirm again for the current revision\.$/.test(document.getElementById('act-wrong').textContent)`)
	}
	b.press("Pause")
	b.expectDialog("Pause Full evm?")
	rename("Other")
	b.press("Pause")
	b.expectStatus("Other is paused")
	b.expectDialog("")
	b.press("Resume")
	b.expectDialog("Resume Other?")
	rename("Again")
	b.press("Resume")
	conflict("resumed")
	b.press("Resume")
	b.expectStatus("Again is resumed")
	b.more("Delete")
	b.fill("evm", "Type the ID to confirm *")
	rename("Third")
	b.press("Delete")
	conflict("deleted")
	b.press("Cancel")
	b.expectTitle("Third")
	b.more("Delete")
	b.fill("evm", "Type the ID to confirm *")
	b.press("Delete")
	b.expectTitle("Relayers")
	b.server.do("GET", collection+"/evm", "", http.StatusNotFound)
	b.goTo("relayer=stellar", "Full stellar")
	b.press("Pause")
	b.expectDialog("Pause Full stellar?")
	b.server.do("DELETE", collection+"/stellar", "", http.StatusOK)
	b.press("Pause")
	b.expectTitle("There is no relayer stellar")
	b.expectDialog("")
}

const (
	// asksToLeave reports whether the browser asks before it leaves the page.
	asksToLeave = `!dispatchEvent(new Event('beforeunload', { cancelable: true }))`

	unsavedNote = "You have changes that are not saved. Save them, or press Cancel to discard them."
)

// TestUnsaved checks that the browser asks before what was entered is lost, and that the form is kept
// while the user opens another view. The edits of several relayers survive the back button, are
// compared with what other clients have stored meanwhile, and go with a relayer that is deleted.
func TestUnsaved(t *testing.T) {
	b := openFull(t, "evm")
	b.goTo("new", "New relayer")
	expect(b, false, asksToLeave)
	b.fill("New", "Name *")
	b.fill("because", "Reason")
	b.goTo("page=1", "Relayers")
	expect(b, true, asksToLeave)
	b.run(chromedp.NavigateBack())
	b.expectTitle("New relayer")
	expect(b, "New", findControl+`.value`, []string{"Name *"})
	expect(b, "because", findControl+`.value`, []string{"Reason"})
	b.do(`window.confirm = (question) => { window.question = question; return window.isSure; }`)
	b.do(`document.getElementById('leave').click()`)
	expect(b, "You have changes that are not saved. Discard them and sign out?", `window.question`)
	b.expectTitle("New relayer")
	b.do(`window.isSure = true, document.getElementById('leave').click()`)
	b.enter("New relayer")
	expect(b, "", findControl+`.value`, []string{"Name *"})
	expect(b, false, asksToLeave)

	for _, id := range []string{"evm", "stellar", "solana"} {
		b.goTo("relayer="+id, "Full "+id)
		b.edit()
		b.fill("Full "+id+"!", "Name *")
		b.run(chromedp.NavigateBack())
		b.expectTitle("Full " + id)
		b.expectStatus("Your changes to Full " + id + " are not saved. Open it again to save or discard them.")
	}
	b.more("Delete")
	b.fill("solana", "Type the ID to confirm *")
	b.press("Delete")
	b.expectTitle("Relayers")
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

// TestUnsaved_Live checks that changes of others take neither what the user types nor
// the focus, in the forms and in the search.
func TestUnsaved_Live(t *testing.T) {
	b := follow(open(t), "edit=relayer-1", "Edit Relayer 1")
	entered := func(want string) {
		t.Helper()
		expect(b, want, `document.activeElement.value`)
		b.keys("+")
		expect(b, want+"+", `document.activeElement.value`)
	}
	number := 0
	disturb := func() {
		t.Helper()
		number++
		b.server.do("PATCH", collection+"/relayer-2", fmt.Sprintf(`{"name":"Renamed %d"}`, number), http.StatusOK)
		b.awaitLook()
	}
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
