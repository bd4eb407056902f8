package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// operatingBlocks returns the code blocks of docs/relayerd.md in a language.
func operatingBlocks(t *testing.T, language string) (blocks []string) {
	t.Helper()
	page := string(fileContent(t, "../../docs/relayerd.md"))
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, found[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("the page has no block in %s", language)
	}
	return blocks
}

// deployed returns a file that operators copy.
func deployed(t *testing.T, name string) string {
	t.Helper()
	return string(fileContent(t, filepath.Join("../../deploy", name)))
}

// operatingCommands returns the commands of docs/relayerd.md, in order.
func operatingCommands(t *testing.T) (commands []string) {
	t.Helper()
	for _, block := range operatingBlocks(t, "sh") {
		for line := range strings.Lines(block) {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	return commands
}

// The commands of the pages exist, with their flags.
func TestPages_Commands(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]int{"relayerd.md": 10, "security.md": 4} {
		count := 0
		for line := range strings.Lines(string(fileContent(t, "../../docs/"+page))) {
			if args, ok := strings.CutPrefix(line, "relayerd "); ok {
				command, _, _ := strings.Cut(args, "#")
				expectCommandExists(t, strings.Fields(command))
				count++
			}
		}
		if count < want {
			t.Errorf("%s has %d commands of relayerd", page, count)
		}
	}
}

// Every flag on a page is one of a command or of another program.
func TestPages_Flags(t *testing.T) {
	t.Parallel()
	existing := make(map[string]bool)
	var walk func(command *cobra.Command)
	walk = func(command *cobra.Command) {
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) { existing[flag.Name] = true })
		for _, each := range command.Commands() {
			walk(each)
		}
	}
	walk(newRootCommand(""))
	var pages strings.Builder
	paths := mustGet(filepath.Glob("../../docs/*.md"))(t)
	for _, path := range append(paths, "../../README.md") {
		pages.Write(fileContent(t, path))
	}
	others := []string{"help", "version", "tag", "detach", "name", "publish", "volume", "env", "read-only", "cap-drop", "stop-timeout", "rm", "signal", // docker
		"now",                 // systemctl
		"schema", "enable-v2"} // pg_dump, etcd
	for _, found := range regexp.MustCompile(`(?m)(?:^|[ \x60(])--([a-z][a-z0-9-]+)`).FindAllStringSubmatch(pages.String(), -1) {
		if !existing[found[1]] && !slices.Contains(others, found[1]) {
			t.Errorf("no command has the flag --%s of a page", found[1])
		}
	}
	if len(existing) < 30 {
		t.Errorf("the commands have %d flags", len(existing))
	}
}

// expectCommandExists checks that relayerd has a command and its flags.
func expectCommandExists(t *testing.T, args []string) {
	t.Helper()
	command, flags, err := newRootCommand("").Find(args)
	if err == nil {
		err = command.ParseFlags(flags)
	}
	if err != nil || !command.HasParent() || command.ValidateArgs(command.Flags().Args()) != nil {
		t.Errorf("relayerd %q: error %v", args, err)
	}
}

// The page names the arguments of the image, and commands that exist for containers.
func TestOperatingPage_Container(t *testing.T) {
	t.Parallel()
	if command := "`" + strings.Join(imageEnvironment(t), " ") + "`"; !strings.Contains(string(fileContent(t, "../../docs/relayerd.md")), command) {
		t.Errorf("the page does not contain %s", command)
	}
	count := 0
	for _, command := range operatingCommands(t) {
		if _, args, ok := strings.Cut(command, " relayerd "); ok && strings.HasPrefix(command, "docker run ") && !strings.HasPrefix(args, "--") {
			expectCommandExists(t, strings.Fields(args))
			count++
		}
	}
	if count == 0 {
		t.Error("the page runs no command in a container")
	}
}

// operator runs the commands of docs/relayerd.md in a directory with the files that
// they name.
type operator struct {
	t        *testing.T
	database string   // URL of a PostgreSQL database, empty if there is none
	server   *process // for commands that need a server
}

