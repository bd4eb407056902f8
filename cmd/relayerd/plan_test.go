package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode"
)

// publicConfig is a configuration file of OpenZeppelin Relayer. The password is the
// secret of its URLs.
const publicConfig = `{
  "relayers": [
    {"id": "sepolia-example", "name": "Sepolia Example", "network": "sepolia", "paused": false, "signer_id": "local-signer",
     "network_type": "evm", "custom_rpc_urls": ["https://rpc.example/` + password + `", {"url": "https://backup.example/${KEY}", "weight": 5}], "policies": {"min_balance": 1e21}},
    {"id": "solana-example", "name": "Solana Example", "network": "devnet", "paused": false, "signer_id": "local-signer", "network_type": "solana"}
  ],
  "signers": [{"id": "local-signer", "type": "local"}],
  "notifications": [], "networks": "./networks", "plugins": []
}`

const noRelayers = `{"relayers":[]}`

// emptyServer starts a server without relayers, and returns its URL.
func emptyServer(t *testing.T, flags ...string) string {
	t.Helper()
	server := startMemory(t, append(flags, "--rate", "0")...)
	t.Cleanup(server.stop)
	return server.url
}

// configuration is a file of these relayers.
func configuration(t *testing.T, relayers ...string) (path string) {
	t.Helper()
	return newFile(t, `{"relayers":[`+strings.Join(relayers, ",")+`]}`)
}

func TestPlan_Apply(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), newFile(t, publicConfig)
	const wantPlan = `+ create sepolia-example
    custom_rpc_urls: [{"url":"https://rpc.example/***","weight":100},{"url":"https://backup.example/***","weight":5}]
    name: "Sepolia Example"
    network: "sepolia"
    network_type: "evm"
    paused: false
    policies.min_balance: 1000000000000000000000
    signer_id: "local-signer"
+ create solana-example
    name: "Solana Example"
    network: "devnet"
    network_type: "solana"
    paused: false
    policies.fee_payment_strategy: "user"
    signer_id: "local-signer"
2 to create, 0 to update, 0 to delete, 0 unchanged
`
	const wantWarnings = "ignored sections of the file: [\"networks\" \"notifications\" \"plugins\" \"signers\"]\nnot expanded without --expand-env: ${KEY}\n"
	if done := expect(t, 2, "plan", "--server", url, "--file", file); done.stdout != wantPlan || done.stderr != wantWarnings {
		t.Errorf("output %s, want %s, warnings %q", done.stdout, wantPlan, done.stderr)
	}
	paused, none := newFile(t, strings.Replace(publicConfig, `"paused": false`, `"paused": true`, 1)), newFile(t, noRelayers)
	moved := newFile(t, strings.ReplaceAll(publicConfig, `"devnet"`, `"testnet"`))
	for _, c := range []struct {
		args   string
		file   string
		status int
		want   string // a part of the output
	}{
		{"apply --yes", file, 0, "\n2 created, 0 updated, 0 deleted\n"},
		{"plan", file, 0, "0 to create, 0 to update, 0 to delete, 2 unchanged\n"},
		{"apply --yes", file, 0, "0 to create, 0 to update, 0 to delete, 2 unchanged\n"},
		{"plan", moved, 1, "! blocked solana-example\n    network: cannot be changed"},
		{"apply --yes", moved, 1, "relayerd: solana-example: invalid relayer: network cannot be changed"},
		{"plan --keep-paused", paused, 0, ""},
		{"plan", paused, 2, "    paused: false -> true\n"},
		{"plan", none, 0, "? extra solana-example (not in the file: kept)"},
		{"plan --prune --max-deletes 2", none, 2, "- delete solana-example"},
		{"apply --yes --prune", none, 1, "nothing is changed without --max-deletes"},
		{"apply --yes --prune --max-deletes 2", none, 0, "\n0 created, 0 updated, 2 deleted\n"},
	} {
		done := expect(t, c.status, append(strings.Fields(c.args), "--server", url, "-f", c.file)...)
		if !strings.Contains(done.stdout+done.stderr, c.want) {
			t.Errorf("%s: output %s%s, want %s", c.args, done.stdout, done.stderr, c.want)
		}
	}
	expectOutput(t, "{\n  \"relayers\": []\n}\n", "export", "--server", url) // after a prune
}

