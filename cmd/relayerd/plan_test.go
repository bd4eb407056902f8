package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// finished is a process that has ended.
type finished struct {
	status         int
	stdout, stderr string
}

// finish runs a process to its end, and checks that it prints no password.
func finish(t *testing.T, stdin string, command *exec.Cmd) finished {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	_ = command.Run()
	expectNoPassword(t, stdout.String()+stderr.String())
	return finished{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// finishHere is finish for a command that runs in this process, without an environment of
// its own.
func finishHere(t *testing.T, apiKey string, args ...string) finished {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	status := execute(ctx, args, apiKey, strings.NewReader(""), &stdout, &stderr)
	expectNoPassword(t, stdout.String()+stderr.String())
	return finished{status, stdout.String(), stderr.String()}
}

// expect checks the exit status of a command and returns what it has printed.
func expect(t *testing.T, status int, args ...string) finished {
	t.Helper()
	done := finishHere(t, token, args...)
	if done.status != status {
		t.Fatalf("%q: exit status %d, want %d: %s%s", args, done.status, status, done.stdout, done.stderr)
	}
	return done
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// emptyServer starts a server without relayers, and returns its URL.
func emptyServer(t *testing.T, flags ...string) string {
	t.Helper()
	server := start(t, token, append([]string{"--db", "memory", "--rate", "0"}, flags...)...)
	t.Cleanup(server.stop)
	return server.url
}

// on returns a command for the registry of the flags.
func on(flags []string, command string, more ...string) []string {
	return append(append([]string{command}, flags...), more...)
}

func TestPlan_ExitStatus(t *testing.T) {
	t.Parallel()
	flags := []string{"--server", emptyServer(t)}
	file := writeFile(t, publicConfig)
	done := finish(t, "", program(token, on(flags, "plan", "--file", file)...))
	if done.status != 2 {
		t.Fatalf("exit status %d, want 2: %s%s", done.status, done.stdout, done.stderr)
	}
	const wantPlan = `+ create sepolia-example
    name: "Sepolia Example", network: "sepolia", network_type: "evm", paused: false, signer_id: "local-signer"
    custom_rpc_urls: [{"url":"https://rpc.example/***","weight":100},{"url":"https://backup.example/***","weight":5}]
    policies.min_balance: 1000000000000000000000
+ create solana-example
    name: "Solana Example", network: "devnet", network_type: "solana", paused: false, signer_id: "local-signer"
    policies.fee_payment_strategy: "user"
2 to create, 0 to update, 0 to delete, 0 unchanged
`
	if done.stdout != wantPlan {
		t.Errorf("output %s, want %s", done.stdout, wantPlan)
	}
	if want := "ignored sections of the file: [\"networks\" \"notifications\" \"plugins\" \"signers\"]\nnot expanded without --expand-env: ${KEY}\n"; done.stderr != want {
		t.Errorf("warnings %q, want %q", done.stderr, want)
	}
	done = expect(t, 0, on(flags, "apply", "-f", file, "--yes")...)
	if !strings.HasSuffix(done.stdout, "\n2 created, 0 updated, 0 deleted\n") {
		t.Errorf("output %q", done.stdout)
	}
	done = expect(t, 0, on(flags, "plan", "-f", file)...)
	if !strings.HasPrefix(done.stdout, "0 to create, 0 to update, 0 to delete, 2 unchanged\n") {
		t.Errorf("output %q", done.stdout)
	}
	if done := expect(t, 0, on(flags, "apply", "-f", file, "--yes")...); strings.Contains(done.stdout, "created,") {
		t.Errorf("an apply without changes printed %q", done.stdout)
	}

	moved := writeFile(t, strings.ReplaceAll(publicConfig, `"devnet"`, `"testnet"`))
	done = expect(t, 1, on(flags, "plan", "-f", moved)...)
	if !strings.Contains(done.stdout, "! blocked solana-example\n    network: must not be changed") || !strings.Contains(done.stderr, "relayerd: solana-example: invalid relayer: network must not be changed") {
		t.Errorf("output %q%q", done.stdout, done.stderr)
	}
	expect(t, 1, on(flags, "apply", "-f", moved, "--yes")...)
}

func TestApply_Prune(t *testing.T) {
	t.Parallel()
	flags := []string{"--server", emptyServer(t)}
	expect(t, 0, on(flags, "apply", "--yes", "-f", writeFile(t, publicConfig))...)
	none := writeFile(t, noRelayers)
	if done := expect(t, 0, on(flags, "plan", "-f", none)...); !strings.Contains(done.stdout, "? extra solana-example (not in the file: kept)") {
		t.Errorf("output %q", done.stdout)
	}
	expect(t, 0, on(flags, "apply", "--yes", "-f", none)...)
	expect(t, 2, on(flags, "plan", "-f", none, "--prune", "--max-deletes", "2")...)
	if done := expect(t, 0, on(flags, "apply", "--yes", "--prune", "--max-deletes", "2", "-f", none)...); !strings.HasSuffix(done.stdout, "\n0 created, 0 updated, 2 deleted\n") {
		t.Errorf("output %q", done.stdout)
	}
	if done := expect(t, 0, on(flags, "export")...); done.stdout != "{\n  \"relayers\": []\n}\n" {
		t.Errorf("after a prune: %s", done.stdout)
	}
}

// The definitions of public deployments are applied, exported, and unchanged.
func TestExport_RealRelayers(t *testing.T) {
	t.Parallel()
	definitions, err := json.Marshal(map[string]any{"relayers": realRelayers(t)})
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--server", emptyServer(t)}
	file := writeFile(t, string(definitions))
	expect(t, 0, on(flags, "apply", "--yes", "-f", file)...)
	exported := expect(t, 0, on(flags, "export")...)
	for _, path := range []string{file, writeFile(t, exported.stdout)} {
		done := expect(t, 0, on(flags, "plan", "--prune", "-f", path)...)
		if !strings.HasPrefix(done.stdout, "0 to create, 0 to update, 0 to delete, 28 unchanged\n") {
			t.Errorf("output %q", done.stdout)
		}
	}
}

// User information without a path is not lost silently.
func TestExport_UserInformation(t *testing.T) {
	t.Parallel()
	file := writeFile(t, `{"relayers":[{"id":"a","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s","custom_rpc_urls":["https://u:`+password+`@rpc.example"]}]}`)
	flags := []string{"--server", emptyServer(t)}
	expect(t, 0, on(flags, "apply", "--yes", "-f", file)...)
	exported := expect(t, 0, on(flags, "export")...)
	expect(t, 1, on(flags, "plan", "-f", writeFile(t, exported.stdout))...)
	if want := "1 RPC URLs have no path: the server does not show whether they have user information\n"; exported.stderr != want {
		t.Errorf("warning %q, want %q", exported.stderr, want)
	}
}

// An unexpanded reference is often the reason why a value is invalid.
func TestPlan_InvalidUnexpanded(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), writeFile(t, strings.Replace(publicConfig, "https://backup.example/${KEY}", "${KEY}", 1))
	const want = "relayers[0].custom_rpc_urls[1].url must be an absolute http, https, ws or wss URL with a host (${NAME} is not expanded without --expand-env)"
	expectFailure(t, want, "plan", "--server", url, "-f", file)
	command := program(token, "plan", "--expand-env", "--server", url, "-f", file)
	command.Env = append(command.Env, "KEY=invalid")
	if done := finish(t, "", command); done.status != 1 || strings.Contains(done.stderr, "not expanded") {
		t.Errorf("with --expand-env: %+v", done)
	}
}

func TestPlan_ExpandEnv(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), writeFile(t, publicConfig)
	command := program(token, "apply", "--yes", "--expand-env", "--server", url, "-f", file)
	if done := finish(t, "", command); done.status != 1 || !strings.Contains(done.stderr, "relayers[0].custom_rpc_urls[1].url refers to the environment variable KEY, which is not set") {
		t.Errorf("without the variable: %+v", done)
	}
	command = program(token, "apply", "--yes", "--expand-env", "--server", url, "-f", file)
	command.Env = append(command.Env, "KEY="+password+"-2")
	if done := finish(t, "", command); done.status != 0 || strings.Contains(done.stderr, "not expanded") {
		t.Errorf("with the variable: %+v", done)
	}
	expect(t, 0, "plan", "--server", url, "-f", writeFile(t, strings.ReplaceAll(publicConfig, "${KEY}", password+"-2")))
}

func TestPlan_StandardInput(t *testing.T) {
	t.Parallel()
	url := emptyServer(t)
	for _, c := range []struct {
		status int
		args   []string
	}{
		{2, []string{"plan", "--server", url, "-f", "-"}},
		{1, []string{"apply", "--server", url, "-f", "-"}},
		{0, []string{"apply", "--server", url, "-f", "-", "--yes"}},
		{0, []string{"plan", "--server", url, "-f", "-"}},
	} {
		done := finish(t, publicConfig, program(token, c.args...))
		if done.status != c.status || c.status == 1 && !strings.Contains(done.stderr, "--file - needs --yes") {
			t.Errorf("%q: %+v, want status %d", c.args, done, c.status)
		}
	}
}

func TestApply_NoTerminal(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), writeFile(t, publicConfig)
	if done := expect(t, 1, "apply", "--server", url, "-f", file); done.stdout != "" || !strings.Contains(done.stderr, "not a terminal: use --yes") {
		t.Errorf("without a terminal: %+v", done)
	}
	// A command without a standard input gets the null device, as a service does.
	output, err := program(token, "apply", "--server", url, "-f", file).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "not a terminal: use --yes") {
		t.Errorf("with the null device: %s, error %v", output, err)
	}
}

