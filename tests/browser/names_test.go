package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestName_Odd checks that a user can see and open a relayer whose name has no visible character, that
// a name that is written from right to left does not reorder the words around it, and that a long
// one neither hides the rest of the list nor fills a dialog or the status.
func TestName_Odd(t *testing.T) {
	const shortened = "A long name A long name A long name A long name A long name …"
	b := open(t)
	names := map[string]string{" ": "(blank name)", "\u200b": "(blank name)", "\u202e": "(blank name)", "\u3164": "(blank name)",
		"שלום": "\u2068שלום\u2069", "\u2069\u202elive": "\u2068\ufffd\ufffdlive\u2069", strings.Repeat("A long name ", 80): shortened}
	ids := make(map[string]string)
	for name := range names {
		ids[name] = fmt.Sprint("odd-", len(ids))
		b.server.create(ids[name], name)
	}
	b.goTo("relayer=%D7%A9", "Sign in")
	b.enter("There is no relayer \u2068ש\u2069")
	expect(b, "There is no relayer \u2068ש\u2069 – Relayers", `document.title`)
	b.goTo("page=1", "Relayers")
	expect(b, 4, `[...document.querySelectorAll('#rows a')].filter((a) => a.textContent === '(blank name)' && a.checkVisibility()).length`)
	for _, width := range []int64{375, 1000} {
		b.run(chromedp.EmulateViewport(width, 800))
		expect(b, true, `[...document.querySelectorAll('#rows tr')].every((row) => row.offsetHeight < 120)`)
	}
	for name, inSentence := range names {
		b.do(`location.hash = %s`, "relayer="+ids[name])
		expect(b, inSentence+" – Relayers", `document.title`)
		b.more("Delete")
		b.expectDialog("Delete " + inSentence + "?")
		b.press("Cancel")
		b.act("Pause")
		b.expectStatus(inSentence + " is paused")
		b.edit()
		b.expectTitle("Edit " + inSentence)
	}
}

// reordered lists the visible and announced texts of the page with a character that reorders the
// words around it. An isolated text does not.
const reordered = `(() => {
	const texts = [...document.querySelectorAll('title, body *')].flatMap((e) => [
		...[...e.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data),
		e.title, e.ariaLabel, e.dataset?.title, e.closest('datalist') ? e.value : '',
	]);
	return texts.filter((text) => /[\u202a-\u202e\u2066-\u2069]/.test(text?.replace(/\u2068[^\u2066-\u2069]*\u2069/g, '')));
})()`

// TestText_NotReordered checks that no text of others reorders the words around it, in any view.
func TestText_NotReordered(t *testing.T) {
	const rlo = "\u202e"
	b, _ := openTokens(t, "alice "+token+" write+engine")
	b.server.do("POST", collection, `{"id":"odd","name":"Name \u202eodd","network":"net\u202e","network_type":"evm","paused":false,"signer_id":"sign\u202e",
		"notification_id":"note\u202e","labels":{"team":"pay\u202e"},"policies":{"whitelist_receivers":["0x\u202e"]},"custom_rpc_urls":[{"url":"https://rpc.example/key"}]}`, http.StatusCreated)
	b.server.do("PATCH", collection+"/odd", `{"name":"Other \u202ename","labels":{"team":"risk\u202e"}}`, http.StatusOK)
	b.server.do("PUT", collection+"/odd/disabled_reason", `{"type":"Odd\u202e","details":"details\u202e"}`, http.StatusOK)
	check := func(view string) {
		t.Helper()
		if found := evaluate[[]string](b, reordered); len(found) > 0 {
			t.Errorf("%s shows %q", view, found)
		}
	}
	b.goTo("relayer=odd", "Sign in")
	b.enter("Other \ufffdname")
	b.press("Pause")
	b.fill("because"+rlo, "Reason")
	check("pause")
	b.press("Pause")
	b.expectText("because\ufffd")
	expect(b, 4, historyRows+`.length`)
	check("relayer")
	b.edit()
	b.fill(rlo+strings.Repeat("x", 200), "Labels")
	b.press("Save")
	expect(b, true, `document.getElementById('edit-note').textContent.startsWith('The relayer was not changed')`)
	check("edit")
	b.press("Cancel")
	b.goTo("changes=", "History")
	expect(b, 4, historyRows+`.length`)
	check("changes")
	b.goTo("relayer=%E2%80%AEid", "There is no relayer \u2068\ufffdid\u2069")
	check("problem")
	b.goTo("q=network%3Da%E2%80%AE+x%E2%80%AE%3D1", "Relayers")
	b.expectText("is not a key.")
	check("search")
	b.goTo("page=1", "Relayers")
	expect(b, 1, rowIDs+`.length`)
	b.do(`document.getElementById('search').focus()`)
	b.insert("=")
	expect(b, true, `document.querySelectorAll('#suggestions option').length > 8`)
	check("list")
	b.goTo("q=team%E2%80%AE", "Relayers")
	b.expectText("No relayer matches.")
	check("search without a match")
}
