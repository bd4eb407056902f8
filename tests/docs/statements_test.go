package docs

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

// says reports whether a page has a text, which may be wrapped.
func says(t *testing.T, page, text string) bool {
	t.Helper()
	return strings.Contains(strings.Join(strings.Fields(read(t, page)), " "), text)
}

// wantSays checks that a page has a text.
func wantSays(t *testing.T, page, text string) {
	t.Helper()
	if !says(t, page, text) {
		t.Errorf("%s does not say %q", page, text)
	}
}

// proven are statements that were once wrong. A proof is a test of a directory, or another text
// of its Go files, such as the case of a test or a constant.
var proven = []struct {
	page, statement, directory string
	proofs                     []string
}{
	{"docs/postgres.md", "A page, its total and its position in the feed are of one snapshot, also with a selector or a search.",
		"store/storetest", []string{`{"readers see selections of one snapshot", readersSeeSelections}`, `{nil, []string{"a", "b"}, records}`}},
	{"README.md", "A page and its total come from one snapshot.", "store/memory", []string{"TestStore", "storetest.Run("}},
	{"docs/http.md", "A page and its `total_items` are of one snapshot", "store/bolt", []string{"TestStore", "storetest.RunDurable("}},
	{"docs/library.md", "A page, its total and its position in the feed are of one snapshot.", "store/postgres", []string{"TestStore", "storetest.RunDurable("}},

	{"docs/relayerd.md", "For `--drain-delay`, 3 seconds by default, `/healthz/ready` returns 503, so load balancers choose another server. Every request still works",
		"cmd/relayerd", []string{"TestShutdown_DrainDelay", `"drain-delay", 3*time.Second`}},
	{"docs/relayerd.md", "Set the interval of a balancer's health check to a third of `--drain-delay` or less.", "cmd/relayerd", []string{"TestRestart_TwoServers"}},
	{"docs/relayerd.md", "It asks the store at most once a second.", "cmd/relayerd", []string{"TestReadiness_AsksOncePerInterval", "probeInterval = time.Second\n"}},
	{"docs/relayerd.md", "The server refuses to start with both: unset `API_KEY`.", "cmd/relayerd", []string{"TestTokensFile_FailedStart"}},
	{"docs/relayerd.md", "writes that were refused before they reached the registry: 413, 415, and 503 of a limit.",
		"cmd/relayerd", []string{"TestAudit_WritesAndRefusals", "expectUnsupportedType(t, server)"}},
	{"docs/relayerd.md", "Without it, `/metrics` is on the public port and needs a token without a selector.", "cmd/relayerd", []string{"TestMetrics_NeedToken"}},
	{"docs/relayerd.md", "With `--metrics-addr`, `/metrics` is on that address only, without a token", "cmd/relayerd", []string{"TestMetricsAddress_SeparatePort"}},

	{"docs/migrating.md", "| `STORAGE_ENCRYPTION_KEY` | packages `store/sealed` and `keyring`, `relayerd serve --keys`: [sealing](security.md#sealing) encrypts RPC URLs.",
		"cmd/relayerd", []string{"TestServe_Keys"}},
	{"docs/relayerd.md", "Unless RPC URLs are [sealed](security.md#sealing), it contains them in clear.", "cmd/relayerd", []string{"TestServe_SealAndUnseal"}},
	{"docs/security.md", "The rest of a relayer, and the masked URLs, are not encrypted.", ".", []string{"TestSealed_SameDocument", "TestSealed_StoresNoURLInClear"}},
	{"docs/security.md", "the table `relayers` of PostgreSQL, its dumps, replicas and write-ahead log have the URLs in clear",
		"store/postgres", []string{"TestSchema_Catalog", `"tables with RPC URLs"`}},
	{"docs/security.md", "The history has only masked URLs.", "store/bolt", []string{"TestHistory_NoPrivatePart"}},
	{"docs/security.md", "It does not in `encoding/gob`, in a query of `database/sql`, with the verbs `%p` and `%w`, in an unexported field that package fmt prints, " +
		"and as a key of a map in JSON.", ".", []string{"TestRPCURL_BypassesOfMask", "TestRPCURL_KeyOfMap"}},

	{"docs/relayerd.md", "Until then their reads go on. Their writes go on too, unless the changelog calls the change of the schema incompatible.",
		"store/postgres", []string{"TestNewerSchema_Compatible", "TestNewerSchema_Incompatible"}},
	{"docs/library.md", "calls a function at the start of every operation that reaches the Manager, except a watch, and the function that it returns at the end",
		".", []string{"TestObserver_Operations"}},
	{"docs/relayerd.md", "an ETag that a client has read after it may match another change", "store/bolt", []string{"TestBackup_RevisionsContinue"}},
	{"docs/relayerd.md", "The copy keeps order, revisions, ETags and the history", "cmd/relayerd", []string{"TestCopy_BothDirections"}},
	{"CONTRIBUTING.md", "Positions are opaque, and valid within one store. ETags stay valid in a copy of a store.",
		"store/storetest", []string{`{randomName, randomCalls}`, `{"watch after an unknown position", watchAfterUnknown}`}},
	{"docs/relayerd.md", "`--insecure-http` permits an `http` URL of a host that is not local", "cmd/relayerd", []string{"TestPlan_InsecureHTTP", "TestPages_Flags"}},
	{"docs/relayerd.md", "`--rate`, 100 per second by default.", "cmd/relayerd", []string{"TestRate_Flag", "TestPages_Flags"}},
}