func newOperator(t *testing.T) operator {
	t.Helper()
	database, repository := fileContent(t, makeFile(t, 30)), mustGet(filepath.Abs("../.."))(t)
	signers := operatingBlocks(t, "json")[0]
	t.Chdir(t.TempDir())
	t.Setenv("REPOSITORY", repository)
	t.Setenv("GOBIN", mustGet(filepath.Abs("bin"))(t))
	cert, key := newCertificate(t, "operator", time.Now().Add(time.Hour))
	must(t, os.Mkdir("backups", 0o700))
	served, tokens := mustGet(filepath.Abs("served.db"))(t), newTokens(t, "operator "+token+" write+backup")
	o := operator{t: t, server: start(t, "", "--db", served, "--tokens-file", tokens)}
	if pgserver.Available() == nil || os.Getenv("CI") != "" {
		o.database = newDatabase(t)
	}
	o.server.expect("POST", collection, token, definitionOf("treasury"), http.StatusCreated)
	for name, content := range map[string]string{
		"relayers.db": string(database), "cert.pem": cert, "key.pem": key, "tokens": "ops " + oldToken + " write\n", "signers.json": signers,
		"schema.json": `{"type":"object"}`, "relayers.json": runCommand(t, "export", "--server", o.server.url),
	} {
		writeFile(t, name, content)
	}
	return o
}

// run runs a command, and reports whether it can be run here.
func (o operator) run(command string) bool {
	o.t.Helper()
	tool, rest, _ := strings.Cut(command, " ")
	switch tool {
	case "docker", "systemctl":
		return false
	case "relayerd":
		return o.relayerd(strings.Fields(rest))
	case "go":
		if testing.Short() {
			return false
		}
		// With the settings of the image, the compiler runs once for both.
		command = `cd "$REPOSITORY" && CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath" ` + command
	}
	if output, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		o.t.Errorf("%s: %v: %s", command, err, output)
	}
	return true
}

func (o operator) relayerd(args []string) bool {
	o.t.Helper()
	for i, arg := range args {
		switch arg {
		case "127.0.0.1:8080":
			args[i] = strings.TrimPrefix(o.server.url, "http://")
		case "https://registry.internal":
			args[i] = o.server.url
		case "/var/backups/relayerd":
			args[i] = "backups"
		case "'postgres://registry@db.internal/registry?sslmode=verify-full'":
			args[i] = o.database
		}
	}
	if slices.Contains(args, "") {
		return false // there is no PostgreSQL
	}
	if args[0] == "serve" {
		o.serve(args[1:])
		return true
	}
	if output, err := program(token, args...).CombinedOutput(); err != nil {
		o.t.Errorf("relayerd %q: %v: %s", args, err, output)
	}
	return true
}

// serve starts a server and stops it.
func (o operator) serve(flags []string) {
	o.t.Helper()
	apiKey := token
	for i, flag := range flags {
		switch flag {
		case "--addr", "--metrics-addr":
			flags[i+1] = "127.0.0.1:0"
		case "--log-format":
			flags[i+1] = "text" // start reads the address from the log
		case "--tokens-file":
			apiKey = ""
		}
	}
	start(o.t, apiKey, flags...).stop()
}

func TestOperatingPage_CommandsSucceed(t *testing.T) {
	commands := operatingCommands(t)
	o := newOperator(t)
	ran := 0
	for _, command := range commands {
		if o.run(command) {
			ran++
		} else {
			t.Logf("not run: %s", command)
		}
	}
	if ran < 12 {
		t.Errorf("%d commands ran", ran)
	}
	for _, name := range []string{"relayers.db", "backup.db", "restored.db", "before-upgrade.db"} {
		if content := contentOf(t, name); len(content) != 30 {
			t.Errorf("%s has %d relayers, want 30", name, len(content))
		}
	}
	if o.database != "" {
		expectCopied(t, o.database, "relayers.db")
	}
	if table, err := parseTokens(string(fileContent(t, "tokens"))); err != nil || len(table.names) != 2 || len(table.grants) != 1 {
		t.Errorf("tokens %v, error %v, want two of one name", table, err)
	}
	o.server.stop()
}

