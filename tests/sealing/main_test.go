package sealing_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer/tests/internal/child"
)

var rounds = flag.Int("rounds", 2, "kills, or rotations, of each test")

func TestMain(m *testing.M) {
	child.Main(rotateUntilKilled)
	flag.Parse()
	if os.Getenv("STORETEST_STEPS") == "" && *rounds <= 2 {
		os.Setenv("STORETEST_STEPS", "150")
	}
	goleak.VerifyTestMain(m)
}
