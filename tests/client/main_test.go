package client

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var operations = flag.Int("operations", 60, "operations of each worker")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
