package docs

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

var (
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	anchorLink  = regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
)

// anchors returns the anchors of the headings of a page.
func anchors(page string) map[string]bool {
	found := make(map[string]bool)
	for _, match := range heading.FindAllStringSubmatch(withoutBlocks(page), -1) {
		text := notInAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(text, " ", "-")] = true
	}
	return found
}

func TestPages_Anchors(t *testing.T) {
	all := pages(t)
	count := 0
	for name, page := range all {
		for _, match := range anchorLink.FindAllStringSubmatch(withoutBlocks(page), -1) {
			target := name
			if match[1] != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(name), match[1]))
			}
			count++
			if !anchors(all[target])[match[2]] {
				t.Errorf("%s links to %s#%s, which does not exist", name, target, match[2])
			}
		}
	}
	if count < 20 {
		t.Errorf("found %d links to headings", count)
	}
}

// The numbers of formats are those of the constants.
func TestPages_FormatNumbers(t *testing.T) {
	for _, c := range []struct{ file, constant, page, text string }{
		{"store/bolt/format.go", "formatVersion", "docs/internals.md", "and the version, 4 bytes: N |"},
		{"store/bolt/format.go", "formatVersion", "docs/relayerd.md", "has the [format](internals.md#format) N."},
		{"store/bolt/format.go", "entryVersion", "docs/internals.md", "A record: version N "},
		{"store/postgres/schema.go", "schemaVersion", "docs/postgres.md", "The version of the schema is N,"},
		{"store/postgres/schema.go", "schemaVersion", "docs/relayerd.md", "has the schema version N."},
	} {
		value := regexp.MustCompile(`\b` + c.constant + ` += (\d+)`).FindStringSubmatch(read(t, c.file))
		if value == nil {
			t.Fatalf("%s has no %s", c.file, c.constant)
		}
		wantSays(t, c.page, strings.Replace(c.text, "N", value[1], 1))
	}
}

// sources returns the Go files, without tests, of directories.
func sources(t *testing.T, directories ...string) string {
	t.Helper()
	var text strings.Builder
	for _, directory := range directories {
		paths, err := filepath.Glob(filepath.Join(repository, directory, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s has no Go files: %v", directory, err)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				name, _ := filepath.Rel(repository, path)
				text.WriteString(read(t, name))
			}
		}
	}
	return text.String()
}

