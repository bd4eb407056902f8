package move

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var relayers = flag.Int("relayers", 100_000, "how many relayers to move")

// The child is this very binary. What it is to copy stands in its environment.
const childTask = "MOVE_CHILD_TASK"

func TestMain(m *testing.M) {
	if text := os.Getenv(childTask); text != "" {
		os.Exit(child(text))
	}
	goleak.VerifyTestMain(m)
}