func TestPages_ProvenStatements(t *testing.T) {
	for _, c := range proven {
		wantSays(t, c.page, c.statement)
		paths, err := filepath.Glob(filepath.Join(repository, c.directory, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s has no Go files: %v", c.directory, err)
		}
		for _, proof := range c.proofs {
			if strings.HasPrefix(proof, "Test") {
				proof = "\nfunc " + proof + "("
			}
			if !slices.ContainsFunc(paths, func(path string) bool {
				code, err := os.ReadFile(path)
				return err == nil && strings.Contains(string(code), proof)
			}) {
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
		{"docs/postgres.md", "Before a release it needs [a clone](library.md)."},
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
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// Advice on sizes follows from the tables, the figures and the constants.
func TestPages_Sizing(t *testing.T) {
	const sizing, figures = "docs/relayerd.md", "docs/internals.md"
	perRelayer := number(t, sizing, `size of the file, after .compact. \|[^|]*\| (\d+) MB`) * 1e6 / 100_000 / 1e3
	fewest, most := number(t, figures, `; ([\d.]+) to [\d.]+ kB of the file for each change`), number(t, figures, `; [\d.]+ to ([\d.]+) kB of the file for each change`)
	retained := number(t, "store/bolt/options.go", `defaultHistoryChanges = ([\d_]+)`)
	wantSays(t, sizing, fmt.Sprintf("Count %.1f kB for such a relayer, and %.1f to %.1f kB for each change of the history: %.1f to %.1f MB for the 1,000 changes",
		math.Ceil(perRelayer*10)/10, fewest, most, retained*fewest/1e3, retained*most/1e3))
	wantSays(t, sizing, fmt.Sprintf("Each needs some %.0f KiB and a file descriptor, a stream %.0f KiB. The unit allows 65,536 descriptors.",
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

	_, limits, _ := strings.Cut(section(t, sizing, "Sizing"), "| memory limit of the cgroup |")
	few, many, _ := strings.Cut(limits, "| 1,000,000 relayers,")
	wantSays(t, sizing, "Give a server with 100,000 relayers 256 MiB, and one with a million 2 GiB.")
	for row, rows := range map[string]string{`\| 256 MiB \|.*`: few, `\| 2,048 MiB \|.*`: many} {
		if found := regexp.MustCompile(row).FindString(rows); found == "" || strings.Contains(found, "killed") {
			t.Errorf("the table does not have a sound row %s: %q", row, found)
		}
	}
	for name, page := range pages(t) {
		if strings.Contains(strings.ToLower(page), "resident memory") != (name == sizing) {
			t.Errorf("the resident memory is in %s, want only in %s", name, sizing)
		}
	}
}

// Statements on the cost of pages agree with the table of figures.
func TestPages_CostOfPages(t *testing.T) {
	wantSays(t, "docs/security.md", "The cost of a page hardly grows with the number of relayers, except for a search, for several conditions that each select many, "+
		"and in PostgreSQL for one that does.")
	wantSays(t, "docs/security.md", "and that of a search or of several conditions also by the number of relayers.")
	wantSays(t, "docs/internals.md", "Two conditions, or one with several values, cost time in proportion to the smaller set of matches")
	var growing []string
	rows := regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| ([\d.]+) ms, ([\d.]+) ms \|$`).FindAllStringSubmatch(read(t, "docs/internals.md"), -1)
	for _, row := range rows { // of 100,000 and a million relayers
		few, _ := strconv.ParseFloat(row[2], 64)
		many, _ := strconv.ParseFloat(row[3], 64)
		if many > 2*few {
			growing = append(growing, row[1])
		}
	}
	if want := []string{"page of half of the relayers", "two conditions"}; len(rows) != 4 || !slices.Equal(growing, want) {
		t.Errorf("of %d rows grow %q, want %q", len(rows), growing, want)
	}
	fewest, most := number(t, "docs/internals.md", `\| ([\d.]+) µs \(500,000 and 100 matches\)`), number(t, "docs/internals.md", `, ([\d.]+) ms \(500,000 and 333,000\)`)*1000
	if each, others := fewest/100, most/333_000; each > 2*others || others > 2*each {
		t.Errorf("a match takes %.3f µs of 100, and %.3f µs of 333,000", each, others)
	}
}

var (
	revisionMember = regexp.MustCompile(`"revision":\d+`)
	timeMember     = regexp.MustCompile(`"time":"[0-9T:.-]+Z"`)

	requestIDMember = regexp.MustCompile(`"request_id":"[^"]+"`)
)

// The sample of changes is that of a response, except for the revision and the time.
func TestPages_ChangesSample(t *testing.T) {
	manager, handler := newAPI(t, httpapi.TrustHost())
	_, err := manager.Create(t.Context(), relayer.CreateRequest{ID: "a", Name: "A", Network: "n", NetworkType: relayer.EVM, SignerID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPatch, "/api/v1/relayers/a?changes=true", strings.NewReader(`{"paused":true}`))
	request = request.WithContext(relayer.WithActor(request.Context(), relayer.Actor{ID: "alice"}))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Change-Reason", "incident 42")
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	normal := func(text string) string {
		text = requestIDMember.ReplaceAllString(strings.ReplaceAll(text, "\n", ""), `"request_id":I`)
		return timeMember.ReplaceAllString(revisionMember.ReplaceAllString(text, `"revision":N`), `"time":T`)
	}
	samples := blocks(section(t, "docs/http.md", "Who changed it"))
	if len(samples) == 0 {
		t.Fatal("the page has no sample")
	}
	if want := normal(strings.TrimSpace(samples[0].text)); !strings.Contains(normal(response.Body.String()), want) {
		t.Errorf("the response is %s, and the page has %s", response.Body, want)
	}
}
