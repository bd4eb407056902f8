package browser

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const rowIDs = `[...document.querySelectorAll('#rows tr')].map((row) => row.dataset.id)`

// openTeams opens the list of six relayers: of two teams, on two networks and with two
// signers. The last one is paused.
func openTeams(t *testing.T, serverArgs ...string) *tab {
	t.Helper()
	b := open(t, serverArgs...)
	for i := 1; i <= 6; i++ {
		b.server.do("POST", collection, fmt.Sprintf(
			`{"id":"r%d","name":"Relayer %d","network":%q,"network_type":"evm","paused":%t,"signer_id":%q,"labels":{"team":%q,"tier":"1"}}`,
			i, i, []string{"mainnet", "sepolia"}[i%2], i == 6, []string{"hot", "cold"}[i/4], []string{"payments", "risk"}[i%3/2]), http.StatusCreated)
	}
	b.enter("Relayers")
	return b
}

func TestFilter_Form(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	for _, c := range []struct {
		value, field string
		hash, total  string
		want         []string
	}{
		{"LAYER 2", "Name or ID", "#page=1&search=LAYER+2", "1–1 of 1 relayer selected", []string{"r2"}},
		{"sepolia", "Network", "#page=1&network=sepolia", "1–3 of 3 relayers selected", []string{"r1", "r3", "r5"}},
		{"sepolia|mainnet", "Network", "#page=1&network=sepolia&network=mainnet", "1–6 of 6 relayers selected", []string{"r1", "r2", "r3", "r4", "r5", "r6"}},
		{"cold", "Signer ID", "#page=1&signer_id=cold", "1–3 of 3 relayers selected", []string{"r4", "r5", "r6"}},
		{"team=risk", "Labels", "#page=1&label.team=risk", "1–2 of 2 relayers selected", []string{"r2", "r5"}},
		{"label.team=payments|risk, label.tier=1", "Labels", "#page=1&label.team=payments&label.team=risk&label.tier=1", "1–6 of 6 relayers selected", []string{"r1", "r2", "r3", "r4", "r5", "r6"}},
		{"nobody", "Name or ID", "#page=1&search=nobody", "No relayer matches the filters.", []string{}},
	} {
		b.fill(c.value, c.field)
		b.keys(kb.Enter)
		expect(b, c.want, rowIDs)
		expect(b, c.total, `document.getElementById('range').textContent`)
		expect(b, c.hash, `location.hash`)
		b.press("Clear the filters")
		expect(b, "1–6 of 6 relayers", `document.getElementById('range').textContent`)
	}
	for state, want := range map[string][]string{"Paused": {"r6"}, "Active": {"r1", "r2", "r3", "r4", "r5"}, "Disabled": {}, "Any": {"r1", "r2", "r3", "r4", "r5", "r6"}} {
		b.choose(state, "State")
		expect(b, want, rowIDs)
	}
}

// TestFilter_Shared checks that a link to a filtered list shows the same list, with its
// filters, that filters without a control are chips, and that the back button works.
func TestFilter_Shared(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	const shared = "order=newest&network=sepolia&network=mainnet&paused=false&label.team=risk&network_type=evm&search=layer"
	b.do(`document.getElementById('leave').click()`)
	b.goTo(shared, "Sign in")
	b.enter("Relayers")
	expect(b, []string{"r5", "r2"}, rowIDs)
	expect(b, []string{"layer", "sepolia|mainnet", "", ""}, `['filter-search', 'filter-network', 'filter-state', 'filter-signer'].map((id) => document.getElementById(id).value)`)
	expect(b, []string{"paused=false ×", "label.team=risk ×", "network_type=evm ×"}, `[...document.querySelectorAll('#filter-chips a')].map((a) => a.textContent)`)
	b.press("Filter") // changes nothing
	expect(b, "#page=1&order=newest&network=sepolia&network=mainnet&paused=false&label.team=risk&network_type=evm&search=layer", `location.hash`)
	expect(b, []string{"r5", "r2"}, rowIDs)
	b.press("Remove the filter label.team=risk")
	expect(b, []string{"r5", "r4", "r3", "r2", "r1"}, rowIDs)
	b.choose("Paused", "State")
	expect(b, []string{"r6"}, rowIDs)
	for _, want := range [][]string{{"r5", "r4", "r3", "r2", "r1"}, {"r5", "r2"}} {
		b.run(chromedp.NavigateBack())
		expect(b, want, rowIDs)
	}
	b.press("Relayer 5")
	b.expectTitle("Relayer 5")
	b.press("Back to the list")
	expect(b, []string{"r5", "r2"}, rowIDs)
}

