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
	b.press("Edit")
	b.expectDialog("Edit (blank name)")
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
		b.press("Delete")
		b.expectDialog("Delete " + name + "?")
		b.press("Cancel")
		b.press("Pause")
		b.expectStatus(name + " is paused")
		// The question mark is on the right of the name.
		b.press("Delete")
		b.expectDialog("Delete " + name + "?")
		expect(b, true, `(() => {
			const text = document.getElementById('delete-title').firstChild;
			const left = (at) => { const range = new Range(); range.setStart(text, at); range.setEnd(text, at + 1); return range.getBoundingClientRect().left; };
			return left(text.length - 1) > Math.max(...[...text.data.slice(0, -2)].map((_, at) => left(at)));
		})()`)
		b.press("Cancel")
	}
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
		expect(b, true, `document.querySelector('#rows tr').offsetHeight < 300`)
		// No cell breaks inside a word.
		expect(b, []bool{true, true, true, true}, `[...document.querySelectorAll('#rows tr:last-child td')].map((cell) => cell.firstElementChild.offsetHeight < 30)`)
	}
	b.goTo("relayer="+strings.Repeat("i", 64), name)
	b.press("Edit")
	b.expectDialog("Edit " + shortened)
	b.press("Cancel")
	b.press("Pause")
	b.expectStatus(shortened + " is paused")
}

// TestEdit_ManyURLs checks that a long list of URLs does not push the other fields of
// the form out of sight.
func TestEdit_ManyURLs(t *testing.T) {
	t.Parallel()
	var urls []string
	for i := range 100 {
		urls = append(urls, fmt.Sprintf(`{"url":"https://rpc-%d.example/KEY"}`, i))
	}
	b := open(t)
	b.server.create("one", "Full one")
	b.server.do("PATCH", collection+"/one", `{"custom_rpc_urls":[`+strings.Join(urls, ",")+`]}`, http.StatusOK)
	b.goTo("relayer=one", "Sign in")
	b.enter("Full one")
	b.edit("one")
	expect(b, true, `document.getElementById('edit-dialog').scrollHeight < 2000`)
	b.tabTo("Current URLs (100)")
	b.keys(" ")
	b.expectText("https://rpc-99.example/***")
}