func TestPlan_ExpandEnv(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), newFile(t, publicConfig)
	command := program(token, "apply", "--yes", "--expand-env", "--server", url, "-f", file)
	if done := finish(t, "", command); done.status != 1 || !strings.Contains(done.stderr, "relayers[0].custom_rpc_urls[1].url refers to the environment variable KEY, which is not set") {
		t.Errorf("without the variable: %+v", done)
	}
	command = program(token, "apply", "--yes", "--expand-env", "--server", url, "-f", file)
	command.Env = append(command.Env, "KEY="+password+"-2")
	if done := finish(t, "", command); done.status != 0 || strings.Contains(done.stderr, "not expanded") {
		t.Errorf("with the variable: %+v", done)
	}
	expect(t, 0, "plan", "--server", url, "-f", newFile(t, strings.ReplaceAll(publicConfig, "${KEY}", password+"-2")))
}

// The configuration can come from the standard input, which cannot confirm then. The null device, of a
// service, is no terminal.
func TestApply_StandardInput(t *testing.T) {
	t.Parallel()
	url := emptyServer(t)
	for _, c := range []struct {
		status int
		args   string
	}{{2, "plan -f -"}, {1, "apply -f -"}, {0, "apply -f - --yes"}, {0, "plan -f -"}} {
		done := finish(t, publicConfig, program(token, append(strings.Fields(c.args), "--server", url)...))
		if done.status != c.status || c.status == 1 && !strings.Contains(done.stderr, "not a terminal: use --yes") {
			t.Errorf("%q: %+v, want status %d", c.args, done, c.status)
		}
	}
	output, err := program(token, "apply", "--server", url, "-f", newFile(t, publicConfig)).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "not a terminal: use --yes") {
		t.Errorf("with the null device: %s, error %v", output, err)
	}
}

// A plan that cannot be shown is an error, and is not applied. So is an export that cannot be
// written.
func TestPlan_FullDisk(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), newFile(t, publicConfig)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for args, want := range map[string]string{"plan -f " + file: "nothing was changed: write ", "apply --yes -f " + file: "nothing was changed: write ", "export": "no space"} {
		command, stderr := program(token, append(strings.Fields(args), "--server", url)...), new(output)
		command.Stdout, command.Stderr = full, stderr
		_ = command.Run()
		if status := command.ProcessState.ExitCode(); status != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit status %d: %s", args, status, stderr)
		}
	}
	if exported := runCommand(t, "export", "--server", url); strings.Contains(exported, `"id"`) {
		t.Errorf("stored %s", exported)
	}
}

// A plan blocks what the rules of the server do not permit. The rest is applied. Each change has a
// reason: the text of --reason, or the name of the file.
func TestApply_RulesAndReason(t *testing.T) {
	t.Parallel()
	url := emptyServer(t, "--network-rules")
	invalid := strings.Replace(definitionOf("a"), "{", `{"policies":{"whitelist_receivers":["0x1"]},`, 1)
	for _, c := range []struct{ command, want string }{
		{"plan", "1 to create, 0 to update, 0 to delete, 0 unchanged, 1 blocked\n"},
		{"apply --yes", "\n1 created, 0 updated, 0 deleted\n"},
	} {
		done := expect(t, 1, append(strings.Fields(c.command), "--server", url, "-f", configuration(t, invalid, definitionOf("b")))...)
		for _, want := range []string{"! blocked a\n", c.want} {
			if !strings.Contains(done.stdout, want) || !strings.Contains(done.stderr, "a: invalid relayer: policies.whitelist_receivers[0] must be") {
				t.Errorf("%s: %+v, want %s", c.command, done, want)
			}
		}
	}
	renamed := configuration(t, strings.Replace(definitionOf("b"), `"n"`, `"m"`, 1))
	for _, c := range []struct{ want, reason string }{{"config.json", ""}, {"new name", "new name"}} {
		if c.reason != "" {
			expect(t, 0, "apply", "--yes", "--server", url, "-f", renamed, "--reason", c.reason)
		}
		var change struct{ Reason string }
		text := runCommand(t, "history", "b", "--json", "--limit", "1", "--server", url)
		if err := json.Unmarshal([]byte(text), &change); err != nil || change.Reason != c.want {
			t.Errorf("error %v, the change is %s, want the reason %q", err, text, c.want)
		}
	}
}

