package docs

import (
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// proven are statements that were once wrong. A proof is a test of a directory, or another text
// of its Go files, such as the case of a test or a constant.
var proven = []struct {
	page, statement, directory string
	proofs                     []string
}{
	{"docs/postgres.md", "A page, its total and its position in the feed come from one snapshot, even with a selector or a search.",
		"store/storetest", []string{`{"readers see complete snapshots", readersSeeSnapshots}`}},
	{"docs/postgres.md", "A page, its total and its position in the feed come from one snapshot", "store/postgres", []string{"TestStore", "storetest.RunDurable("}},
	{"README.md", "A page of a list and its total come from one snapshot.", "store/memory", []string{"TestStore", "storetest.Run("}},
	{"docs/http.md", "A page and its `total_items` come from one snapshot", "store/bolt", []string{"TestStore", "storetest.RunDurable("}},

	{"docs/relayerd.md", "For `--drain-delay`, 3 seconds by default, `/healthz/ready` returns 503, so load balancers choose another server. Every request still works",
		"cmd/relayerd", []string{"TestShutdown_DrainDelay", `"drain-delay", 3*time.Second`}},
	{"docs/relayerd.md", "Let a balancer check the health at least three times within `--drain-delay`.", "cmd/relayerd", []string{"TestRestart_TwoServers"}},
	{"docs/relayerd.md", "It asks at most once a second.", "cmd/relayerd", []string{"TestReadiness_Interval"}},
	{"docs/relayerd.md", "The server refuses to start with both: unset `API_KEY`.", "cmd/relayerd", []string{"TestMistakes", "unset API_KEY"}},
	{"docs/relayerd.md", "writes that were refused before they reached the registry: 404 of a path, 405, 413, 415, 503 of a limit, and 400 of a query, a reason or an incomplete body.",
		"cmd/relayerd", []string{"TestAudit"}},
	{"docs/relayerd.md", "Without it, `/metrics` is on the public port, for tokens without a selector that may do more than `backup`", "cmd/relayerd", []string{"TestMetrics_Access"}},
	{"docs/relayerd.md", "With `--metrics-addr`, `/metrics` is on that address only, without a token", "cmd/relayerd", []string{"TestMetrics_Access"}},
	{"docs/relayerd.md", "`--rate`, 100 per second by default.", "cmd/relayerd", []string{"TestServe_Rate"}},
	{"docs/relayerd.md", "relayers stored without the flag hold none before an edit", ".", []string{"TestExclusiveSigners_SharedBefore"}},

	{"docs/security.md", "start the server with `--keys`, which also seals stored URLs", "cmd/relayerd", []string{"TestServe_Keys"}},
	{"docs/relayerd.md", "Unless RPC URLs are [sealed](security.md#sealing), it contains them in clear.", "cmd/relayerd", []string{"TestServe_RotateKeys"}},
	{"docs/security.md", "The rest of a relayer, and the masked URLs, are not encrypted.", ".", []string{"TestSealed_StoresNoURLInClear"}},
	{"docs/security.md", "the table `relayers` of PostgreSQL, its dumps, replicas and write-ahead log have the URLs in clear",
		"store/postgres", []string{"TestSchema_Catalog", `"tables with RPC URLs"`}},
	{"docs/security.md", "They seal all URLs again in the background, and keep concurrent changes.", "store/sealed", []string{"TestReseal_ConcurrentWriterWins"}},
	{"docs/security.md", "Each relayer sealed again gets a new revision: an earlier `If-Match` gets 412.", "store/sealed", []string{"TestReseal_OnRotateOff"}},
	{"docs/security.md", "The history has only masked URLs.", "store/bolt", []string{"TestHistory_NoPrivatePart"}},
	{"docs/security.md", "They do not in `encoding/gob`, in a query of `database/sql`, with the verbs `%p` and `%w`, in an unexported field or below a pointer in a value that package fmt prints, " +
		"and as a key of a map in JSON.", ".", []string{"TestRPCURL_BypassesOfMask", "TestRPCURL_KeyOfMap"}},

	{"docs/relayerd.md", "Until then their reads go on. Their writes go on too, unless the changelog calls the change of the schema incompatible",
		"store/postgres", []string{"TestNewerSchema_Compatible", "TestNewerSchema_Incompatible"}},
	{"docs/library.md", "Your `relayer.Observer` is called before each operation except watches, and returns a function that is called after it.", ".", []string{"TestObserver_Operations"}},
	{"docs/relayerd.md", "an ETag from after the backup may match another change", "store/bolt", []string{"TestBackup_DamagedFile"}},
	{"docs/relayerd.md", "The copy keeps order, revisions, ETags and the history", "cmd/relayerd", []string{"TestCopy_BothDirections"}},
	{"CONTRIBUTING.md", "Positions are valid within one store",
		"store/storetest", []string{`{randomName, randomCalls}`, `{"watch after an unknown position", watchAfterUnknown}`}},
}

func TestPages_ProvenStatements(t *testing.T) {
	for _, c := range proven {
		wantSays(t, c.page, c.statement)
		code := code(t, true, c.directory)
		for _, proof := range c.proofs {
			if strings.HasPrefix(proof, "Test") {
				proof = "\nfunc " + proof + "("
			}
			if !strings.Contains(code, proof) {
				t.Errorf("%s has no %q, the proof of %q", c.directory, proof, c.statement)
			}
		}
	}
}

// Before a release, the other modules require a version of the library that does not exist.
func TestPages_BeforeRelease(t *testing.T) {
	isReleased := regexp.MustCompile(`(?m)^## \[?v?\d`).MatchString(read(t, "CHANGELOG.md"))
	for _, c := range []struct{ file, text string }{
		{"README.md", "no version is released yet"},
		{"CHANGELOG.md", "No version is released yet"},
		{"CONTRIBUTING.md", "Nothing has been released yet"},
		{"docs/relayerd.md", "From a clone of the repository, as long as no version is released"},
		{"docs/postgres.md", "Before a release it needs [a clone](library.md#install)."},
		{"docs/library.md", "No version is released yet, so `go get` returns the latest commit"},
		{"docs/library.md", "are separate modules, for which `go get` fails before a release."},
		{"store/postgres/go.mod", rootPackage + " v0.0.0"},
		{"observe/otel/go.mod", rootPackage + " v0.0.0"},
		{"observe/prometheus/go.mod", rootPackage + " v0.0.0"},
	} {
		if says(t, c.file, c.text) == isReleased {
			t.Errorf("%s has %q: %t. A version is released: %t", c.file, c.text, !isReleased, isReleased)
		}
	}
}

// number returns the number that the first group of a pattern matches in a page.
func number(t *testing.T, page, pattern string) float64 {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, page))
	if found == nil {
		t.Fatalf("%s has no %s", page, pattern)
	}
	value, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(found[1]), 64)
	must(t, err)
	return value
}

