//go:build linux

package failover

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres/pgserver/patroni"
)

var (
	patroniRounds = flag.Int("patroni.rounds", 1, "rounds of each fault of an unattended cluster")
	patroniBound  = flag.Duration("patroni.bound", 0, "fail if the writers need longer after a promotion; 0 does not check, because a busy machine may need longer")
)

// unattended is a cluster of Patroni under load. Each node is the first one in the
// connection string of one of the instances.
type unattended struct {
	*load
	cluster *patroni.Cluster
}

func newUnattended(t *testing.T, settings patroni.Settings) *unattended {
	t.Helper()
	cluster := patroni.Start(t, settings)
	var connStrings []string
	for first := range cluster.Nodes {
		connStrings = append(connStrings, cluster.HostList(first))
	}
	return &unattended{newLoad(t, cluster.HostList(0), connStrings, 4), cluster}
}

// fault does something to a cluster and its leader. It returns what repairs it.
type fault func(t *testing.T, cluster *patroni.Cluster, leader *patroni.Node) (repair func())

func killPostgres(t *testing.T, _ *patroni.Cluster, leader *patroni.Node) func() {
	leader.KillPostgres(t)
	return func() {} // Patroni starts it again
}

func killNode(t *testing.T, _ *patroni.Cluster, leader *patroni.Node) func() {
	leader.KillAgent(t)
	leader.KillPostgres(t)
	return func() { leader.StartAgent(t) }
}

func killAgent(t *testing.T, _ *patroni.Cluster, leader *patroni.Node) func() {
	leader.KillAgent(t)
	return func() { leader.StartAgent(t) }
}

func switchOver(t *testing.T, cluster *patroni.Cluster, leader *patroni.Node) func() {
	return cluster.SwitchOver(t, leader)
}

// rest is the pause of a writer between two records. Without it the writers take the
// processors that the nodes need to fail over.
const rest = 20 * time.Millisecond

// fail runs a fault under the writers, after which another node has to be promoted, unless the
// leader may stay. The writers go on all the time.
func (u *unattended) fail(f fault, mayStay bool) {
	u.t.Helper()
	stop := u.write(rest)
	u.awaitWrites()
	time.Sleep(rand.N(300 * time.Millisecond))
	leader := u.cluster.Leader(u.t)
	begun := time.Now()
	repair := f(u.t, u.cluster, leader)
	if mayStay {
		u.cluster.Leader(u.t)
	} else {
		u.cluster.Leader(u.t, leader)
	}
	u.awaitRecovery(begun)
	repair()
	u.cluster.AwaitHealthy(u.t)
	u.awaitWrites()
	stop()
	u.verify()
}

// awaitRecovery waits for the writers after a fault, when there is a leader again.
func (u *unattended) awaitRecovery(fault time.Time) {
	u.t.Helper()
	ready := time.Now()
	u.awaitWrites()
	u.recoveries = append(u.recoveries, time.Since(ready))
	u.outages = append(u.outages, time.Since(fault))
}

// TestPatroni loses no acknowledged write and no change, whatever part of the leader
// fails. No change is repeated without ErrGap.
func TestPatroni(t *testing.T) {
	requireLong(t)
	u := newUnattended(t, patroni.Settings{})
	for _, c := range []struct {
		name string
		fault
	}{
		{"PostgreSQL killed", killPostgres},
		{"PostgreSQL and Patroni killed", killNode},
		{"Patroni killed", killAgent},
		{"switchover", switchOver},
	} {
		if !u.run(t, c.name, c.fault, false) {
			return
		}
	}
}

// run runs rounds of a fault as a subtest, with counts of its own.
func (u *unattended) run(t *testing.T, name string, f fault, mayStay bool) (ok bool) {
	return t.Run(name, func(t *testing.T) {
		u.t, u.total, u.rounds, u.recoveries, u.outages = t, tally{}, 0, nil, nil
		for range *patroniRounds {
			u.fail(f, mayStay)
		}
		u.finish()
	})
}

