//go:build unix

// Package crash kills a process that writes to a store, again and again, and
// compares what is left with what was acknowledged. With PostgreSQL it also kills
// the server or one of its sessions, pauses the server, and cuts connections,
// while the process continues.
//
// A kill proves that no write is acknowledged before its commit, and that a commit is
// whole or absent: the operating system keeps running. So package crash also cuts the power
// under the embedded store, on Linux. The disk is a FUSE file system that keeps what was
// synced and a random part of the rest: unsynced sectors and directory entries are dropped,
// kept, or torn. More cuts, with the same choices of the disk each time:
//
//	go -C tests test ./crash -run PowerLoss -rounds=1000 -seed=1
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
