package docs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

func TestREADME_FirstSnippetIsMinimalExample(t *testing.T) {
	for _, b := range blocks(read(t, "README.md")) {
		if b.language != "go" {
			continue
		}
		if b.text != read(t, "examples/minimal/main.go") {
			t.Errorf("README.md:%d is not examples/minimal/main.go", b.line)
		}
		return
	}
	t.Error("README.md has no Go snippet")
}

// All snippets are packages of one temporary module, in a workspace with the
// modules of the repository. Only pages other than the README may show single
// statements, which are not compiled.
func TestSnippets_Compile(t *testing.T) {
	module := newModule(t)
	count := 0
	for name, page := range pages(t) {
		for _, b := range blocks(page) {
			isFragment := name != "README.md" && !strings.Contains(b.text, "import ")
			if b.language == "go" && !isFragment {
				module.write(t, fmt.Sprintf("%s_%d", strings.NewReplacer("/", "_", ".md", "").Replace(name), b.line), b.text)
				count++
			}
		}
	}
	if count == 0 {
		t.Fatal("found no Go snippet")
	}
	if output, err := module.command("vet", "./...").CombinedOutput(); err != nil {
		t.Errorf("the directory of a snippet names its page and line: %v\n%s", err, output)
	}
}

// A text block that follows a Go program is its output.
func TestSnippets_Output(t *testing.T) {
	module := newModule(t)
	count := 0
	for name, page := range pages(t) {
		all := blocks(page)
		for i, b := range all[:max(0, len(all)-1)] {
			if b.language != "go" || all[i+1].language != "text" {
				continue
			}
			count++
			directory := fmt.Sprintf("program_%d", count)
			module.write(t, directory, b.text)
			output, err := module.command("run", "./"+directory).CombinedOutput()
			if err != nil || string(output) != all[i+1].text {
				t.Errorf("%s:%d prints, with error %v:\n%s", name, b.line, err, output)
			}
		}
	}
	if count == 0 {
		t.Error("found no program with its output")
	}
}

var (
	curlBody     = regexp.MustCompile(`(?s)-d '(.*?)'`)
	curlPath     = regexp.MustCompile(`http://127\.0\.0\.1:8080(/[^'\s]*)`)
	curlResponse = regexp.MustCompile(`(?m)^\{"success".*$`)
)

// The requests of console blocks with a body are creates on one registry, the others gets. A
// response with … is not complete.
func TestPages_CurlResponses(t *testing.T) {
	_, handler := newAPI(t, httpapi.TrustHost())
	count := 0
	for _, b := range append(blocks(read(t, "README.md")), blocks(read(t, "docs/http.md"))...) {
		body := curlBody.FindStringSubmatch(b.text)
		path, want := curlPath.FindStringSubmatch(b.text), curlResponse.FindString(b.text)
		if b.language != "console" || path == nil || want == "" || strings.Contains(want, "…") {
			continue
		}
		count++
		request := httptest.NewRequest(http.MethodGet, path[1], nil)
		if body != nil {
			request = httptest.NewRequest(http.MethodPost, path[1], strings.NewReader(body[1]))
		}
		request = request.WithContext(relayer.WithActor(request.Context(), relayer.Actor{ID: "tester"}))
		request.Header.Set("Content-Type", "application/json")
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		if got := response.Body.String(); strings.TrimSpace(got) != want {
			t.Errorf("line %d: response is %s, want %s", b.line, got, want)
		}
	}
	if count != 3 {
		t.Errorf("found %d curl requests with a response, want 3", count)
	}
}

// newAPI returns an empty registry and its API.
func newAPI(t *testing.T, authenticate httpapi.Authenticator) (*relayer.Manager, http.Handler) {
	t.Helper()
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(manager, authenticate)
	if err != nil {
		t.Fatal(err)
	}
	return manager, handler
}

// module is a temporary module in a workspace with those of the repository.
type module struct {
	directory string
	workspace string
}

func newModule(t *testing.T) module {
	t.Helper()
	m := module{directory: t.TempDir()}
	m.workspace = filepath.Join(m.directory, "go.work")
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	m.file(t, "go.mod", "module example.com/snippets\n\ngo 1.26.0\n")
	work := read(t, "go.work")
	work = strings.ReplaceAll(work, "./", root+"/")
	work = strings.ReplaceAll(work, "\t.\n", "\t.\n\t"+root+"\n")
	m.file(t, "go.work", work)
	return m
}

func (m module) write(t *testing.T, directory, snippet string) {
	t.Helper()
	if strings.HasPrefix(snippet, "import ") {
		snippet = "package snippet\n\n" + snippet
	}
	name := "snippet.go"
	if strings.Contains(snippet, "*testing.T") {
		name = "snippet_test.go"
	}
	m.file(t, filepath.Join(directory, name), snippet)
}

func (m module) file(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(m.directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command returns a go command that runs in the module, without flags such as
// -race that the environment of the test sets.
func (m module) command(arguments ...string) *exec.Cmd {
	command := exec.Command("go", arguments...)
	command.Dir = m.directory
	command.Env = append(os.Environ(), "GOWORK="+m.workspace, "GOFLAGS=-buildvcs=false")
	return command
}
