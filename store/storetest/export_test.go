package storetest

import (
	"testing"
	"time"
)

// SetPatience sets how long a case waits for one change of a watch. It is for the process
// of one test.
func SetPatience(most time.Duration) { patience = most }

// RunCase runs one case of [Run].
func RunCase(t *testing.T, name string, open opener) {
	for _, c := range cases {
		if c.name == name {
			c.run(t, openUntilEnd(t, open))
			return
		}
	}
	panic("no case " + name)
}

// RunReopened runs the case of [RunDurable].
func RunReopened(t *testing.T, place func(t *testing.T) opener) { randomCallsReopened(t, place(t)) }
