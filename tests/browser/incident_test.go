package browser

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
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
	expect(b, []string{"Relayer 5 (r5)", "Relayer 6 (r6)"}, bulkNames)
	expect(b, " – not paused by you: create by api-key", bulkChanges+`[1]`)
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

const bobToken = "bob-token-0123456789"

// openShared opens the list of relayers with the token of alice in the first window, and with
// that of bob in the second one.
func openShared(t *testing.T) (alice, bob *tab) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, file, "alice "+token+" write\nbob "+bobToken+" write\n")
	alice = openTeams(t, "--tokens-file", file)
	bob = alice.another()
	bob.enterToken(bobToken, "Relayers")
	return alice, bob
}

// pauseAll pauses the five relayers that are not paused.
func (b *tab) pauseAll() {
	b.t.Helper()
	b.press("Pause all 6…")
	b.expectDialog("Pause 5 relayers?")
	b.press("Pause 5 relayers")
	b.expectDialog("Done")
	b.press("Close")
}

// TestIncident_ChangedSince checks that a relayer that somebody else has resumed and paused
// again, or renamed, is not resumed with the others, and that the page shows who changed it.
func TestIncident_ChangedSince(t *testing.T) {
	t.Parallel()
	alice, bob := openShared(t)
	alice.pauseAll()
	bob.goTo("relayer=r1", "Relayer 1")
	bob.press("Resume")
	bob.expectStatus("Relayer 1 is resumed")
	bob.fill("key leaked, do not resume", "Reason for the change")
	bob.press("Pause")
	bob.expectStatus("Relayer 1 is paused")
	bob.goTo("relayer=r2", "Relayer 2")
	bob.press("Edit")
	bob.fill("Renamed", "Name, required")
	bob.saved("Renamed was changed")

	alice.press("Resume what I paused (5)…")
	alice.expectDialog("Resume 3 relayers?")
	alice.expectText("You paused 5 relayers. 2 not selected: changed since you paused them.")
	expect(alice, []string{"Relayer 3 (r3)", "Relayer 4 (r4)", "Relayer 5 (r5)"}, bulkChosen)
	expect(alice, []string{" – changed since: pause by bob. Reason: key leaked, do not resume", " – changed since: update by bob"}, bulkChanges+`.slice(0, 2)`)
	expect(alice, true, `/^ – pause by alice.* Reason: Bulk pause \d{4}-\d\d-\d\d \d\d:\d\d$/.test(`+bulkChanges+`[2])`)
	alice.press("Select all")
	alice.press("Select what I paused")
	alice.press("Resume 3 relayers")
	alice.expectDialog("Done")
	alice.press("Close")
	alice.expectPaused("r1", "r2", "r6")
}

// TestIncident_SameToken checks that a pause with the same token in another window is not the
// user's.
func TestIncident_SameToken(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.pauseAll()
	for _, paused := range []string{"false", "true"} {
		b.server.do("PATCH", collection+"/r1", `{"paused":`+paused+`}`, http.StatusOK)
	}
	b.press("Resume what I paused (5)…")
	b.expectText("1 not selected: changed since you paused it.")
	expect(b, " – changed since: pause by api-key", bulkChanges+`[0]`)
}

// TestIncident_PausedMeanwhile checks that a relayer that somebody else has paused before the
// pause arrives is not the user's.
func TestIncident_PausedMeanwhile(t *testing.T) {
	t.Parallel()
	alice, bob := openShared(t)
	alice.press("Pause all 6…")
	alice.expectDialog("Pause 5 relayers?")
	bob.goTo("relayer=r1", "Relayer 1")
	bob.press("Pause")
	bob.expectStatus("Relayer 1 is paused")
	alice.press("Pause 5 relayers")
	alice.expectText("5 relayers paused.")
	alice.press("Close")
	alice.press("Resume what I paused (4)…")
	expect(alice, []string{"Relayer 2 (r2)", "Relayer 3 (r3)", "Relayer 4 (r4)", "Relayer 5 (r5)"}, bulkNames)
}

// TestIncident_UnknownOutcome checks that a pause whose response is lost is remembered, unless
// the relayer is not paused.
func TestIncident_UnknownOutcome(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	b.loseResponse()
	b.press("Pause all 6…")
	b.expectDialog("Pause 5 relayers?")
	b.press("Pause 5 relayers")
	b.expectText("0 relayers paused, 1 not paused, 4 not tried.")
	expect(b, []string{"Relayer 1 (r1): it is not known whether it was changed"}, bulkNames)
	b.press("Close")
	b.press("Resume what I paused (1)…")
	b.expectDialog("Resume 1 relayer?")
	b.press("Resume 1 relayer")
	b.expectDialog("Done")
	b.press("Close")
	b.expectPaused("r6")

	b.goTo("page=1", "Relayers")
	b.expectText("1–6 of 6 relayers")
	b.press("Pause all 6…")
	b.expectDialog("Pause 5 relayers?")
	b.do(`(() => {
		const send = fetch;
		window.fetch = (url, request) => {
			if (request.method !== 'PATCH') return send(url, request);
			window.fetch = send;
			return Promise.reject(new TypeError('Failed to fetch'));
		};
	})()`)
	b.press("Pause 5 relayers")
	b.expectText("0 relayers paused, 1 not paused, 4 not tried.")
	b.press("Close")
	b.press("Resume what I paused (1)…")
	b.expectText("Nothing to resume. You paused 1 relayer. 1 of 1 already resumed.")
	b.press("Close")
	expect(b, false, `document.getElementById('resume-mine').checkVisibility()`)
}