// The sample of a tokens file is valid, and the sample of the audit has lines of its server,
// except for times, addresses and numbers.
func TestOperatingPage_TextSamples(t *testing.T) {
	t.Parallel()
	samples := operatingBlocks(t, "text")
	auditor := regexp.MustCompile(`(?m)^auditor +(\S+) read$`).FindStringSubmatch(samples[0])
	if len(samples) != 2 || auditor == nil {
		t.Fatalf("the samples are %q", samples)
	}
	server := start(t, "", "--db", "memory", "--tokens-file", newTokens(t, strings.TrimSpace(samples[0]), "alice "+oldToken+" write"))
	server.expect("POST", collection, oldToken, definitionOf("treasury"), http.StatusCreated)
	server.reason = "incident 42"
	server.expect("PATCH", collection+"/treasury", oldToken, `{"paused":true}`, http.StatusOK)
	server.expect("DELETE", collection+"/treasury", auditor[1], "", http.StatusForbidden)
	server.stop()
	differing := regexp.MustCompile(`\b(time|address|request_id|old_revision|revision)=\S+`)
	log := differing.ReplaceAllString(server.output.String(), "$1=X")
	for line := range strings.Lines(differing.ReplaceAllString(samples[1], "$1=X")) {
		if !strings.Contains(log, "\n"+line) {
			t.Errorf("the log has no line %sbut\n%s", line, log)
		}
	}
}

// Each metric, and each label value, of an alert exists.
func TestOperatingPage_Alerts(t *testing.T) {
	t.Parallel()
	_, _, flags := tlsFiles(t)
	server := start(t, token, append(flags, "--db", makeFile(t, 1), "--backup", t.TempDir())...)
	_, metrics := getTLS(t, server, "/metrics")
	server.stop()
	rules := deployed(t, "alerts.yaml")
	selected := regexp.MustCompile(`\b((?:relayerd?|process|go)_\w+)(?:\{(\w+="[^"]*")\})?`)
	count := 0
	for _, expression := range regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(rules, -1) {
		for _, found := range selected.FindAllStringSubmatch(expression[1], -1) {
			name, label := found[1], found[2]
			if strings.HasPrefix(label, "job=") {
				label = "" // Prometheus adds it
			}
			if !regexp.MustCompile(`(?m)^` + name + `(\{[^}]*` + label + `.*\})? `).MatchString(metrics) {
				t.Errorf("no metric matches %s: %s", found[0], expression[1])
			}
			count++
		}
	}
	if count < 8 {
		t.Errorf("%d metrics in %s", count, rules)
	}
}

func TestOperatingPage_PrometheusSyntax(t *testing.T) {
	t.Parallel()
	promtool, credentials := requireProgram(t, "promtool"), newFile(t, token)
	for kind, c := range map[string]struct{ text, want string }{
		"rules":  {deployed(t, "alerts.yaml"), "11 rules found"},
		"config": {strings.Replace(operatingBlocks(t, "yaml")[0], "/etc/prometheus/relayerd.token", credentials, 1), "SUCCESS"},
	} {
		if output, err := exec.Command(promtool, "check", kind, newFile(t, c.text)).CombinedOutput(); err != nil || !strings.Contains(string(output), c.want) {
			t.Errorf("%s: error %v: %s", kind, err, output)
		}
	}
}

func TestOperatingPage_SystemdUnit(t *testing.T) {
	t.Parallel()
	analyze := requireProgram(t, "systemd-analyze")
	unit := strings.ReplaceAll(deployed(t, "relayerd.service"), "/usr/local/bin/relayerd", os.Args[0])
	directory := t.TempDir()
	path, socket := filepath.Join(directory, "relayerd.service"), filepath.Join(directory, "relayerd.socket")
	writeFile(t, path, unit)
	writeFile(t, socket, deployed(t, "relayerd.socket"))
	if output, err := exec.Command(analyze, "verify", "--man=no", path, socket).CombinedOutput(); err != nil || strings.Contains(string(output), "relayerd.") {
		t.Errorf("error %v: %s", err, output)
	}
	for line, without := range map[string]string{
		"Requires=relayerd.socket":  "the service can start without its socket",
		"LogRateLimitIntervalSec=0": "the journal drops lines above a rate",
		"Type=notify":               "a SIGHUP during the start ends the server",
		"TimeoutStartSec=infinity":  "a long start is a failure",
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("%s: the unit has no line %s", without, line)
		}
	}
}