// A plan that cannot be shown is an error, and is not applied. So is an export that cannot be
// written.
func TestPlan_FullDisk(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), writeFile(t, publicConfig)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"plan"}, {"apply", "--yes"}} {
		command := program(token, append(args, "--server", url, "-f", file)...)
		var stderr bytes.Buffer
		command.Stdout, command.Stderr = full, &stderr
		_ = command.Run()
		if status := command.ProcessState.ExitCode(); status != 1 || !strings.Contains(stderr.String(), "the plan was not shown, and nothing was changed: write ") {
			t.Errorf("%s: exit status %d: %s", args, status, &stderr)
		}
	}
	if done := expect(t, 0, "export", "--server", url); strings.Contains(done.stdout, `"id"`) {
		t.Errorf("stored %s", done.stdout)
	}
	command := program(token, "export", "--server", url)
	command.Stdout = full
	_ = command.Run()
	if status := command.ProcessState.ExitCode(); status != 1 {
		t.Errorf("export: exit status %d", status)
	}
}

func TestPlan_KeepPaused(t *testing.T) {
	t.Parallel()
	flags := []string{"--server", emptyServer(t)}
	paused := writeFile(t, strings.Replace(publicConfig, `"paused": false`, `"paused": true`, 1))
	expect(t, 0, on(flags, "apply", "--yes", "-f", paused)...)
	running := writeFile(t, publicConfig)
	if done := expect(t, 2, on(flags, "plan", "-f", running)...); !strings.Contains(done.stdout, "    paused: true -> false\n") {
		t.Errorf("output %s", done.stdout)
	}
	expect(t, 0, on(flags, "plan", "--keep-paused", "-f", running)...)
}

