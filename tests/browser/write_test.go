package browser

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"
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

// blockFeed makes the page see a server without a change feed.
func (b *tab) blockFeed() {
	b.t.Helper()
	b.do(`(() => {
		const send = fetch;
		window.fetch = (url, request) => url.includes(':watch') ? Promise.resolve(new Response('', { status: 404 })) : send(url, request);
	})()`)
}

// holdResponse keeps the response of the next request with the method until the script
// calls release. isHandled becomes true after the page has handled it.
func (b *tab) holdResponse(method string) {
	b.t.Helper()
	b.do(`(() => {
		const send = fetch;
		window.fetch = async (url, request) => {
			const response = await send(url, request);
			if (request.method !== %s || window.release) return response;
			const text = await response.text();
			await new Promise((resolve) => { window.release = resolve; });
			response.text = async () => {
				setTimeout(() => { window.isHandled = true; });
				return text;
			};
			return response;
		};
	})()`, method)
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

func (b *tab) edit(id string) {
	b.t.Helper()
	b.press("Edit")
	b.expectDialog("Edit Full " + id)
	expect(b, "Name, required", `document.activeElement.labels[0].textContent`)
}

// saved submits the form and waits until the dialog is closed.
func (b *tab) saved(status string) {
	b.t.Helper()
	b.press("Save")
	b.expectDialog("")
	b.expectStatus(status)
}

func TestEdit_Fields(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.edit("evm")
	expect(b, "= 100 gwei", findControl+`.closest('.field').querySelector('.human').textContent`, []string{policies, "Gas price cap (wei)"})
	b.fill("New name", "Name, required")
	b.fill("", "Notification ID")
	b.fill("1e21", policies, "Gas price cap (wei)")
	expect(b, "= 1000 ETH", findControl+`.closest('.field').querySelector('.human').textContent`, []string{policies, "Gas price cap (wei)"})
	b.choose("Not set", policies, "EIP-1559 pricing")
	b.choose("Yes", policies, "Private transactions")
	b.fill("", policies, "Whitelist receivers")
	b.saved("New name was changed")
	b.expectTitle("New name")
	expect(b, "edit", `document.activeElement.id`)

	got := b.server.stored("evm")
	if got.Name != "New name" || got.NotificationID != "" {
		t.Errorf("the relayer is %+v", got)
	}
	const want = `{"gas_price_cap":1000000000000000000000,"min_balance":500000000000000000,"private_transactions":true}`
	if string(got.Policies) != want {
		t.Errorf("the policies are %s, want %s", got.Policies, want)
	}
}

// TestEdit_Folded checks that the form shows the parts that hold values.
func TestEdit_Folded(t *testing.T) {
	t.Parallel()
	const openSections = `[...document.querySelectorAll('#edit-fields .section[open] > summary')].map((e) => e.textContent)`
	b := openFull(t, "solana")
	b.edit("solana")
	expect(b, []string{"Policy", "Allowed tokens", "Swap config", "Swap config", "Jupiter swap options", "Custom RPC URLs", "Labels"}, openSections+`.filter((e) => e !== 'New Custom RPC URLs')`)
	b.press("Cancel")
	b.server.create("one", "Full one")
	b.goTo("relayer=one", "Full one")
	b.edit("one")
	expect(b, []string{}, openSections)
}

// TestEdit_UnchangedFieldsNotSent checks that a field that the user did not touch keeps
// a value that another client stored, also without a conflict.
func TestEdit_UnchangedFieldsNotSent(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"evm", "solana", "stellar"} {
		b := openFull(t, id)
		before := b.server.stored(id)
		b.edit(id)
		b.saved("Nothing was changed")
		b.edit(id)
		b.fill("other", "Notification ID")
		b.do(`(() => { const send = fetch; window.fetch = (url, request) => { window.body = request.body ?? window.body; return send(url, request); }; })()`)
		b.saved("Full " + id + " was changed")
		expect(b, `{"notification_id":"other"}`, `window.body`)
		after := b.server.stored(id)
		if string(after.Policies) != string(before.Policies) || string(after.CustomRPCURLs) != string(before.CustomRPCURLs) {
			t.Errorf("%s: the relayer is\n%s, want\n%s", id, after.Policies, before.Policies)
		}
	}
}

