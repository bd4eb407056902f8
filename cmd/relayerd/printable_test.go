package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
)

// hostile controls a terminal in several ways: as C0 and C1 controls, a mark of direction, a
// character outside of the first plane, and lines.
const hostile = "a\u009b31m\u202eb\x1b[2J\r\n\U000e0001\tc"

// hostileServer has a relayer and changes with hostile texts. Its failures have them too.
func hostileServer(t *testing.T, isFailing bool) string {
	t.Helper()
	text, _ := json.Marshal(hostile)
	one := fmt.Sprintf(`{"id":"r-1","name":%s,"network":"x","network_type":"evm","paused":false,"signer_id":%[1]s,"labels":{"team":"\u202e"}}`, text)
	change := fmt.Sprintf(`{"revision":2,"time":"2026-01-02T03:04:05Z","actor":%s,"action":%[1]s,"reason":%[1]s,"request_id":%[1]s,"changed":[%[1]s,"paused"]`, text)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"2"`)
		switch {
		case isFailing || r.Method != http.MethodGet:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"success":false,"data":null,"message":%s,"errors":[{"field":%[1]s,"message":%[1]s}]}`, text)
		case strings.Contains(r.URL.Path, "history"):
			fmt.Fprintf(w, `{"success":true,"data":[%s,"id":%s,"relayer":%s},%[1]s,"id":"gone","relayer":null}]}`, change, text, one)
		default:
			fmt.Fprintf(w, `{"success":true,"data":[%s],"pagination":{"current_page":1,"per_page":100,"total_items":1},"position":"1"}`, one)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// No command lets the text of others control the terminal.
func TestCommands_HostileText(t *testing.T) {
	t.Parallel()
	file, broken := configuration(t, definition), newFile(t, `{"relayers":[{"id":"a","\u009b31m\u202e":1}]}`)
	for _, isFailing := range []bool{false, true} {
		url := hostileServer(t, isFailing)
		for _, line := range []string{"history", "history r-1", "plan -f " + file, "plan --prune -f " + file, "apply --yes -f " + file, "plan -f " + broken, "pause --all"} {
			done := finishHere(t, token, append(strings.Fields(line), "--server", url)...)
			shown := done.stdout + done.stderr
			if at := strings.IndexFunc(shown, func(char rune) bool { return char != '\n' && !unicode.IsPrint(char) }); at >= 0 || shown == "" {
				t.Errorf("%s printed %q", line, shown)
			}
		}
	}
	// JSON escapes what controls a terminal, and keeps its values.
	url := hostileServer(t, false)
	var change struct{ Actor, Reason string }
	text := runCommand(t, "history", "--json", "--server", url)
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&change); err != nil || change.Actor != hostile || change.Reason != hostile || strings.Contains(text, "\x1b") {
		t.Errorf("history: error %v: %s", err, text)
	}
}