// A plan blocks what the rules of the server do not permit. The rest can be applied.
func TestPlan_Rules(t *testing.T) {
	t.Parallel()
	invalid := writeFile(t, `{"relayers":[{"id":"a","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s","policies":{"whitelist_receivers":["0x1"]}},
		{"id":"b","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}]}`)
	signersFile := writeFile(t, `{"other":{"evm":"`+evmAddress+`"}}`)
	for _, c := range []struct {
		flags         []string
		want, applied string
	}{
		{[]string{"--network-rules"}, "a: invalid relayer: policies.whitelist_receivers[0] must be", "\n1 created, 0 updated, 0 deleted\n"},
		{[]string{"--signers", signersFile}, "a: invalid relayer: signer_id must be a signer that exists for this network", " 2 blocked\n"},
	} {
		url := emptyServer(t, c.flags...)
		for _, command := range [][]string{{"plan"}, {"apply", "--yes"}} {
			done := expect(t, 1, append(command, "--server", url, "-f", invalid)...)
			if !strings.Contains(done.stdout, "! blocked a\n") || !strings.Contains(done.stderr, c.want) {
				t.Errorf("%s %q: %+v", command, c.flags, done)
			}
			if command[0] == "apply" && !strings.HasSuffix(done.stdout, c.applied) {
				t.Errorf("%q: output %s", c.flags, done.stdout)
			}
		}
		if done := expect(t, 0, "export", "--server", url); strings.Contains(done.stdout, `"id": "a"`) {
			t.Errorf("an apply wrote an invalid relayer: %s", done.stdout)
		}
	}
	// The signer is free until one of both relayers is created.
	done := expect(t, 1, "apply", "--yes", "--server", emptyServer(t, "--exclusive-signers"), "-f", invalid)
	if !strings.Contains(done.stderr, ": invalid relayer: signer_id is used by another relayer on this network") || !strings.HasSuffix(done.stdout, "\n1 created, 0 updated, 0 deleted\n") {
		t.Errorf("exclusive signers: %+v", done)
	}
}

