package browser

import (
	"crypto/sha512"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

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
