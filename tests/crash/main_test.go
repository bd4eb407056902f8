//go:build unix

package crash

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer/tests/internal/child"
)

var rounds = flag.Int("rounds", 3, "kills, or cuts of connections or of the power, of each test")

func TestMain(m *testing.M) {
	child.Main(task.carryOut)
	goleak.VerifyTestMain(m)
}
