package move

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer/tests/internal/child"
)

var relayers = flag.Int("relayers", 6_000, "number of relayers to move; 100_000 in a long run")

func TestMain(m *testing.M) {
	child.Main(copyStore)
	goleak.VerifyTestMain(m)
}