// TestIncident_Reason checks that the next person on call can resume what was paused together:
// by the reason of the pauses.
func TestIncident_Reason(t *testing.T) {
	t.Parallel()
	alice, bob := openShared(t)
	alice.pauseAll()
	bob.press("Resume all 6…")
	bob.expectDialog("Resume 6 relayers?")
	reason := evaluate[string](bob, `document.querySelector('#bulk-reason option:nth-child(2)').textContent`)
	if !regexp.MustCompile(`^Bulk pause \d{4}-\d\d-\d\d \d\d:\d\d \(5\)$`).MatchString(reason) {
		t.Errorf("the page offers the reason %q", reason)
	}
	bob.choose(reason, "Select those paused with this reason")
	expect(bob, []string{"Relayer 1 (r1)", "Relayer 2 (r2)", "Relayer 3 (r3)", "Relayer 4 (r4)", "Relayer 5 (r5)"}, bulkChosen)
	bob.press("Resume 5 relayers")
	bob.expectDialog("Done")
	bob.press("Close")
	bob.expectPaused("r6")
}

// TestIncident_Keyboard pauses the relayers of a team on a network, finds who changed one, and
// resumes only these, with the keyboard only.
func TestIncident_Keyboard(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			t.Run(fmt.Sprint(scheme, width), func(t *testing.T) {
				t.Parallel()
				b := openTeams(t)
				b.useScheme(scheme)
				b.run(chromedp.EmulateViewport(width, 844))
				b.loadAxe()
				b.pauseByKeys()
				b.findChangeByKeys()
				b.resumeByKeys()
				b.expectPaused("r6")
			})
		}
	}
}

func (b *tab) pauseByKeys() {
	b.t.Helper()
	b.do(`document.getElementById('list-title').focus()`)
	b.tabTo("Network")
	b.keys("mainnet")
	b.tabTo("Labels")
	b.keys("team=payments" + kb.Enter)
	expect(b, []string{"r4", "r6"}, rowIDs)
	b.expectAccessible("selected list")
	b.tabTo("Pause all 2…")
	b.keys(kb.Enter)
	b.expectDialog("Pause 1 relayer?")
	b.expectAccessible("pause")
	b.tabTo("Reason for the change")
	b.keys("incident 42")
	b.tabTo("Pause 1 relayer")
	b.keys(kb.Enter)
	b.expectDialog("Done")
	b.expectAccessible("paused")
	b.keys(kb.Escape)
	b.expectDialog("")
}

func (b *tab) findChangeByKeys() {
	b.t.Helper()
	b.do(`document.getElementById('list-title').focus()`)
	b.tabTo("Relayer 4")
	b.keys(kb.Enter)
	b.expectTitle("Relayer 4")
	expect(b, true, `/^Last change: pause by api-key, .* Reason: incident 42$/.test(document.getElementById('one-change').textContent)`)
	b.expectAccessible("relayer")
	b.tabTo("Details")
	b.keys(kb.Enter)
	expect(b, true, `document.querySelector('dialog[open] h2')?.textContent.startsWith('Revision ')`)
	b.expectText("Reason: incident 42")
	expect(b, [][]string{{"Paused", "No", "Yes"}}, changeRows)
	b.expectAccessible("change")
	b.keys(kb.Escape)
	b.expectDialog("")
	b.tabTo("Back to the list", kb.ModifierShift)
	b.keys(kb.Enter)
	b.expectTitle("Relayers")
}

func (b *tab) resumeByKeys() {
	b.t.Helper()
	b.do(`document.getElementById('list-title').focus()`)
	b.tabTo("Resume what I paused (1)…")
	b.keys(kb.Enter)
	b.expectDialog("Resume 1 relayer?")
	b.expectAccessible("resume")
	b.tabTo("Relayer 4 (r4)")
	b.keys("  ") // off and on again
	b.tabTo("Resume 1 relayer")
	b.keys(kb.Enter)
	b.expectDialog("Done")
	b.expectAccessible("resumed")
	b.tabTo("Close")
	b.keys(kb.Enter)
	b.expectDialog("")
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

	b.goTo("page=1&per_page=3", "Relayers")
	b.expectText("1–3 of 6 relayers")
	b.press("Show the newest")
	expect(b, []string{"r6", "r5", "r4"}, rowIDs)
	expect(b, false, `document.getElementById('newest').checkVisibility()`)
}

