package browser

import (
	"bytes"
	"flag"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var updatePicture = flag.Bool("update-picture", false, "write the picture of README.md again")

// picture is the picture of the page in README.md.
const picture = "../../docs/page.png"

// TestPicture_OfREADME shows the list of the picture, with all texts in full. The picture
// itself depends on the fonts of the machine, so that only its size is compared.
func TestPicture_OfREADME(t *testing.T) {
	t.Parallel()
	signers := filepath.Join(t.TempDir(), "signers.json")
	writeFile(t, signers, `{"treasury":{"evm":"0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"},
		"payouts":{"evm":"0x00000000219ab540356cBB839Cbe05303d7705Fa","solana":"9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"},
		"bridge":{"stellar":"GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"}}`)
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, tokens, "alice "+token+" write+engine\n")
	b := open(t, "--signers", signers, "--tokens-file", tokens, "--name", "production")
	for _, definition := range []string{
		`{"id":"treasury-mainnet","name":"Treasury","network":"mainnet","network_type":"evm","paused":false,"signer_id":"treasury","labels":{"team":"payments"}}`,
		`{"id":"payouts-arbitrum","name":"Payouts","network":"arbitrum-one","network_type":"evm","paused":false,"signer_id":"payouts","labels":{"team":"payments"}}`,
		`{"id":"payouts-solana","name":"Payouts on Solana","network":"mainnet-beta","network_type":"solana","paused":false,"signer_id":"payouts","labels":{"team":"payments","tier":"test"}}`,
		`{"id":"bridge-stellar","name":"Bridge","network":"mainnet","network_type":"stellar","paused":false,"signer_id":"bridge","labels":{"team":"risk"}}`,
	} {
		b.server.do("POST", collection, definition, http.StatusCreated)
	}
	b.run(chromedp.EmulateViewport(1280, 380))
	b.server.do("PUT", collection+"/bridge-stellar/disabled_reason", `{"type":"SequenceSyncFailed"}`, http.StatusOK)
	b.enter("Relayers")
	b.search("payouts")
	b.pressOffer("Pause these 2…")
	b.fill("RPC provider is down", "Reason")
	b.press("Pause")
	b.expectStatus("2 relayers paused")
	b.search("")
	expect(b, "Live", `document.getElementById('live').textContent`)
	b.expectText("1–4 of 4 relayers")
	expect(b, 2, `document.querySelectorAll('#bulk button').length`)
	b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 640, 500))
	b.do(`(document.activeElement.blur(), document.getElementById('status').classList.add('unseen'))`)
	expect(b, []string{}, `[...document.querySelectorAll('#rows *')].filter((e) => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflow === 'hidden').map((e) => e.textContent)`)
	shown, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if *updatePicture {
		if err := os.WriteFile(picture, shown, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.DecodeConfig(bytes.NewReader(shown))
	if err != nil {
		t.Fatal(err)
	}
	want, err := png.DecodeConfig(bytes.NewReader(committed))
	if err != nil || got.Width != want.Width || got.Height != want.Height {
		t.Errorf("the page has %d x %d pixels, and its picture %d x %d, error %v", got.Width, got.Height, want.Width, want.Height, err)
	}
}
