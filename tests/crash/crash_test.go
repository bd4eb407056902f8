package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// TestKilledWhileWriting kills a process that writes with many goroutines, and
// goes on with the same file.
func TestKilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	kept := newLedger()
	inFlight, whole := 0, 0
	for round := range *rounds {
		run(t, task{Round: round, Store: "bolt", Path: path}, "ready", upTo(80*time.Millisecond), kept.note)
		left := survivors(t, path)
		if found := kept.compare(left); !found.clean() {
			t.Fatalf("round %d: %v", round, found)
		}
		inFlight += len(kept.inFlight)
		whole += carriedOut(kept, left)
		kept.adopt(left)
	}
	if kept.acked == 0 {
		t.Error("no write was ever acknowledged")
	}
	t.Logf("%d rounds: %d writes acknowledged, 0 lost; %d in flight, %d of them carried out and the others not at all",
		*rounds, kept.acked, inFlight, whole)
}

// carriedOut counts the unanswered writes that are there.
func carriedOut(kept *ledger, left []relayer.Record) int {
	present := make(map[string]uint64, len(left))
	for _, rec := range left {
		present[rec.ID] = rec.Revision
	}
	count := 0
	for _, e := range kept.inFlight {
		if revision, there := present[e.ID]; there == (e.Verb != "delete") && revision != kept.stands[e.ID].Revision {
			count++
		}
	}
	return count
}

// TestHastyStoreIsCaught proves that the comparison can fail.
func TestHastyStoreIsCaught(t *testing.T) {
	for round := range 20 {
		path := filepath.Join(t.TempDir(), "relayers.db")
		kept := newLedger()
		run(t, task{Round: round, Store: "hasty", Path: path}, "ready", 10*time.Millisecond+upTo(30*time.Millisecond), kept.note)
		if found := kept.compare(survivors(t, path)); len(found.lost) > 0 {
			t.Logf("round %d: %d of %d acknowledged creates lost", round, len(found.lost), kept.acked)
			return
		}
	}
	t.Error("a store that acknowledges before it commits lost nothing in 20 rounds")
}

// TestKilledWhileMakingTheFile kills the process in its first moments. What is
// at the path afterwards is nothing, or a whole store.
func TestKilledWhileMakingTheFile(t *testing.T) {
	missing, whole := 0, 0
	for round := range *rounds {
		path := filepath.Join(t.TempDir(), "relayers.db")
		kept := newLedger()
		run(t, task{Round: round, Store: "bolt", Path: path}, "opening", upTo(2*time.Millisecond), kept.note)
		if _, err := os.Stat(path); err == nil {
			whole++
		} else {
			missing++
		}
		if found := kept.compare(survivors(t, path)); !found.clean() {
			t.Fatalf("round %d: %v", round, found)
		}
	}
	t.Logf("%d rounds: %d without a file, %d with a whole one", *rounds, missing, whole)
}

func upTo(most time.Duration) time.Duration { return rand.N(most) }

// survivors opens what is left, checks it, and lists it.
func survivors(t *testing.T, path string) []relayer.Record {
	t.Helper()
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	defer store.Close()
	return sound(t, store)
}

// sound checks what a store holds, and lists it.
func sound(t *testing.T, store checkedStore) []relayer.Record {
	t.Helper()
	if err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, total, err := store.List(t.Context(), 0, 1<<30)
	if err != nil || total != len(left) {
		t.Fatalf("%d records, total %d, error %v", len(left), total, err)
	}
	return left
}

type checkedStore interface {
	relayer.Store
	Check(context.Context) error
}

// run starts a child, hands its events to note, and kills it some time after it
// has said a word.
func run(t *testing.T, given task, word string, after time.Duration, note func(event)) {
	t.Helper()
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childTask+"="+string(text))
	var complaints bytes.Buffer
	command.Stderr = &complaints
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	follow(t, pipe, word, func() {
		time.AfterFunc(after, func() { _ = command.Process.Kill() })
	}, note)
	err = command.Wait()
	if err == nil || !strings.Contains(err.Error(), "killed") || complaints.Len() > 0 {
		t.Fatalf("round %d: the child ended by itself: %v\n%s", given.Round, err, complaints.String())
	}
}

// follow reads the child's lines to the end of the pipe.
func follow(t *testing.T, pipe io.Reader, word string, arm func(), note func(event)) {
	t.Helper()
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
		if e.Verb == word {
			arm()
		}
		if e.Verb != "opening" && e.Verb != "ready" {
			note(e)
		}
	}
}
