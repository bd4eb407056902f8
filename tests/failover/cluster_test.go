//go:build unix

package failover

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// cluster is a primary and its standby under load.
type cluster struct {
	*load
	primary, standby *pgserver.Server
}

func newCluster(t *testing.T, options ...postgres.Option) *cluster {
	t.Helper()
	primary, standby := pgserver.StartPair(t)
	recommended := connStringOf(primary, standby)
	// Open requires the primary without the setting too.
	connStrings := []string{recommended, pgserver.HostList(primary, standby)}
	return &cluster{load: newLoad(t, recommended, connStrings, 8, options...), primary: primary, standby: standby}
}

// failOver runs the fault, which kills the primary, under the writers. It promotes
// the standby and rebuilds the killed server as the new standby. The writers go on
// all the time.
func (c *cluster) failOver(fault func()) {
	c.t.Helper()
	rest := 10 * time.Millisecond
	if *long {
		rest = 0
	}
	defer c.write(rest)()
	c.awaitWrites()
	time.Sleep(rand.N(300 * time.Millisecond))
	fault()
	must(c.t, c.standby.Promote())
	promoted := time.Now()
	c.awaitWrites()
	c.recoveries = append(c.recoveries, time.Since(promoted))
	must(c.t, c.primary.Follow(c.standby))
	c.primary, c.standby = c.standby, c.primary
	c.awaitWrites()
}

func (c *cluster) killPrimary() { must(c.t, c.primary.Kill()) }

// killPrimaryWithLag stops the standby first, for long enough that more changes
// wait for it than fit into the buffers between the servers.
func (c *cluster) killPrimaryWithLag() {
	must(c.t, c.standby.Pause())
	time.Sleep(500 * time.Millisecond)
	must(c.t, c.primary.Kill())
	must(c.t, c.standby.Continue())
}

// killPrimaryWithoutStandby shuts the standby down first. It starts again after the
// primary is killed.
func (c *cluster) killPrimaryWithoutStandby() {
	must(c.t, c.standby.Stop())
	time.Sleep(12 * shortTimeout)
	must(c.t, c.primary.Kill())
	must(c.t, c.standby.Restart())
}