// Each change has a reason: the text of --reason, or the name of the file.
func TestApply_Reason(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), writeFile(t, `{"relayers":[{"id":"a","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}]}`)
	renamed := writeFile(t, `{"relayers":[{"id":"a","name":"m","network":"x","network_type":"evm","paused":false,"signer_id":"s"}]}`)
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"-f", file}, "config.json"},
		{[]string{"-f", renamed, "--reason", "new name of the network"}, "new name of the network"},
	} {
		expect(t, 0, append([]string{"apply", "--yes", "--server", url}, c.arguments...)...)
		var change struct{ Reason string }
		text := expect(t, 0, "history", "a", "--json", "--limit", "1", "--server", url).stdout
		if err := json.Unmarshal([]byte(text), &change); err != nil || change.Reason != c.want {
			t.Errorf("%q: error %v, the change is %s, want the reason %q", c.arguments, err, text, c.want)
		}
	}
	done := expect(t, 1, "apply", "--yes", "--server", url, "-f", file, "--reason", strings.Repeat("x", 257))
	if !strings.Contains(done.stderr, "must be at most 256 characters") {
		t.Errorf("error %s", done.stderr)
	}
}

// A selector limits all commands to some relayers.
func TestPlan_Selector(t *testing.T) {
	t.Parallel()
	one := func(id, owner string) string {
		return `{"id":"` + id + `","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s","labels":{"owner":"` + owner + `"}}`
	}
	file := func(relayers ...string) string { return writeFile(t, `{"relayers":[`+strings.Join(relayers, ",")+`]}`) }
	flags := []string{"--server", emptyServer(t)}
	expect(t, 0, on(flags, "apply", "--yes", "-f", file(one("ci-1", "ci"), one("ci-2", "ci"), one("other", "ops")))...)
	limited := append(flags, "--selector", "label.owner=ci")
	done := expect(t, 0, on(limited, "apply", "--yes", "--prune", "-f", file(one("ci-1", "ci")))...)
	if !strings.Contains(done.stdout, "- delete ci-2\n") || strings.Contains(done.stdout, "other") {
		t.Errorf("output %s", done.stdout)
	}
	done = expect(t, 1, on(limited, "plan", "-f", file(one("other", "ci")))...)
	if !strings.Contains(done.stderr, "other: invalid relayer: the ID is taken by a relayer that this token or selector may not use") {
		t.Errorf("error %s", done.stderr)
	}
	if done := expect(t, 0, on(limited, "export")...); !strings.Contains(done.stdout, "ci-1") || strings.Contains(done.stdout, "other") {
		t.Errorf("exported %s", done.stdout)
	}
}

