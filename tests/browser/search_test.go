package browser

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	rowIDs = `[...document.querySelectorAll('#rows tr')].map((row) => row.dataset.id)`

	// stateCounts has the segments of the filter by state.
	stateCounts = `[...document.querySelectorAll('#states a')].map((a) => a.textContent).join(', ')`
)

// openTeams opens the list of six relayers: of two teams, on two networks and with two
// signers. The last one is paused.
func openTeams(t *testing.T, tokens ...string) *tab {
	t.Helper()
	b, _ := openTokens(t, append(tokens, "api-key "+token+" write")[0])
	for i := 1; i <= 6; i++ {
		b.server.do("POST", collection, fmt.Sprintf(
			`{"id":"r%d","name":"Relayer %d","network":%q,"network_type":"evm","paused":%t,"signer_id":%q,"labels":{"team":%q,"tier":"1"}}`,
			i, i, []string{"mainnet", "sepolia"}[i%2], i == 6, []string{"hot", "cold"}[i/4], []string{"payments", "risk"}[i%3/2]), http.StatusCreated)
	}
	b.enter("Relayers")
	expect(b, []string{"r6", "r1", "r2", "r3", "r4", "r5"}, rowIDs)
	return b
}

func (b *tab) search(text string) {
	b.t.Helper()
	b.fillSearch("search", text)
}

// fillSearch enters a text in a search box, and submits it.
func (b *tab) fillSearch(box, text string) {
	b.t.Helper()
	b.do(`((box) => { box.value = ''; box.focus(); })(document.getElementById(%s))`, box)
	b.insert(text) // the list of suggestions may take a key while it opens
	b.keys(kb.Enter)
}

// TestSearch_Notation checks that terms and words select relayers, and that a mistake is named, and hides
// no relayer without a word.
func TestSearch_Notation(t *testing.T) {
	b := openTeams(t)
	for _, c := range []struct {
		text, hash, counts string
		want               []string
	}{
		{"LAYER 2", "#page=1&q=LAYER+2", "All 1, Active 1, Paused 0, Disabled 0", []string{"r2"}},
		{"network=sepolia", "#page=1&q=network%3Dsepolia", "All 3, Active 3, Paused 0, Disabled 0", []string{"r1", "r3", "r5"}},
		{"network=sepolia|mainnet layer", "#page=1&q=network%3Dsepolia%7Cmainnet+layer", "All 6, Active 5, Paused 1, Disabled 0", []string{"r6", "r1", "r2", "r3", "r4", "r5"}},
		{"signer_id=cold,label.team=risk", "#page=1&q=signer_id%3Dcold%2Clabel.team%3Drisk", "All 1, Active 1, Paused 0, Disabled 0", []string{"r5"}},
		{"paused=true", "#page=1&q=paused%3Dtrue", "All 1, Active 0, Paused 1, Disabled 0", []string{"r6"}},
		{"id=r2|r6 system_disabled=false", "#page=1&q=id%3Dr2%7Cr6+system_disabled%3Dfalse", "All 2, Active 1, Paused 1, Disabled 0", []string{"r6", "r2"}},
		{"search=layer%202", "#page=1&q=search%3Dlayer%25202", "All 1, Active 1, Paused 0, Disabled 0", []string{"r2"}},
		{"nobody", "#page=1&q=nobody", "All 0, Active 0, Paused 0, Disabled 0", []string{}},
	} {
		b.search(c.text)
		expect(b, c.want, rowIDs)
		expect(b, []string{c.hash, c.counts, c.text}, `[location.hash, `+stateCounts+`, document.getElementById('search').value]`)
	}
	b.expectText("No relayer matches.")

	const keys = " is not a key. Keys are id, network, network_type, signer_id, notification_id, paused, system_disabled, search and label.KEY."
	const state = `[document.getElementById('search-wrong').textContent, document.getElementById('search').getAttribute('aria-invalid')]`
	for text, want := range map[string]string{"netwrk=sepolia": "netwrk" + keys, "team=payments": "team" + keys, "network=sepolia,stuck": "stuck" + keys, "label.=x": "label." + keys, "=x": "=" + keys} {
		b.search(text)
		expect(b, []string{want, "true"}, state)
	}
	for text, start := range map[string]string{"paused=maybe": "paused must", "label.te!am=x": "label.te!am must", "network_type=foo": "network_type must"} {
		b.search(text)
		expect(b, true, `(([text, invalid]) => text.startsWith(%s) && invalid === 'true' && document.activeElement.id === 'search')(`+state+`)`, start)
		expect(b, []string{}, rowIDs)
	}
	b.search("")
	expect(b, "1–6 of 6 relayers", `document.getElementById('range').textContent`)
	expect(b, []any{"", nil}, state)
}

// TestSearch_EnterOnce checks that Enter, for which some browsers send two events, reads the list once, and
// that it does not remove what the user types next.
func TestSearch_EnterOnce(t *testing.T) {
	b := open(t)
	b.blockFeed()
	b.enter("Relayers")
	b.intercept(`window.reads = (window.reads ?? 0) + url.includes('search=nobody'); return send(url, request);`)
	b.do(`((box) => {
		setTimeout(() => { window.isOver = true; }, 100); // later than each event of the navigation
		box.value = 'nobody';
		box.dispatchEvent(new Event('search'));
		box.form.requestSubmit();
		box.value = 'nobody else';
	})(document.getElementById('search'))`)
	expect(b, []any{true, "#page=1&q=nobody", "nobody else"}, `[window.isOver, location.hash, document.getElementById('search').value]`)
	b.expectText("No relayer matches.")
	expect(b, 4, `window.reads`)
}