// Advice on sizes follows from the tables, the figures and the constants.
func TestPages_Sizing(t *testing.T) {
	const sizing, figures = "docs/relayerd.md", "docs/internals.md"
	perRelayer := number(t, sizing, `size of the file without a history, after .compact. \|[^|]*\| (\d+) MB`) * 1e6 / 100_000 / 1e3
	fewest, most := number(t, figures, `; ([\d.]+) to [\d.]+ kB of the file for each change`), number(t, figures, `; [\d.]+ to ([\d.]+) kB of the file for each change`)
	retained := number(t, "store/bolt/options.go", `defaultHistoryChanges = ([\d_]+)`)
	wantSays(t, sizing, fmt.Sprintf("Count %.1f kB for such a relayer, and %.1f to %.1f kB for each change of the history: %.1f to %.1f MB for the 1,000 changes",
		math.Ceil(perRelayer*10)/10, fewest, most, retained*fewest/1e3, retained*most/1e3))
	wantSays(t, sizing, fmt.Sprintf("Each needs up to %.0f KiB and a file descriptor, a stream %.0f KiB. The unit allows 65,536 descriptors.",
		number(t, figures, `another connection (\d+) KiB`), number(t, figures, `a stream takes (\d+) KiB`)))
	if number(t, "deploy/relayerd.service", `(?m)^LimitNOFILE=(\d+)$`) != 65_536 {
		t.Error("the unit does not allow 65,536 descriptors")
	}
	connections := number(t, "store/postgres/store.go", `defaultMaxConns = (\d+)`)
	wantSays(t, sizing, fmt.Sprintf("Up to %.0f connections for each server, or the number of CPUs if greater, and one for change streams: with the defaults, "+
		"%.0f servers fit into the 100 connections", connections, math.Floor(100/(connections+1))))
	if perSecond := 1e6 / number(t, figures, `one change to one follower over HTTP \| ([\d.]+) µs`); number(t, sizing, `is at most ([\d,]+) for each core`) > perSecond {
		t.Errorf("a core sends at most %.0f changes per second", perSecond)
	}
	few, many := number(t, sizing, `after a start \|.*\| (\d+) MiB \| [\d,]+ MiB \|`), number(t, sizing, `after a start \|.*\| ([\d,]+) MiB \|`)
	wantSays(t, sizing, "Give a server with 100,000 relayers 256 MiB, and one with a million 2 GiB.")
	if 1.5*few > 256 || 1.5*many > 2048 {
		t.Errorf("a server takes %.0f MiB with 100,000 relayers, and %.0f MiB with a million", few, many)
	}
}

