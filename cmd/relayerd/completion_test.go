package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// complete returns the words that bash offers for an incomplete command line.
func complete(t *testing.T, line string) (words []string) {
	t.Helper()
	const library = "/usr/share/bash-completion/bash_completion"
	bash := requireProgram(t, "bash")
	if _, err := os.Stat(library); err != nil {
		skipUnlessCI(t, err)
	}
	directory := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(directory, "relayerd")); err != nil {
		t.Fatal(err)
	}
	const script = `. ` + library + `
. <(relayerd completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
[[ $(complete -p relayerd) =~ -F\ ([^ ]+) ]] && "${BASH_REMATCH[1]}"
printf '%s\n' "${COMPREPLY[@]}"`
	command := exec.Command(bash, append([]string{"--norc", "--noprofile", "-c", script, "bash"}, strings.Fields(line)...)...)
	command.Env = append(os.Environ(), asServer+"=1", "PATH="+directory+":"+os.Getenv("PATH"))
	// bash reports on stderr that no key was pressed.
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for line := range strings.Lines(string(output)) {
		// A description follows the word if there are several.
		words = append(words, strings.Fields(line)[0])
	}
	slices.Sort(words)
	return words
}

func TestCompletion_Bash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"relayerd ser", "serve"},
		{"relayerd com", "compact completion"},
		{"relayerd serve --ad", "--addr"},
		{"relayerd serve --tls-", "--tls-cert --tls-key"},
		{"relayerd serve --metrics", "--metrics-addr"},
		{"relayerd serve --log-format j", "json"},
	} {
		if words := strings.Join(complete(t, c.line), " "); words != c.want {
			t.Errorf("%s: bash offers %q, want %q", c.line, words, c.want)
		}
	}
}
