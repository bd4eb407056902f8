package browser

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// visit opens every view with as much content as possible, and calls check in each.
func (b *tab) visit(check func(view string)) {
	b.t.Helper()
	check("sign-in")
	b.press("Sign in")
	b.expectError("Enter the bearer token", "Bearer token")
	check("sign-in with an error")
	b.enter("Relayers")
	b.expectText("There are no relayers yet.")
	check("empty list")
	b.fillServer()
	b.goTo("page=1", "Relayers")
	b.expectText("1–4 of 4 relayers")
	check("list")
	b.goTo("q=full+label.team%3Dpayments+network_type%3Devm", "Relayers")
	b.expectText("1–1 of 1 relayer")
	check("search")
	b.pressOffer("Pause these 1…")
	b.expectDialog("Pause 1 relayer?")
	check("pause these")
	b.press("Cancel")
	b.search("network=nowhere")
	b.expectText("No relayer matches.")
	check("search without a match")
	b.search("netwrk=sepolia")
	b.expectText("netwrk is not a key.")
	check("search with an error")
	for _, id := range []string{"evm", "solana", "stellar"} {
		b.goTo("relayer="+id, "Full "+id)
		expect(b, true, historyRows+`.length > 0`)
		check("relayer " + id)
	}
	b.edit()
	check("edit")
	b.fill("", "Name *")
	b.press("Save")
	b.expectError("must not be empty", "Name *")
	check("edit with an error")
	b.press("Cancel")
	b.expectTitle("Full stellar")
	b.press("Pause")
	check("pause")
	b.press("Pause")
	b.expectStatus("Full stellar is paused")
	check("status")
	b.more("Delete")
	check("delete")
	b.press("Delete")
	b.expectError("This is not the ID of the relayer", "Type the ID to confirm *")
	check("delete with an error")
	b.press("Cancel")
	b.more("Disable")
	b.press("Disable")
	b.expectError("Enter a fault, such as BalanceCheckFailed", "Fault *")
	check("disable with an error")
	b.fill("RpcValidationFailed", "Fault *")
	b.fill("the node is behind", "Reason")
	b.press("Disable")
	b.expectStatus("Full stellar is disabled")
	b.do(`document.getElementById('more-menu').showPopover()`)
	check("menu")
	b.goTo("page=1", "Relayers")
	check("list with a disabled relayer")
	b.goTo("relayer=evm", "Full evm")
	b.edit()
	b.fill("Renamed here", "Name *")
	b.server.do("PATCH", collection+"/evm", `{"name":"Renamed elsewhere","paused":true,"policies":{"min_balance":7,"whitelist_receivers":["`+strings.Repeat("0x1", 60)+`"]}}`, http.StatusOK)
	b.press("Save")
	b.expectText("This relayer was changed since you opened the form: update by")
	check("conflict of an edit")
	b.press("Cancel")
	b.goTo("changes=", "History")
	expect(b, true, historyRows+`.length > 0`)
	b.do(`document.querySelector('.history details summary').click()`)
	check("history")
	b.goTo("changes=&q=actor%3Dnobody", "History")
	b.expectText("No change matches.")
	check("history without a match")
	b.goTo("relayer=nobody", "There is no relayer nobody")
	b.expectText("No history is stored.")
	check("problem")
	b.goTo("new", "New relayer")
	b.press("Custom RPC URLs", "Add an endpoint")
	b.choose("solana", "Network type *")
	b.press(policies, "Allowed tokens", "Add a token")
	b.press("Create the relayer")
	b.expectError("must not be empty", "Name *")
	check("new")
}

