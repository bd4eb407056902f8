package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// makeFile creates a file with count relayers.
func makeFile(t *testing.T, count int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.db")
	file, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	origin := memory.New()
	manager, err := relayer.New(origin, relayer.WithExclusiveSigners())
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		_, err := manager.Create(t.Context(), relayer.CreateRequest{
			ID: fmt.Sprintf("r-%d", i), Name: strings.Repeat("n", 300), Network: "sepolia", NetworkType: relayer.EVM, SignerID: fmt.Sprint("s-", i),
			CustomRPCURLs: []relayer.RPCConfig{{URL: relayer.RPCURL(fmt.Sprint("https://rpc.example/", i))}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := origin.List(t.Context(), relayer.StoreQuery{Limit: count})
	if err != nil {
		t.Fatal(err)
	}
	records := all.Records
	for len(records) > 0 {
		batch := min(500, len(records))
		if err := file.Import(t.Context(), records[:batch]); err != nil {
			t.Fatal(err)
		}
		records = records[batch:]
	}
	return path
}

// contentOf returns all records of a store, in order.
func contentOf(t *testing.T, name string) []relayer.Record {
	t.Helper()
	store, err := database{"--db", name}.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var content []relayer.Record
	for {
		page, err := store.List(t.Context(), relayer.StoreQuery{Offset: len(content), Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, page.Records...)
		if len(content) == page.Total {
			return content
		}
	}
}

func expectCopied(t *testing.T, destination, source string) {
	t.Helper()
	if got, want := contentOf(t, destination), contentOf(t, source); !reflect.DeepEqual(got, want) {
		t.Errorf("%d records differ from the %d copied", len(got), len(want))
	}
}

var progressLine = regexp.MustCompile(`msg=(checking|copying|verifying) done=(\d+) total=(\d+)`)

func TestCopy_BothDirections(t *testing.T) {
	t.Parallel()
	source := makeFile(t, 1234)
	postgres := location(t, startPostgres(t), "postgres")
	back := filepath.Join(t.TempDir(), "back.db")
	for _, move := range []struct{ from, to string }{{source, postgres}, {postgres, back}} {
		log := runCommand(t, "copy", "--from", move.from, "--to", move.to)
		var reported []string
		for _, found := range progressLine.FindAllStringSubmatch(log, -1) {
			reported = append(reported, strings.Join(found[1:], " "))
		}
		for _, want := range []string{"checking 0 1234", "checking 1234 1234", "copying 0 1234", "copying 1234 1234", "verifying 0 1234", "verifying 1234 1234"} {
			if !strings.Contains(strings.Join(reported, "\n"), want) {
				t.Errorf("progress lacks %s: %s", want, log)
			}
		}
		if !strings.Contains(log, "copied 1234 relayers\n") {
			t.Errorf("the output does not report the copy: %s", log)
		}
		expectNoPassword(t, log)
		expectCopied(t, move.to, source)
	}
}

// startCopy starts a copy and returns when it copies.
func startCopy(t *testing.T, source, destination string) (*exec.Cmd, *output) {
	t.Helper()
	command, log := program("", "copy", "--from", source, "--to", destination), new(output)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	log.awaitText(t, "msg=copying ", 1)
	return command, log
}

// awaitMore waits until a store contains more relayers than a number.
func awaitMore(t *testing.T, store relayer.Store, than int) int {
	t.Helper()
	total := 0
	isMore := func() bool {
		all, err := store.List(t.Context(), relayer.StoreQuery{})
		if err != nil {
			t.Fatal(err)
		}
		total = all.Total
		return total > than
	}
	if !await(isMore) {
		t.Fatalf("no relayer was added to %d", than)
	}
	return total
}

// After any interruption, the same command resumes the copy.
func TestCopy_ResumesAfterInterruption(t *testing.T) {
	t.Parallel()
	source := makeFile(t, 5_000)
	url := location(t, startPostgres(t), "postgres")
	copied, err := database{"--db", url}.forCommand(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	before := 0
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL, syscall.SIGTERM} {
		command, log := startCopy(t, source, url)
		before = awaitMore(t, copied, before)
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		err := command.Wait()
		text := log.String()
		if signal == syscall.SIGKILL {
			continue
		}
		last := text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:]
		if command.ProcessState.ExitCode() != 1 || !strings.Contains(last, " (run the same command again to resume)\n") {
			t.Errorf("%s: error %v: %s", signal, err, text)
		}
		expectNoPassword(t, text)
	}
	runCommand(t, "copy", "--from", source, "--to", url)
	expectCopied(t, url, source)
}

// If the database stops during a copy, the error gives advice, and the same command resumes.
func TestCopy_DatabaseStops(t *testing.T) {
	t.Parallel()
	source := makeFile(t, 5_000)
	postgres := startPostgres(t)
	database := location(t, postgres, "postgres")
	command, log := startCopy(t, source, database)
	if err := postgres.Kill(); err != nil {
		t.Fatal(err)
	}
	err := command.Wait()
	if command.ProcessState.ExitCode() != 1 || !strings.Contains(log.String(), "run the same command again to resume") {
		t.Errorf("error %v: %s", err, log)
	}
	expectNoPassword(t, log.String())
	if err := postgres.Restart(); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "copy", "--from", source, "--to", database)
	expectCopied(t, database, source)
}

// A destination with other relayers is not changed.
func TestCopy_DifferentDestination(t *testing.T) {
	t.Parallel()
	source := makeFile(t, 3)
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", database)
	createAll(t, server, realRelayers(t)[:1])
	server.stop()
	before := contentOf(t, database)

	command := program("", "copy", "--from", source, "--to", database)
	text, err := command.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := lines[len(lines)-1]
	if command.ProcessState.ExitCode() != 1 || !strings.Contains(last, "destination differs from source") || !strings.Contains(last, "do not copy again") {
		t.Errorf("error %v: %s", err, text)
	}
	if !reflect.DeepEqual(contentOf(t, database), before) {
		t.Error("the destination was changed")
	}
}

// A damaged source is not copied, and the error does not advise a retry.
func TestCopy_DamagedSource(t *testing.T) {
	t.Parallel()
	source, fresh := makeFile(t, 30), filepath.Join(t.TempDir(), "fresh.db")
	whole, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, bytes.ReplaceAll(whole, []byte("https://rpc.example/7\""), []byte("https://rpc.example/8\"")), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := runToEnd(t, "copy", "--from", source, "--to", fresh)
	if !errors.Is(err, relayer.ErrCorrupt) || strings.Contains(err.Error(), "run the same command again") {
		t.Errorf("error is %v", err)
	}
	if strings.Contains(output, "msg=copying") || len(contentOf(t, fresh)) > 0 {
		t.Errorf("a damaged file was copied: %s", output)
	}
}

func TestCopyError_Advice(t *testing.T) {
	t.Parallel()
	const again = "run the same command again"
	for _, c := range []struct {
		err       error
		wantRetry bool
	}{
		{relayer.ErrUnavailable, true},
		{relayer.ErrOutcomeUnknown, true},
		{errors.Join(relayer.ErrUnavailable, relayer.ErrCorrupt), false},
		{transfer.ErrDiffers, false},
	} {
		err := copyError(c.err)
		if !errors.Is(err, c.err) || strings.Contains(err.Error(), again) != c.wantRetry {
			t.Errorf("%v becomes %q", c.err, err)
		}
	}
}