// section returns the part of a page from a heading to the next one of its level.
func section(t *testing.T, page, title string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, page), "\n## "+title+"\n")
	if !found {
		t.Fatalf("%s has no section %s", page, title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// differences reports what only one of two sets has. A name with … stands for every name that
// begins with the text before it.
func differences(t *testing.T, documented, actual map[string]bool) {
	t.Helper()
	matches := func(name, pattern string) bool {
		prefix, _, isPrefix := strings.Cut(pattern, "…")
		return name == pattern || isPrefix && strings.HasPrefix(name, prefix)
	}
	matchesAny := func(found map[string]bool, match func(other string) bool) bool {
		for other := range found {
			if match(other) {
				return true
			}
		}
		return false
	}
	for name := range actual {
		if !matchesAny(documented, func(pattern string) bool { return matches(name, pattern) }) {
			t.Errorf("the page lacks %q", name)
		}
	}
	for pattern := range documented {
		if !matchesAny(actual, func(name string) bool { return matches(name, pattern) }) {
			t.Errorf("the page has %q, which does not exist", pattern)
		}
	}
	if len(actual) < 5 {
		t.Errorf("found only %d names in the code", len(actual))
	}
}

// set returns the first groups of all matches.
func set(pattern, text string) map[string]bool {
	found := make(map[string]bool)
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return found
}

func TestPages_Metrics(t *testing.T) {
	differences(t,
		set("`(relayerd?_[a-z_]+…?)", section(t, "docs/relayerd.md", "Metrics and alerts")),
		set(`(?:Name: +|gauge\(|NewDesc\()"(relayerd?_[a-z_]+)"`, sources(t, "cmd/relayerd", "observe/prometheus")))
}

// Every line that the server logs is in the section on the log, with what to do. A text that
// continues with a value ends with … there.
func TestPages_LogLines(t *testing.T) {
	code := sources(t, ".", "cmd/relayerd", "httpapi", "store/bolt")
	logged := set(`(?:logger\.(?:Debug|Info|Warn|Error)\(|slog\.Level\w+, |level, )"([^"]+)"`, code)
	documented := make(map[string]bool)
	for paragraph := range strings.SplitSeq(section(t, "docs/relayerd.md", "The log"), "\n\n") {
		cells := []string{paragraph}
		if strings.HasPrefix(paragraph, "| ") {
			cells = nil
			for line := range strings.Lines(paragraph) {
				first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
				cells = append(cells, first)
			}
		} else if !strings.HasPrefix(paragraph, "Lines that need none:") {
			continue
		}
		for _, cell := range cells {
			for name := range set("`([^`]+)`", strings.Join(strings.Fields(cell), " ")) {
				documented[name] = true
			}
		}
	}
	delete(documented, "msg")
	differences(t, documented, logged)
}

// event matches what differs between two runs of the same stream.
var event = regexp.MustCompile(`(?m)(^id: |"complete_ms":)[0-9A-Z.]+`)

// The stream of docs/http.md is that of a server: the relayer of the README, which is paused.
func TestPages_StreamEvents(t *testing.T) {
	manager, handler := newAPI(t, httpapi.TrustHost())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(relayer.WithActor(r.Context(), relayer.Actor{ID: "tester"})))
	}))
	defer server.Close()
	_, err := manager.Create(t.Context(), relayer.CreateRequest{ID: "sepolia-1", Name: "Sepolia", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer"})
	if err != nil {
		t.Fatal(err)
	}

	var want []string
	for _, b := range blocks(section(t, "docs/http.md", "Change streams")) {
		if b.language == "console" {
			_, text, _ := strings.Cut(b.text, "\n") // without the command
			want = strings.Split(strings.TrimSpace(event.ReplaceAllString(text, "${1}N")), "\n")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/relayers:watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for i, line := range want {
		if !lines.Scan() {
			t.Fatalf("the stream ends before line %d: %v", i+1, lines.Err())
		}
		if got := event.ReplaceAllString(lines.Text(), "${1}N"); got != line {
			t.Fatalf("line %d is %q, want %q", i+1, got, line)
		}
		if lines.Text() == "event: resync" {
			if _, err := manager.Pause(t.Context(), "sepolia-1"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Statements of the pages about responses. Each was wrong once.
func TestPages_Statements(t *testing.T) {
	const (
		token = "0123456789abcdef"
		label = "A key is 1 to 63 of A–Z a–z 0–9 _ . - / and begins and ends with a letter or digit. A value is at most 128 characters without control characters."
	)
	authenticate, err := httpapi.Tokens(map[string][]string{"operator": {token}})
	if err != nil {
		t.Fatal(err)
	}
	manager, handler := newAPI(t, authenticate)
	_, err = manager.Create(t.Context(), relayer.CreateRequest{ID: "a", Name: "A", Network: "n", NetworkType: relayer.EVM, SignerID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		page, statement          string
		method, path, body, auth string
		status                   int
		etag                     string
	}{
		{"docs/library.md", "A preflight has no token, and gets 401.", "OPTIONS", "", "", "", http.StatusUnauthorized, ""},
		{"docs/http.md", "If it has a relayer, its `ETag` is the current revision.", "PATCH", "/a?dry_run=true", `{"paused":true}`, token, http.StatusOK, `"1"`},
		{"docs/http.md", "If it has a relayer, its `ETag` is the current revision.", "DELETE", "/a?dry_run=true", "", token, http.StatusOK, ""},
		{"docs/reference.md", label, "PATCH", "/a?dry_run=true", `{"labels":{"Az0_.-/9` + strings.Repeat("a", 55) + `":"` + strings.Repeat("é", 128) + `"}}`, token, http.StatusOK, `"1"`},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"` + strings.Repeat("a", 64) + `":""}}`, token, http.StatusBadRequest, ""},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"a":"` + strings.Repeat("b", 129) + `"}}`, token, http.StatusBadRequest, ""},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"-a":"b"}}`, token, http.StatusBadRequest, ""},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"a:a":"b"}}`, token, http.StatusBadRequest, ""},
		{"docs/http.md", "Without it they are unknown.", "PUT", "/a/disabled_reason", `{"type":"x"}`, token, http.StatusNotFound, ""},
	} {
		wantSays(t, c.page, c.statement)
		request := httptest.NewRequest(c.method, "/api/v1/relayers"+c.path, strings.NewReader(c.body))
		request.Header.Set("Content-Type", "application/json")
		if c.auth != "" {
			request.Header.Set("Authorization", "Bearer "+c.auth)
		}
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		if response.Code != c.status || response.Header().Get("ETag") != c.etag {
			t.Errorf("%s %s: status %d, ETag %s, want %d, %s", c.method, c.path, response.Code, response.Header().Get("ETag"), c.status, c.etag)
		}
	}
}
