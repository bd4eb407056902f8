// Package docs checks the documentation against the code: snippets compile, samples are real
// responses, and cited tests, names, files and figures exist.
package docs

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const (
	repository  = "../.."
	rootPackage = "github.com/go-relayer/relayer"
)

// pages returns the text of every Markdown page by its path in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(paths) < 3 {
			t.Fatalf("%s: %d pages, error %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			name, _ := filepath.Rel(repository, path)
			texts[filepath.ToSlash(name)] = read(t, name)
		}
	}
	return texts
}

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, name))
	must(t, err)
	return string(content)
}

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

// section returns the part of a page from a heading to the next one of its level.
func section(t *testing.T, page, title string) string {
	t.Helper()
	return partOf(t, page, "\n## "+title+"\n", "\n## ")
}

// partOf returns the part of a file from one text to the next occurrence of another, or to the end.
func partOf(t *testing.T, name, from, to string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, name), from)
	if !found {
		t.Fatalf("%s does not have %q", name, from)
	}
	text, _, _ = strings.Cut(text, to)
	return text
}

// block is a fenced code block.
type block struct {
	language string
	text     string
	line     int
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

func blocks(page string) []block {
	var found []block
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		found = append(found, block{page[at[2]:at[3]], page[at[4]:at[5]], 1 + strings.Count(page[:at[4]], "\n")})
	}
	return found
}

// withoutBlocks returns a page without its code blocks, which are compiled.
func withoutBlocks(page string) string { return fence.ReplaceAllString(page, "") }

// set returns the first groups of all matches.
func set(pattern, text string) map[string]bool {
	found := make(map[string]bool)
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return found
}

// code returns the Go files of directories, with or without their tests.
func code(t *testing.T, withTests bool, directories ...string) string {
	t.Helper()
	var text strings.Builder
	for _, directory := range directories {
		paths, err := filepath.Glob(filepath.Join(repository, directory, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s has no Go files: %v", directory, err)
		}
		for _, path := range paths {
			if withTests || !strings.HasSuffix(path, "_test.go") {
				name, _ := filepath.Rel(repository, path)
				text.WriteString(read(t, name))
			}
		}
	}
	return text.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	testName     = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)(?:_?[A-Z]\w*)`)
	exportedName = regexp.MustCompile("`(?:\\[?\\*)?([a-z]+)\\.([A-Z]\\w*)")
	sourceFile   = regexp.MustCompile("`([\\w./]+\\.go)`")
	pageLink     = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]+))?\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Each test and exported name that a page cites is declared.
func TestPages_CitedNamesExist(t *testing.T) {
	names := declaredNames(t)
	tests, exported := 0, 0
	for name, page := range pages(t) {
		for _, test := range testName.FindAllString(withoutBlocks(page), -1) {
			tests++
			if !names["test"][test] {
				t.Errorf("%s cites %s, which does not exist", name, test)
			}
		}
		for _, match := range exportedName.FindAllStringSubmatch(withoutBlocks(page), -1) {
			declared, ours := names[match[1]]
			if !ours {
				continue // a package of the standard library
			}
			exported++
			if !declared[match[2]] {
				t.Errorf("%s cites %s.%s, which does not exist", name, match[1], match[2])
			}
		}
	}
	if tests < 30 || exported < 50 {
		t.Errorf("the pages cite %d tests and %d exported names", tests, exported)
	}
}

var (
	packageName = regexp.MustCompile(`(?m)^package (\w+)$`)
	declaration = regexp.MustCompile(`(?m)^(?:func |type |var |const |\t)([A-Z]\w*)`)
)

// declaredNames returns the names that the Go files of the repository may declare, by package, and
// those of test files by "test".
func declaredNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		code, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := "test"
		if match := packageName.FindSubmatch(code); match != nil && !strings.HasSuffix(path, "_test.go") {
			name = string(match[1])
		}
		if found[name] == nil {
			found[name] = make(map[string]bool)
		}
		for _, match := range declaration.FindAllSubmatch(code, -1) {
			found[name][string(match[1])] = true
		}
		return nil
	})
	must(t, err)
	return found
}