// Statements on the cost of pages agree with the table of figures.
func TestPages_CostOfPages(t *testing.T) {
	wantSays(t, "docs/security.md", "The cost of a page hardly grows with more relayers, except for a search, several values, several conditions that each select many, "+
		"and in PostgreSQL one condition that does and late pages by number.")
	wantSays(t, "docs/internals.md", "Several conditions take time in proportion to the smallest set of matches; PostgreSQL, and several values, in proportion to all.")
	var growing []string
	rows := regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| (?:[\d.]+ to )?([\d.]+) ms, (?:[\d.]+ to )?([\d.]+) ms \|$`).FindAllStringSubmatch(read(t, "docs/internals.md"), -1)
	for _, row := range rows { // of 100,000 and a million relayers
		few, _ := strconv.ParseFloat(row[2], 64)
		many, _ := strconv.ParseFloat(row[3], 64)
		if many > 2*few {
			growing = append(growing, row[1])
		}
	}
	if want := []string{"page of 10 of all relayers, at any offset", "page of half of the relayers", "two conditions"}; len(rows) != 3 || !slices.Equal(growing, want) {
		t.Errorf("of %d rows grow %q, want %q", len(rows), growing, want)
	}
}

// Every place that lists the keys of selectors has all of the table in the code.
func TestTable_SelectorKeys(t *testing.T) {
	code := partOf(t, "selector.go", "var selectorKeys = ", "\n}\n")
	places := map[string]string{
		"the doc comment of Selector": partOf(t, "selector.go", "// Selector selects", "type Selector"),
		"the table of filters":        section(t, "docs/http.md", "Filters"),
		"the page":                    partOf(t, "page/assets/search.js", "export const keys", "const reordering"),
	}
	count := 0
	for _, match := range regexp.MustCompile(`\{name: (\S+?),`).FindAllStringSubmatch(code, -1) {
		key := strings.Trim(match[1], `"`)
		if key == match[1] { // a constant
			key = regexp.MustCompile(match[1] + `\s+= "(\w+)"`).FindStringSubmatch(read(t, "selector.go"))[1]
		}
		if problem := (relayer.Selector{}).Where(key, "\x00").Err(); problem == nil || strings.Contains(problem.Error(), "not a known key") {
			t.Errorf("the package does not have the key %s: %v", key, problem)
		}
		for place, text := range places {
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(key) + `\b`).MatchString(text) {
				t.Errorf("%s lacks %s", place, key)
			}
		}
		count++
	}
	if count < 8 {
		t.Fatalf("found %d keys", count)
	}
}

// The reference has a section on each network type.
func TestTable_NetworkTypes(t *testing.T) {
	for _, name := range relayer.NetworkTypes() {
		if !regexp.MustCompile("(?im)^## `policies` \\(" + string(name) + "\\)$").MatchString(read(t, "docs/reference.md")) {
			t.Errorf("the reference has no section on %s", name)
		}
	}
}

// The numbers of formats are those of the constants.
func TestPages_FormatNumbers(t *testing.T) {
	for _, c := range []struct{ file, constant, page, text string }{
		{"store/bolt/format.go", "formatVersion", "docs/internals.md", "and the version, 4 bytes: N |"},
		{"store/bolt/format.go", "formatVersion", "docs/relayerd.md", "has the [format](internals.md#format) N."},
		{"store/bolt/format.go", "entryVersion", "docs/internals.md", "A record: version N "},
		{"store/postgres/schema.go", "schemaVersion", "docs/relayerd.md", "has the schema version N."},
	} {
		value := regexp.MustCompile(`\b` + c.constant + ` += (\d+)`).FindStringSubmatch(read(t, c.file))
		if value == nil {
			t.Fatalf("%s has no %s", c.file, c.constant)
		}
		wantSays(t, c.page, strings.Replace(c.text, "N", value[1], 1))
	}
}

// differences reports what only one of two sets has. A name with … stands for every name that
// begins with the text before it.
func differences(t *testing.T, documented, actual map[string]bool) {
	t.Helper()
	isActual := make(map[string]bool) // of the documented names
	for name := range actual {
		isDocumented := false
		for pattern := range documented {
			prefix, _, isPrefix := strings.Cut(pattern, "…")
			if name == pattern || isPrefix && strings.HasPrefix(name, prefix) {
				isDocumented, isActual[pattern] = true, true
			}
		}
		if !isDocumented {
			t.Errorf("the page lacks %q", name)
		}
	}
	for pattern := range documented {
		if !isActual[pattern] {
			t.Errorf("the page has %q, which does not exist", pattern)
		}
	}
	if len(actual) < 5 {
		t.Errorf("found only %d names in the code", len(actual))
	}
}