// fillServer creates relayers of each network type with all fields, and one with a long
// name.
func (b *tab) fillServer() {
	b.t.Helper()
	const start = `{"paused":%s,"signer_id":"treasury","labels":{"team":"payments","tier":"1","app.kubernetes.io/name":"relayer"},"notification_id":"ops-alerts","id":%q,"name":%q,"network_type":%q,"network":%q,
		"custom_rpc_urls":[{"url":"https://rpc.example/v2/KEY","weight":75},{"url":"https://` + "%s" + `example/v2"}],"policies":%s}`
	swap := `{"slippage_percentage":0.5,"min_amount":1,"max_amount":18446744073709551615,"retain_min_amount":3}`
	for _, r := range [][]any{
		{"false", "evm", "Full evm", "evm", "sepolia", "backup.", `{"gas_price_cap":100000000000,"min_balance":500000000000000000,"eip1559_pricing":true,
			"private_transactions":false,"whitelist_receivers":["0xd8da6bf26964af9d7eed9e03e53415d37aa96045"]}`},
		{"true", "solana", "Full solana", "solana", "devnet", strings.Repeat("long.", 40), `{"max_allowed_fee_lamports":9223372036854775807,"min_balance":2500000000,
			"allowed_accounts":[],"allowed_tokens":[{"mint":"` + strings.Repeat("1", 100) + `","symbol":"USDC","swap_config":` + swap + `}],
			"swap_config":{"strategy":"jupiter-swap","jupiter_swap_options":{"priority_level":"high"}}}`},
		{"false", "stellar", "Full stellar", "stellar", "testnet", "backup.", `{"max_fee":1000000,"timeout_seconds":30,"fee_payment_strategy":"user",
			"allowed_tokens":[{"asset":"native","metadata":{"kind":"native","decimals":7},"swap_config":` + swap + `}],"swap_config":{"strategies":["order-book"]}}`},
	} {
		b.server.do("POST", collection, fmt.Sprintf(start, r...), http.StatusCreated)
	}
	b.server.create("long", strings.Repeat("WithoutASpace", 20))
}

func (b *tab) useScheme(scheme string) {
	b.t.Helper()
	b.run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	}))
}

// expectNarrow checks that the page does not scroll sideways at a width of 320 pixels,
// and of 640 pixels with double font size.
func (b *tab) expectNarrow(view string) {
	b.t.Helper()
	for _, c := range []struct {
		width    int64
		fontSize string
	}{{640, "200%"}, {320, "100%"}} {
		b.run(chromedp.EmulateViewport(c.width, 844))
		b.do(`document.documentElement.style.fontSize = %s`, c.fontSize)
		wide := evaluate[[]string](b, `[...document.body.querySelectorAll('*')]
			.filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 0.5)
			.map((e) => e.tagName + ' ' + e.textContent.slice(0, 40))`)
		if scrolled := evaluate[int64](b, `document.documentElement.scrollWidth`); scrolled > c.width || len(wide) > 0 {
			b.t.Errorf("%s: the page is %d pixels wide, want %d; too wide: %q", view, scrolled, c.width, wide)
		}
	}
}

// TestAccessibility_Phone checks that the header has one line, that the name of a relayer has a
// line of its own, and that the buttons of a form are in sight.
func TestAccessibility_Phone(t *testing.T) {
	b := open(t, "--name", "production")
	b.fillServer()
	b.run(chromedp.EmulateViewport(390, 844))
	b.enter("Relayers")
	expect(b, true, `document.querySelector('header').offsetHeight < 60`)
	expect(b, true, `((name) => name.scrollWidth <= name.clientWidth)(document.getElementById('registry'))`)
	expect(b, true, `document.getElementById('rows').getBoundingClientRect().bottom <= document.getElementById('range').getBoundingClientRect().top`)
	expect(b, true, `(([name, status, network, signer]) => name.bottom <= status.top && status.bottom <= network.top && network.right <= signer.left)(
		[...document.querySelector('#rows tr').children].map((cell) => cell.getBoundingClientRect()))`)
	expect(b, []string{"row", "rowheader", "cell"}, `['tr', 'th', 'td'].map((name) => document.querySelector('#rows ' + name).getAttribute('role'))`)
	b.goTo("relayer=evm", "Full evm")
	b.press("More")
	expect(b, true, `((menu, opener) => menu.left >= 0 && menu.top >= opener.bottom && menu.top < opener.bottom + 20)(...['more-menu', 'more'].map((id) => document.getElementById(id).getBoundingClientRect()))`)
	b.press("More")
	b.edit()
	b.expectTitle("Edit Full evm")
	expect(b, true, `document.querySelector('#edit .foot').getBoundingClientRect().bottom <= 844`)
	b.run(chromedp.EmulateViewport(320, 256)) // a zoom of 400 percent, at which they would cover the fields
	expect(b, "static", `getComputedStyle(document.querySelector('#edit .foot')).position`)
}