// machine runs relayerd for an operator: as a process of this system, or as one of the image.
type machine struct {
	t       *testing.T
	program func(apiKey string, args ...string) *exec.Cmd
	data    string // the directory of all files, as relayerd sees it
	outside string // the same directory, as the test sees it
	own     func(path string) error
	printed *output // of all commands
}

// run runs a command, and returns what it prints.
func (m machine) run(apiKey string, args ...string) string {
	m.t.Helper()
	text, err := m.program(apiKey, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%q: %v: %s", args, err, text)
	}
	_, _ = m.printed.Write(text)
	return string(text)
}

// start starts a server whose flags are environment variables.
func (m machine) start(database string, environment ...string) *process {
	m.t.Helper()
	server := &process{t: m.t, command: m.program("", "serve"), output: new(output)}
	server.command.Env = append(append(server.command.Env, environment...), "RELAYERD_ADDR=127.0.0.1:0", "RELAYERD_DRAIN_DELAY=0",
		"RELAYERD_DB="+database, "RELAYERD_TOKENS_FILE="+m.data+"/tokens", "RELAYERD_KEYS="+m.data+"/relayer.keys")
	server.run()
	return server
}

// stop stops a server, and keeps its log.
func (m machine) stop(server *process) {
	m.t.Helper()
	server.stop()
	_, _ = m.printed.Write([]byte(server.output.String()))
}

// replace replaces a file as Kubernetes and editors do.
func (m machine) replace(name string, lines ...string) {
	m.t.Helper()
	path := filepath.Join(m.outside, name)
	writeTokens(m.t, path+".next", lines...)
	must(m.t, m.own(path+".next"))
	must(m.t, os.Rename(path+".next", path))
}

