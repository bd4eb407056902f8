package sealing_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer/tests/internal/child"
)

var rounds = flag.Int("rounds", 4, "kills, or rotations, of each test")

func TestMain(m *testing.M) {
	child.Main(rotateUntilKilled)
	goleak.VerifyTestMain(m)
}