// tabTo presses Tab until the focused control has the text or the label.
func (b *tab) tabTo(text string, modifiers ...kb.Modifier) {
	b.t.Helper()
	for range 60 {
		b.run(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(modifiers...)))
		if evaluate[bool](b, `((e) => (e.labels?.[0] ?? e).textContent === %s)(document.activeElement)`, text) {
			if !evaluate[bool](b, `document.activeElement.matches(':focus-visible') && getComputedStyle(document.activeElement).outlineStyle === 'solid'`) {
				b.t.Errorf("the focus on %s is not visible", text)
			}
			return
		}
	}
	b.t.Fatalf("Tab does not reach %s", text)
}

// tabPress is tabTo, and presses Enter.
func (b *tab) tabPress(text string, modifiers ...kb.Modifier) {
	b.t.Helper()
	b.tabTo(text, modifiers...)
	b.keys(kb.Enter)
}

func (b *tab) keys(text string) {
	b.t.Helper()
	b.run(chromedp.KeyEvent(text))
}

// TestAccessibility_Keyboard creates, changes and deletes with the keyboard only. The regions for a
// status are there before they get a text: a screen reader does not announce one that appears with it. A menu
// does not stay open in the next view.
func TestAccessibility_Keyboard(t *testing.T) {
	const isPresent = `((e) => e.textContent === '' && e.checkVisibility() && e.role === 'status')(document.getElementById(%s))`
	b := open(t)
	expect(b, true, isPresent, "status")
	b.server.createMany(51)
	expect(b, "token", `document.activeElement.id`)
	b.keys(token + kb.Enter)
	b.expectTitle("Relayers")
	b.do(`document.querySelector('#rows tr:last-child a').focus()`)
	b.tabPress("Next")
	expect(b, []string{"many-50"}, rowIDs)
	expect(b, "list-title", `document.activeElement.id`)
	b.tabPress("Previous")
	expect(b, 50, rowIDs+`.length`)
	b.tabPress("Many 7")
	b.expectTitle("Many 7")
	expect(b, "one-title", `document.activeElement.id`)
	b.tabPress("More")
	b.run(chromedp.NavigateBack())
	b.expectTitle("Relayers")
	b.tabPress("Many 8")
	b.expectTitle("Many 8")
	expect(b, []any{false, "one-title"}, `[document.getElementById('more-menu').checkVisibility(), document.activeElement.id]`)

	b.tabPress("New relayer", kb.ModifierShift)
	b.expectTitle("New relayer")
	b.tabTo("Name *")
	b.keys("By keys")
	b.tabTo("Network type *")
	b.keys("ev")
	b.tabTo("Network *")
	b.keys("sepolia")
	b.tabTo("Paused")
	b.keys(" ")
	b.tabPress("Custom RPC URLs")
	b.tabPress("Add an endpoint")
	expect(b, "URL *", `document.activeElement.labels[0].textContent`)
	b.tabPress("Remove endpoint 1")
	expect(b, "Add an endpoint", `document.activeElement.textContent`)
	b.tabTo("Gas price cap (wei)", kb.ModifierShift)
	b.keys("1" + kb.Enter)
	expect(b, "Signer ID *", `document.activeElement.labels[0].textContent`)
	b.keys("s")
	b.tabTo("ID")
	b.keys("by-keys" + kb.Enter)
	b.expectTitle("By keys")
	b.expectText("1 wei")

	b.tabPress("Edit")
	b.expectTitle("Edit By keys")
	expect(b, true, isPresent, "edit-note")
	b.tabTo("Name *")
	b.keys("By keys only")
	b.tabTo("Gas price cap (wei)")
	b.keys("1000000000000" + kb.Enter)
	b.expectTitle("By keys only")
	b.expectText("1000000000000 wei")
	b.tabPress("Resume")
	b.expectDialog("Resume By keys only?")
	b.keys("by keys" + kb.Enter)
	b.expectStatus("By keys only is resumed")
	expect(b, "Pause", `document.activeElement.textContent`)
	b.tabPress("More")
	b.tabPress("Delete")
	b.expectDialog("Delete By keys only?")
	b.keys(kb.Escape)
	b.expectDialog("")
	expect(b, "More", `document.activeElement.textContent`)
	b.keys(kb.Enter)
	b.tabPress("Delete")
	b.expectDialog("Delete By keys only?")
	b.keys("by-keys" + kb.Enter)
	b.expectTitle("Relayers")
	expect(b, "list-title", `document.activeElement.id`)
	b.tabPress("api-key", kb.ModifierShift)
	b.tabPress("Sign out")
	b.expectTitle("Sign in")
	expect(b, "token", `document.activeElement.id`)
}