func TestEdit_NestedPolicy(t *testing.T) {
	t.Parallel()
	b := openFull(t, "solana")
	b.edit("solana")
	b.choose("jupiter-ultra", policies, "Swap config", "Strategy")
	b.choose("Not set", policies, "Swap config", "Jupiter swap options", "Priority level")
	b.fill("USDT", policies, "Allowed tokens", "Token 1", "Symbol")
	b.press(policies, "Allowed tokens", "Add a token")
	b.fill("mint", policies, "Allowed tokens", "Token 2", "Mint, required")
	b.saved("Full solana was changed")
	var got struct {
		Tokens []struct {
			Mint, Symbol string
			Swap         struct {
				Max json.Number `json:"max_amount"`
			} `json:"swap_config"`
		} `json:"allowed_tokens"`
		Swap map[string]any `json:"swap_config"`
	}
	if err := json.Unmarshal(b.server.stored("solana").Policies, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Tokens) != 2 || got.Tokens[0].Symbol != "USDT" || got.Tokens[0].Swap.Max != "18446744073709551615" || got.Tokens[1].Mint != "mint" {
		t.Errorf("the tokens are %+v", got.Tokens)
	}
	if len(got.Swap) != 1 || got.Swap["strategy"] != "jupiter-ultra" {
		t.Errorf("the swap config is %v", got.Swap)
	}
}

// openOne creates a relayer and opens its page, which does not follow changes.
func openOne(t *testing.T, networkType, policies string) *tab {
	t.Helper()
	b := open(t)
	b.server.do("POST", collection, `{"id":"one","name":"Full one","network":"testnet","network_type":"`+networkType+`","paused":false,"signer_id":"s","policies":`+policies+`}`, http.StatusCreated)
	b.blockFeed()
	b.goTo("relayer=one", "Sign in")
	b.enter("Full one")
	b.edit("one")
	return b
}

func (b *tab) expectPolicies(want string) {
	b.t.Helper()
	if got := string(b.server.stored("one").Policies); got != want {
		b.t.Errorf("the policies are %s, want %s", got, want)
	}
}

// TestEdit_LastField checks that to clear the only field that the form shows as set
// keeps an empty list, which the form shows like one that is not set.
func TestEdit_LastField(t *testing.T) {
	t.Parallel()
	b := openOne(t, "evm", `{"min_balance":5,"whitelist_receivers":[]}`)
	b.fill("", policies, "Min balance (wei)")
	b.saved("Full one was changed")
	b.expectPolicies(`{"whitelist_receivers":[]}`)
}

// TestEdit_LastFieldOfGroup checks that no empty object remains: network rules could
// reject it.
func TestEdit_LastFieldOfGroup(t *testing.T) {
	t.Parallel()
	b := openOne(t, "stellar", `{"max_fee":1,"swap_config":{"strategies":["soroswap"]}}`)
	b.fill("", policies, "Swap config", "Strategies")
	b.saved("Full one was changed")
	b.expectPolicies(`{"max_fee":1}`)
}

// TestEdit_OtherRow checks that an edit of one token keeps the empty members of another.
func TestEdit_OtherRow(t *testing.T) {
	t.Parallel()
	b := openOne(t, "solana", `{"allowed_tokens":[{"mint":"a","symbol":"","swap_config":{}},{"mint":"b","swap_config":{"min_amount":1}}]}`)
	b.fill("B", policies, "Allowed tokens", "Token 2", "Symbol")
	b.fill("", policies, "Allowed tokens", "Token 2", "Swap config", "Min amount (smallest units)")
	b.saved("Full one was changed")
	b.expectPolicies(`{"allowed_tokens":[{"mint":"a","symbol":"","swap_config":{}},{"mint":"b","symbol":"B"}],"fee_payment_strategy":"user"}`)
}

