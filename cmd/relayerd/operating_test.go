package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// operatingBlocks returns the code blocks of docs/relayerd.md in a language.
func operatingBlocks(t *testing.T, language string) (blocks []string) {
	t.Helper()
	page := string(readFile(t, "../../docs/relayerd.md"))
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
	return string(readFile(t, filepath.Join("../../deploy", name)))
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

func TestOperatingPage_CommandsExist(t *testing.T) {
	t.Parallel()
	count := 0
	for _, command := range operatingCommands(t) {
		if args, ok := strings.CutPrefix(command, "relayerd "); ok {
			expectCommandExists(t, strings.Fields(args))
			count++
		}
	}
	if count < 10 {
		t.Errorf("the page has %d commands of relayerd", count)
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
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, "../../README.md") {
		pages.Write(readFile(t, path))
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
	if command := "`" + strings.Join(imageEnvironment(t), " ") + "`"; !strings.Contains(string(readFile(t, "../../docs/relayerd.md")), command) {
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
	database, repository := readFile(t, makeFile(t, 30)), absolute(t, "../..")
	signers := operatingBlocks(t, "json")[0]
	t.Chdir(t.TempDir())
	t.Setenv("REPOSITORY", repository)
	t.Setenv("GOBIN", absolute(t, "bin"))
	cert, key := newCertificate(t, "operator")
	writeFiles(t, map[string][]byte{"relayers.db": database, "cert.pem": cert, "key.pem": key, "tokens": []byte("alice " + oldToken + " write\n"),
		"signers.json": []byte(signers), "schema.json": []byte(`{"type":"object"}`)})
	if err := os.Mkdir("backups", 0o700); err != nil {
		t.Fatal(err)
	}
	tokens := absolute(t, "operators")
	writeTokens(t, tokens, "operator "+token+" write+backup")
	o := operator{t: t, server: start(t, "", "--db", absolute(t, "served.db"), "--tokens-file", tokens)}
	if pgserver.Available() == nil || os.Getenv("CI") != "" {
		o.database = location(t, startPostgres(t), "postgres")
	}
	o.server.expectStatus("POST", collection, token, strings.Replace(definition, "r-1", "treasury", 1), http.StatusCreated)
	exported, err := program(token, "export", "--server", o.server.url).Output()
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, map[string][]byte{"relayers.json": exported})
	return o
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
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
	if table, err := parseTokens(string(readFile(t, "tokens"))); err != nil || len(table.names) != 2 || len(table.grants) != 1 {
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
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, strings.TrimSpace(samples[0]), "alice "+oldToken+" write")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens)
	server.expectStatus("POST", collection, oldToken, strings.Replace(definition, "r-1", "treasury", 1), http.StatusCreated)
	server.reason = "incident 42"
	server.expectStatus("PATCH", collection+"/treasury", oldToken, `{"paused":true}`, http.StatusOK)
	server.expectStatus("DELETE", collection+"/treasury", auditor[1], "", http.StatusForbidden)
	server.stop()
	differing := regexp.MustCompile(`\b(time|address|request_id|old_revision|revision)=\S+`)
	log := differing.ReplaceAllString(server.output.String(), "$1=X")
	for line := range strings.Lines(differing.ReplaceAllString(samples[1], "$1=X")) {
		if !strings.Contains(log, "\n"+line) {
			t.Errorf("the log has no line %sbut\n%s", line, log)
		}
	}
}

// metricsOf returns the metrics of a server with backups and a certificate.
func metricsOf(t *testing.T) string {
	t.Helper()
	certFile, keyFile := writeCertificate(t)
	server := start(t, token, "--db", makeFile(t, 1), "--backup", t.TempDir(), "--tls-cert", certFile, "--tls-key", keyFile)
	metrics := scrapeTLS(t, server)
	server.stop()
	return metrics
}

// Each metric, and each label value, of an alert exists.
func TestOperatingPage_Alerts(t *testing.T) {
	t.Parallel()
	rules, metrics := deployed(t, "alerts.yaml"), metricsOf(t)
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

func TestOperatingPage_AlertSyntax(t *testing.T) {
	t.Parallel()
	promtool := requireProgram(t, "promtool")
	path := filepath.Join(t.TempDir(), "rules.yaml")
	writeFiles(t, map[string][]byte{path: []byte(deployed(t, "alerts.yaml"))})
	if output, err := exec.Command(promtool, "check", "rules", path).CombinedOutput(); err != nil || !strings.Contains(string(output), "10 rules found") {
		t.Errorf("error %v: %s", err, output)
	}
}

// Prometheus scrapes a server with the configuration of the page.
func TestOperatingPage_PrometheusConfig(t *testing.T) {
	t.Parallel()
	prometheus, promtool := requireProgram(t, "prometheus"), requireProgram(t, "promtool")
	server := start(t, token, "--db", "memory")
	directory := t.TempDir()
	config, credentials := filepath.Join(directory, "prometheus.yml"), filepath.Join(directory, "token")
	block := strings.NewReplacer("/etc/prometheus/relayerd.token", credentials, "registry.internal:8443", strings.TrimPrefix(server.url, "http://"), "scheme: https", "scheme: http")
	text := "global: {scrape_interval: 1s}\n" + block.Replace(operatingBlocks(t, "yaml")[0])
	writeFiles(t, map[string][]byte{config: []byte(text), credentials: []byte(token)})
	if output, err := exec.Command(promtool, "check", "config", config).CombinedOutput(); err != nil {
		t.Fatalf("error %v: %s", err, output)
	}
	command, log := exec.Command(prometheus, "--config.file", config, "--web.listen-address", "127.0.0.1:0", "--storage.tsdb.path", filepath.Join(directory, "data")), new(output)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	log.awaitText(t, "Listening on", 1)
	address := regexp.MustCompile(`Listening on"? address=(\S+)`).FindStringSubmatch(log.String())
	if address == nil {
		t.Fatalf("no address: %s", log)
	}
	found := await(func() bool {
		response, err := http.Get("http://" + address[1] + "/api/v1/query?query=up%7Bjob%3D%22relayerd%22%7D+and+on%28instance%29+relayerd_open_streams")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return strings.Contains(string(body), `,"1"]`)
	})
	if !found {
		t.Errorf("Prometheus has no metrics of the server: %s", log)
	}
	server.stop()
}

func TestOperatingPage_SystemdUnit(t *testing.T) {
	t.Parallel()
	analyze := requireProgram(t, "systemd-analyze")
	unit := strings.ReplaceAll(deployed(t, "relayerd.service"), "/usr/local/bin/relayerd", os.Args[0])
	directory := t.TempDir()
	path, socket := filepath.Join(directory, "relayerd.service"), filepath.Join(directory, "relayerd.socket")
	writeFiles(t, map[string][]byte{path: []byte(unit), socket: []byte(deployed(t, "relayerd.socket"))})
	if output, err := exec.Command(analyze, "verify", "--man=no", path, socket).CombinedOutput(); err != nil || strings.Contains(string(output), "relayerd.") {
		t.Errorf("error %v: %s", err, output)
	}
	if !strings.Contains(unit, "\nRequires=relayerd.socket\n") {
		t.Errorf("the service can start without its socket: %s", unit)
	}
	if !strings.Contains(unit, "\nLogRateLimitIntervalSec=0\n") {
		t.Error("the journal drops lines above a rate")
	}
}
