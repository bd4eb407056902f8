//go:build unix

package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// openTwo opens two stores on one server, as two instances of a host do.
func openTwo(t *testing.T, connString string, options ...postgres.Option) []*postgres.Store {
	t.Helper()
	options = append([]postgres.Option{postgres.WithTimeout(5 * time.Second)}, options...)
	return []*postgres.Store{pgtest.Open(t, connString, options...), pgtest.Open(t, connString, options...)}
}

// TestPostgres_ServerKilled kills the server while two stores write to it, and
// starts it again with the same files.
func TestPostgres_ServerKilled(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	surviveFaults(t, server, openTwo(t, server.ConnString()), func() {
		must(t, server.Kill(), server.Restart())
	})
}

// TestPostgres_SessionKilled kills one process of the server. The server then ends
// all sessions and recovers. Unlike a kill of the whole server, this can happen in
// the middle of a commit.
func TestPostgres_SessionKilled(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	surviveFaults(t, server, openTwo(t, server.ConnString()), func() { killSession(t, server) })
}

// killSession kills the session that holds the write lock, or else another, and waits until
// the server has ended the sessions.
func killSession(t *testing.T, server *pgserver.Server) {
	t.Helper()
	conn := pgtest.Connect(t, server.ConnString())
	var pid int
	err := conn.QueryRow(t.Context(), `
		SELECT pid FROM pg_stat_activity WHERE application_name = 'relayer'
		ORDER BY state = 'active' AND wait_event_type IS DISTINCT FROM 'Lock' DESC LIMIT 1`).Scan(&pid)
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	if _, err := conn.Exec(t.Context(), `SELECT pg_sleep(60)`); err == nil {
		t.Fatal("the server goes on after the end of a session")
	}
}

// TestPostgres_ServerHangs pauses the server, at times for longer than the timeout
// of the stores. The server then carries out requests whose client has left.
func TestPostgres_ServerHangs(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	pgtest.Open(t, server.ConnString()) // creating the schema can take longer than this timeout
	surviveFaults(t, server, openTwo(t, server.ConnString(), postgres.WithTimeout(500*time.Millisecond)), func() {
		must(t, server.Pause())
		time.Sleep(upTo(1500 * time.Millisecond))
		must(t, server.Continue())
	})
}

// TestPostgres_ConnectionsCut cuts connections between two stores and their server
// at each moment of a write.
func TestPostgres_ConnectionsCut(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	p := startProxy(t, server)
	f := surviveFaults(t, server, openTwo(t, p.connString(server)), func() {
		for _, at := range []moment{beforeRequest, withinRequest, afterRequest, beforeResponse, anyMoment} {
			p.inject(at)
			time.Sleep(upTo(20 * time.Millisecond))
		}
	})
	if f.tally.carriedOut.Load() == 0 || f.tally.notCarriedOut.Load() == 0 {
		t.Errorf("of the writes of unknown outcome, %d were carried out and %d not: want some of both",
			f.tally.carriedOut.Load(), f.tally.notCarriedOut.Load())
	}
}

// TestPostgres_ClientKilledWhileWriting kills a child that writes to PostgreSQL
// with many goroutines. The next child continues with the same schema.
func TestPostgres_ClientKilledWhileWriting(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	there := location{postgresStore, server.ConnString() + pgtest.SessionName(childName), "crash"}
	killWhileWriting(t, there, func() { pgtest.AwaitSessionsEnd(t, server, childName) })
}

// TestPostgres_ClientKilledWhileCreatingSchema kills a child in its first moments.
// The schema is then absent, or whole.
func TestPostgres_ClientKilledWhileCreatingSchema(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	absent, whole := 0, 0
	for round := range *rounds {
		there := location{postgresStore, server.ConnString() + pgtest.SessionName(childName), fmt.Sprintf("crash_%d", round)}
		known := newKnown()
		run(t, task{Round: round, location: there}, opening, upTo(60*time.Millisecond), known.note)
		pgtest.AwaitSessionsEnd(t, server, childName)
		if hasSchema(t, server, there.Schema) {
			whole++
		} else {
			absent++
		}
		if found, _, _ := known.compare(survivors(t, there, 0)); !found.isEmpty() {
			t.Fatalf("round %d: %v", round, found)
		}
	}
	t.Logf("%d rounds: the schema was absent after %d and whole after %d", *rounds, absent, whole)
}

// childName names the sessions of a child.
const childName = "child"

func hasSchema(t *testing.T, server *pgserver.Server, schema string) (exists bool) {
	t.Helper()
	conn := pgtest.Connect(t, server.ConnString())
	defer conn.Close(t.Context())
	must(t, conn.QueryRow(t.Context(), `SELECT to_regnamespace($1) IS NOT NULL`, schema).Scan(&exists))
	return exists
}

// settling is a store without unknown outcomes. It repeats a write of unknown
// outcome until the result shows whether the first one was carried out.
type settling struct {
	relayer.Store
	tally *tally
}

// tally counts the writes that were not acknowledged at once.
type tally struct {
	unavailable, carriedOut, notCarriedOut atomic.Int64
}

// pause waits before a retry.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// untilSettled repeats a call until its outcome is known.
func untilSettled(ctx context.Context, call func() error) error {
	for {
		err := call()
		isUnsettled := errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown)
		if !isUnsettled || ctx.Err() != nil {
			return err
		}
		pause(ctx)
	}
}

// settle makes a write. After an unknown outcome it repeats the write until the result shows whether
// the first one was carried out: the repeated one then fails with the error taken.
func (s settling) settle(ctx context.Context, taken error, write func() error) (carriedOut bool, err error) {
	err = write()
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		return false, err
	}
	err = untilSettled(ctx, write)
	switch {
	case errors.Is(err, taken):
		s.tally.carriedOut.Add(1)
		return true, nil
	case err == nil:
		s.tally.notCarriedOut.Add(1)
	}
	return false, err
}

// Create repeats the same create. If the ID is taken then, the first create was carried out:
// only one worker uses an ID.
func (s settling) Create(ctx context.Context, rec relayer.Record) (written relayer.Record, err error) {
	carriedOut, err := s.settle(ctx, relayer.ErrExists, func() (err error) {
		written, err = s.Store.Create(ctx, rec)
		return err
	})
	if carriedOut {
		written, err = s.read(ctx, rec.ID)
		if err == nil && !bytes.Equal(written.Document, rec.Document) {
			return written, errors.New("a create of unknown outcome stored another record")
		}
	}
	return written, err
}

// Update repeats the same compare-and-swap. A read is not enough: the server may
// still carry out the first one after it. A write waits for the first one.
func (s settling) Update(ctx context.Context, rec relayer.Record) (written relayer.Record, err error) {
	carriedOut, err := s.settle(ctx, relayer.ErrConflict, func() (err error) {
		written, err = s.Store.Update(ctx, rec)
		return err
	})
	if carriedOut {
		return s.read(ctx, rec.ID)
	}
	return written, err
}

// Delete repeats the same delete.
func (s settling) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	_, err := s.settle(ctx, relayer.ErrNotFound, func() error { return s.Store.Delete(ctx, id, revision, note) })
	return err
}

func (s settling) read(ctx context.Context, id string) (found relayer.Record, err error) {
	err = untilSettled(ctx, func() (err error) {
		found, err = s.Get(ctx, id)
		return err
	})
	return found, err
}
