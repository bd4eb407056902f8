package browser

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestIncident_ResumeMine checks that after an incident exactly what was paused in it is
// resumed, also after the browser has loaded the page again.
func TestIncident_ResumeMine(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	expect(b, false, `document.getElementById('resume-mine').checkVisibility()`)
	b.press("Pause all 6…")
	b.expectDialog("Pause 5 relayers?")
	expect(b, "Already paused (1)", `document.querySelector('#bulk-before summary').textContent`)
	expect(b, []string{"Relayer 6 (r6)"}, `[...document.querySelectorAll('#bulk-before li')].map((row) => row.textContent)`)
	b.press("Relayer 2 (r2)") // not this one
	b.press("Pause 4 relayers")
	b.expectDialog("Done")
	b.press("Close")
	b.expectPaused("r1", "r3", "r4", "r5", "r6")
	b.run(chromedp.Reload())
	b.enter("Relayers")
	b.press("Resume what I paused (4)…")
	b.expectText("You paused 4 relayers.")
	expect(b, []string{"Relayer 1 (r1)", "Relayer 3 (r3)", "Relayer 4 (r4)", "Relayer 5 (r5)"}, bulkNames)
	b.press("Resume 4 relayers")
	b.expectDialog("Done")
	b.press("Close")
	expect(b, false, `document.getElementById('resume-mine').checkVisibility()`)
	b.expectPaused("r6")
}

// TestIncident_PausedBefore checks that a resume of all shows which relayers the user has not
// paused, and offers to leave them out.
func TestIncident_PausedBefore(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.goTo("network=sepolia", "Relayers")
	b.expectText("1–3 of 3 relayers selected")
	b.press("Pause all 3…")
	b.expectDialog("Pause 3 relayers?")
	b.press("Pause 3 relayers")
	b.expectDialog("Done")
	b.press("Close")
	b.server.do("PATCH", collection+"/r1", `{"paused":false}`, http.StatusOK)
	b.server.do("DELETE", collection+"/r3", "", http.StatusOK)
	b.goTo("page=1", "Relayers")
	b.expectText("1–5 of 5 relayers")
	b.press("Resume all 5…")
	expect(b, []string{"Relayer 5 (r5)", "Relayer 6 (r6) – not paused by you"}, bulkNames)
	b.press("Select none")
	expect(b, []any{true, "Resume 0 relayers"}, `((e) => [e.disabled, e.textContent])(document.getElementById('bulk-confirm'))`)
	b.press("Select what I paused")
	b.press("Resume 1 relayer")
	b.expectDialog("Done")
	b.press("Close")
	b.expectPaused("r6")
	b.press("Resume what I paused (1)…") // the deleted one
	b.expectText("Nothing to resume. You paused 1 relayer, of which 1 cannot be read any more.")
	b.press("Close")
}

// TestIncident_Keyboard pauses the relayers of a team on a network, and resumes only these,
// with the keyboard only.
func TestIncident_Keyboard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scheme string
		width  int64
	}{{"light", 1280}, {"dark", 390}} {
		t.Run(fmt.Sprint(c.scheme, c.width), func(t *testing.T) {
			t.Parallel()
			b := openTeams(t)
			b.useScheme(c.scheme)
			b.run(chromedp.EmulateViewport(c.width, 844))
			b.do(`document.getElementById('list-title').focus()`)
			b.tabTo("Network")
			b.keys("mainnet")
			b.tabTo("Labels")
			b.keys("team=payments" + kb.Enter)
			expect(b, []string{"r4", "r6"}, rowIDs)
			b.tabTo("Pause all 2…")
			b.keys(kb.Enter)
			b.expectDialog("Pause 1 relayer?")
			b.tabTo("Pause 1 relayer")
			b.keys(kb.Enter)
			b.expectDialog("Done")
			b.keys(kb.Escape)
			b.expectDialog("")
			b.do(`document.getElementById('list-title').focus()`)
			b.tabTo("Resume what I paused (1)…")
			b.keys(kb.Enter)
			b.expectDialog("Resume 1 relayer?")
			b.tabTo("Relayer 4 (r4)")
			b.keys("  ") // off and on again
			b.tabTo("Resume 1 relayer")
			b.keys(kb.Enter)
			b.expectDialog("Done")
			b.tabTo("Close")
			b.keys(kb.Enter)
			b.expectPaused("r6")
		})
	}
}