// TestEdit_OtherLines checks that an edit of one line of a list keeps the exact values
// of the other lines.
func TestEdit_OtherLines(t *testing.T) {
	t.Parallel()
	b := openOne(t, "evm", `{"whitelist_receivers":["  spaced\t","two\r\nlines","","edited","same","same"]}`)
	expect(b, "  spaced\t\ntwo↵lines\n\nedited\nsame\nsame", findControl+`.value`, []string{policies, "Whitelist receivers"})
	b.fill("  spaced\t\n  new \ntwo↵lines\n\n edited here \nsame\nsame\n\n  \n", policies, "Whitelist receivers")
	b.saved("Full one was changed")
	b.expectPolicies(`{"whitelist_receivers":["  spaced\t","new","two\r\nlines","","edited","here","same","same"]}`)
	b.edit("one")
	b.fill("", policies, "Whitelist receivers")
	b.saved("Full one was changed")
	b.expectPolicies(`{}`)
}

// TestEdit_URLs checks that the URLs are replaced only if the user asks for it, and
// that the masked ones are not sent.
func TestEdit_URLs(t *testing.T) {
	t.Parallel()
	const urls = "Custom RPC URLs"
	b := openFull(t, "evm")
	b.edit("evm")
	b.expectText("https://rpc.example/***")
	expect(b, true, `[...document.querySelectorAll('dialog[open] input')].every((input) => !input.value.includes('***'))`)
	b.press(urls, "Replace all URLs")
	b.press(urls, "New Custom RPC URLs", "Add an endpoint")
	b.fill("https://rpc.example/***", urls, "New Custom RPC URLs", "Endpoint 1", "URL, required")
	b.press("Save")
	b.expectError("must be the full URL, not the masked one that responses show", urls, "New Custom RPC URLs", "Endpoint 1", "URL, required")
	b.fill("wss://new.example/KEY", urls, "New Custom RPC URLs", "Endpoint 1", "URL, required")
	b.saved("Full evm was changed")
	if got := string(b.server.stored("evm").CustomRPCURLs); got != `[{"url":"wss://new.example/***","weight":100}]` {
		t.Errorf("the URLs are %s", got)
	}
	b.edit("evm")
	b.press(urls, "Replace all URLs")
	b.saved("Full evm was changed")
	if got := b.server.stored("evm").CustomRPCURLs; got != nil {
		t.Errorf("the URLs are %s", got)
	}
	b.edit("evm")
	b.press(urls, "Add an endpoint")
	b.fill("https://again.example", urls, "Endpoint 1", "URL, required")
	b.saved("Full evm was changed")
	b.expectText("https://again.example")
}

func TestEdit_FieldErrors(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.edit("evm")
	b.fill("", "Name, required")
	b.fill("-1", policies, "Gas price cap (wei)")
	b.press("Save")
	b.expectError("must not be empty", "Name, required")
	b.expectError("must be 0 or more", policies, "Gas price cap (wei)")
	expect(b, "summary", `document.activeElement.className`)
	b.expectText("The relayer was not changed")
	b.fill("Right", "Name, required")
	b.fill("1", policies, "Gas price cap (wei)")
	b.saved("Right was changed")
}

