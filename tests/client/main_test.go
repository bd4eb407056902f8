package client

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var operations = flag.Int("operations", 60, "operations of each worker")

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests mostly wait
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