// The metrics that pages and alerts name exist.
func TestPages_Metrics(t *testing.T) {
	actual := set(`(?:Name: +|gauge\(|NewDesc\()"(relayerd?_[a-z_]+)"`, code(t, false, "cmd/relayerd", "observe/prometheus"))
	for name := range set(`\b(relayerd?_[a-z_]+_(?:total|seconds|bytes|bucket))\b`, read(t, "docs/relayerd.md")+read(t, "deploy/alerts.yaml")) {
		if !actual[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("no metric is named %s", name)
		}
	}
	if len(actual) < 8 {
		t.Errorf("found the metrics %v", actual)
	}
}

// Every warning and error that the server logs is in the table of the log, with what to do. A text
// that continues with a value ends with … there.
func TestPages_LogLines(t *testing.T) {
	documented := make(map[string]bool)
	for line := range strings.Lines(section(t, "docs/relayerd.md", "The log")) {
		if cell, isRow := strings.CutPrefix(line, "| "); isRow {
			cell, _, _ = strings.Cut(cell, " | ")
			maps.Copy(documented, set("`([^`]+)`", cell))
		}
	}
	delete(documented, "msg")
	differences(t, documented, set(`(?:logger\.(?:Warn|Error)\(|slog\.Level(?:Warn|Error), |level, )"([^"]+)"`,
		code(t, false, ".", "cmd/relayerd", "httpapi", "store/bolt", "store/postgres")))
}

func TestREADME_FirstSnippetIsMinimalExample(t *testing.T) {
	if got, want := partOf(t, "README.md", "```go\n", "```\n"), read(t, "examples/minimal/main.go"); got != want {
		t.Errorf("the first snippet is not examples/minimal/main.go:\n%s", got)
	}
}

// All snippets compile, as packages of one temporary module in a workspace with the modules of the
// repository. Only pages other than the README may show single statements, which are not compiled.
// A text block that follows a program is its output.
func TestSnippets(t *testing.T) {
	t.Parallel()
	module, count := newModule(t), 0
	outputs := make(map[string]string) // by directory
	for name, page := range pages(t) {
		all := blocks(page)
		for i, b := range all {
			isFragment := name != "README.md" && !strings.Contains(b.text, "import ")
			if b.language != "go" || isFragment {
				continue
			}
			directory := fmt.Sprintf("%s_%d", regexp.MustCompile(`\W`).ReplaceAllString(name, "_"), b.line)
			module.write(t, filepath.Join(directory, "snippet.go"), regexp.MustCompile(`^import `).ReplaceAllString(b.text, "package snippet\n\nimport "))
			count++
			if i+1 < len(all) && all[i+1].language == "text" {
				outputs[directory] = all[i+1].text
			}
		}
	}
	if count < 5 || len(outputs) < 2 {
		t.Fatalf("found %d snippets and %d programs with their output", count, len(outputs))
	}
	if output, err := module.command("vet", "./...").CombinedOutput(); err != nil {
		t.Fatalf("the directory of a snippet names its page and line: %v\n%s", err, output)
	}
	for directory, want := range outputs {
		if output, err := module.command("run", "./"+directory).CombinedOutput(); err != nil || string(output) != want {
			t.Errorf("%s prints, with error %v:\n%s", directory, err, output)
		}
	}
}

// module is the directory of a temporary module, with a workspace.
type module string

func newModule(t *testing.T) module {
	t.Helper()
	m := module(t.TempDir())
	root, err := filepath.Abs(repository)
	must(t, err)
	m.write(t, "go.mod", "module example.com/snippets\n\ngo 1.26.0\n")
	work := strings.ReplaceAll(read(t, "go.work"), "./", root+"/")
	m.write(t, "go.work", strings.ReplaceAll(work, "\t.\n", "\t.\n\t"+root+"\n"))
	return m
}

func (m module) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(string(m), name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// command returns a go command that runs in the module, without flags such as -race that the
// environment of the test sets.
func (m module) command(arguments ...string) *exec.Cmd {
	command := exec.Command("go", arguments...)
	command.Dir = string(m)
	command.Env = append(os.Environ(), "GOWORK="+filepath.Join(string(m), "go.work"), "GOFLAGS=-buildvcs=false")
	return command
}
