//go:build unix

package move

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/transfer"
)

// TestThereAndBack moves all relayers from a file to PostgreSQL and from there
// into another file. Each way is interrupted twice.
func TestThereAndBack(t *testing.T) {
	server := startServer(t)
	origin := place{"bolt", filepath.Join(t.TempDir(), "origin.db")}
	there := place{"postgres", server.ConnString() + "&application_name=move"}
	back := place{"bolt", filepath.Join(t.TempDir(), "back.db")}

	began := time.Now()
	use(t, origin, there, func(src, _ store) { makeOrigin(t, src) })
	t.Logf("%d relayers made in %v", *relayers, since(began))
	move(t, server, origin, there)
	move(t, server, there, back)
	use(t, origin, back, func(src, dst store) { wantSame(t, src, dst) })
}

// startServer skips the test where there is no PostgreSQL, or fails it where CI
// is set.
func startServer(t *testing.T) *pgserver.Server {
	t.Helper()
	if err := pgserver.Available(); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	return pgserver.Start(t)
}

func since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }

// move copies in three parts: the first is cancelled, the second killed, and the
// third goes on to the end. What each leaves is the beginning of the source.
func move(t *testing.T, server *pgserver.Server, from, to place) {
	t.Helper()
	third, half := *relayers/3, *relayers/2

	use(t, from, to, func(src, dst store) { copyCancelled(t, src, dst, third) })
	cancelled := wantBeginning(t, from, to)

	copyKilled(t, from, to, func(p transfer.Progress) bool { return p.Stage == transfer.Copying && p.Done >= half })
	awaitNoSession(t, server)
	killed := wantBeginning(t, from, to)
	if cancelled < third || killed < half {
		t.Errorf("%d copied and then %d, want at least %d and %d", cancelled, killed, third, half)
	}

	use(t, from, to, func(src, dst store) {
		began := time.Now()
		if err := transfer.Copy(t.Context(), dst, src); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s to %s: cancelled at %d, killed at %d, the rest copied and all verified in %v", from.Store, to.Store, cancelled, killed, since(began))
		wantSame(t, src, dst)
	})
}

func copyCancelled(t *testing.T, src, dst store, enough int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	err := transfer.Copy(ctx, dst, src, transfer.WithProgress(func(p transfer.Progress) {
		if p.Stage == transfer.Copying && p.Done >= enough {
			cancel()
		}
	}))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v, want that of the context", err)
	}
	t.Logf("the first third in %v", since(began))
}

// awaitNoSession returns once the server has done with a killed child: a session
// carries out what it has been sent, whoever is there to hear the answer.
func awaitNoSession(t *testing.T, server *pgserver.Server) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	deadline := time.Now().Add(30 * time.Second)
	for sessions := -1; sessions != 0; time.Sleep(time.Millisecond) {
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'move'`).Scan(&sessions)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d sessions of a killed child are left, error %v", sessions, err)
		}
	}
}

// wantBeginning checks that one place holds the beginning of the other and not
// all of it, and returns how much.
func wantBeginning(t *testing.T, from, to place) (held int) {
	t.Helper()
	use(t, from, to, func(src, dst store) {
		var total int
		total, held = compare(t, src, dst)
		if total != *relayers || held == 0 || held >= total {
			t.Fatalf("%d of %d relayers are there, want some of %d", held, total, *relayers)
		}
	})
	return held
}

// wantSame checks that both hold the same relayers.
func wantSame(t *testing.T, src, dst store) {
	t.Helper()
	if total, held := compare(t, src, dst); total != *relayers || held != total {
		t.Fatalf("%d relayers, and %d where they were copied, want %d", total, held, *relayers)
	}
}

// compare checks that what the destination holds is the beginning of the source:
// the same records in the same order, to the last byte. It returns how many each
// says to hold.
func compare(t *testing.T, src, dst store) (total, held int) {
	t.Helper()
	for _, s := range []store{src, dst} {
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const page = 1000
	for offset := 0; ; offset += page {
		var want, have []relayer.Record
		want, total = list(t, src, offset, page)
		have, held = list(t, dst, offset, page)
		if wanted := max(0, min(page, held-offset)); len(have) != wanted || len(want) < wanted {
			t.Fatalf("%d and %d records at %d of %d", len(want), len(have), offset, held)
		}
		for i, rec := range have {
			if !isSame(rec, want[i]) {
				t.Fatalf("%s at place %d is not as %s was", rec.ID, offset+i, want[i].ID)
			}
		}
		if len(have) < page {
			return total, held
		}
	}
}

func list(t *testing.T, s store, offset, limit int) ([]relayer.Record, int) {
	t.Helper()
	records, total, err := s.List(t.Context(), offset, limit)
	if err != nil {
		t.Fatal(err)
	}
	return records, total
}

func isSame(a, b relayer.Record) bool {
	return a.ID == b.ID && a.Revision == b.Revision && a.Claim == b.Claim &&
		bytes.Equal(a.Document, b.Document) && bytes.Equal(a.Private, b.Private)
}