// TestEdit_Cancel checks that Escape does not discard changes.
func TestEdit_Cancel(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.edit("evm")
	b.keys(kb.Escape)
	b.expectDialog("")
	expect(b, "edit", `document.activeElement.id`)
	b.edit("evm")
	b.fill("Unsaved", "Name, required")
	b.keys(kb.Escape)
	b.expectText("You have changes that are not saved.")
	expect(b, "Unsaved", findControl+`.value`, []string{"Name, required"})
	// Chromium closes a dialog at the third Escape without asking the page.
	for range 3 {
		b.keys(kb.Escape)
	}
	b.expectDialog("Edit Full evm")
	b.expectText("You have changes that are not saved.")
	expect(b, "Unsaved", findControl+`.value`, []string{"Name, required"})
	b.press("Cancel")
	b.expectDialog("")
	b.edit("evm")
	expect(b, "Full evm", findControl+`.value`, []string{"Name, required"})
}

// TestEdit_CanceledWhileSending checks that the problems of a change are shown even if
// its form is closed.
func TestEdit_CanceledWhileSending(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.edit("evm")
	b.fill("", "Name, required")
	b.holdResponse("PATCH")
	b.press("Save")
	b.expectHeld()
	b.press("Cancel")
	b.expectDialog("")
	for _, other := range []string{"Edit", "Delete"} {
		b.press(other)
		b.expectDialog("")
		b.expectStatus("The last change is still being sent")
	}
	b.do(`release()`)
	b.expectText("Not changed: name must not be empty")
	b.edit("evm")
}

func TestPause(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.press("Pause")
	b.expectStatus("Full evm is paused")
	expect(b, []string{"Resume", "Paused", "pause"}, `[document.getElementById('pause').textContent, document.getElementById('one-state').textContent, document.activeElement.id]`)
	if !b.server.stored("evm").Paused {
		t.Error("the relayer is not paused")
	}
	b.press("Resume")
	b.expectStatus("Full evm is resumed")
	expect(b, []string{"Pause", "Active"}, `[document.getElementById('pause').textContent, document.getElementById('one-state').textContent]`)
	if b.server.stored("evm").Paused {
		t.Error("the relayer is paused")
	}
}

// TestPause_OtherView checks that a late response does not replace the view that the
// user has opened since.
func TestPause_OtherView(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.holdResponse("PATCH")
	b.press("Pause")
	b.expectHeld()
	b.goTo("relayer=stellar", "Full stellar")
	b.do(`release()`)
	b.expectStatus("Full evm is paused")
	expect(b, []string{"Full stellar", "Active"}, `['one-title', 'one-state'].map((id) => document.getElementById(id).textContent)`)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.press("Delete")
	b.expectDialog("Delete Full evm?")
	expect(b, "delete-id", `document.activeElement.id`)
	for _, wrong := range []string{"", "Full evm", "EVM"} {
		b.fill(wrong, "Type the ID to confirm")
		b.press("Delete the relayer")
		b.expectError("This is not the ID of the relayer", "Type the ID to confirm")
	}
	b.press("Cancel")
	b.expectDialog("")
	b.server.stored("evm")
	b.press("Delete")
	b.fill("evm", "Type the ID to confirm")
	b.press("Delete the relayer")
	b.expectTitle("Relayers")
	b.expectStatus("Full evm was deleted")
	expect(b, []string{"solana", "stellar", "long"}, `[...document.querySelectorAll('#rows tr')].map((row) => row.dataset.id)`)
	b.server.do("GET", collection+"/evm", "", http.StatusNotFound)
}

// expectConflict waits for the dialog that compares the revisions, with these rows.
func (b *tab) expectConflict(want ...[]string) {
	b.t.Helper()
	b.expectDialog("Another client changed this relayer")
	expect(b, want, `[...document.querySelectorAll('#conflict-table tbody tr')].map((row) =>
		[row.querySelector('.name').textContent, ...[...row.querySelectorAll('td')].map((cell) => cell.textContent)])`)
}