func TestFilter_Facts(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	const counts = `[...document.querySelectorAll('#counts a')].map((a) => a.textContent)`
	expect(b, []string{"5 active", "1 paused", "0 disabled"}, counts)
	expect(b, "Live", `document.getElementById('live').textContent`)
	b.server.do("PATCH", collection+"/r1", `{"paused":true}`, http.StatusOK)
	expect(b, []string{"4 active", "2 paused", "0 disabled"}, counts)
	b.server.do("PATCH", collection+"/r1", `{"paused":false}`, http.StatusOK)
	b.goTo("label.team=risk", "Relayers")
	expect(b, []string{"2 active", "0 paused", "0 disabled"}, counts)
	b.goTo("network=mainnet&network=nowhere&label.team=nobody&search=x", "Relayers")
	b.expectText("No relayer has network=nowhere or label.team=nobody.")
	b.goTo("page=1", "Relayers")
	expect(b, "", `document.getElementById('filter-absent').textContent`)
	expect(b, []string{"5 active", "1 paused", "0 disabled"}, counts)
	b.press("1 paused")
	expect(b, []string{"r6"}, rowIDs)
	expect(b, "#page=1&paused=true", `location.hash`)

	b.fill("s", "Network")
	const options = `['network', 'signer', 'label'].map((name) => [...document.querySelectorAll('#known-' + name + ' option')].map((option) => option.value).join(' '))`
	expect(b, []string{"mainnet sepolia", "cold hot", "label.team=payments label.team=risk label.tier=1"}, options)

	b.goTo("page=1&per_page=3", "Relayers")
	b.expectText("1–3 of 6 relayers")
	b.press("Show the newest")
	expect(b, []string{"r6", "r5", "r4"}, rowIDs)
	expect(b, false, `document.getElementById('newest').checkVisibility()`)
}

// TestAccessibility_Hover checks the contrast of buttons below the mouse.
func TestAccessibility_Hover(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	for _, scheme := range []string{"light", "dark"} {
		b.useScheme(scheme)
		for _, id := range []string{"create", "leave", "pause-all"} {
			at := evaluate[[]float64](b, `(({ left, top, width, height }) => [left + width / 2, top + height / 2])(document.getElementById(%s).getBoundingClientRect())`, id)
			b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
			expect(b, true, `document.getElementById(%s).matches(':hover')`, id)
			b.expectReadable(scheme + " " + id)
		}
	}
}

// TestList_NothingCut checks that labels and reasons are shown in full on a wide screen.
func TestList_NothingCut(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.server.do("POST", collection, `{"id":"treasury-mainnet-hot-wallet-1","name":"Treasury of the payments team","network":"arbitrum-sepolia","network_type":"evm","paused":true,
		"signer_id":"payments-treasury-hot","labels":{"team":"payments-settlement","stage":"production","region":"eu-central"}}`, http.StatusCreated)
	b.replaceInResponses(`"system_disabled":false`, `"system_disabled":true,"disabled_reason":{"type":"SequenceSyncFailed","details":"x"}`)
	b.run(chromedp.EmulateViewport(1280, 844))
	b.enter("Relayers")
	expect(b, []string{"region=eu-central", "stage=production", "team=payments-settlement"}, `[...document.querySelectorAll('#rows .chips > *')].filter((e) => e.checkVisibility()).map((e) => e.textContent)`)
	expect(b, []string{}, `[...document.querySelectorAll('#rows :is(.chip, .pill)')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent + ' ' + e.scrollWidth + ' in ' + e.clientWidth)`)
}

