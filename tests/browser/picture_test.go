package browser

import (
	"flag"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var updatePictures = flag.Bool("update-pictures", false, "write the pictures of the page in docs again")

// TestPictures_OfDocs makes the pictures of the page in README.md and docs, if the flag is set: they
// depend on the fonts of the machine. In the list all texts are in full.
func TestPictures_OfDocs(t *testing.T) {
	if !*updatePictures {
		t.Skip("without -update-pictures")
	}
	signers := filepath.Join(t.TempDir(), "signers.json")
	writeFile(t, signers, `{"treasury":{"evm":"0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"},
		"payouts":{"evm":"0x00000000219ab540356cBB839Cbe05303d7705Fa","solana":"9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"},
		"bridge":{"stellar":"GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"}}`)
	b, _ := openTokens(t, "alice "+token+" write+engine", "--signers", signers, "--name", "production")
	save := func(name string, width, height int64) {
		b.run(chromedp.EmulateViewport(width, height), chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 640, float64(height)-5))
		b.do(`(document.querySelector('dialog[open]') ?? document.activeElement.blur(), document.getElementById('status').classList.add('unseen'))`)
		b.savePicture("../../docs/" + name + ".png")
	}
	for _, definition := range []string{
		`{"id":"treasury-mainnet","name":"Treasury","network":"mainnet","network_type":"evm","paused":false,"signer_id":"treasury","labels":{"team":"payments"},
			"custom_rpc_urls":[{"url":"https://rpc.example/v2/KEY"}],"policies":{"gas_price_cap":32000000000,"min_balance":500000000000000000}}`,
		`{"id":"payouts-arbitrum","name":"Payouts","network":"arbitrum-one","network_type":"evm","paused":false,"signer_id":"payouts","labels":{"team":"payments"}}`,
		`{"id":"payouts-solana","name":"Payouts on Solana","network":"mainnet-beta","network_type":"solana","paused":false,"signer_id":"payouts","labels":{"team":"payments","tier":"test"}}`,
		`{"id":"bridge-stellar","name":"Bridge","network":"mainnet","network_type":"stellar","paused":false,"signer_id":"bridge","labels":{"team":"risk"}}`,
	} {
		b.server.do("POST", collection, definition, http.StatusCreated)
	}
	b.server.do("PUT", collection+"/bridge-stellar/disabled_reason", `{"type":"SequenceSyncFailed"}`, http.StatusOK)
	b.server.do("PATCH", collection+"/treasury-mainnet", `{"policies":{"gas_price_cap":200000000000},"labels":{"tier":"1"}}`, http.StatusOK)
	b.enter("Relayers")
	b.search("payouts")
	b.pressOffer("Pause these 2…")
	b.fill("RPC provider is down", "Reason")
	save("page-pause", 1280, 480)
	b.press("Pause")
	b.expectStatus("2 relayers paused")
	b.search("")
	expect(b, "Live", `document.getElementById('live').textContent`)
	b.expectText("1–4 of 4 relayers")
	expect(b, 2, `document.querySelectorAll('#bulk button').length`)
	save("page", 1280, 380)
	expect(b, []string{}, `[...document.querySelectorAll('#rows *')].filter((e) => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflow === 'hidden').map((e) => e.textContent)`)
	save("page-phone", 390, 700)
	b.goTo("relayer=treasury-mainnet", "Treasury")
	expect(b, 2, historyRows+`.length`)
	save("page-relayer", 1280, 620)
	b.goTo("changes=", "History")
	expect(b, 8, historyRows+`.length`)
	save("page-history", 1280, 480)
	b.begin("new one", "evm")
	b.fill("100 gwei", policies, "Gas price cap (wei)")
	b.press("Create the relayer")
	b.expectErrorStart("must be 1 to 64", "ID")
	save("page-create", 1280, 720)
}