// openTwo opens the same relayer in two tabs and changes it in the second one.
func openTwo(t *testing.T) (first, second *tab) {
	t.Helper()
	first = openFull(t, "evm")
	first.edit("evm")
	first.fill("From the first", "Name, required")
	first.fill("", "Notification ID")
	first.fill("5", policies, "Gas price cap (wei)")
	second = first.another()
	second.enter("Relayers")
	second.goTo("relayer=evm", "Full evm")
	second.press("Pause")
	second.expectStatus("Full evm is paused")
	second.edit("evm")
	second.fill("From the second", "Name, required")
	second.fill("7", policies, "Min balance (wei)")
	second.saved("From the second was changed")
	first.press("Save")
	first.expectConflict(
		[]string{"Name", "Full evm", "From the second", "From the first"},
		[]string{"Paused", "No", "Yes", "Not changed by you"},
		[]string{"Notification ID", "ops-alerts", "ops-alerts", "Not set"},
		[]string{"Policy, Gas price cap", "100000000000 wei = 100 gwei", "100000000000 wei = 100 gwei", "5 wei = 0.000000005 gwei"},
		[]string{"Policy, Min balance", "500000000000000000 wei = 0.5 ETH", "7 wei = 0.000000007 gwei", "Not changed by you"},
	)
	expect(first, "conflict-title", `document.activeElement.id`)
	return first, second
}

func TestConflict_Apply(t *testing.T) {
	t.Parallel()
	first, _ := openTwo(t)
	first.press("Apply my change")
	first.expectDialog("")
	first.expectTitle("From the first")
	got := first.server.stored("evm")
	const policies = `{"eip1559_pricing":true,"gas_price_cap":5,"min_balance":7,"private_transactions":false,"whitelist_receivers":["0xd8da6bf26964af9d7eed9e03e53415d37aa96045"]}`
	if got.Name != "From the first" || !got.Paused || got.NotificationID != "" || string(got.Policies) != policies {
		t.Errorf("the relayer is %+v, policies %s", got, got.Policies)
	}
}

// TestConflict_ClearedGroup checks that a group whose last field the user clears keeps
// the fields that another client has set meanwhile.
func TestConflict_ClearedGroup(t *testing.T) {
	t.Parallel()
	for _, again := range []func(*tab){
		func(b *tab) { b.press("Apply my change"); b.expectDialog("") },
		func(b *tab) { b.press("Edit again"); b.saved("Full one was changed") },
	} {
		b := openOne(t, "stellar", `{"swap_config":{"strategies":["soroswap"]}}`)
		b.fill("", policies, "Swap config", "Strategies")
		b.server.do("PATCH", collection+"/one", `{"policies":{"max_fee":5,"swap_config":{"min_balance_threshold":7}}}`, http.StatusOK)
		b.press("Save")
		b.expectConflict(
			[]string{"Policy, Swap config, Strategies", "soroswap", "soroswap", "Not set"},
			[]string{"Policy, Max fee", "Not set", "5 stroops = 0.0000005 XLM", "Not changed by you"},
			[]string{"Policy, Swap config, Min balance threshold", "Not set", "7 stroops = 0.0000007 XLM", "Not changed by you"},
		)
		again(b)
		b.expectPolicies(`{"max_fee":5,"swap_config":{"min_balance_threshold":7}}`)
	}
}

func TestConflict_Discard(t *testing.T) {
	t.Parallel()
	first, _ := openTwo(t)
	first.press("Discard my change")
	first.expectDialog("")
	first.expectTitle("From the second")
	first.expectStatus("Your change was discarded")
	if got := first.server.stored("evm"); got.Name != "From the second" || got.NotificationID != "ops-alerts" {
		t.Errorf("the relayer is %+v", got)
	}
	// The page has the ETag of the current revision now.
	first.press("Resume")
	first.expectStatus("From the second is resumed")
}

