//go:build unix

package crash

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

var relayers = flag.Int("relayers", 6_000, "number of relayers to copy; 100_000 in a long run")

// TestCopy_BoltToPostgresAndBack copies all relayers from a file to PostgreSQL, and
// from there into another file. Each copy is interrupted twice.
func TestCopy_BoltToPostgresAndBack(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	origin := location{Store: boltStore, Path: filepath.Join(t.TempDir(), "origin.db")}
	there := location{Store: postgresStore, Path: server.ConnString() + pgtest.SessionName(childName)}
	back := location{Store: boltStore, Path: filepath.Join(t.TempDir(), "back.db")}

	began := time.Now()
	use(t, origin, there, func(src, _ store) { fillOrigin(t, src) })
	t.Logf("%d relayers created in %v", *relayers, since(began))
	move(t, server, origin, there)
	move(t, server, there, back)
	use(t, origin, back, func(src, dst store) { wantSame(t, src, dst) })
}

func since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }

// move copies in three parts. The first is canceled, the second is killed, and the
// third completes. Each of the first two leaves a prefix of the source.
func move(t *testing.T, server *pgserver.Server, from, to location) {
	t.Helper()
	third, half := *relayers/3, *relayers/2

	use(t, from, to, func(src, dst store) { copyCanceled(t, src, dst, third) })
	canceled := wantPrefix(t, from, to)

	copyKilled(t, from, to, half)
	pgtest.AwaitSessionsEnd(t, server, childName)
	killed := wantPrefix(t, from, to)
	if canceled < third || killed < half {
		t.Errorf("%d copied and then %d, want at least %d and %d", canceled, killed, third, half)
	}

	use(t, from, to, func(src, dst store) {
		began := time.Now()
		must(t, transfer.Copy(t.Context(), dst, src))
		t.Logf("%s to %s: canceled at %d, killed at %d, the rest copied and all verified in %v", from.Store, to.Store, canceled, killed, since(began))
		wantSame(t, src, dst)
	})
}

func copyCanceled(t *testing.T, src, dst store, enough int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	err := transfer.Copy(ctx, dst, src, transfer.WithProgress(func(stage string, done, _ int) {
		if stage == "copying" && done >= enough {
			cancel()
		}
	}))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v, want context.Canceled", err)
	}
	t.Logf("the first third in %v", since(began))
}

// wantPrefix checks that a copy holds some of the source and not all, and returns
// how many records it holds.
func wantPrefix(t *testing.T, from, to location) (held int) {
	t.Helper()
	use(t, from, to, func(src, dst store) {
		var total int
		total, held = compare(t, src, dst)
		if total != *relayers || held == 0 || held >= total {
			t.Fatalf("the copy holds %d of %d relayers, want some of %d", held, total, *relayers)
		}
	})
	return held
}

// wantSame checks that the copy is complete.
func wantSame(t *testing.T, src, dst store) {
	t.Helper()
	if total, held := compare(t, src, dst); total != *relayers || held != total {
		t.Fatalf("the source holds %d relayers and the copy %d, want %d", total, held, *relayers)
	}
}

// compare checks that the destination is a prefix of the source: the same records in
// the same order, to the last byte. It returns the totals of both.
func compare(t *testing.T, src, dst store) (total, held int) {
	t.Helper()
	for _, s := range []store{src, dst} {
		must(t, s.Check(t.Context()))
	}
	const page = 1000
	var afterSrc, afterDst uint64
	for offset := 0; ; offset += page {
		var want, have []relayer.Record
		want, total = list(t, src, afterSrc, page)
		have, held = list(t, dst, afterDst, page)
		if wanted := max(0, min(page, held-offset)); len(have) != wanted || len(want) < wanted {
			t.Fatalf("%d and %d records at %d of %d", len(want), len(have), offset, held)
		}
		for i, rec := range have {
			if !isEqual(rec, want[i]) {
				t.Fatalf("%s at position %d differs from %s in the source", rec.ID, offset+i, want[i].ID)
			}
		}
		if len(have) < page {
			return total, held
		}
		afterSrc, afterDst = want[page-1].Sequence, have[page-1].Sequence
	}
}

func list(t *testing.T, s store, after uint64, limit int) ([]relayer.Record, int) {
	t.Helper()
	found, err := s.List(t.Context(), relayer.StoreQuery{After: after, Limit: limit})
	must(t, err)
	return found.Records, found.Total
}

// isEqual compares all parts of a record. A copy has its own sequences, in the same order.
func isEqual(a, b relayer.Record) bool {
	return a.ID == b.ID && a.Revision == b.Revision && a.Claim == b.Claim && a.Text == b.Text && bytes.Equal(a.Note, b.Note) &&
		slices.Equal(a.Terms, b.Terms) && bytes.Equal(a.Document, b.Document) && bytes.Equal(a.Private, b.Private)
}

// progress is an event of a child that copies.
type progress struct {
	Stage string
	Done  int
}

// copyStore copies the store of a task. Its events are the progress of the copy.
func copyStore(t task) error {
	ctx := context.Background()
	src, err := t.open(ctx)
	if err != nil {
		return err
	}
	dst, err := t.To.open(ctx)
	if err != nil {
		return err
	}
	return transfer.Copy(ctx, dst, src, transfer.WithProgress(func(stage string, done, _ int) { child.Send(progress{stage, done}) }))
}

// copyKilled starts a child that copies, and kills it when it has copied enough.
func copyKilled(t *testing.T, from, to location, enough int) {
	t.Helper()
	p := child.Start(t, task{Work: copies, location: from, To: to})
	killed, err := child.Follow(p, func(at progress) {
		if at.Stage == "copying" && at.Done >= enough {
			p.Kill()
		}
	})
	if err != nil || !killed {
		t.Fatalf("the child was not killed: %v", err)
	}
}

// use opens two stores for the duration of the call. A file can be open once at a
// time.
func use(t *testing.T, from, to location, call func(src, dst store)) {
	t.Helper()
	src, err := from.open(t.Context())
	must(t, err)
	defer func() { must(t, src.Close()) }()
	dst, err := to.open(t.Context())
	must(t, err)
	defer func() { must(t, dst.Close()) }()
	call(src, dst)
}
