//go:build unix

package failover

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

var (
	vacuumFor   = flag.Duration("vacuum.for", 5*time.Second, "duration of the writes during vacuums; 5m in a long run")
	vacuumBound = flag.Duration("vacuum.bound", 0, "fail if a write takes longer; 0 does not check, because a busy machine may need longer")
)

// TestVacuum_WritesContinue has two instances write at a rate, while autovacuum runs every
// few seconds and all tables are vacuumed by hand. No write fails.
func TestVacuum_WritesContinue(t *testing.T) {
	t.Parallel()
	const writers, rate = 32, 1000
	server := pgserver.Start(t, "autovacuum_naptime = 5s", "autovacuum_vacuum_threshold = 50", "autovacuum_vacuum_scale_factor = 0.01")
	stores := []*postgres.Store{pgtest.Open(t, server.ConnString()), pgtest.Open(t, server.ConnString())}
	ctx, cancel := context.WithTimeout(t.Context(), *vacuumFor)
	defer cancel()
	var writing sync.WaitGroup
	latencies := make([][]time.Duration, writers)
	for w := range writers {
		writing.Go(func() {
			latencies[w] = writeAtRate(ctx, t, stores[w%2], fmt.Sprintf("w%d", w), writers*time.Second/rate)
		})
	}
	vacuums := vacuumAll(ctx, t, server.ConnString())
	writing.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(latencies...)))
	longest := all[len(all)-1]
	t.Logf("%d writes in %v, %d vacuums by hand: median %v, 99.9 %% within %v, longest %v",
		len(all), *vacuumFor, vacuums, all[len(all)/2], all[len(all)*999/1000], longest)
	if *vacuumBound > 0 && longest > *vacuumBound {
		t.Errorf("a write took %v, want at most %v", longest, *vacuumBound)
	}
	must(t, stores[0].Check(t.Context()))
}

// writeAtRate creates, updates and deletes a record, one write per interval, and returns
// how long each write took.
func writeAtRate(ctx context.Context, t *testing.T, store *postgres.Store, id string, interval time.Duration) (took []time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	rec := content(id, "created")
	steps := []func() error{
		func() (err error) { rec, err = store.Create(context.Background(), rec); return err },
		func() (err error) { rec, err = store.Update(context.Background(), rec); return err },
		func() error { return store.Delete(context.Background(), rec.ID, rec.Revision, nil) },
	}
	for n := 0; ctx.Err() == nil || n%len(steps) > 0; n++ {
		begun := time.Now()
		if err := steps[n%len(steps)](); err != nil {
			t.Errorf("%s: write %d: %v", id, n, err)
			return took
		}
		took = append(took, time.Since(begun))
		<-tick.C
	}
	return took
}

// vacuumAll vacuums every table by hand every 10 seconds until ctx is done, at least once.
func vacuumAll(ctx context.Context, t *testing.T, connString string) (count int) {
	conn := pgtest.Connect(t, connString)
	for {
		for _, table := range []string{"state", "pruning", "relayers", "counts", "postings", "changes"} {
			if _, err := conn.Exec(t.Context(), "VACUUM relayer."+table); err != nil {
				t.Error(err)
			}
		}
		count++
		select {
		case <-ctx.Done():
			return count
		case <-time.After(10 * time.Second):
		}
	}
}
