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
	one := fmt.Sprintf(`{"id":"r-1","name":%s,"network":"x","network_type":"evm","paused":false,"signer_id":%[1]s,"notification_id":%[1]s,"labels":{"team":"\u202e"}}`, text)
	change := fmt.Sprintf(`{"revision":2,"time":"2026-01-02T03:04:05Z","actor":%s,"action":%[1]s,"reason":%[1]s,"request_id":%[1]s,"changed":[%[1]s,"paused","system_disabled"]`, text)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"2"`)
		switch {
		case isFailing:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"success":false,"data":null,"message":%s,"errors":[{"field":%[1]s,"message":%[1]s}]}`, text)
		case strings.Contains(r.URL.Path, "history"):
			fmt.Fprintf(w, `{"success":true,"data":[%s,"id":%s,"relayer":%s},%[1]s,"id":"gone","relayer":null}]}`, change, text, one)
		case r.Method != http.MethodGet:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"success":false,"data":null,"message":%s,"errors":[{"field":"name","message":%[1]s}]}`, text)
		default:
			fmt.Fprintf(w, `{"success":true,"data":[%s],"pagination":{"current_page":1,"per_page":100,"total_items":1},"position":"1"}`, one)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// No command lets the text of others control the terminal, on its standard output or error.
func TestCommands_HostileText(t *testing.T) {
	t.Parallel()
	file := writeFile(t, `{"relayers":[`+definition+`]}`)
	broken := writeFile(t, `{"relayers":[{"id":"a","\u009b31m\u202e":1}]}`)
	for _, isFailing := range []bool{false, true} {
		url := hostileServer(t, isFailing)
		for _, args := range [][]string{
			{"history"}, {"history", "r-1"}, {"history", "--json"}, {"export"}, {"export", "--selector", "label.team=\u202e"}, {"plan", "-f", file}, {"plan", "-f", file, "--prune"},
			{"apply", "-f", file, "--yes"}, {"plan", "-f", broken}, {"apply", "-f", broken, "--yes"},
		} {
			done := finish(t, "", program(token, append(args, "--server", url)...))
			shown := done.stdout + done.stderr
			isHostile := func(char rune) bool { return char != '\n' && !unicode.IsPrint(char) }
			if at := strings.IndexFunc(shown, isHostile); at >= 0 {
				t.Errorf("%s printed the character %q: %q", args, shown[at:at+1], shown)
			}
			if done.status < 0 || strings.Contains(done.stderr, "panic") || shown == "" {
				t.Errorf("%s: exit status %d: %s", args, done.status, shown)
			}
		}
	}
}

// The escapes of JSON keep its values.
func TestCommands_HostileTextInJSON(t *testing.T) {
	t.Parallel()
	url := hostileServer(t, false)
	var exported struct{ Relayers []struct{ Name string } }
	done := expect(t, 0, "export", "--server", url)
	if err := json.Unmarshal([]byte(done.stdout), &exported); err != nil || len(exported.Relayers) != 1 || exported.Relayers[0].Name != hostile {
		t.Errorf("export: error %v: %s", err, done.stdout)
	}
	var change struct{ Actor, Reason string }
	done = expect(t, 0, "history", "--json", "--server", url)
	if err := json.NewDecoder(strings.NewReader(done.stdout)).Decode(&change); err != nil || change.Actor != hostile || change.Reason != hostile {
		t.Errorf("history: error %v: %s", err, done.stdout)
	}
}
