package browser

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestToken_Wrong(t *testing.T) {
	b := open(t)
	for given, message := range map[string]string{
		"wrong":     "The server does not accept this token",
		"two words": "A token consists of ASCII letters, digits and symbols, without spaces",
		"":          "Enter the bearer token",
	} {
		b.fill(given, "Bearer token")
		b.press("Show the relayers")
		expect(b, message, `document.getElementById('token-wrong').innerText`)
		expect(b, []string{"token", "true", ""}, `[document.activeElement.id, document.activeElement.getAttribute('aria-invalid'), document.activeElement.value]`)
		expect(b, false, `document.getElementById('menu').checkVisibility()`)
	}
	b.enter("All relayers")
	b.expectText("There are no relayers yet.")
	b.server.do("GET", collection, "", http.StatusOK)
}

func (b *tab) expectRows(first, last int) {
	b.t.Helper()
	var want []string
	for i := first; i <= last; i++ {
		want = append(want, fmt.Sprintf("Relayer %d", i))
	}
	expect(b, want, `[...document.querySelectorAll('#rows a')].map((a) => a.textContent)`)
}

func TestList_Paging(t *testing.T) {
	b := open(t)
	for i := 1; i <= 25; i++ {
		b.server.create(fmt.Sprintf("relayer-%d", i), fmt.Sprintf("Relayer %d", i))
	}
	b.enter("All relayers")
	b.expectRows(1, 10)
	b.expectText("1 to 10 of 25 relayers, page 1 of 3.")
	expect(b, "true", `document.getElementById('previous').ariaDisabled`)

	b.press("Next")
	b.expectRows(11, 20)
	b.press("Next")
	b.expectRows(21, 25)
	b.expectText("21 to 25 of 25 relayers, page 3 of 3.")
	expect(b, "21 to 25 of 25 relayers, page 3 of 3.", `document.getElementById('status').textContent`)
	expect(b, "true", `document.getElementById('next').ariaDisabled`)
	b.press("Previous")
	b.expectRows(11, 20)

	b.press("Relayer 12")
	b.expectTitle("Relayer 12")
	expect(b, "one-title", `document.activeElement.id`)
	b.run(chromedp.NavigateBack())
	b.expectTitle("All relayers")
	b.expectRows(11, 20)

	b.fill("2", "Page")
	b.fill("7", "Per page")
	b.press("Show")
	b.expectRows(8, 14)
	b.fill("9", "Page")
	b.press("Show")
	b.expectText("Page 9 is empty, with 7 per page. There are 25 relayers.")
	b.press("Previous")
	b.expectRows(22, 25)

	b.fill("1000", "Per page")
	b.fill("1", "Page")
	b.press("Show")
	b.expectText("1 to 25 of 25 relayers, page 1 of 1.")
	expect(b, "100", findControl+`.value`, []string{"Per page"})

	b.fill("many", "Per page")
	b.press("Show")
	b.expectError("must be a whole number from 0 to 4294967295", "Per page")
	b.fill("0", "Per page")
	b.press("Show")
	b.expectText("There are 25 relayers.")
}

// errorOf is the error next to a field that describes the field.
const errorOf = `((control) => {
	const wrong = control.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id)).find((e) => e.className === 'wrong');
	return control.getAttribute('aria-invalid') === 'true' && wrong.parentElement.contains(control) ? wrong.innerText : '';
})(` + findControl + `)`

func (b *tab) expectError(want string, path ...string) {
	b.t.Helper()
	expect(b, want, errorOf, path)
}

func (b *tab) expectErrorStart(want string, path ...string) {
	b.t.Helper()
	expect(b, true, errorOf+`.startsWith(%s)`, path, want)
}

func TestRelayer_Unknown(t *testing.T) {
	b := open(t)
	b.goTo("relayer=..%2Fnobody", "Relayers")
	b.enter("Relayer with ID ../nobody not found")
	b.server.create("late", "Late")
	b.goTo("relayer=late", "Late")
}

func TestRate_Exceeded(t *testing.T) {
	b := open(t, "--rate", "0.1") // one request at once, which checks the token
	b.fill(token, "Bearer token")
	b.press("Show the relayers")
	expect(b, true, `/^Too Many Requests: try again in \d+ s$/.test(document.querySelector('section:not([hidden]) h1').textContent)`)
	expect(b, "problem-title", `document.activeElement.id`)
}

