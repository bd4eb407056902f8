//go:build unix

// Package failover kills the primary of a PostgreSQL pair under the writers of two
// instances, promotes the standby, and compares what is left with what the writers
// and the watchers received.
package failover

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

var (
	rounds = flag.Int("rounds", 1, "failovers with synchronous replication; 50 in a long run")
	long   = flag.Bool("long", false, "writers without a rest, and also the control, an unattended cluster, and PgBouncer in session mode")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func requireLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("takes minutes: needs -long")
	}
}

// shortTimeout is for a Store that gives up waiting for a standby soon.
const shortTimeout = 250 * time.Millisecond

// TestFailover_Synchronous loses no acknowledged write and no change. In the
// first and every second round the standby lags, so that many writes wait for it.
func TestFailover_Synchronous(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for round := range *rounds {
		fault := c.killPrimaryWithLag
		if round%2 == 1 {
			fault = c.killPrimary
		}
		c.failOver(fault)
		c.verify()
	}
	c.report()
	if c.total.lost+c.total.doubled+c.total.gaps+c.total.signaled > 0 {
		t.Error("want 0 lost, doubled, gaps and signaled gaps")
	}
}

// TestFailover_StandbyAway does the same with a standby that is away for longer than
// the Store waits: writes are repeated after an unknown outcome. Watchers may read
// such writes before they are durable, and receive ErrGap if they are lost.
func TestFailover_StandbyAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgres.WithTimeout(shortTimeout))
	for range *rounds {
		c.failOver(c.killPrimaryWithoutStandby)
		c.verify()
	}
	c.report()
	if c.total.lost+c.total.doubled+c.total.gaps > 0 {
		t.Error("want 0 lost, doubled and gaps")
	}
}

// TestFailover_Asynchronous is the control: without synchronous_standby_names some
// acknowledged writes are lost.
func TestFailover_Asynchronous(t *testing.T) {
	requireLong(t)
	const most = 10
	c := newCluster(t)
	for len(c.recoveries) < most && c.total.lost == 0 {
		must(t, c.primary.Configure("synchronous_standby_names = ''"))
		c.failOver(c.killPrimaryWithLag)
		c.verify()
	}
	c.report()
	if c.total.lost == 0 {
		t.Errorf("no acknowledged write was lost in %d failovers", most)
	}
}

// connStringOf is the connection string that the documentation recommends.
func connStringOf(primary, standby *pgserver.Server) string {
	return pgserver.HostList(primary, standby) + "&target_session_attrs=primary"
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// settle repeats a call until its outcome is known, or for a minute. It waits longer each time: without
// a primary, each attempt connects to every server, and takes the processors from them.
func settle(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := call(ctx)
		if !errors.Is(err, relayer.ErrUnavailable) && !errors.Is(err, relayer.ErrOutcomeUnknown) || ctx.Err() != nil {
			return err
		}
		time.Sleep(rand.N(pause))
	}
}

// createOnce repeats a create until its outcome is known. The ID is of no other caller, so
// that after an unknown outcome the record of the ID is the caller's own. [relayer.ErrExists]
// is returned after a commit, which proves that it is durable.
func createOnce(ctx context.Context, store relayer.Store, rec relayer.Record) (made relayer.Record, err error) {
	isUnknown := false
	err = settle(ctx, func(ctx context.Context) (err error) {
		if made, err = store.Create(ctx, rec); isUnknown && errors.Is(err, relayer.ErrExists) {
			made, err = store.Get(ctx, rec.ID)
		}
		isUnknown = isUnknown || errors.Is(err, relayer.ErrOutcomeUnknown)
		return err
	})
	return made, err
}

func createSettled(t *testing.T, store relayer.Store, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := createOnce(ctx, store, relayer.Record{ID: id})
	must(t, err)
}

// TestFailover_PrimaryHangs stops the primary with SIGSTOP, so that it still accepts
// connections and never responds. The clients must reach the promoted standby.
func TestFailover_PrimaryHangs(t *testing.T) {
	t.Parallel()
	primary, standby := pgserver.StartPair(t)
	store := pgtest.Open(t, connStringOf(primary, standby), postgres.WithTimeout(time.Second))
	createSettled(t, store, "before")
	must(t, primary.Pause())
	t.Cleanup(func() { must(t, primary.Continue()) })
	must(t, standby.Promote())
	wantRecovered(t, store)
}

// wantRecovered waits until a write succeeds and reads the record from before the
// failover.
func wantRecovered(t *testing.T, store *postgres.Store) {
	t.Helper()
	begun := time.Now()
	createSettled(t, store, "after")
	t.Logf("the first write succeeds %v after the promotion", time.Since(begun))
	must(t, pgtest.UntilAvailable(func() error { _, err := store.Get(t.Context(), "before"); return err }))
}

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

// TestFailover_PgBouncer has a PgBouncer for each server. The connection string
// names both.
func TestFailover_PgBouncer(t *testing.T) {
	t.Parallel()
	for poolMode, settings := range map[string]string{"session": "", "transaction": "&default_query_exec_mode=cache_describe"} {
		t.Run(poolMode, func(t *testing.T) {
			if poolMode == "session" {
				requireLong(t)
			}
			t.Parallel()
			primary, standby := pgserver.StartPair(t)
			first, err := url.Parse(pgserver.StartPgBouncer(t, primary, poolMode, pgserver.ResetAlways))
			must(t, err)
			second, err := url.Parse(pgserver.StartPgBouncer(t, standby, poolMode, pgserver.ResetAlways))
			must(t, err)
			query := first.Query()
			query.Set("host", query.Get("host")+","+second.Query().Get("host"))
			first.RawQuery = query.Encode()
			store := pgtest.Open(t, first.String()+"&target_session_attrs=primary"+settings, postgres.WithTimeout(time.Second))
			createSettled(t, store, "before")
			must(t, primary.Kill())
			must(t, standby.Promote())
			wantRecovered(t, store)
		})
	}
}
