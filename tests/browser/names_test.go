package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// createNamed creates a relayer with a name that may need escapes in JSON.
func (s *server) createNamed(id, name string) {
	s.t.Helper()
	quoted, err := json.Marshal(name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.do("POST", collection, fmt.Sprintf(`{"id":%q,"name":%s,"network":"sepolia","network_type":"evm","paused":false,"signer_id":"s"}`, id, quoted), http.StatusCreated)
}

// TestName_Blank checks that the user can see and open a relayer whose name has no
// visible character.
func TestName_Blank(t *testing.T) {
	t.Parallel()
	b := open(t)
	for i, name := range []string{" ", "\u200b", "\u202e", "\u3164"} {
		b.server.createNamed(fmt.Sprint("blank-", i), name)
	}
	b.enter("Relayers")
	expect(b, strings.Repeat("(blank name)", 4), `[...document.querySelectorAll('#rows a')].map((a) => a.textContent).join('')`)
	b.goTo("relayer=blank-1", "(blank name)")
	b.edit()
	b.expectTitle("Edit (blank name)")
}

// TestName_RightToLeft checks that a name that is written from right to left does not
// reorder the words around it.
func TestName_RightToLeft(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.server.createNamed("hebrew", "שלום")
	b.server.createNamed("override", "\u2069\u202elive")
	b.goTo("relayer=%D7%A9", "Sign in")
	b.enter("There is no relayer \u2068ש\u2069")
	expect(b, "There is no relayer \u2068ש\u2069 – Relayers", `document.title`)
	b.goTo("page=1", "Relayers")
	expect(b, []string{"שלום", "\ufffd\ufffdlive"}, `[...document.querySelectorAll('#rows a')].map((a) => a.textContent)`)
	for id, name := range map[string]string{"hebrew": "\u2068שלום\u2069", "override": "\u2068\ufffd\ufffdlive\u2069"} {
		b.do(`location.hash = %s`, "relayer="+id)
		expect(b, name+" – Relayers", `document.title`)
		b.more("Delete")
		b.expectDialog("Delete " + name + "?")
		b.press("Cancel")
		b.act("Pause")
		b.expectStatus(name + " is paused")
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
	t.Parallel()
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
	b.goTo("changes=&of=%E2%80%AEid", "History of \u2068\ufffdid\u2069")
	check("changes of one")
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

// TestName_Long checks that a long name neither hides the rest of the list nor fills a
// dialog or the status.
func TestName_Long(t *testing.T) {
	t.Parallel()
	const shortened = "A long name A long name A long name A long name A long name …"
	name := strings.Repeat("A long name ", 80)
	b := open(t)
	b.server.createNamed(strings.Repeat("i", 64), name)
	b.server.createNamed("short", "Short")
	b.enter("Relayers")
	for _, width := range []int64{1000, 375} {
		b.run(chromedp.EmulateViewport(width, 800))
		expect(b, true, `document.querySelector('#rows tr').offsetHeight < 120`)
	}
	b.goTo("relayer="+strings.Repeat("i", 64), name)
	b.edit()
	b.expectTitle("Edit " + shortened)
	b.press("Cancel")
	b.expectTitle(name)
	b.act("Pause")
	b.expectStatus(shortened + " is paused")
}
