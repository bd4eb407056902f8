//go:build linux

package patroni

import (
	"testing"
)

// TestCluster_Failover kills a leader. Another node takes its place, and the cluster is
// healthy again when Patroni is restarted.
func TestCluster_Failover(t *testing.T) {
	t.Parallel()
	c := Start(t, Settings{})
	leader := c.Leader(t)
	leader.KillAgent(t)
	leader.KillPostgres(t)
	if next := c.Leader(t, leader); next == leader {
		t.Errorf("%s is the leader again", next.Name)
	}
	leader.StartAgent(t)
	c.AwaitHealthy(t)
}