// day is what an operator does in a day. It ends with a copy in PostgreSQL, if there is one.
func (m machine) day(postgres string) {
	t := m.t
	const auditor, saver = readerToken, password + "-saver"
	alice, staff := oldToken, []string{"auditor " + auditor + " read", "saver " + saver + " backup", "oncall " + password + "-oncall write+engine"}
	database, backup, keys := m.data+"/relayers.db", m.data+"/backup.db", m.data+"/relayer.keys"
	m.run("", "keys", "add", "--keys", keys, "--id", "k1")
	m.replace("tokens", append(staff, "alice "+alice+" write")...)

	server := m.start(database)
	m.run("", "healthcheck", "--addr", server.address())
	server.expect("POST", collection, alice, sealedURL("treasury"), http.StatusCreated)
	server.expect("DELETE", collection+"/treasury", auditor, "", http.StatusForbidden)

	// Rotate the token of alice, and the key.
	alice = newToken
	m.replace("tokens", append(staff, "alice "+alice+" write")...)
	server.output.awaitText(t, `"file reloaded" flag=--tokens-file`, 1)
	server.expect("GET", collection, oldToken, "", http.StatusUnauthorized)
	m.run("", "keys", "add", "--keys", keys, "--id", "k2")
	server.output.awaitText(t, `"all RPC URLs are under the primary key" stored=1 primary=k2`, 1)
	m.run(saver, "keys", "remove", "--keys", keys, "--id", "k1", "--server", server.url)
	server.output.awaitText(t, `"file reloaded" flag=--keys`, 2)

	// An incident: pause all, and find out who paused what.
	paused := m.run(alice, "pause", "--server", server.url, "--all", "--reason", "incident 42")
	if !strings.HasPrefix(paused, "paused 1 relayer, 0 unchanged, request ") {
		t.Errorf("pause prints %q", paused)
	}
	who := m.run(auditor, "history", "treasury", "--server", server.url, "--changed", "paused", "--since", "1h ago")
	if !regexp.MustCompile(`(?m)^\S+ \S+ +\d+ +treasury +alice +pause +paused=true +incident 42\s*$`).MatchString(who) {
		t.Errorf("the history is %s", who)
	}

	// Configuration as code leaves it paused.
	m.replace("relayers.json", m.run(auditor, "export", "--server", server.url))
	m.replace("relayers.json", strings.Replace(string(fileContent(t, filepath.Join(m.outside, "relayers.json"))), `"name": "n"`, `"name": "Treasury"`, 1))
	file := m.data + "/relayers.json"
	if text := m.run(alice, "apply", "--yes", "-f", file, "--server", server.url); !strings.HasSuffix(text, "\n0 created, 1 updated, 0 deleted\n") {
		t.Errorf("apply prints %s", text)
	}
	if text := m.run(auditor, "plan", "-f", file, "--server", server.url); !strings.HasSuffix(text, "0 to create, 0 to update, 0 to delete, 1 unchanged\n") {
		t.Errorf("plan prints %s", text)
	}

	// Back up, resume, and restart.
	m.run(saver, "backup", "--server", server.url, "--to", backup)
	m.run(alice, "resume", "--server", server.url, "--paused-by", strings.TrimSpace(paused[strings.LastIndex(paused, " "):]))
	m.stop(server)
	server = m.start(database)
	read := func(server *process) string {
		t.Helper()
		request, _ := http.NewRequest("GET", server.url+collection+"/treasury?rpc_urls=full", nil)
		request.Header.Set("Authorization", "Bearer "+password+"-oncall")
		response := mustGet(http.DefaultClient.Do(request))(t)
		defer response.Body.Close()
		body := new(strings.Builder)
		if err := response.Write(body); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("status %d, error %v: %s", response.StatusCode, err, body)
		}
		return regexp.MustCompile(`(?m)^(Date|X-Request-Id): .*$`).ReplaceAllString(body.String(), "")
	}
	if now := read(server); !strings.Contains(now, `"name":"Treasury"`) || !strings.Contains(now, `"paused":false`) || !strings.Contains(now, fullURL) {
		t.Errorf("after the restart the relayer is %s", now)
	}
	m.stop(server)

	// Check, and restore: the relayer is paused again.
	if text := m.run("", "check", "--db", database, "--keys", keys, "--require-sealed"); !strings.HasPrefix(text, "no damage found in 1 relayer\n") {
		t.Errorf("check prints %s", text)
	}
	m.run("", "compact", "--db", database)
	m.run("", "restore", "--from", backup, "--db", m.data+"/restored.db")
	server = m.start(m.data + "/restored.db")
	restored := read(server)
	m.stop(server)
	if !strings.Contains(restored, `"paused":true`) {
		t.Errorf("restored is %s", restored)
	}
	if postgres != "" {
		m.run("", "copy", "--from", m.data+"/restored.db", "--to", postgres)
		server = m.start(postgres)
		if copied := read(server); copied != restored {
			t.Errorf("PostgreSQL has\n%s\nand the file\n%s", copied, restored)
		}
		m.stop(server)
	}
	printed := m.printed.String()
	expectNoSecret(t, printed)
	for line := range strings.Lines(string(fileContent(t, filepath.Join(m.outside, "relayer.keys")))) {
		if key := line[strings.LastIndex(line, " ")+1:]; strings.HasPrefix(line, "key ") && strings.Contains(printed, strings.TrimSpace(key)) {
			t.Error("the output has a key")
		}
	}
	if strings.Contains(printed, "level=ERROR") {
		t.Errorf("the log has an error: %s", printed)
	}
}

func TestOperatorsDay(t *testing.T) {
	t.Parallel()
	directory, postgres := t.TempDir(), ""
	if pgserver.Available() == nil || os.Getenv("CI") != "" {
		postgres = newDatabase(t)
	}
	own := func(string) error { return nil }
	machine{t: t, program: program, data: directory, outside: directory, own: own, printed: new(output)}.day(postgres)
}