// TestSearch_States checks that each relayer is counted in one state, disabled before paused, that
// the list has them in this order, and that counts are those of the search.
func TestSearch_States(t *testing.T) {
	const current = `[...document.querySelectorAll('#states [aria-current=true]')].map((a) => a.textContent).join()`
	b := openTeams(t, "ops "+token+" write+engine")
	expect(b, "Live", `document.getElementById('live').textContent`)
	for _, id := range []string{"r6", "r3"} {
		b.server.do("PUT", collection+"/"+id+"/disabled_reason", `{"type":"NonceSyncFailed","details":"the node is behind"}`, http.StatusOK)
	}
	b.server.do("PATCH", collection+"/r2", `{"paused":true}`, http.StatusOK)
	expect(b, "All 6, Active 3, Paused 1, Disabled 2", stateCounts)
	expect(b, []string{"r3", "r6", "r2", "r1", "r4", "r5"}, rowIDs)
	expect(b, []string{"Disabled NonceSyncFailed: the node is behind · just now", "DisabledPaused NonceSyncFailed: the node is behind · just now · ops · just now", "Paused ops · just now", "Active "},
		`[...document.querySelectorAll('#rows td[data-title=Status]')].map((cell) => cell.textContent).slice(0, 4)`)
	for state, want := range map[string][]string{"Paused 1": {"r2"}, "Active 3": {"r1", "r4", "r5"}, "Disabled 2": {"r3", "r6"}, "All 6": {"r3", "r6", "r2", "r1", "r4", "r5"}} {
		b.press(state)
		expect(b, want, rowIDs)
		expect(b, state, current)
	}
	b.press("Disabled 2")
	expect(b, "Disabled 2", current)
	b.search("label.team=payments")
	expect(b, "All 4, Active 2, Paused 0, Disabled 2", stateCounts)
	expect(b, []string{"r3", "r6"}, rowIDs)
	b.press("Paused 0")
	expect(b, "Paused 0", current)
	b.search("paused=false") // nothing is both
	expect(b, "All 4, Active 3, Paused 0, Disabled 1", stateCounts)
	expect(b, []string{}, rowIDs)
}

// TestSearch_Shared checks that a link shows the same list, that the back button works, that a click on
// a label searches for it, and that the last term is completed, with the values of the relayers that the
// page has seen, also of new ones.
func TestSearch_Shared(t *testing.T) {
	b := openTeams(t)
	b.do(`document.getElementById('leave').click()`)
	b.goTo("state=active&q=network%3Dsepolia%7Cmainnet+label.team%3Drisk", "Sign in")
	b.enter("Relayers")
	expect(b, []string{"r2", "r5"}, rowIDs)
	expect(b, "network=sepolia|mainnet label.team=risk", `document.getElementById('search').value`)
	b.press("Relayer 5")
	b.expectTitle("Relayer 5")
	b.press("Back to the list")
	b.expectTitle("Relayers")
	expect(b, []string{"r2", "r5"}, rowIDs)
	b.search("network=sepolia")
	expect(b, []string{"r1", "r3", "r5"}, rowIDs)
	b.do(`document.querySelector('[data-id=r5] .chip').click()`)
	expect(b, []string{"r5"}, rowIDs)
	expect(b, "#page=1&q=network%3Dsepolia+label.team%3Drisk&state=active", `location.hash`)
	b.run(chromedp.NavigateBack())
	expect(b, []string{"r1", "r3", "r5"}, rowIDs)
	b.press("Relayer 5")
	b.expectTitle("Relayer 5")
	b.press("team=risk")
	b.expectTitle("Relayers")
	expect(b, []string{"r2", "r5"}, rowIDs)
	expect(b, "label.team=risk", `document.getElementById('search').value`)

	b.goTo("page=1", "Relayers")
	expect(b, 6, rowIDs+`.length`)
	expect(b, "Live", `document.getElementById('live').textContent`)
	const options = `[...document.querySelectorAll('#suggestions option')].map((option) => option.value)`
	b.do(`document.getElementById('search').focus()`)
	keys := []string{"id=", "network=", "network_type=", "signer_id=", "notification_id=", "paused=", "system_disabled="}
	want := append(keys, "label.team=payments", "label.team=risk", "label.tier=1", "network=mainnet", "network=sepolia", "network_type=evm", "signer_id=cold", "signer_id=hot")
	expect(b, want, options)
	b.insert("network=sepolia la")
	for i := range want {
		want[i] = "network=sepolia " + want[i]
	}
	expect(b, want, options)
	b.server.do("POST", collection, `{"id":"odd","name":"Odd","network":"one,two|three","network_type":"evm","paused":false,"signer_id":"50% hot"}`, http.StatusCreated)
	expect(b, 7, rowIDs+`.length`)
	b.insert(" ")
	expect(b, true, options+`.includes(%s)`, "network=sepolia la network=one%2Ctwo%7Cthree")
	b.search("network=one%2Ctwo%7Cthree|mainnet signer_id=50%25%20hot")
	expect(b, []string{"odd"}, rowIDs)
}
