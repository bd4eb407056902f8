package crash

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var rounds = flag.Int("rounds", 20, "how often to kill or cut off what each test does")

// The child is this very binary. What it is to do stands in its environment.
const childTask = "CRASH_CHILD_TASK"

func TestMain(m *testing.M) {
	if text := os.Getenv(childTask); text != "" {
		os.Exit(child(text))
	}
	goleak.VerifyTestMain(m)
}