// TestFilter_Chip checks that a click on a label adds it to the filters of the list, and
// that a link of the page of a relayer shows all relayers with the label.
func TestFilter_Chip(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.choose("Active", "State")
	expect(b, 5, rowIDs+`.length`)
	b.do(`document.querySelector('[data-id=r2] .chip').click()`)
	expect(b, []string{"r2", "r5"}, rowIDs)
	expect(b, "#page=1&paused=false&system_disabled=false&label.team=risk", `location.hash`)
	expect(b, "Active", `document.getElementById('filter-state').selectedOptions[0].text`)
	b.press("Relayer 2")
	b.expectTitle("Relayer 2")
	b.press("team=risk")
	expect(b, "#label.team=risk", `location.hash`)
	expect(b, []string{"r2", "r5"}, rowIDs)
}

// TestFilter_Changes checks that relayers appear and disappear as they begin and cease to
// match.
func TestFilter_Changes(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	expect(b, "Live", `document.getElementById('live').textContent`)
	b.choose("Paused", "State")
	expect(b, []string{"r6"}, rowIDs)
	b.fill("not yet entered", "Signer ID")
	b.server.do("PATCH", collection+"/r3", `{"paused":true}`, http.StatusOK)
	expect(b, []string{"r3", "r6"}, rowIDs)
	expect(b, "not yet entered", findControl+`.value`, []string{"Signer ID"})
	b.server.do("PATCH", collection+"/r6", `{"paused":false}`, http.StatusOK)
	expect(b, []string{"r3"}, rowIDs)
}

func TestFilter_Errors(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.fill("team", "Labels")
	b.press("Filter")
	b.expectError("label must have terms such as label.team=payments|risk, separated by commas", "Labels")
	b.fill("te!am=payments", "Labels")
	b.press("Filter")
	b.expectTitle("Relayers")
	expect(b, true, `document.getElementById('filter-wrong').textContent.startsWith('label.te!am must')`)
	expect(b, []string{}, rowIDs)
	b.goTo("paused=maybe", "Relayers")
	expect(b, true, `document.getElementById('filter-wrong').textContent.startsWith('paused must')`)
	b.press("Clear the filters")
	expect(b, 6, rowIDs+`.length`)
	expect(b, "", `document.getElementById('filter-wrong').textContent`)
}

func TestLabels_Edit(t *testing.T) {
	t.Parallel()
	const labels = "Labels"
	b := openTeams(t)
	b.goTo("relayer=r2", "Relayer 2")
	expect(b, []string{"team=risk", "tier=1"}, `[...document.querySelectorAll('#one-cards .chip')].map((chip) => chip.textContent)`)
	b.press("Edit")
	b.expectDialog("Edit Relayer 2")
	b.fill("payments", labels, "Label 1", "Value")
	b.press(labels, "Label 2", "Remove label 2")
	b.press(labels, "Add a label")
	b.fill("app.kubernetes.io/name", labels, "Label 2", "Key")
	b.saved("Relayer 2 was changed")
	expect(b, []string{"app.kubernetes.io/name=", "team=payments"}, `[...document.querySelectorAll('#one-cards .chip')].map((chip) => chip.textContent)`)
	b.press("Edit")
	b.fill("team", labels, "Label 1", "Key")
	b.press("Save")
	b.expectText("The relayer was not changed")
	b.fill("bad key", labels, "Label 1", "Key")
	b.press("Save")
	b.expectErrorStart("must have a key of 1 to 63 characters", labels, "Label 1", "Value")
	b.press(labels, "Label 1", "Remove label 1")
	b.press(labels, "Label 1", "Remove label 1")
	b.saved("Relayer 2 was changed")
	expect(b, 0, `document.querySelectorAll('#one-cards .chip').length`)
}

// TestLabels_Conflict checks that labels that another client has set stay.
func TestLabels_Conflict(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.do(`document.dispatchEvent(new Event('visibilitychange'))`)
	b.goTo("relayer=r2", "Relayer 2")
	b.press("Edit")
	b.fill("2", "Labels", "Label 2", "Value")
	b.server.do("PATCH", collection+"/r2", `{"labels":{"a.b/c":"new"}}`, http.StatusOK)
	b.press("Save")
	b.expectConflict([]string{"Labels, tier", "1", "1", "2"}, []string{"Labels, a.b/c", "Not set", "new", "Not changed by you"})
	b.press("Apply my change")
	b.expectDialog("")
	expect(b, []string{"a.b/c=new", "team=risk", "tier=2"}, `[...document.querySelectorAll('#one-cards .chip')].map((chip) => chip.textContent)`)
}