func TestEdit_PolicyBeforeLabels(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.press("Edit")
	expect(b, []string{"Policy", "Custom RPC URLs", "Labels"}, `[...document.querySelectorAll('#edit-fields > details > summary')].map((e) => e.textContent)`)
	b.run(chromedp.EmulateViewport(1280, 844))
	expect(b, true, `document.querySelector('#edit-fields > details > summary').getBoundingClientRect().top < 600`)
}

// TestAccess_Narrowed checks that the form of a narrowed token begins with what its selector
// demands, that an error of the selector leads to the field, and what the page says of a
// relayer outside.
func TestAccess_Narrowed(t *testing.T) {
	t.Parallel()
	const narrowed = "narrowed-token-0123456789"
	file := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, file, "ops "+token+"\npayments "+narrowed+" write network=mainnet,network_type=evm,label.team=payments|risk\n")
	b := open(t, "--tokens-file", file)
	b.server.create("outside", "Outside")
	b.enterToken(narrowed, "Relayers")
	b.goTo("relayer=outside", "There is no relayer outside")
	b.expectText("It was deleted, or the ID in the address is wrong. Or it is outside of what this token may see: label.team=payments|risk,network=mainnet,network_type=evm.")
	b.goTo("new", "New relayer")
	b.expectText("This token may create only relayers with label.team=payments|risk,network=mainnet,network_type=evm.")
	expect(b, "mainnet", findControl+`.value`, []string{"Network, required"})
	expect(b, "evm", findControl+`.value`, []string{"Network type, required"})
	expect(b, "payments", findControl+`.value`, []string{"Labels", "Label 1", "Value"})
	b.fill("Treasury", "Name, required")
	b.fill("s", "Signer ID, required")
	b.fill("sepolia", "Network, required")
	b.press("Labels", "Label 1", "Remove label 1")
	b.press("Create the relayer")
	b.expectText("The relayer was not created")
	b.press(`Labels: team must be "payments" or "risk", to which the access is limited`)
	expect(b, "Labels", `document.activeElement.closest('details').firstElementChild.textContent`)
	b.press(`Network: must be "mainnet", to which the access is limited`)
	expect(b, "Network, required", `document.activeElement.labels[0].textContent`)
	b.fill("mainnet", "Network, required")
	b.press("Labels", "Add a label")
	b.fill("team", "Labels", "Label 1", "Key")
	b.fill("risk", "Labels", "Label 1", "Value")
	b.press("Create the relayer")
	b.expectTitle("Treasury")
}

// TestHealth_Buttons checks that a token with both roles can disable and enable.
func TestHealth_Buttons(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, file, "oncall "+token+" write+engine\nops ops-token-0123456789 write\n")
	b := open(t, "--tokens-file", file)
	b.server.create("one", "One")
	const shown = `['pause', 'disable', 'enable'].filter((id) => document.getElementById(id).checkVisibility())`
	b.enter("Relayers")
	b.goTo("relayer=one", "One")
	expect(b, []string{"pause", "disable"}, shown)
	b.press("Disable")
	b.expectDialog("Disable One?")
	b.press("Disable the relayer")
	b.expectText("Not disabled: type must not be empty")
	b.fill("RpcValidationFailed", "Reason, required")
	b.fill("the node is behind", "Details")
	b.press("Disable the relayer")
	b.expectStatus("One is disabled")
	b.expectText("RpcValidationFailed: the node is behind")
	expect(b, []string{"pause", "disable", "enable"}, shown)
	b.press("Enable")
	b.expectStatus("One is enabled")
	expect(b, []string{"pause", "disable"}, shown)
	b.do(`document.getElementById('leave').click()`)
	b.goTo("page=1", "Sign in")
	b.enterToken("ops-token-0123456789", "Relayers")
	b.goTo("relayer=one", "One")
	expect(b, []string{"pause"}, shown)
}
