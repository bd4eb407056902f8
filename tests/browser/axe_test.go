package browser

import (
	"crypto/sha512"
	"encoding/base64"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "existing `directory` for a picture of each view")

// axe-core is licensed under the MPL 2.0. It is used only here and not part of the
// repository. The hash makes sure that the registry returns the known file.
const (
	axePackage = "axe-core@4.14.1"
	axeHash    = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

var axeScript = sync.OnceValues(func() (string, error) {
	directory, err := os.MkdirTemp("", "axe")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(directory)
	command := exec.Command("npm", "pack", "--prefer-offline", "--silent", axePackage)
	command.Dir = directory
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("npm pack: %w: %s", err, output)
	}
	path := filepath.Join(directory, strings.TrimSpace(string(output)))
	archive, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if sum := sha512.Sum512(archive); base64.StdEncoding.EncodeToString(sum[:]) != axeHash {
		return "", fmt.Errorf("%s has another hash", axePackage)
	}
	script, err := exec.Command("tar", "-xzOf", path, "package/axe.min.js").Output()
	return string(script), err
})

// loadAxe adds axe-core to the page. The policy of the page does not apply to scripts
// of the debugger.
func (b *tab) loadAxe() {
	b.t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		skipUnlessCI(b.t, "no npm, which downloads axe-core")
	}
	script, err := axeScript()
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(chromedp.Evaluate[chromedp.Void](script + ";0"))
}

// expectAccessible reports the rules of axe-core that the shown view, or a part of it, violates, with
// the elements. Without the name of a rule it checks all.
func (b *tab) expectAccessible(view, part string, rules ...string) {
	b.t.Helper()
	options := map[string]any{"resultTypes": []string{"violations"}}
	if len(rules) > 0 {
		options["runOnly"] = rules
	}
	b.do(`(window.axeResult = undefined, axe.run(%s, %s).then((result) => {
		window.axeResult = result.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.target.join(' ') + ' ' + n.failureSummary));
	}), 0)`, part, options)
	expect(b, true, `window.axeResult !== undefined`)
	if found := evaluate[[]string](b, `window.axeResult`); len(found) > 0 {
		b.t.Errorf("%s:\n%s", view, strings.Join(found, "\n"))
	}
}

func (b *tab) savePicture(path string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// hover shows all buttons and links as if the mouse was above each of them: the rules of the style
// sheet for this state apply to all. A second call ends it.
func (b *tab) hover() {
	b.t.Helper()
	b.do(`for (const rule of document.styleSheets[0].cssRules) {
		rule.selectorText &&= rule.selectorText.replace(/:hover|:not\(\.hover\)/g, (state) => (state === ':hover' ? ':not(.hover)' : ':hover'));
	}`)
}

// TestAccessibility_Views checks every view in light and dark colors, on a phone and on a narrow
// screen, and buttons and links below the mouse. With -screenshots it saves a picture of each.
func TestAccessibility_Views(t *testing.T) {
	addresses := `{"evm":"0x742d35Cc6634C0532925a3b844Bc454e4438f44e","solana":"7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV","stellar":"GA5ZSEJYB37JRC5AVCIA5MOP4RHTM335X2KGX3IHOJAPP5RE34K4KZVN"}`
	signers := filepath.Join(t.TempDir(), "signers.json")
	writeFile(t, signers, `{"s":`+addresses+`,"treasury":`+addresses+`}`)
	b, _ := openTokens(t, "ops "+token+" write+engine", "--signers", signers, "--name", "production")
	b.loadAxe()
	b.visit(func(view string) {
		check := func(scheme string, width int64, isHovered bool, rules ...string) {
			name := fmt.Sprint(scheme, width, " ", view)
			b.useScheme(scheme)
			b.run(chromedp.EmulateViewport(width, 844))
			if isDark := evaluate[bool](b, `Number(/\d+/.exec(getComputedStyle(document.body).backgroundColor)[0]) < 128`); isDark != (scheme == "dark") {
				t.Errorf("%s: the page is dark: %t", name, isDark)
			}
			if *screenshots != "" && !isHovered {
				b.savePicture(filepath.Join(*screenshots, strings.ReplaceAll(name, " ", "-")+".png"))
			}
			b.expectAccessible(name, "html", rules...)
		}
		check("light", 1280, false)
		check("dark", 390, false, "color-contrast", "target-size") // what depends on the colors and the width
		if slices.Contains([]string{"list", "delete", "menu", "history", "edit with an error"}, view) {
			b.hover()
			check("light", 1280, true, "color-contrast")
			check("dark", 1280, true, "color-contrast")
			b.hover()
		}
		expect(b, false, `document.body.innerText.includes('\ufffd')`) // a cut isolate
		b.expectNarrow(view)
		b.do(`document.documentElement.style.fontSize = ''`)
		b.run(chromedp.EmulateViewport(1280, 844))
	})
}

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