// TestFilter_Suggestions checks that the filters suggest the values of relayers in the notation
// of selectors: after a failure, and also those of new relayers.
func TestFilter_Suggestions(t *testing.T) {
	t.Parallel()
	b := openTeams(t)
	const options = `['network', 'signer', 'label'].map((name) => [...document.querySelectorAll('#known-' + name + ' option')].map((option) => option.value).join(' '))`
	b.do(`(() => {
		const send = fetch;
		window.fetch = (url, request) => {
			if (!url.includes('after=')) return send(url, request);
			window.fetch = send;
			window.failed = true;
			return Promise.resolve(new Response('{}', { status: 503 }));
		};
	})()`)
	b.fill("s", "Network")
	expect(b, true, `window.failed`)
	expect(b, []string{"mainnet sepolia", "cold hot", "label.team=payments label.team=risk label.tier=1"}, `(document.getElementById('filter-search').focus(), document.getElementById('filter-network').focus(), `+options+`)`)

	b.server.do("POST", collection, `{"id":"odd","name":"Odd","network":"one,two|three","network_type":"evm","paused":false,"signer_id":"50% hot"}`, http.StatusCreated)
	expect(b, 7, rowIDs+`.length`)
	expect(b, []string{"mainnet one%2Ctwo%7Cthree sepolia", "50%25%20hot cold hot"}, `(document.getElementById('filter-search').focus(), `+options+`.slice(0, 2))`)
	b.fill("one%2Ctwo%7Cthree|mainnet", "Network")
	b.fill("50%25%20hot", "Signer ID")
	b.press("Filter")
	expect(b, []string{"odd"}, rowIDs)
	expect(b, "#page=1&network=one%2Ctwo%7Cthree&network=mainnet&signer_id=50%25+hot", `location.hash`)
	expect(b, []string{"one%2Ctwo%7Cthree|mainnet", "50%25%20hot"}, `['network', 'signer'].map((name) => document.getElementById('filter-' + name).value)`)
}

// expectReadableHovered moves the mouse to each visible button and link of the view in turn, and
// checks the contrast of its text. A filter would change colors that the check reads.
func (b *tab) expectReadableHovered(view string) {
	b.t.Helper()
	const controls = `[...(document.querySelector('dialog[open]') ?? document).querySelectorAll('button, .button, a')].filter((e) => e.checkVisibility() && !e.disabled)`
	for i := range evaluate[int](b, controls+`.length`) {
		at := evaluate[[]float64](b, `((e) => {
			e.scrollIntoView({ block: 'center' });
			const { left, top, width, height } = (window.below = e).getClientRects()[0];
			return [left + width / 2, top + height / 2];
		})(`+controls+`[%s])`, i)
		b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
		expect(b, true, `below.matches(':hover')`)
		name := fmt.Sprintf("%s, below the mouse: %s", view, evaluate[string](b, `below.outerHTML`))
		b.expectReadable(name)
		if evaluate[string](b, `getComputedStyle(below).filter`) != "none" {
			b.t.Errorf("%s has a filter", name)
		}
	}
}

// TestAccessibility_Hover checks the contrast of buttons and links below the mouse.
func TestAccessibility_Hover(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			b := openTeams(t)
			b.useScheme(scheme)
			b.run(chromedp.EmulateViewport(1280, 844))
			b.goTo("page=1&per_page=3&label.team=payments", "Relayers")
			b.expectText("1–3 of 4 relayers selected")
			b.expectReadableHovered("list")
			b.press("Pause all 4…")
			b.expectDialog("Pause 3 relayers?")
			b.expectReadableHovered("pause")
			b.press("Cancel")
			b.goTo("relayer=r1", "Relayer 1")
			expect(b, 1, historyRows+`.length`)
			b.expectReadableHovered("relayer")
			b.press("Edit")
			b.fill("", "Name, required")
			b.press("Save")
			b.expectError("must not be empty", "Name, required")
			b.expectReadableHovered("edit")
			b.press("Cancel")
			b.press("Delete")
			b.expectReadableHovered("delete")
		})
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

// TestForms_PolicyBeforeLabels checks that lists, which may be long, do not hide the policy.
func TestForms_PolicyBeforeLabels(t *testing.T) {
	t.Parallel()
	const sections = `[...document.querySelectorAll(%s + ' > details > summary')].filter((e) => e.checkVisibility()).map((e) => e.textContent)`
	want := []string{"Policy", "Custom RPC URLs", "Labels"}
	b := openFull(t, "evm")
	b.press("Edit")
	expect(b, want, sections, "#edit-fields")
	b.run(chromedp.EmulateViewport(1280, 844))
	expect(b, true, `document.querySelector('#edit-fields > details > summary').getBoundingClientRect().top < 600`)
	b.press("Cancel")
	b.goTo("new", "New relayer")
	b.choose("stellar", "Network type, required")
	expect(b, want, sections, "#new-form")
}

// TestAccess_Narrowed checks that the form of a narrowed token begins with what its selector
// demands, that an error of the selector leads to the field, and what the page says of a
// relayer outside.
func TestAccess_Narrowed(t *testing.T) {
	t.Parallel()
	const narrowed = "narrowed-token-0123456789"
	file := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, file, "ops "+token+" write\npayments "+narrowed+" write network=mainnet,network_type=evm,label.team=payments|risk\n")
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