// TestEscaping_Markup checks that the page shows markup in names as text.
func TestEscaping_Markup(t *testing.T) {
	const name = `<img src=x onerror=alert(1)><script>alert(2)</script>`
	b := open(t)
	b.server.create("markup", name)
	b.enter("All relayers")
	expect(b, []string{name}, `[...document.querySelectorAll('#rows a')].map((a) => a.textContent)`)
	b.press(name)
	b.expectTitle(name)
	expect(b, name+" – Relayers", `document.title`)
	expect(b, 0, `document.images.length`)
	expect(b, 1, `document.scripts.length`)

	b.goTo("new", "New relayer")
	b.fill(name, "Name, required")
	b.fill(`"><b>`, "Network, required")
	b.fill(`{"name":"\u0000"}`, "Signer ID, required")
	b.choose("evm", "Network type, required")
	b.press("Create the relayer")
	b.expectTitle(name)
	b.expectText(`"><b>`)
	b.expectText(`{"name":"\u0000"}`)
	expect(b, 0, `document.querySelectorAll('b').length`)
}

// TestContentSecurityPolicy_Blocks checks that the policy blocks injected code and
// requests.
func TestContentSecurityPolicy_Blocks(t *testing.T) {
	b := open(t)
	b.expectTitle("Relayers")
	const attempt = `(() => { try { %s; return ''; } catch (error) { return error.name; } })()`
	for _, code := range []string{
		`document.body.innerHTML = '<img src=x onerror=alert(1)>'`,
		`document.body.appendChild(document.createElement('script')).text = 'window.ran = true'`,
	} {
		if name := evaluate[string](b, strings.Replace(attempt, "%s", code, 1)); name != "TypeError" {
			t.Errorf("%s: error %q, want TypeError", code, name)
		}
	}
	b.do(`document.body.setAttribute('style', 'display: none')`)
	b.do(`(() => { const image = document.createElement('img'); image.src = '/icon.png'; document.body.append(image); })()`)
	b.do(`fetch('http://127.0.0.2/').catch(() => 0)`)
	b.do(`(() => { const frame = document.createElement('iframe'); frame.src = '/'; document.body.append(frame); })()`)
	b.do(`HTMLFormElement.prototype.submit.call(document.getElementById('enter-form'))`)
	for _, directive := range []string{"require-trusted-types-for", "style-src-attr", "img-src", "connect-src", "frame-src", "form-action"} {
		expect(b, true, `violations.includes(%s)`, directive)
	}
	expect(b, "undefined", `typeof window.ran`)
	for _, problem := range b.errors.take() {
		isOfPolicy := strings.Contains(problem, "Content Security Policy") || strings.Contains(problem, "requires 'Trusted")
		if !isOfPolicy {
			t.Error(problem)
		}
	}
	b.do(`violations.length = 0`)
}

// TestToken_NotStored checks that the page has the token only in memory, and loses it
// when it is closed or reloaded.
func TestToken_NotStored(t *testing.T) {
	b := open(t)
	b.server.create("one", "One")
	b.enter("All relayers")
	b.press("One")
	b.expectTitle("One")
	b.goTo("new", "New relayer")
	expect(b, []any{0.0, 0.0, "", false, ""}, `[localStorage.length, sessionStorage.length, document.cookie, location.href.includes(%s), document.getElementById('token').value]`, token)
	expect(b, false, `document.documentElement.outerHTML.includes(%s)`, token)
	expect(b, false, `Object.values(window).some((value) => value === %s)`, token)
	expect(b, false, `[...document.querySelectorAll('input, textarea')].some((input) => input.value.includes(%s))`, token)
	databases := evaluate[int](b, `window.count = -1, indexedDB.databases().then((list) => { window.count = list.length; }), 0`)
	expect(b, databases, `window.count`)

	b.do(`document.getElementById('leave').click()`)
	b.expectTitle("Relayers")
	expect(b, "", `document.getElementById('one').innerText + document.getElementById('rows').innerText`)
	expect(b, "token", `document.activeElement.id`)

	b.enter("New relayer")
	b.run(chromedp.Reload())
	b.expectTitle("Relayers")

	b.enter("New relayer")
	b.run(chromedp.Navigate("about:blank"), chromedp.NavigateBack())
	b.expectTitle("Relayers")
	b.close()
	expectNotOnDisk(t, b.profile)
}

// expectNotOnDisk checks every file that the browser has written.
func expectNotOnDisk(t *testing.T, profile string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(profile, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		files++
		if strings.Contains(string(content), token) {
			t.Errorf("the token is in %s", path)
		}
		return err
	})
	if err != nil || files < 10 {
		t.Errorf("%d files, want 10 or more; error %v", files, err)
	}
}