// Each file that a page cites exists, and each link leads to a file and to a heading.
func TestPages_LinksExist(t *testing.T) {
	all := pages(t)
	count := 0
	for name, page := range all {
		for _, match := range sourceFile.FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(match[1]))); err != nil {
				t.Errorf("%s cites %s, which does not exist", name, match[1])
			}
		}
		for _, match := range pageLink.FindAllStringSubmatch(withoutBlocks(page), -1) {
			target := name
			if match[1] != "" {
				target = path.Join(path.Dir(name), match[1])
			}
			if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, target)
			}
			if match[2] != "" && !anchors(all[target])[match[2]] {
				t.Errorf("%s links to %s#%s, which does not exist", name, target, match[2])
			}
			count++
		}
	}
	if count < 100 {
		t.Errorf("found %d links", count)
	}
}

// anchors returns the anchors of the headings of a page.
func anchors(page string) map[string]bool {
	found := make(map[string]bool)
	for _, match := range heading.FindAllStringSubmatch(withoutBlocks(page), -1) {
		text := notInAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(text, " ", "-")] = true
	}
	return found
}

func TestREADME_DependencyCount(t *testing.T) {
	module := read(t, "go.mod")
	all := len(regexp.MustCompile(`(?m)^\t\S+ v\S+`).FindAllString(module, -1))
	indirect := strings.Count(module, "// indirect")
	wantSays(t, "README.md", fmt.Sprintf("%d direct and %d indirect", all-indirect, indirect))
}

// CI runs the commands that the README lists, with their results as JSON.
func TestREADME_TestCommandsRunInCI(t *testing.T) {
	_, lane, _ := strings.Cut(strings.ReplaceAll(read(t, ".ci/run"), " test -json ", " test "), "the commands of README.md")
	commands := set(`(?m)^(go (?:-C \S+ )?test \S+)`, read(t, "README.md"))
	for command := range commands {
		if !strings.Contains(lane, command+`"`) {
			t.Errorf(".ci/run does not run %q", command)
		}
	}
	if len(commands) < 5 {
		t.Errorf("README.md lists the commands %v", commands)
	}
}

const samplesToken = "0123456789abcdef"

// newAPI returns a registry with some relayers, and its API.
func newAPI(t *testing.T, requests ...relayer.CreateRequest) (*relayer.Manager, http.Handler) {
	t.Helper()
	manager, err := relayer.New(memory.New())
	must(t, err)
	authenticate, err := httpapi.Tokens(map[string][]string{"alice": {samplesToken}})
	must(t, err)
	handler, err := httpapi.New(manager, authenticate)
	must(t, err)
	for _, request := range requests {
		_, err := manager.Create(t.Context(), request)
		must(t, err)
	}
	return manager, handler
}

// send returns the response to a request with a body in JSON.
func send(handler http.Handler, method, path, body, token string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Change-Reason", "incident 42")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return response
}

var minimal = relayer.CreateRequest{ID: "a", Name: "A", Network: "n", NetworkType: relayer.EVM, SignerID: "s"}

var (
	curlBody     = regexp.MustCompile(`(?s)-d '(.*?)'`)
	curlPath     = regexp.MustCompile(`http://127\.0\.0\.1:8080(/[^'\s]*)`)
	curlResponse = regexp.MustCompile(`(?m)^\{"success".*$`)
)

// The requests with a body are creates on one registry, the others gets. The response is in the same
// block or, so that the command can be copied, in the next one. A response with … is not complete.
func TestPages_CurlResponses(t *testing.T) {
	_, handler := newAPI(t)
	count := 0
	all := append(blocks(read(t, "README.md")), blocks(read(t, "docs/http.md"))...)
	for i, b := range all {
		if b.language == "sh" && i+1 < len(all) && all[i+1].language == "json" {
			b.text += all[i+1].text
		}
		path, want := curlPath.FindStringSubmatch(b.text), curlResponse.FindString(b.text)
		if path == nil || want == "" || strings.Contains(want, "…") {
			continue
		}
		count++
		method, body := http.MethodGet, ""
		if found := curlBody.FindStringSubmatch(b.text); found != nil {
			method, body = http.MethodPost, found[1]
		}
		if got := strings.TrimSpace(send(handler, method, path[1], body, samplesToken).Body.String()); got != want {
			t.Errorf("line %d: response is %s, want %s", b.line, got, want)
		}
	}
	if count != 3 {
		t.Errorf("found %d curl requests with a response, want 3", count)
	}
}

