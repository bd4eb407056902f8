package browser

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

const (
	leaveQuestion   = "beforeunload "
	discardQuestion = "confirm You have changes that are not saved. Discard them and sign out?"
	unsavedNote     = "You have changes that are not saved. Save them, or press Cancel to discard them."
)

// typeInto types a text at the end of a field. A browser asks before it leaves the page
// only if the user has used the page.
func (b *tab) typeInto(text string, path ...string) {
	b.t.Helper()
	b.do(`(() => { const c = `+findControl+`; c.focus(); c.setSelectionRange(c.value.length, c.value.length); })()`, path)
	b.keys(text)
}

// TestUnsaved_Edit checks that the browser asks before an edit is lost.
func TestUnsaved_Edit(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.edit("evm")
	b.typeInto("!", "Name, required")
	b.expectQuestion(leaveQuestion, false, `location.reload()`)
	b.expectQuestion(leaveQuestion, false, `location.href = 'about:blank'`)
	b.expectDialog("Edit Full evm")
	expect(b, "Full evm!", findControl+`.value`, []string{"Name, required"})
	b.expectQuestion(leaveQuestion, true, `location.reload()`)
	b.expectTitle("Sign in")
}

// TestUnsaved_Create checks the same for the form of a new relayer, and that the form
// is kept while the user opens another view.
func TestUnsaved_Create(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.enter("Relayers")
	b.goTo("new", "New relayer")
	b.typeInto("New", "Name, required")
	b.goTo("page=1", "Relayers")
	b.expectQuestion(leaveQuestion, false, `location.reload()`)
	b.run(chromedp.NavigateBack())
	b.expectTitle("New relayer")
	expect(b, "New", findControl+`.value`, []string{"Name, required"})
	b.expectQuestion(discardQuestion, false, `document.getElementById('leave').click()`)
	b.expectTitle("New relayer")
	b.expectQuestion(discardQuestion, true, `document.getElementById('leave').click()`)
	b.enter("New relayer")
	expect(b, "", findControl+`.value`, []string{"Name, required"})
}

// TestUnsaved_NoChange checks that the page asks nothing without a change: the test
// fails if there is a question.
func TestUnsaved_NoChange(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.edit("evm")
	b.typeInto("!", "Name, required")
	b.saved("Full evm! was changed")
	b.edit("evm!")
	b.run(chromedp.Reload())
	b.enter("Full evm!")
	b.press("Edit")
	b.typeInto("!", "Name, required")
	b.press("Cancel")
	b.begin("created", "evm")
	b.press("Create the relayer")
	b.expectTitle("Relayer created")
	b.run(chromedp.Reload())
	b.expectTitle("Sign in")
}

// TestUnsaved_Back checks that the edits of two relayers survive the back button.
func TestUnsaved_Back(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.goTo("page=1", "Relayers")
	for _, id := range []string{"evm", "stellar"} {
		b.press("Full " + id)
		b.expectTitle("Full " + id)
		b.edit(id)
		b.typeInto("!", "Name, required")
		b.run(chromedp.NavigateBack())
		b.expectTitle("Relayers")
		b.expectDialog("")
		b.expectStatus("Your changes to Full " + id + " are not saved. Open it again to save or discard them.")
	}
	b.expectQuestion(leaveQuestion, false, `location.reload()`)
	for _, id := range []string{"evm", "stellar"} {
		b.goTo("relayer="+id, "Full "+id)
		b.expectDialog("Edit Full " + id)
		b.expectText(unsavedNote)
		expect(b, "Full "+id+"!", findControl+`.value`, []string{"Name, required"})
		b.saved("Full " + id + "! was changed")
	}
	b.goTo("page=1", "Relayers")
	b.goTo("relayer=evm", "Full evm!")
	b.expectDialog("")
	b.run(chromedp.Reload())
	b.expectTitle("Sign in")
}

// TestUnsaved_BackWithConflict checks that an edit that is kept is compared with the
// revision that another client has stored meanwhile.
func TestUnsaved_BackWithConflict(t *testing.T) {
	t.Parallel()
	b := openFull(t, "evm")
	b.edit("evm")
	b.typeInto("!", "Name, required")
	b.goTo("page=1", "Relayers")
	b.server.do("PATCH", collection+"/evm", `{"paused":true}`, http.StatusOK)
	b.goTo("relayer=evm", "Full evm")
	b.expectText("This relayer was changed since you opened the form. When you save, the page shows what changed.")
	b.press("Save")
	conflict := [][]string{{"Name", "Full evm", "Full evm", "Full evm!"}, {"Paused", "No", "Yes", "Not changed by you"}}
	b.expectConflict(conflict...)
	b.goTo("page=1", "Relayers")
	b.goTo("relayer=evm", "Full evm")
	b.expectDialog("Edit Full evm")
	b.press("Save")
	b.expectConflict(conflict...)
	b.press("Discard my change")
	b.expectDialog("")
	b.goTo("page=1", "Relayers")
	b.goTo("relayer=evm", "Full evm")
	b.expectDialog("")
	b.run(chromedp.Reload())
	b.expectTitle("Sign in")
}

// TestUnsaved_BackWhileSending checks that an edit is kept until its response arrives,
// and only if it is not stored.
func TestUnsaved_BackWhileSending(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "Edit Full evm", "Sent": ""} {
		b := openFull(t, "evm")
		b.edit("evm")
		b.fill(name, "Name, required")
		b.holdResponse("PATCH")
		b.press("Save")
		b.expectHeld()
		b.goTo("page=1", "Relayers")
		b.release()
		b.do(`location.hash = 'relayer=evm'`)
		b.expectDialog(want)
	}
}

// TestUnsaved_Sending checks that the user cannot enter a text that the response would
// discard, and can enter one again after a refusal.
func TestUnsaved_Sending(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, button, problem string
		open                    func(*tab)
	}{
		{"PATCH", "Save", "The relayer was not changed", func(b *tab) { b.edit("evm") }},
		{"POST", "Create the relayer", "The relayer was not created", func(b *tab) { b.begin("new", "evm") }},
	} {
		b := openFull(t, "evm")
		c.open(b)
		b.fill("", "Name, required")
		b.holdResponse(c.method)
		b.press(c.button)
		b.expectHeld()
		b.do(findControl+`.focus()`, []string{"Name, required"})
		b.keys("lost")
		expect(b, "", findControl+`.value`, []string{"Name, required"})
		b.do(`release()`)
		b.expectText(c.problem)
		b.expectError("must not be empty", "Name, required")
		expect(b, "summary", `document.activeElement.className`)
		b.fill("Right", "Name, required")
		expect(b, "Right", findControl+`.value`, []string{"Name, required"})
		b.do(`location.hash = 'page=1'`)
	}
}

// TestUnsaved_Deleted checks that the page mentions an edit that can no longer be saved.
func TestUnsaved_Deleted(t *testing.T) {
	t.Parallel()
	const lost = "It was deleted, or the ID in the address is wrong. Your changes are not saved."
	b := openFull(t, "evm")
	b.edit("evm")
	b.typeInto("!", "Name, required")
	b.server.do("DELETE", collection+"/evm", "", http.StatusOK)
	b.press("Save")
	b.expectText(lost)
	b.goTo("relayer=stellar", "Full stellar")
	b.edit("stellar")
	b.typeInto("!", "Name, required")
	b.goTo("page=1", "Relayers")
	b.server.do("DELETE", collection+"/stellar", "", http.StatusOK)
	b.goTo("relayer=stellar", "There is no relayer stellar")
	b.expectText(lost)
	b.run(chromedp.Reload())
	b.expectTitle("Sign in")
}
