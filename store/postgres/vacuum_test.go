//go:build unix

package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

var vacuumWrites = flag.Int64("vacuum.writes", 1000, "writes beside which autovacuum runs; 500000 in a long run")

// TestVacuum_SteadyWriters has three instances whose writers never leave the write lock free.
// Autovacuum removes the old versions of the row of state, and no write fails.
func TestVacuum_SteadyWriters(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t, "fsync = off", "autovacuum_naptime = 1s", "autovacuum_vacuum_scale_factor = 0.01")
	admin := newPool(t, primary.ConnString())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	var stores [3]*postgres.Store
	var written atomic.Int64
	for i := range stores {
		stores[i] = openAt(t, primary.ConnString())
		for w := range 4 {
			rec := create(t, stores[i], record(fmt.Sprintf("%d-%d", i, w)))
			writing.Go(func() {
				for ctx.Err() == nil {
					made, err := stores[i].Update(context.Background(), rec)
					if err != nil {
						t.Error(err)
						stop()
						return
					}
					rec = made
					written.Add(1)
				}
			})
		}
	}
	dead := func() int {
		return queryOne[int](t, admin, `SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'relayer.state'::regclass`)
	}
	var most int
	within(t, "autovacuum processes the table state", waitLimit*(1+time.Duration(*vacuumWrites/10_000)), func() bool {
		most = max(most, dead())
		vacuums := queryOne[int](t, admin, `SELECT autovacuum_count FROM pg_stat_user_tables WHERE relid = 'relayer.state'::regclass`)
		return vacuums >= 2 && written.Load() >= *vacuumWrites || ctx.Err() != nil
	})
	stop()
	writing.Wait()
	t.Logf("%d writes, at most %d dead rows, %d at the end", written.Load(), most, dead())
	if most > 50_000 {
		t.Errorf("the table state had %d dead rows", most)
	}
	wantConsistent(t, stores[0])
}
