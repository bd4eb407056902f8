//go:build unix

package pgserver

import (
	"strings"
	"testing"
)

// TestPgBouncer_PoolMode: a setting made outside of a transaction stays with the
// client in session mode only.
func TestPgBouncer_PoolMode(t *testing.T) {
	t.Parallel()
	server := Start(t)
	for mode, kept := range map[string]string{"session": "4MB 4MB", "transaction": "4MB 1MB"} {
		t.Run(mode, func(t *testing.T) {
			through := StartPgBouncer(t, server, mode)
			ask := func(sql ...string) string {
				t.Helper()
				arguments := []string{"-XAtq", "-d", through}
				for _, one := range sql {
					arguments = append(arguments, "-c", one)
				}
				output, err := server.command("psql", arguments...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", sql, err, output)
				}
				return strings.Join(strings.Fields(string(output)), " ")
			}
			first := ask("SHOW work_mem", "SET work_mem = '1MB'")
			if got := first + " " + ask("SHOW work_mem"); got != kept {
				t.Errorf("work_mem of two clients: %s, want %s", got, kept)
			}
		})
	}
}
