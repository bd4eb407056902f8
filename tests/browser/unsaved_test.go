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
	b.typeInto("!", "Name *")
	b.expectQuestion(leaveQuestion, false, `location.reload()`)
	b.expectQuestion(leaveQuestion, false, `location.href = 'about:blank'`)
	b.expectDialog("Edit Full evm")
	expect(b, "Full evm!", findControl+`.value`, []string{"Name *"})
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
	b.typeInto("New", "Name *")
	b.goTo("page=1", "Relayers")
	b.expectQuestion(leaveQuestion, false, `location.reload()`)
	b.run(chromedp.NavigateBack())
	b.expectTitle("New relayer")
	expect(b, "New", findControl+`.value`, []string{"Name *"})
	b.expectQuestion(discardQuestion, false, `document.getElementById('leave').click()`)
	b.expectTitle("New relayer")
	b.expectQuestion(discardQuestion, true, `document.getElementById('leave').click()`)
	b.enter("New relayer")
	expect(b, "", findControl+`.value`, []string{"Name *"})
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
		b.typeInto("!", "Name *")
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
		expect(b, "Full "+id+"!", findControl+`.value`, []string{"Name *"})
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
	b.typeInto("!", "Name *")
	b.goTo("page=1", "Relayers")
	b.server.do("PATCH", collection+"/evm", `{"paused":true}`, http.StatusOK)
	b.goTo("relayer=evm", "Full evm")
	b.expectText("This relayer was changed since you opened the form. When you save, the page shows what changed.")
	b.press("Save")
	b.expectConflict("paused")
	b.goTo("page=1", "Relayers")
	b.goTo("relayer=evm", "Full evm")
	b.expectDialog("Edit Full evm")
	b.expectText(unsavedNote)
	b.press("Cancel")
	b.expectDialog("")
	b.goTo("page=1", "Relayers")
	b.goTo("relayer=evm", "Full evm")
	b.expectDialog("")
	b.run(chromedp.Reload())
	b.expectTitle("Sign in")
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
		b.fill("", "Name *")
		b.holdResponse(c.method)
		b.press(c.button)
		b.expectHeld()
		b.do(findControl+`.focus()`, []string{"Name *"})
		b.keys("lost")
		expect(b, "", findControl+`.value`, []string{"Name *"})
		b.do(`release()`)
		b.expectText(c.problem)
		b.expectError("must not be empty", "Name *")
		expect(b, "summary", `document.activeElement.className`)
		b.fill("Right", "Name *")
		expect(b, "Right", findControl+`.value`, []string{"Name *"})
		b.do(`location.hash = 'page=1'`)
	}
}

// TestUnsaved_Deleted checks that the page mentions an edit that can no longer be saved.
func TestUnsaved_Deleted(t *testing.T) {
	t.Parallel()
	const lost = "It was deleted, or the ID in the address is wrong. Your changes are not saved."
	b := openFull(t, "evm")
	b.edit("evm")
	b.typeInto("!", "Name *")
	b.server.do("DELETE", collection+"/evm", "", http.StatusOK)
	b.press("Save")
	b.expectText(lost)
	b.goTo("relayer=stellar", "Full stellar")
	b.edit("stellar")
	b.typeInto("!", "Name *")
	b.goTo("page=1", "Relayers")
	b.server.do("DELETE", collection+"/stellar", "", http.StatusOK)
	b.goTo("relayer=stellar", "There is no relayer stellar")
	b.expectText(lost)
	b.run(chromedp.Reload())
	b.expectTitle("Sign in")
}
