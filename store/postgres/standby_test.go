//go:build unix

package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// TestStandby has one pair of servers. The last test promotes the standby.
func TestStandby(t *testing.T) {
	t.Parallel()
	runOnPair(t,
		pairTest{"FunctionsOnStandby", functionsOnStandby},
		pairTest{"PrimaryRestarts", primaryRestarts},
		pairTest{"ConnectionLedElsewhere", connectionLedElsewhere},
		pairTest{"StandbyOnly", standbyOnly})
}

type pairTest struct {
	name string
	run  func(t *testing.T, primary, standby *pgserver.Server)
}

// runOnPair runs tests, one after the other, on one primary and its synchronous standby.
func runOnPair(t *testing.T, tests ...pairTest) {
	primary, standby := pgserver.StartPair(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, primary, standby) })
	}
}

// primaryRestarts restarts the primary under Stores that may connect to
// the standby as well. Once it is back they write to it and read from it again.
func primaryRestarts(t *testing.T, primary, standby *pgserver.Server) {
	schema := newSchema()
	witness := openAt(t, primary.ConnString(), schema)
	one := create(t, witness, record("one"))
	stores := map[string]*postgres.Store{
		"primary first":            openAt(t, pgserver.HostList(primary, standby), schema),
		"standby first":            openAt(t, pgserver.HostList(standby, primary), schema),
		"target_session_attrs=any": openAt(t, pgserver.HostList(standby, primary)+"&target_session_attrs=any", schema),
		"pool of the host":         openOn(t, newPool(t, pgserver.HostList(primary, standby)), schema),
	}
	for name, store := range stores {
		if got := get(t, store, "one"); !same(got, one) {
			t.Errorf("%s: got %v, want %v", name, got, one)
		}
	}
	for range 2 {
		must(t, primary.Stop())
		var pending []<-chan error
		for name, store := range stores {
			pending = append(pending,
				inBackground(func() error { return errorOf(store.Get(t.Context(), "one")) }),
				inBackground(func() error { return errorOf(store.Create(t.Context(), record(name))) }))
		}
		// The standby accepts connections meanwhile.
		time.Sleep(500 * time.Millisecond)
		must(t, primary.Restart())
		for _, done := range pending {
			if err := <-done; err != nil && !errors.Is(err, relayer.ErrUnavailable) {
				t.Error(err)
			}
		}
		eventually(t, "the witness is back", func() bool { _, err := witness.Get(t.Context(), "one"); return err == nil })
		for name, store := range stores {
			rec, err := store.Get(t.Context(), name)
			if errors.Is(err, relayer.ErrNotFound) {
				rec = create(t, store, record(name))
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			rec = update(t, witness, rec)
			wantStored(t, store, rec)
			remove(t, store, rec)
		}
	}
	wantConsistent(t, witness)
}

// standbyOnly: a Store that can reach nothing but a standby says so, and goes
// on when the standby is promoted.
func standbyOnly(t *testing.T, primary, standby *pgserver.Server) {
	one := create(t, openAt(t, primary.ConnString()), record("one"))
	short := postgres.ConnectTimeout(3 * time.Second)
	primaryLost := openAt(t, pgserver.HostList(primary, standby)+"&target_session_attrs=primary", short)
	must(t, primary.Kill())
	const reason = "no server of the connection string is the primary now"
	var all sync.WaitGroup
	all.Go(func() { wantUnavailable(t, primaryLost, slack, reason) })
	pool := newPool(t, standby.ConnString())
	for name, open := range map[string]func() (*postgres.Store, error){
		"Open": func() (*postgres.Store, error) { return postgres.Open(t.Context(), standby.ConnString(), short) },
		"New":  func() (*postgres.Store, error) { return postgres.New(t.Context(), pool, short) },
	} {
		all.Go(func() {
			begun := time.Now()
			_, err := open()
			if !errors.Is(err, relayer.ErrUnavailable) || !strings.HasSuffix(err.Error(), reason) {
				t.Errorf("%s: error %v, want ErrUnavailable and the reason", name, err)
			}
			wantWithin(t, name, begun, slack)
			wantNoDriver(t, name, err)
		})
	}
	all.Wait()
	opened := make(chan *postgres.Store, 1)
	failed := inBackground(func() error {
		store, err := postgres.Open(t.Context(), standby.ConnString(), longTimeouts)
		opened <- store
		return err
	})
	time.Sleep(100 * time.Millisecond)
	must(t, standby.Promote())
	must(t, <-failed)
	store := <-opened
	closeAtEnd(t, store)
	wantStored(t, store, one)
	update(t, store, one)
}

// functionsOnStandby calls the functions that read on a standby, as a pooler does
// that leads a connection to another server than at first.
func functionsOnStandby(t *testing.T, primary, standby *pgserver.Server) {
	create(t, openAt(t, primary.ConnString(), postgres.WithSchema("reads")), record("one"))
	onPrimary, onStandby := newPool(t, primary.ConnString()), newPool(t, standby.ConnString())
	eventually(t, "the standby has the schema", func() bool {
		return queryOne[bool](t, onStandby, "SELECT to_regclass('reads.relayers') IS NOT NULL")
	})
	for _, call := range []string{"relayer('one')", "page(0, 0, 10)", "last_change()", "changes_after(0, 0)", "history('', 10, 10)",
		"selection('{id=one}', '{1}', '{}', 1, NULL, 0, 0, 10)"} {
		sql := "SELECT count(*) FROM reads." + call
		if rows := queryOne[int](t, onPrimary, sql); rows != 1 {
			t.Errorf("%s: %d rows on the primary", call, rows)
		}
		_, err := onStandby.Exec(t.Context(), sql)
		if err == nil || !strings.Contains(err.Error(), "SQLSTATE 25006") {
			t.Errorf("%s: error %v on the standby, want 25006", call, err)
		}
	}
}

// connectionLedElsewhere marks connections to the standby as checked
// before, as if a pooler had led them to the primary then.
func connectionLedElsewhere(t *testing.T, primary, standby *pgserver.Server) {
	schema := newSchema()
	one := create(t, openAt(t, primary.ConnString(), schema), record("one"))
	p := newProxy(t, primary.Socket())
	pool := newPoolWith(t, p.connString(), func(config *pgxpool.Config) { config.MaxConns = 4 })
	store := openOn(t, pool, schema)
	onStandby := newPool(t, standby.ConnString())
	written := queryOne[string](t, newPool(t, primary.ConnString()), "SELECT pg_current_wal_lsn()::text")
	eventually(t, "the standby has the record", func() bool {
		return queryOne[bool](t, onStandby, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", written)
	})
	execute(t, onStandby, "SELECT pg_wal_replay_pause()")
	one = update(t, store, one)
	for range 3 {
		p.leadTo(standby.Socket())
		for _, conn := range acquireAll(t, pool, 4) {
			postgres.MarkPrimary(conn.Conn().PgConn())
			conn.Release()
		}
		p.leadTo(primary.Socket())
		wantStored(t, store, one)
		one = update(t, store, one)
	}
	execute(t, onStandby, "SELECT pg_wal_replay_resume()")
}

// acquireAll replaces all connections of a pool by new ones.
func acquireAll(t *testing.T, pool *pgxpool.Pool, connections int) []*pgxpool.Conn {
	t.Helper()
	pool.Reset()
	var all []*pgxpool.Conn
	for range connections {
		conn, err := pool.Acquire(t.Context())
		must(t, err)
		all = append(all, conn)
	}
	return all
}
