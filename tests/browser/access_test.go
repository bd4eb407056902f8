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
	b.server.create("long", strings.Repeat("WithoutASpace", 20))
	b.server.do("POST", collection, `{"id":"full","name":"Full","network":"devnet","network_type":"solana","paused":true,"signer_id":"s",
		"custom_rpc_urls":[{"url":"https://`+strings.Repeat("long.", 40)+`example/v2"}],
		"policies":{"max_allowed_fee_lamports":9223372036854775807,"allowed_accounts":[],
			"allowed_tokens":[{"mint":"`+strings.Repeat("1", 100)+`","swap_config":{"max_amount":18446744073709551615}}]}}`, http.StatusCreated)
	check("the token")
	b.press("Show the relayers")
	b.expectError("Enter the bearer token", "Bearer token")
	check("a wrong token")
	b.enter("All relayers")
	check("the list")
	b.fill("many", "Per page")
	b.press("Show")
	b.expectError("must be a whole number from 0 to 4294967295", "Per page")
	check("the list with an error")
	b.goTo("relayer=full", "Full")
	check("a relayer")
	b.goTo("relayer=nobody", "Relayer with ID nobody not found")
	check("a problem")
	b.goTo("new", "New relayer")
	b.press("Custom RPC URLs", "Add an endpoint")
	for _, networkType := range []string{"evm", "solana", "stellar"} {
		b.choose(networkType, "Network type, required")
		if networkType != "evm" {
			b.press(policies, "Allowed tokens", "Add a token")
		}
		b.press("Create the relayer")
		b.expectError("must not be empty", "Name, required")
		check("a new " + networkType + " relayer")
	}
}

func TestAccessibility_Names(t *testing.T) {
	b := open(t)
	b.visit(func(view string) {
		unnamed := evaluate[[]string](b, `[...document.querySelectorAll('input, select, textarea')]
			.filter((e) => e.labels.length !== 1 || e.labels[0].textContent.trim() === '').map((e) => e.outerHTML)`)
		empty := evaluate[[]string](b, `[...document.querySelectorAll('button, fieldset > legend, h1, h2')]
			.filter((e) => e.checkVisibility() && e.textContent.trim() === '').map((e) => e.outerHTML)`)
		dangling := evaluate[[]string](b, `[...document.querySelectorAll('[aria-describedby], [aria-labelledby]')].filter((e) => e.checkVisibility())
			.flatMap((e) => ((e.getAttribute('aria-describedby') ?? '') + ' ' + (e.getAttribute('aria-labelledby') ?? '')).trim().split(/ +/))
			.filter((id) => document.getElementById(id) === null)`)
		twice := evaluate[[]string](b, `[...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)`)
		headings := evaluate[int](b, `[...document.querySelectorAll('h1')].filter((e) => e.checkVisibility()).length`)
		if len(unnamed)+len(empty)+len(dangling)+len(twice) > 0 || headings != 1 {
			t.Errorf("%s: without a name %q, empty %q, missing descriptions %q, duplicate IDs %q, %d headings, want 1", view, unnamed, empty, dangling, twice, headings)
		}
	})
	expect(b, []string{"en", "1", "1"}, `[document.documentElement.lang, String(document.querySelectorAll('main').length), String(document.querySelectorAll('header').length)]`)
}

// lowContrast lists the texts with a contrast below 4.5:1, as WCAG defines it.
const lowContrast = `(() => {
	const channels = (color) => color.match(/[\d.]+/g).map(Number);
	const light = (color) => {
		const [r, g, b] = channels(color).slice(0, 3).map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		const color = getComputedStyle(e).backgroundColor;
		return channels(color)[3] === 0 ? behind(e.parentElement) : color;
	};
	const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
	const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== '');
	return [...document.body.querySelectorAll('*')]
		.filter((e) => e.checkVisibility() && (hasText(e) || e.matches('input, textarea')))
		.map((e) => [ratio(light(getComputedStyle(e).color), light(behind(e))), e.textContent])
		.filter(([contrast]) => contrast < 4.5).map(([contrast, text]) => contrast.toFixed(2) + ' ' + text);
})()`