// A selector limits all commands to some relayers.
func TestPlan_Selector(t *testing.T) {
	t.Parallel()
	one := func(id, owner string) string {
		return strings.Replace(definitionOf(id), "{", `{"labels":{"owner":"`+owner+`"},`, 1)
	}
	url := emptyServer(t)
	expect(t, 0, "apply", "--yes", "--server", url, "-f", configuration(t, one("ci-1", "ci"), one("ci-2", "ci"), one("other", "ops")))
	done := expect(t, 0, "apply", "--yes", "--prune", "--server", url, "--selector", "label.owner=ci", "-f", configuration(t, one("ci-1", "ci")))
	if !strings.Contains(done.stdout, "- delete ci-2\n") || strings.Contains(done.stdout, "other") {
		t.Errorf("output %s", done.stdout)
	}
	if exported := runCommand(t, "export", "--server", url, "--selector", "label.owner=ci"); !strings.Contains(exported, "ci-1") || strings.Contains(exported, "other") {
		t.Errorf("exported %s", exported)
	}
}

// A plan shows that a key in an RPC URL was rotated, to a token that may write but not read full URLs.
// One that may not write cannot compare them.
func TestPlan_RotatedKey(t *testing.T) {
	t.Parallel()
	server := start(t, "", "--db", "memory", "--tokens-file", newTokens(t, "ops "+token+" write", "auditor "+readerToken+" read"), "--rate", "0")
	t.Cleanup(server.stop)
	file, rotated := newFile(t, publicConfig), newFile(t, strings.ReplaceAll(publicConfig, password, password+"-2"))
	expect(t, 0, "apply", "--yes", "--server", server.url, "-f", file)
	if done := expect(t, 2, "plan", "--server", server.url, "-f", rotated); !strings.Contains(done.stdout, `"weight":5}] (a hidden part differs)`+"\n") {
		t.Errorf("output %s", done.stdout)
	}
	done := finishHere(t, readerToken, "plan", "--server", server.url, "-f", file)
	if done.status != 1 || !strings.Contains(done.stderr, "sepolia-example: the RPC URLs could not be compared") {
		t.Errorf("a token that may only read: %+v", done)
	}
	masked := newFile(t, runCommand(t, "export", "--server", server.url))
	if done := finishHere(t, readerToken, "plan", "--server", server.url, "-f", masked); done.status != 0 {
		t.Errorf("a token that may only read, and a masked file: %+v", done)
	}
}

func TestTarget_InsecureHTTP(t *testing.T) {
	t.Parallel()
	url := strings.Replace(emptyServer(t), "127.0.0.1", "0.0.0.0", 1) // not a local host by its name
	expectFailure(t, "relayerd: --server: the base URL must be https, because the token is sent to another host: use --insecure-http to permit http\n", "export", "--server", url)
	expect(t, 0, "export", "--server", url, "--insecure-http")
}

