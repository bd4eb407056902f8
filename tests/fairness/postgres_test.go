//go:build unix

package fairness

import (
	"testing"

	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

func TestFairness_Postgres(t *testing.T) {
	testFairness(t, pgtest.Open(t, pgserver.Start(t).ConnString()))
}
