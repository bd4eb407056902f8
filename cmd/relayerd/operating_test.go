package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// operatingBlocks returns the code blocks of docs/operating.md in a language.
func operatingBlocks(t *testing.T, language string) (blocks []string) {
	t.Helper()
	page := string(readFile(t, "../../docs/operating.md"))
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, found[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("the page has no block in %s", language)
	}
	return blocks
}

// operatingCommands returns the relayerd commands of docs/operating.md.
func operatingCommands(t *testing.T) [][]string {
	t.Helper()
	var commands [][]string
	for _, block := range operatingBlocks(t, "sh") {
		for line := range strings.Lines(block) {
			if args, ok := strings.CutPrefix(line, "relayerd "); ok {
				commands = append(commands, strings.Fields(args))
			}
		}
	}
	return commands
}

func TestOperatingPage_CommandsExist(t *testing.T) {
	commands := operatingCommands(t)
	if len(commands) < 10 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	for _, args := range commands {
		expectCommandExists(t, args)
	}
}

// expectCommandExists checks that relayerd has a command and its flags.
func expectCommandExists(t *testing.T, args []string) {
	t.Helper()
	command, flags, err := newRootCommand("").Find(args)
	if err == nil {
		err = command.ParseFlags(flags)
	}
	if err != nil || !command.HasParent() || command.Flags().NArg() > 0 {
		t.Errorf("relayerd %q: error %v", args, err)
	}
}

// The commands that need no network run in the order of the page.
func TestOperatingPage_CommandsSucceed(t *testing.T) {
	commands := operatingCommands(t)
	database := readFile(t, makeFile(t, 30))
	t.Chdir(t.TempDir())
	if err := os.WriteFile("relayers.db", database, 0o600); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, args := range commands {
		switch args[0] {
		case "version", "check", "backup", "restore", "compact":
			runCommand(t, args...)
			ran++
		}
	}
	if ran < 5 {
		t.Errorf("%d commands ran", ran)
	}
	for _, name := range []string{"relayers.db", "backup.db", "restored.db"} {
		if content := contentOf(t, name); len(content) != 30 {
			t.Errorf("%s has %d relayers, want 30", name, len(content))
		}
	}
}

func TestOperatingPage_SystemdUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	unit := strings.ReplaceAll(operatingBlocks(t, "ini")[0], "/usr/local/bin/relayerd", os.Args[0])
	path := filepath.Join(t.TempDir(), "relayerd.service")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(output), "relayerd.service") {
		t.Errorf("error %v: %s", err, output)
	}
}