// The first signal ends a command that waits for its input.
func TestPlan_SignalDuringRead(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	command := program(token, "plan", "--server", "https://127.0.0.1:1", "-f", pipe)
	must(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	if !await(func() bool {
		writer, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0) // fails until the command reads
		if err == nil {
			t.Cleanup(func() { _ = writer.Close() })
		}
		return err == nil
	}) {
		t.Fatal("the command does not read the file")
	}
	must(t, command.Process.Signal(syscall.SIGTERM))
	if _ = command.Wait(); command.ProcessState.ExitCode() != 1 {
		t.Errorf("exit status %d, want 1", command.ProcessState.ExitCode())
	}
}

// The commands of docs/migrating.md apply a configuration file of OpenZeppelin
// Relayer.
func TestMigratingPage_Commands(t *testing.T) {
	page := string(fileContent(t, "../../docs/migrating.md"))
	url := emptyServer(t)
	t.Chdir(filepath.Dir(newFile(t, publicConfig)))
	var ran []string
	for line := range strings.Lines(page) {
		args := strings.Fields(strings.ReplaceAll(line, "http://127.0.0.1:8080", url))
		if len(args) < 2 || args[0] != "relayerd" || args[1] == "serve" {
			continue
		}
		ran = append(ran, args[1])
		if args[1] == "plan" {
			expect(t, 2, args[1:]...)
		} else {
			expect(t, 0, append(args[1:], "--yes")...)
		}
	}
	if got := strings.Join(ran, " "); got != "plan apply" {
		t.Errorf("the page has the commands %q", got)
	}
	expect(t, 0, "plan", "--server", url, "-f", "config.json")
}

// An operator without a browser pauses a selection, and resumes what that request has paused.
func TestPause_Commands(t *testing.T) {
	t.Parallel()
	server := start(t, "", "--db", "memory", "--tokens-file", newTokens(t, "ops "+token+" write", "auditor "+readerToken+" read"))
	defer server.stop()
	for id, network := range map[string]string{"a": "x", "b": "x", "c": "x", "d": "y"} {
		server.expect("POST", collection, token, strings.NewReplacer("r-1", id, `"x"`, `"`+network+`"`).Replace(definition), http.StatusCreated)
	}
	server.expect("PATCH", collection+"/a", token, `{"paused":true}`, http.StatusOK)
	request := ""
	for _, c := range []struct{ args, output, paused string }{
		{"pause --selector network=x --reason incident-42", `^paused 2 relayers, 1 unchanged, request (\S+)\n$`, "abc"},
		{"resume --paused-by REQUEST", `^resumed 2 relayers, `, "a"},
		{"pause --all", `^paused 3 relayers, `, "abcd"},
		{"resume --selector network=y", `^resumed 1 relayer, `, "abc"},
	} {
		output := runCommand(t, append(strings.Fields(strings.Replace(c.args, "REQUEST", request, 1)), "--server", server.url)...)
		found := regexp.MustCompile(c.output).FindStringSubmatch(output)
		if found == nil {
			t.Fatalf("%s printed %s", c.args, output)
		}
		if len(found) > 1 {
			request = found[1]
			if history := runCommand(t, "history", "b", "--server", server.url, "--changed", "paused"); !strings.Contains(history, "ops  ") || !strings.Contains(history, "incident-42") {
				t.Errorf("the history is %s", history)
			}
		}
		paused := 0
		for _, id := range c.paused {
			if strings.Contains(server.expect("GET", collection+"/"+string(id), token, "", http.StatusOK), `"paused":true`) {
				paused++
			}
		}
		if body := server.expect("GET", collection+"?paused=true", token, "", http.StatusOK); paused != len(c.paused) || !strings.Contains(body, fmt.Sprintf(`"total_items":%d}`, paused)) {
			t.Errorf("after %s paused are %s, want %s", c.args, body, c.paused)
		}
	}
	expectFailure(t, "--selector is required", "resume", "--server", server.url)
	expectFailureWith(t, "403", readerToken, "pause", "--server", server.url, "--all")
}

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
