package docs

import (
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var secretFile = regexp.MustCompile(`--(?:db|tokens-file|keys|tls-cert|tls-key|from|to) ([\w./-]+\.\w+|tokens)`)

// The files with secrets that the pages name get neither into a commit nor into the context of an
// image.
func TestIgnoreFiles_Secrets(t *testing.T) {
	var names []string
	for _, page := range pages(t) {
		for _, match := range secretFile.FindAllStringSubmatch(page, -1) {
			names = append(names, path.Base(match[1]))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if !slices.Contains(names, "tokens") || !slices.Contains(names, "relayer.keys") || !slices.Contains(names, "key.pem") {
		t.Fatalf("the pages name %q", names)
	}
	patterns := strings.Fields(read(t, ".dockerignore"))
	for _, name := range names {
		for _, file := range []string{name, "deploy/" + name} {
			if err := exec.Command("git", "-C", repository, "check-ignore", "-q", "--no-index", file).Run(); err != nil {
				t.Errorf(".gitignore does not name %s: %v", file, err)
			}
		}
		if !slices.ContainsFunc(patterns, func(pattern string) bool {
			suffix, anywhere := strings.CutPrefix(pattern, "**/")
			matches, _ := path.Match(suffix, name)
			return anywhere && matches
		}) {
			t.Errorf(".dockerignore does not name %s", name)
		}
	}
}

// The code of a pull request gets neither credentials nor a privileged container, and nobody can
// change what an action or an image is.
func TestWorkflow_LeastPrivilege(t *testing.T) {
	workflow := read(t, ".github/workflows/ci.yml")
	for lines, want := range map[string]string{
		`uses:.*`:                `^uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`,
		`(?:image:|docker://).*`: `^image: \S+@sha256:[0-9a-f]{64}$`,
		`(?s)uses: actions/checkout@.*?(?:- run|\z)`: `(?s)\n\s+with:\n.*persist-credentials: false\n`,
		`(?m)^ *permissions:(?:\n +.+)+`:             `^permissions:\n  contents: read$`,
	} {
		found := regexp.MustCompile(lines).FindAllString(workflow, -1)
		if len(found) == 0 {
			t.Errorf("the workflow has no line %q", lines)
		}
		for _, text := range found {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("the workflow has %q, want %q", text, want)
			}
		}
	}
	if found := regexp.MustCompile(`--privileged|pull_request_target|secrets\.|github\.token|write-all`).FindString(workflow); found != "" {
		t.Errorf("the workflow has %q", found)
	}
}