// varying matches what differs between two runs of the same requests.
var varying = regexp.MustCompile(`(?m)(^id: |"complete_ms":|"revision":|"time":"|"request_id":")[^,}"\n]+`)

// The stream of docs/http.md comes from a server: the relayer of the README, which is paused.
func TestPages_StreamEvents(t *testing.T) {
	t.Parallel()
	manager, handler := newAPI(t, relayer.CreateRequest{ID: "sepolia-1", Name: "Sepolia", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer"})
	server := httptest.NewServer(handler)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/relayers:watch", nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+samplesToken)
	response, err := server.Client().Do(request)
	must(t, err)
	defer response.Body.Close()
	sample := partOf(t, "docs/http.md", "/api/v1/relayers:watch'\n", "\n```")
	lines := bufio.NewScanner(response.Body)
	for want := range strings.Lines(strings.TrimSpace(varying.ReplaceAllString(sample, "${1}N"))) {
		if !lines.Scan() {
			t.Fatalf("the stream ends before %q: %v", want, lines.Err())
		}
		if got := varying.ReplaceAllString(lines.Text(), "${1}N"); got != strings.TrimSpace(want) {
			t.Fatalf("a line is %q, want %q", got, want)
		}
		if lines.Text() == "event: resync" {
			_, err := manager.Pause(t.Context(), "sepolia-1")
			must(t, err)
		}
	}
}

// The sample of changes comes from a response.
func TestPages_ChangesSample(t *testing.T) {
	_, handler := newAPI(t, minimal)
	response := send(handler, http.MethodPatch, "/api/v1/relayers/a?changes=true", `{"paused":true}`, samplesToken)
	sample := strings.ReplaceAll(partOf(t, "docs/http.md", "```json\n", "\n```"), "\n", "")
	if got, want := varying.ReplaceAllString(response.Body.String(), "${1}N"), varying.ReplaceAllString(sample, "${1}N"); !strings.Contains(got, want) {
		t.Errorf("the response is %s, and the page has %s", got, want)
	}
}

// Statements of the pages about responses. Each was wrong once.
func TestPages_Responses(t *testing.T) {
	const label = "A key is 1 to 63 of A–Z a–z 0–9 _ . - / and begins and ends with a letter or digit. A value is at most 128 characters without control characters."
	_, handler := newAPI(t, minimal)
	for _, c := range []struct {
		page, statement           string
		method, path, body, token string
		status                    int
		etag                      string
	}{
		{"docs/library.md", "A preflight has no token, and gets 401.", "OPTIONS", "", "", "", 401, ""},
		{"docs/http.md", "The `ETag` of a dry run is the current revision.", "PATCH", "/a?dry_run=true", `{"paused":true}`, samplesToken, 200, `"1"`},
		{"docs/http.md", "a create gets 200 without `ETag` and `Location`", "POST", "?dry_run=true",
			`{"name":"b","network":"n","network_type":"evm","paused":false,"signer_id":"s"}`, samplesToken, 200, ""},
		{"docs/reference.md", label, "PATCH", "/a?dry_run=true", `{"labels":{"Az0_.-/9` + strings.Repeat("a", 55) + `":"` + strings.Repeat("é", 128) + `"}}`, samplesToken, 200, `"1"`},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"` + strings.Repeat("a", 64) + `":""}}`, samplesToken, 400, ""},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"a":"` + strings.Repeat("b", 129) + `"}}`, samplesToken, 400, ""},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"-a":"b"}}`, samplesToken, 400, ""},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"a:a":"b"}}`, samplesToken, 400, ""},
		{"docs/http.md", "Without it they are unknown: the paths are 404", "PUT", "/a/disabled_reason", `{"type":"x"}`, samplesToken, 404, ""},
		{"docs/http.md", "`after` together with `page` is 400.", "GET", "?after=&page=1", "", samplesToken, 400, ""},
		{"docs/http.md", "A value that the field cannot have is 400.", "GET", "?paused=maybe", "", samplesToken, 400, ""},
	} {
		wantSays(t, c.page, c.statement)
		response := send(handler, c.method, "/api/v1/relayers"+c.path, c.body, c.token)
		if response.Code != c.status || response.Header().Get("ETag") != c.etag {
			t.Errorf("%s %s: status %d, ETag %s, want %d, %s", c.method, c.path, response.Code, response.Header().Get("ETag"), c.status, c.etag)
		}
	}
}