func TestAccessibility_Contrast(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			b := open(t)
			b.run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
				features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
				_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
				return err
			}))
			isDark := evaluate[string](b, `getComputedStyle(document.body).backgroundColor`) != "rgb(255, 255, 255)"
			if isDark != (scheme == "dark") {
				t.Errorf("the page is dark: %t", isDark)
			}
			b.visit(func(view string) {
				if texts := evaluate[[]string](b, lowContrast); len(texts) > 0 {
					t.Errorf("%s: %q", view, texts)
				}
			})
		})
	}
}

// TestAccessibility_NarrowScreen checks that the page does not scroll sideways at a
// width of 320 pixels, and of 640 pixels with double font size.
func TestAccessibility_NarrowScreen(t *testing.T) {
	for _, c := range []struct {
		width    int64
		fontSize string
	}{{320, "100%"}, {640, "200%"}} {
		t.Run(fmt.Sprint(c.width), func(t *testing.T) {
			b := open(t)
			b.run(chromedp.EmulateViewport(c.width, 640))
			b.do(`document.documentElement.style.fontSize = %s`, c.fontSize)
			b.visit(func(view string) {
				wide := evaluate[[]string](b, `[...document.body.querySelectorAll('*')]
					.filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 0.5)
					.map((e) => e.tagName + ' ' + e.textContent.slice(0, 40))`)
				if scrolled := evaluate[int64](b, `document.documentElement.scrollWidth`); scrolled > c.width || len(wide) > 0 {
					t.Errorf("%s: the page is %d pixels wide, want %d; too wide: %q", view, scrolled, c.width, wide)
				}
			})
		})
	}
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

func (b *tab) keys(text string) {
	b.t.Helper()
	b.run(chromedp.KeyEvent(text))
}

// TestAccessibility_Keyboard uses the page with the keyboard only.
func TestAccessibility_Keyboard(t *testing.T) {
	b := open(t)
	for i := 1; i <= 11; i++ {
		b.server.create(fmt.Sprintf("relayer-%d", i), fmt.Sprintf("Relayer %d", i))
	}
	expect(b, "enter-title", `document.activeElement.id`)
	b.tabTo("Bearer token")
	b.keys(token + kb.Enter)
	b.expectTitle("All relayers")
	b.tabTo("Next")
	b.keys(kb.Enter)
	b.expectRows(11, 11)
	expect(b, "list-title", `document.activeElement.id`)
	b.tabTo("Previous")
	b.keys(kb.Enter)
	b.expectRows(1, 10)
	b.tabTo("Relayer 10")
	b.keys(kb.Enter)
	b.expectTitle("Relayer 10")
	expect(b, "one-title", `document.activeElement.id`)

	b.tabTo("New relayer", kb.ModifierShift)
	b.keys(kb.Enter)
	b.expectTitle("New relayer")
	b.tabTo("Name, required")
	b.keys("By keys")
	b.tabTo("Network type, required")
	b.keys("ev")
	b.tabTo("Network, required")
	b.keys("sepolia")
	b.tabTo("Paused")
	b.keys(" ")
	b.tabTo("Add an endpoint")
	b.keys(kb.Enter)
	expect(b, "URL, required", `document.activeElement.labels[0].textContent`)
	b.tabTo("Remove endpoint 1")
	b.keys(kb.Enter)
	expect(b, "Add an endpoint", `document.activeElement.textContent`)
	b.tabTo("Gas price cap (wei)")
	b.keys("1" + kb.Enter)
	b.expectFocusOnSummary()
	b.tabTo("Signer ID: must not be empty")
	b.keys(kb.Enter)
	b.keys("s" + kb.Enter)
	b.expectTitle("By keys")
	b.expectText("1 wei")
	b.tabTo("Forget the token", kb.ModifierShift)
	b.keys(kb.Enter)
	b.expectTitle("Relayers")
	expect(b, "token", `document.activeElement.id`)
}
