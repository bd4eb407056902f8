package transfer_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// checked is a store whose check the test makes.
type checked struct {
	relayer.Store
	check func(ctx context.Context) error
}

func (s checked) Check(ctx context.Context) error { return s.check(ctx) }

// TestCopyChecksTheSource: once in each copy, and before anything is done with the
// destination.
func TestCopyChecksTheSource(t *testing.T) {
	src := memory.New()
	fillWithGaps(t, src, 70)
	cracked := errors.New("cracked")
	for name, found := range map[string]error{
		"sound":       nil,
		"damaged":     cracked,
		"unavailable": relayer.ErrUnavailable,
		"cancelled":   context.Canceled,
	} {
		t.Run(name, func(t *testing.T) {
			dst, checks, calls := memory.New(), 0, 0
			from := checked{src, func(context.Context) error {
				if checks++; calls > 0 {
					t.Errorf("the destination was called before the check")
				}
				return found
			}}
			through := func(_ string, call func() error) error { calls++; return call() }
			err := transfer.Copy(t.Context(), intercept(dst, through), from)
			if !errors.Is(err, found) || checks != 1 {
				t.Errorf("error is %v after %d checks, want %v after 1", err, checks, found)
			}
			if found == nil {
				wantCopied(t, dst, src)
				return
			}
			if !strings.HasPrefix(err.Error(), "transfer: check the source: ") || calls > 0 {
				t.Errorf("%d calls of the destination, and error %q", calls, err)
			}
		})
	}
}

// TestCopyChecksNoDestination: that is compared with the source anyway.
func TestCopyChecksNoDestination(t *testing.T) {
	src := memory.New()
	fillWithGaps(t, src, 70)
	copyAll(t, checked{memory.New(), func(context.Context) error { return errors.New("checked") }}, src)
}

// The file lacks the index entry of a claim. Reads do not use it, so that only a
// check finds the damage.
func TestCopy_DamagedSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	makeDamagedFile(t, path)
	src, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if unchecked := memory.New(); transfer.Copy(t.Context(), unchecked, fiveMethods{src}) != nil {
		t.Fatal("the damage is found without a check")
	}

	for kind, newDst := range storeKinds {
		t.Run(kind, func(t *testing.T) {
			dst := newDst(t)
			var told []transfer.Progress
			err := transfer.Copy(t.Context(), dst, src, transfer.WithProgress(func(p transfer.Progress) { told = append(told, p) }))
			if !errors.Is(err, relayer.ErrCorrupt) || errors.Is(err, transfer.ErrDiffers) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error is %v, want %v", err, relayer.ErrCorrupt)
			}
			if len(listAll(t, dst)) != 0 {
				t.Error("a damaged source was copied")
			}
			if len(told) != 1 || told[0] != (transfer.Progress{Stage: transfer.Checking, Total: 70}) {
				t.Errorf("told %+v", told)
			}
		})
	}
}

// makeDamagedFile deletes the index entry of a claim.
func makeDamagedFile(t *testing.T, path string) {
	t.Helper()
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	fillWithGaps(t, store, 70)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		claims := tx.Bucket([]byte("claims")).Cursor()
		if key, _ := claims.First(); key == nil {
			t.Error("the file has no claims")
		}
		return claims.Delete()
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
