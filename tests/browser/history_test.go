package browser

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// reasonOf returns who changed a relayer last, how and why.
func (s *server) reasonOf(id string) string {
	s.t.Helper()
	var envelope struct {
		Data []struct{ Actor, Action, Reason string }
	}
	if err := json.Unmarshal([]byte(s.do("GET", collection+"/"+id+"/history?per_page=1", "", http.StatusOK)), &envelope); err != nil || len(envelope.Data) != 1 {
		s.t.Fatalf("%+v, error %v", envelope, err)
	}
	last := envelope.Data[0]
	return last.Actor + " " + last.Action + " " + last.Reason
}

// TestReason gives a reason for every kind of change.
func TestReason(t *testing.T) {
	t.Parallel()
	const field = "Reason for the change"
	file := t.TempDir() + "/tokens"
	writeFile(t, file, "alice "+token+" write+engine\n")
	b := open(t, "--tokens-file", file)
	b.fillServer()
	want := func(id, want string) {
		t.Helper()
		if got := b.server.reasonOf(id); got != want {
			t.Errorf("the last change of %s is %q, want %q", id, got, want)
		}
	}
	b.goTo("relayer=evm", "Sign in")
	b.enter("Full evm")
	b.fill("Störung 42\t✓", field)
	b.press("Pause")
	b.expectStatus("Full evm is paused")
	want("evm", "alice pause Störung 42 ✓")
	expect(b, true, `/^Last change: pause by alice, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\. Reason: Störung 42 ✓$/.test(document.getElementById('one-change').textContent)`)
	b.press("Resume")
	b.expectStatus("Full evm is resumed")
	want("evm", "alice resume ")
	b.edit("evm")
	b.fill("Renamed", "Name, required")
	b.fill(strings.Repeat("x", 300), field)
	b.saved("Renamed was changed")
	want("evm", "alice update "+strings.Repeat("x", 256))
	b.press("Disable")
	b.fill("RpcValidationFailed", "Reason, required")
	b.fill("the node is down", field)
	b.press("Disable the relayer")
	b.expectStatus("Renamed is disabled")
	want("evm", "alice disable the node is down")
	b.fill("the node is up", field)
	b.press("Enable")
	b.expectStatus("Renamed is enabled")
	want("evm", "alice enable the node is up")
	b.press("Delete")
	b.fill("evm", "Type the ID to confirm")
	b.fill("not used", field)
	b.press("Delete the relayer")
	b.expectTitle("Relayers")
	b.expectStatus("Renamed was deleted")
	want("evm", "alice delete not used")
	b.press("Pause all 3…")
	b.expectDialog("Pause 2 relayers?")
	b.fill("incident 43", field)
	b.press("Pause 2 relayers")
	b.expectDialog("Done")
	b.press("Close")
	want("long", "alice pause incident 43")
	want("stellar", "alice pause incident 43")
	b.server.do("PATCH", collection+"/long", `{"name":"Short"}`, http.StatusOK)
	expect(b, true, `/^PausedAlice/i.test(document.querySelector('#rows tr[data-id=long] td:nth-child(3)').textContent)`)
}

const changeRows = `[...document.querySelectorAll('#change-table tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))`

// TestHistory_Page finds who paused a relayer, restores a version, and creates a deleted one
// again.
func TestHistory_Page(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.fillServer()
	b.server.do("PATCH", collection+"/evm", `{"name":"Renamed","paused":true,"policies":{"gas_price_cap":7}}`, http.StatusOK)
	b.goTo("relayer=evm", "Sign in")
	b.enter("Renamed")
	const rows = `[...document.querySelectorAll('main > section:not([hidden]) tr[data-revision]')].map((row) => [...row.children].slice(1, 3).map((cell) => cell.textContent).join(' '))`
	expect(b, []string{"api-key update", "api-key create"}, rows)
	b.do(`document.querySelectorAll('#one-history button[aria-label]')[1].click()`)
	b.expectText("The relayer was created.")
	b.press("Restore this version")
	b.expectDialog("Edit Renamed")
	b.saved("Full evm was changed")
	if got := b.server.stored("evm"); got.Name != "Full evm" || !got.Paused || !strings.Contains(string(got.Policies), "100000000000") {
		t.Errorf("restored %+v, policies %s", got, got.Policies)
	}
	b.server.do("DELETE", collection+"/evm", "", http.StatusOK)
	b.goTo("changes=&action=delete", "Changes")
	expect(b, []string{"evm api-key"}, rows)
	b.do(`document.querySelector('#changes-rows button[aria-label]').click()`)
	b.expectText("must be entered again")
	b.press("Create it again")
	b.expectTitle("New relayer")
	b.press("Create the relayer")
	b.expectTitle("Full evm")
}