// A registry checks the signer of a relayer only when it is created. The signers of a server can
// come from a pipe, such as <(command) of a shell.
func TestApply_UpdateWithRemovedSigner(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "relayers.db")
	for _, c := range []struct{ signers, name, want string }{
		{`{"s":{"evm":"` + evmAddress + `"}}`, "old", "\n1 created, 0 updated, 0 deleted\n"},
		{`{}`, "new", "\n0 created, 1 updated, 0 deleted\n"},
	} {
		server := &process{t: t, command: serverCommand(token, "--addr", "127.0.0.1:0", "--db", database, "--signers", "/dev/stdin"), output: new(output)}
		server.command.Stdin = strings.NewReader(c.signers)
		if !server.run() {
			t.Fatalf("the server does not start: %s", server.output)
		}
		file := writeFile(t, `{"relayers":[{"id":"a","name":"`+c.name+`","network":"x","network_type":"evm","paused":false,"signer_id":"s"}]}`)
		if done := expect(t, 0, "apply", "--yes", "--server", server.url, "-f", file); !strings.HasSuffix(done.stdout, c.want) {
			t.Errorf("output %s", done.stdout)
		}
		server.stop()
	}
}

// A file that gives the signer of an old relayer to a new one needs a delete first.
func TestApply_SignerOfDeleted(t *testing.T) {
	t.Parallel()
	url := emptyServer(t, "--exclusive-signers")
	content := func(id string) string {
		return writeFile(t, `{"relayers":[{"id":"`+id+`","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}]}`)
	}
	flags := []string{"--yes", "--prune", "--max-deletes", "1", "--server", url}
	expect(t, 0, on(flags, "apply", "-f", content("old"))...)
	done := expect(t, 1, on(flags, "apply", "-f", content("new"))...)
	const want = "relayerd: new: invalid relayer: signer_id is used by another relayer on this network: choose another signer; " +
		"no relayer was deleted because of the failures: 1 relayer left to delete\n"
	if done.stderr != want {
		t.Errorf("error %q, want %q", done.stderr, want)
	}
	expect(t, 0, on(flags, "apply", "-f", writeFile(t, noRelayers))...)
	expect(t, 0, on(flags, "apply", "-f", content("new"))...)
}

// TestPlan_WrongScheme checks that an error names the scheme that the server has.
func TestPlan_WrongScheme(t *testing.T) {
	t.Parallel()
	certFile, keyFile := writeCertificate(t)
	encrypted := start(t, token, "--db", "memory", "--tls-cert", certFile, "--tls-key", keyFile)
	plain := start(t, token, "--db", "memory")
	httpsURL, httpURL := strings.Replace(encrypted.url, "http:", "https:", 1), plain.url
	expectFailureWith(t, "(if the server speaks HTTPS, change --server to an https URL)", token, "export", "--server", encrypted.url)
	expectFailureWith(t, "(the server speaks HTTP: change --server to an http URL, or to its HTTPS port)",
		token, "export", "--server", strings.Replace(httpURL, "http:", "https:", 1))
	expectFailureWith(t, "(the authority of the certificate is not known: name its file with --ca-file)", token, "export", "--server", httpsURL)
	expectFailureWith(t, "(the authority of the certificate is not known: name its file with --ca-file)",
		token, "plan", "--server", httpsURL, "-f", writeFile(t, noRelayers))
	for _, args := range [][]string{{"export"}, {"plan", "-f", writeFile(t, noRelayers)}} {
		if output, err := program(token, append(args, "--server", httpsURL, "--ca-file", certFile)...).CombinedOutput(); err != nil {
			t.Errorf("%q: %v: %s", args, err, output)
		}
	}
	encrypted.stop()
	plain.stop()
}