// TestConflict_EditAgain checks that the form keeps what was entered, and that a third
// revision is a conflict again.
func TestConflict_EditAgain(t *testing.T) {
	t.Parallel()
	first, second := openTwo(t)
	first.press("Edit again")
	first.expectDialog("Edit Full evm")
	expect(first, "From the first", findControl+`.value`, []string{"Name, required"})
	second.press("Resume")
	second.expectStatus("From the second is resumed")
	first.fill("Third", "Name, required")
	first.press("Save")
	first.expectDialog("Another client changed this relayer")
	first.press("Apply my change")
	first.expectTitle("Third")
	if got := first.server.stored("evm"); got.Name != "Third" || got.Paused {
		t.Errorf("the relayer is %+v", got)
	}
}

// TestConflict_Errors checks that a problem of the merged result is shown, and that
// the change can still be edited.
func TestConflict_Errors(t *testing.T) {
	t.Parallel()
	b := openFull(t, "solana")
	b.edit("solana")
	b.fill("", "Name, required")
	b.server.do("PATCH", collection+"/solana", `{"paused":false}`, http.StatusOK)
	b.press("Save")
	b.expectConflict([]string{"Name", "Full solana", "Full solana", "Empty"}, []string{"Paused", "Yes", "No", "Not changed by you"})
	b.press("Apply my change")
	b.expectText("name must not be empty")
	b.press("Edit again")
	b.fill("Right", "Name, required")
	b.saved("Right was changed")
}

// TestPause_Unconditional checks that a pause does not need the current revision, and that a
// resume does.
func TestPause_Unconditional(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.server.do("PATCH", collection+"/evm", `{"name":"Other"}`, http.StatusOK)
	b.press("Pause")
	b.expectStatus("Other is paused")
	b.expectDialog("")
	b.server.do("PATCH", collection+"/evm", `{"name":"Again"}`, http.StatusOK)
	b.press("Resume")
	b.expectConflict([]string{"Name", "Other", "Again", "Not changed by you"}, []string{"Paused", "Yes", "Yes", "No"})
	expect(b, false, `document.getElementById('conflict-edit').checkVisibility()`)
	b.press("Apply my change")
	b.expectStatus("Again is resumed")
}

func TestConflict_Delete(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.server.do("PATCH", collection+"/evm", `{"name":"Other"}`, http.StatusOK)
	b.press("Delete")
	b.fill("evm", "Type the ID to confirm")
	b.press("Delete the relayer")
	b.expectConflict([]string{"Name", "Full evm", "Other"})
	b.press("Keep the relayer")
	b.expectTitle("Other")
	b.server.do("PATCH", collection+"/evm", `{"name":"Again"}`, http.StatusOK)
	b.press("Delete")
	b.fill("evm", "Type the ID to confirm")
	b.press("Delete the relayer")
	b.expectConflict([]string{"Name", "Other", "Again"})
	b.press("Delete the current revision")
	b.expectTitle("Relayers")
	b.server.do("GET", collection+"/evm", "", http.StatusNotFound)
}

// TestEdit_SplitsLists checks that pasted lists of addresses are split.
func TestEdit_SplitsLists(t *testing.T) {
	t.Parallel()
	b := openOne(t, "evm", `{"whitelist_receivers":["one, stored"]}`)
	b.fill("one, stored\n0x1, 0x2 0x3\t0x4,\n,\n0x5", policies, "Whitelist receivers")
	b.saved("Full one was changed")
	b.expectPolicies(`{"whitelist_receivers":["one, stored","0x1","0x2","0x3","0x4","0x5"]}`)
}

// TestConflict_Deleted checks each change of a relayer that another client deleted.
func TestConflict_Deleted(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*tab){
		func(b *tab) { b.press("Pause") },
		func(b *tab) { b.edit("evm"); b.fill("New", "Name, required"); b.press("Save") },
		func(b *tab) {
			b.press("Delete")
			b.fill("evm", "Type the ID to confirm")
			b.press("Delete the relayer")
		},
	} {
		b := openFull(t, "evm")
		b.server.do("DELETE", collection+"/evm", "", http.StatusOK)
		change(b)
		b.expectTitle("There is no relayer evm")
		b.expectDialog("")
	}
}
