package browser

import (
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// begin opens the form and fills in the required fields.
func (b *tab) begin(id, networkType string) {
	b.t.Helper()
	b.goTo("new", "New relayer")
	b.fill("Relayer "+id, "Name *")
	b.fill("somewhere", "Network *")
	b.fill("signer", "Signer ID *")
	b.fill(id, "ID")
	b.choose(networkType, "Network type *")
}

// expectCreated submits the form and compares the policies that are stored.
func (b *tab) expectCreated(id, wantPolicies string) {
	b.t.Helper()
	b.press("Create the relayer")
	b.expectTitle("Relayer " + id)
	expect(b, "Relayer "+id+" was created", `document.getElementById('status').textContent`)
	expect(b, "one-title", `document.activeElement.id`)
	b.expectPolicies(id, wantPolicies)
}

const policies = "Policy"

// TestWrite_Slow checks that the result of a write is still announced if the read that follows takes
// long, and that it does not replace another view that the user has opened meanwhile, nor what the user
// has entered in the next form.
func TestWrite_Slow(t *testing.T) {
	b := openList(t)
	b.server.create("other", "Other")
	b.begin("slow", "evm")
	b.holdResponse("GET")
	b.press("Create the relayer")
	b.expectHeld()
	expect(b, "Waiting for the server", `document.getElementById('waiting').textContent`)
	b.awaitLook()
	expect(b, "Waiting for the server", `document.getElementById('waiting').textContent`)
	b.release()
	b.expectTitle("Relayer slow")
	b.expectStatus("Relayer slow was created")
	createHeld := func(id string) {
		t.Helper()
		b.begin(id, "evm")
		b.holdResponse("POST")
		b.press("Create the relayer")
		b.expectHeld()
	}
	createHeld("late")
	expect(b, true, findControl+`.closest('[inert]') !== null`, []string{"Name *"})
	b.press("Cancel")
	b.expectTitle("Relayers")
	b.goTo("new", "New relayer")
	b.fill("Next", "Name *")
	b.release()
	b.expectStatus("Relayer late was created")
	b.goTo("page=1", "Relayers")
	b.goTo("new", "New relayer")
	expect(b, "Next", findControl+`.value`, []string{"Name *"})
	createHeld("later")
	b.goTo("relayer=other", "Other")
	b.release()
	b.expectStatus("Relayer later was created")
	b.expectTitle("Other")
	b.holdResponse("PATCH")
	b.act("Pause")
	b.expectHeld()
	b.goTo("relayer=slow", "Relayer slow")
	b.release()
	b.expectStatus("Other is paused")
	expect(b, []string{"Relayer slow", "Active "}, `['one-title', 'one-state'].map((id) => document.getElementById(id).textContent)`)
}

// TestCreate_Fields fills in every field, and checks that only the policy of the selected network type
// is sent.
func TestCreate_Fields(t *testing.T) {
	largest := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String()
	b := openList(t, "--network-rules")
	b.begin("evm-1", "evm")
	b.press("Paused")
	b.fill("notify", "Notification ID")
	b.press("Custom RPC URLs", "Add an endpoint")
	b.fill("https://one.example/v2/KEY", "Custom RPC URLs", "Endpoint 1", "URL *")
	b.press("Custom RPC URLs", "Add an endpoint")
	b.fill("https://two.example/v2/KEY", "Custom RPC URLs", "Endpoint 2", "URL *")
	b.fill("12.5", "Custom RPC URLs", "Endpoint 2", "Weight")
	b.press("Custom RPC URLs", "Endpoint 1", "Remove endpoint 1")
	b.fill(largest, policies, "Gas price cap (wei)")
	b.fill("1e21", policies, "Min balance (wei)")
	b.choose("No", policies, "EIP-1559 pricing")
	b.choose("Yes", policies, "Gas limit estimation")
	b.choose("No", policies, "Include revert data")
	b.choose("Yes", policies, "Private transactions")
	b.fill("0xd8da6bf26964af9d7eed9e03e53415d37aa96045\n\n  0x0000000000000000000000000000000000000001  \n", policies, "Whitelist receivers")
	b.expectCreated("evm-1", `{"eip1559_pricing":false,"gas_limit_estimation":true,"gas_price_cap":`+largest+`,"include_revert_data":false,`+
		`"min_balance":1000000000000000000000,"private_transactions":true,`+
		`"whitelist_receivers":["0xd8da6bf26964af9d7eed9e03e53415d37aa96045","0x0000000000000000000000000000000000000001"]}`)

	expect(b, []string{"12.5", largest, "1000000000000000000000"}, `[...document.querySelectorAll('#one .exact')].map((e) => e.textContent)`)
	b.expectText(largest + " wei")
	b.expectText("https://two.example/***")
	b.expectText("notify")
	b.goTo("new", "New relayer")
	expect(b, "", findControl+`.value`, []string{"Name *"})
	b.begin("chosen", "evm")
	b.fill("1", policies, "Gas price cap (wei)")
	b.choose("stellar", "Network type *")
	b.expectCreated("chosen", `{}`)
	b.expectText("No policy field is set.")
}

// TestDuplicate_Exact checks that each field of a policy is shown in the form, and read from it, exactly:
// the copy of a relayer has its policy.
func TestDuplicate_Exact(t *testing.T) {
	const (
		mint   = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"
		issuer = "GA5ZSEJYB37JRC5AVCIA5MOP4RHTM335X2KGX3IHOJAPP5RE34K4KZVN"
		usdc   = "USDC:" + issuer
		swap   = `{"slippage_percentage":0.5,"min_amount":1,"max_amount":18446744073709551614,"retain_min_amount":3}`
	)
	b := openList(t, "--network-rules")
	for id, policy := range map[string]string{
		"solana": `{"allowed_tokens":[{"mint":"` + mint + `","decimals":6,"symbol":"USDC","max_allowed_fee":18446744073709551615,"swap_config":` + swap + `}],
			"disallowed_accounts":["` + mint + `"],"allowed_programs":["` + mint + `"],"fee_margin_percentage":1.5,"fee_payment_strategy":"user",
			"max_allowed_fee_lamports":9223372036854775807,"max_signatures":8,"max_tx_data_size":1232,"min_balance":9007199254740993,
			"swap_config":{"strategy":"jupiter-swap","cron_schedule":"0 */6 * * *","min_balance_threshold":100,
				"jupiter_swap_options":{"priority_fee_max_lamports":7,"priority_level":"veryHigh","dynamic_compute_unit_limit":false}}}`,
		"stellar": `{"allowed_tokens":[
				{"asset":"` + usdc + `","metadata":{"kind":{"classic":{"code":"USDC","issuer":"` + issuer + `"}},"decimals":7,"canonical_asset_id":"` + usdc + `"},"max_allowed_fee":18446744073709551615},
				{"asset":"native","metadata":{"kind":"native"},"swap_config":` + swap + `}],
			"concurrent_transactions":true,"fee_margin_percentage":1,"fee_payment_strategy":"user","max_fee":2147483647,"min_balance":9007199254740993,
			"slippage_percentage":0.25,"swap_config":{"strategies":["soroswap","order-book"],"cron_schedule":"0 0 * * *","min_balance_threshold":5},"timeout_seconds":30}`,
	} {
		b.server.do("POST", collection, fmt.Sprintf(`{"id":%[1]q,"name":"Relayer copy-%[1]s","network":"n","network_type":%[1]q,"paused":false,"signer_id":"s","policies":%[2]s}`, id, policy), http.StatusCreated)
		b.goTo("relayer="+id, "Relayer copy-"+id)
		b.more("Duplicate")
		b.expectText("The form has the values of " + id + ". Enter its RPC URLs and their headers again.")
		b.fill("copy-"+id, "ID")
		b.fill("other", "Signer ID *")
		b.expectCreated("copy-"+id, string(b.server.stored(id).Policies))
	}
}

// TestCreate_FieldErrors checks that errors are shown next to their fields.
func TestCreate_FieldErrors(t *testing.T) {
	b := openList(t, "--network-rules")
	b.goTo("new", "New relayer")
	b.press("Create the relayer")
	for _, name := range []string{"Name", "Network", "Signer ID", "Network type"} {
		b.expectError("must not be empty", name+" *")
	}
	b.expectRefused(". The fields show why.")
	expect(b, "Name *", `document.activeElement.labels[0].textContent`)

	b.begin("not an id", "evm")
	b.press("Custom RPC URLs", "Add an endpoint")
	b.fill("https://one.example", "Custom RPC URLs", "Endpoint 1", "URL *")
	b.press("Custom RPC URLs", "Add an endpoint")
	b.fill("mailto:someone", "Custom RPC URLs", "Endpoint 2", "URL *")
	b.fill("101", "Custom RPC URLs", "Endpoint 2", "Weight")
	b.fill("-1", policies, "Gas price cap (wei)")
	b.fill("1,000", policies, "Min balance (wei)")
	b.fill("0x0000000000000000000000000000000000000001\n\nnobody", policies, "Whitelist receivers")
	b.press("Create the relayer")
	b.expectError("must be a number or a string of decimal digits", policies, "Min balance (wei)")
	b.expectError("must be 0 or more", policies, "Gas price cap (wei)")
	b.expectError("must be 1 to 64 characters of A-Z a-z 0-9 _ and -", "ID")
	b.expectError("must be an absolute http, https, ws or wss URL with a host", "Custom RPC URLs", "Endpoint 2", "URL *")
	b.expectError("must be at most 100", "Custom RPC URLs", "Endpoint 2", "Weight")
	expect(b, "", findControl+`.getAttribute('aria-invalid') ?? ''`, []string{"Name *"})
	b.fill("1", policies, "Gas price cap (wei)")
	b.fill("1", policies, "Min balance (wei)")
	b.fill("id", "ID")
	b.press("Custom RPC URLs", "Endpoint 2", "Remove endpoint 2")
	b.press("Create the relayer")
	b.expectErrorStart("entry 2 must be", policies, "Whitelist receivers")
	expect(b, true, `document.activeElement === `+findControl, []string{policies, "Whitelist receivers"})

	b.server.create("taken", "Taken")
	b.fill("", policies, "Whitelist receivers")
	b.fill("taken", "ID")
	b.press("Create the relayer")
	b.expectError("Relayer with this ID already exists", "ID")
}

// TestCreate_Units checks that an amount may be entered with a unit, that none is rounded, and that
// the page shows it in a larger unit too.
func TestCreate_Units(t *testing.T) {
	largest := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String()
	b := openList(t)
	for i, c := range []struct{ networkType, network, field, entered, digits, human string }{
		{"evm", "sepolia", "Gas price cap (wei)", "100 gwei", "100000000000", "100 gwei"},
		{"evm", "sepolia", "Gas price cap (wei)", "7 wei", "7", "0.000000007 gwei"},
		{"evm", "sepolia", "Min balance (wei)", "0.5eth", "500000000000000000", "0.5 ether"},
		{"evm", "somewhere", "Min balance (wei)", "1234567.890123456789012345 Ether", "1234567890123456789012345", "1234567.890123456789012345 ether"},
		{"evm", "arbitrum-sepolia", "Min balance (wei)", "999999999999999", "999999999999999", "999999.999999999 gwei"},
		{"evm", "mainnet", "Min balance (wei)", "1000000000000000", "1000000000000000", "0.001 ether"},
		{"evm", "mainnet", "Min balance (wei)", largest, largest, largest[:60] + "." + largest[60:] + " ether"},
		{"solana", "devnet", "Min balance (lamports)", "2 sol", "2000000000", "2 SOL"},
		{"stellar", "testnet", "Min balance (stroops)", "0.0000001 xlm", "1", "0.0000001 XLM"},
	} {
		id := fmt.Sprint("unit-", i)
		b.begin(id, c.networkType)
		b.fill(c.network, "Network *")
		b.fill(c.entered, policies, c.field)
		unit := regexp.MustCompile(`\((.*)\)`).FindStringSubmatch(c.field)[1]
		below := c.human
		if c.entered != c.digits {
			below = c.digits + " " + unit
		}
		expect(b, "= "+below, humanOf, []string{policies, c.field})
		b.press("Create the relayer")
		b.expectTitle("Relayer " + id)
		expect(b, c.digits+" "+unit+" = "+c.human, `document.querySelector('.amount').textContent`)
	}
	b.begin("wrong", "evm")
	b.fill("polygon", "Network *")
	for _, wrong := range []string{"0.0000000001 gwei", "1 POL", "1 constructor", "1,5 gwei", "1.5.5 gwei"} {
		b.fill(wrong, policies, "Min balance (wei)")
		b.press("Create the relayer")
		b.expectError("must be a number or a string of decimal digits", policies, "Min balance (wei)")
	}
}

// humanOf is the text below the input of an amount.
const humanOf = findControl + `.closest('.field').querySelector('.human').textContent`

// TestCreate_Sections checks that only the policy is open when its type is chosen, that lists, which may
// be long, are below it, and that a part with an error is unfolded. An error without a field is shown
// at its group or next to the buttons, and the field that had the focus has it again.
func TestCreate_Sections(t *testing.T) {
	const (
		sections = `[...document.querySelectorAll('#edit-fields > details > summary, #edit-fields > div > details > summary')].filter((e) => e.checkVisibility()).map((e) => e.textContent)`
		opened   = `[...document.querySelectorAll('#edit-form .section[open] > summary')].filter((e) => e.checkVisibility()).map((e) => e.textContent)`
	)
	b := openList(t, "--network-rules")
	b.begin("folded", "solana")
	expect(b, []string{"Policy", "Custom RPC URLs"}, sections)
	expect(b, []string{"Policy"}, opened)
	b.fill("-1", policies, "Swap config", "Jupiter swap options", "Priority fee max (lamports)")
	b.do(`document.querySelectorAll('#edit-form .section').forEach((section) => { section.open = false; })`)
	b.press("Create the relayer")
	expect(b, []string{"Policy", "Swap config", "Jupiter swap options"}, opened)
	expect(b, "Priority fee max (lamports)", `document.activeElement.labels[0].textContent`)

	b.begin("stellar", "stellar")
	b.press(policies, "Allowed tokens", "Add a token")
	b.fill("native", policies, "Allowed tokens", "Token 1", "Asset *")
	b.fill(`{"classic":{"code":"TOO LONG A CODE","issuer":"nobody"},"odd":1}`, policies, "Allowed tokens", "Token 1", "Metadata", "Kind (JSON)")
	b.fill("0 0 * * *", policies, "Swap config", "Cron schedule")
	b.press("Create the relayer")
	b.expectErrorStart("odd is not a known field", policies, "Allowed tokens", "Token 1", "Metadata", "Kind (JSON)")
	b.fill(`{"classic":`, policies, "Allowed tokens", "Token 1", "Metadata", "Kind (JSON)")
	b.press("Create the relayer")
	b.expectError(`must be "native", {"classic":…} or {"contract":…}`, policies, "Allowed tokens", "Token 1", "Metadata", "Kind (JSON)")
	b.fill(`{"contract":{"contract_id":"nobody"}}`, policies, "Allowed tokens", "Token 1", "Metadata", "Kind (JSON)")
	b.press("Create the relayer")
	b.expectErrorStart("contract.contract_id must be", policies, "Allowed tokens", "Token 1", "Metadata", "Kind (JSON)")
	// A problem of a whole object is shown above its fields.
	expect(b, true, `[...document.querySelectorAll('.fields > .wrong')].some((p) => p.checkVisibility() && p.textContent === 'must not be set unless fee_payment_strategy is user')`)

	b.begin("large", "evm")
	b.do(`(() => { `+findControl+`.value = ('0'.repeat(600) + '\\n').repeat(2000); })()`, []string{policies, "Whitelist receivers"})
	b.do(findControl+`.focus()`, []string{"Name *"})
	b.holdResponse("POST")
	b.keys(kb.Enter)
	b.expectHeld()
	expect(b, "BODY", `document.activeElement.tagName`) // no field can be changed
	b.release()
	b.expectRefused(": the body must be at most 1048576 bytes")
	expect(b, "Name *", `document.activeElement.labels[0].textContent`)
}

// expectRefused waits until the form says that the relayer was not created, and why.
func (b *tab) expectRefused(why string) {
	b.t.Helper()
	expect(b, "The relayer was not created"+why, `document.getElementById('edit-note').textContent`)
}
