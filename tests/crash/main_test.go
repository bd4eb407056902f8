package crash

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var rounds = flag.Int("rounds", 20, "how often to kill the writer")

// The child is this very binary. What it is to do stands in its environment.
const (
	childPath  = "CRASH_CHILD_FILE"
	childRound = "CRASH_CHILD_ROUND"
	childStore = "CRASH_CHILD_STORE"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		os.Exit(child(path, os.Getenv(childRound), os.Getenv(childStore)))
	}
	goleak.VerifyTestMain(m)
}
