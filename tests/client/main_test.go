// Package client runs the client against servers on every store, and on one whose commits
// fail, through a proxy that loses connections and responds in place of the server. A
// ledger of the results of the calls is compared with the content of the store. No write
// may take effect twice or be lost, and an unknown outcome must be reported as such.
package client

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var operations = flag.Int("operations", 40, "operations of each worker")

func TestMain(m *testing.M) {
	// The tests with faults mostly wait. The model of pauses works all the time.
	for name, value := range map[string]string{"test.parallel": "8", "rapid.checks": "25"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