func (u *unattended) finish() {
	u.t.Helper()
	u.report()
	if u.total.lost+u.total.doubled+u.total.gaps > 0 {
		u.t.Error("want 0 lost, doubled and gaps")
	}
	for _, took := range u.recoveries {
		if *patroniBound > 0 && took > *patroniBound {
			u.t.Errorf("the writers needed %v after a promotion, want at most %v", took, *patroniBound)
		}
	}
}

// TestPatroni_LongFaults has faults that last. After some of them the same node may be the
// leader.
func TestPatroni_LongFaults(t *testing.T) {
	requireLong(t)
	u := newUnattended(t, patroni.Settings{})
	u.run(t, "leader hangs", func(t *testing.T, _ *patroni.Cluster, leader *patroni.Node) func() {
		leader.Pause(t)
		return func() { leader.Continue(t) }
	}, false)
	for name, f := range map[string]fault{
		"etcd away": func(t *testing.T, cluster *patroni.Cluster, _ *patroni.Node) func() {
			cluster.StopEtcd()
			time.Sleep(30 * time.Second)
			cluster.StartEtcd(t)
			return func() {}
		},
		"synchronous standby killed": func(t *testing.T, cluster *patroni.Cluster, _ *patroni.Node) func() {
			return killNode(t, cluster, cluster.SyncStandby(t))
		},
	} {
		u.run(t, name, f, true)
	}
}

// TestPatroni_Strict kills both standbys. Under synchronous_mode_strict no write is
// acknowledged before one of them is back.
func TestPatroni_Strict(t *testing.T) {
	requireLong(t)
	u := newUnattended(t, patroni.Settings{Strict: true})
	stop := u.write(rest)
	u.awaitWrites()
	leader := u.cluster.Leader(t)
	for _, node := range u.cluster.Nodes {
		if node != leader {
			node.KillAgent(t)
			node.KillPostgres(t)
		}
	}
	before := u.acknowledged()
	time.Sleep(20 * time.Second)
	// What had reached a standby before may be acknowledged late.
	if after := u.acknowledged(); after > before+int64(len(u.writers)) {
		t.Errorf("%d writes were acknowledged without a standby", after-before)
	}
	for _, node := range u.cluster.Nodes {
		if node != leader {
			node.StartAgent(t)
		}
	}
	u.cluster.AwaitHealthy(t)
	u.awaitWrites()
	stop()
	u.verify()
	u.finish()
}

func (l *load) acknowledged() (count int64) {
	for _, w := range l.writers {
		count += w.acknowledged.Load()
	}
	return count
}

// TestPatroni_Asynchronous is the control: without synchronous_mode, writes that were
// acknowledged while the standbys restart are lost with the leader.
func TestPatroni_Asynchronous(t *testing.T) {
	requireLong(t)
	const most = 10
	u := newUnattended(t, patroni.Settings{Asynchronous: true})
	for u.rounds < most && u.total.lost == 0 {
		u.fail(func(t *testing.T, cluster *patroni.Cluster, leader *patroni.Node) func() {
			// Their Patroni starts them again, without what was in their sockets.
			for _, node := range cluster.Nodes {
				if node != leader {
					node.KillPostgres(t)
				}
			}
			u.awaitWrites()
			return killNode(t, cluster, leader)
		}, false)
	}
	u.report()
	if u.total.lost == 0 {
		t.Errorf("no acknowledged write was lost in %d failovers", most)
	}
}

// TestPatroni_HAProxy reaches the primary through HAProxy, which asks the REST API of
// Patroni for it.
func TestPatroni_HAProxy(t *testing.T) {
	requireLong(t)
	cluster := patroni.Start(t, patroni.Settings{})
	through := fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", cluster.StartHAProxy(t))
	u := &unattended{newLoad(t, through, []string{through, through, through}, 4), cluster}
	for name, f := range map[string]fault{"PostgreSQL killed": killPostgres, "node killed": killNode, "Patroni killed": killAgent, "switchover": switchOver} {
		u.run(t, name, f, false)
	}
}