func TestPlan_InsecureHTTP(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	defer server.stop()
	url := strings.Replace(server.url, "127.0.0.1", "0.0.0.0", 1) // not a local host by its name
	const want = "relayerd: --server: the base URL must be https, because the token is sent to another host: use --insecure-http to permit http\n"
	if done := expect(t, 1, "export", "--server", url); done.stderr != want {
		t.Errorf("error %q, want %q", done.stderr, want)
	}
	expect(t, 0, "export", "--server", url, "--insecure-http")
}

// A plan shows that a key in an RPC URL was rotated, and only then, to a token that may write but
// not read full URLs. One that may not write cannot compare them.
func TestPlan_RotatedKey(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	tokens := filepath.Join(directory, "tokens")
	writeTokens(t, tokens, "ops "+token+" write", "auditor "+readerToken+" read")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens, "--rate", "0")
	t.Cleanup(server.stop)
	file := writeFile(t, publicConfig)
	rotated := writeFile(t, strings.ReplaceAll(publicConfig, password, password+"-2"))
	expect(t, 0, "apply", "--yes", "--server", server.url, "-f", file)
	expect(t, 0, "plan", "--server", server.url, "-f", file)
	done := expect(t, 2, "plan", "--server", server.url, "-f", rotated)
	if want := `    custom_rpc_urls: [{"url":"https://rpc.example/***","weight":100},{"url":"https://backup.example/***","weight":5}] (a hidden part differs)` + "\n"; !strings.Contains(done.stdout, want) {
		t.Errorf("output %s", done.stdout)
	}
	for _, same := range []string{file, rotated} {
		done := finish(t, "", program(readerToken, "plan", "--server", server.url, "-f", same))
		if done.status != 1 || !strings.Contains(done.stderr, "sepolia-example: the RPC URLs could not be compared") {
			t.Errorf("a token that may only read: %+v", done)
		}
	}
	masked := writeFile(t, expect(t, 0, "export", "--server", server.url).stdout)
	if done := finish(t, "", program(readerToken, "plan", "--server", server.url, "-f", masked)); done.status != 0 {
		t.Errorf("a token that may only read, and a masked file: %+v", done)
	}
	expect(t, 0, "apply", "--yes", "--server", server.url, "-f", rotated)
	expect(t, 0, "plan", "--server", server.url, "-f", rotated)
	expect(t, 2, "plan", "--server", server.url, "-f", file)
}

// The connections of changes that are made at once are used again.
func TestTarget_Connections(t *testing.T) {
	t.Parallel()
	const parallel = 16
	var opened atomic.Int64
	var requests sync.WaitGroup // of a round, which are in flight at once
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Done()
		requests.Wait()
		w.WriteHeader(http.StatusNoContent)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	transport, err := new(target).transport()
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	for range 3 {
		requests.Add(parallel)
		var clients sync.WaitGroup
		for range parallel {
			clients.Go(func() {
				response, err := (&http.Client{Transport: transport}).Get(server.URL)
				if err != nil {
					t.Error(err)
					return
				}
				_ = response.Body.Close()
			})
		}
		clients.Wait()
	}
	if opened.Load() != parallel {
		t.Errorf("%d connections were opened, want %d", opened.Load(), parallel)
	}
}

// The commands of docs/migrating.md apply a configuration file of OpenZeppelin
// Relayer.
func TestMigratingPage_Commands(t *testing.T) {
	server := start(t, token, "--db", "memory")
	defer server.stop()
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(writeFile(t, publicConfig)))
	var ran []string
	page, err := os.ReadFile(filepath.Join(directory, "../../docs/migrating.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		args := strings.Fields(strings.ReplaceAll(line, "http://127.0.0.1:8080", server.url))
		if len(args) < 2 || args[0] != "relayerd" || args[1] == "serve" {
			continue
		}
		ran = append(ran, args[1])
		switch args[1] {
		case "plan":
			expect(t, 2, args[1:]...)
		case "apply":
			expect(t, 0, append(args[1:], "--yes")...)
		}
	}
	if got := strings.Join(ran, " "); got != "plan apply" {
		t.Errorf("the page has the commands %q", got)
	}
	expect(t, 0, "plan", "--server", server.url, "-f", "config.json")
}
