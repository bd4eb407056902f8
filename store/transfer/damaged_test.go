package transfer_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// checked is a store whose check is a function of the test.
type checked struct {
	relayer.Store
	check func(ctx context.Context) error
}

func (s checked) Check(ctx context.Context) error { return s.check(ctx) }

// The source is checked once, before any call of the destination.
func TestCopy_ChecksSource(t *testing.T) {
	src := memory.New()
	fillWithGaps(t, src, 70)
	cracked := errors.New("cracked")
	for name, found := range map[string]error{
		"sound":       nil,
		"damaged":     cracked,
		"unavailable": relayer.ErrUnavailable,
		"canceled":    context.Canceled,
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

// The destination is compared with the source instead.
func TestCopy_DestinationNotChecked(t *testing.T) {
	src := memory.New()
	fillWithGaps(t, src, 70)
	copyAll(t, checked{memory.New(), func(context.Context) error { return errors.New("checked") }}, src)
}

// TestCopy_DamagedFile changes one byte of a private part. The check finds it before
// anything is copied, and a read at the latest.
func TestCopy_DamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	makeDamagedFile(t, path)
	src := openAt(t, path)
	if err := transfer.Copy(t.Context(), memory.New(), wrapped{src}); !errors.Is(err, relayer.ErrCorrupt) {
		t.Fatalf("without a check: error is %v, want %v", err, relayer.ErrCorrupt)
	}

	for kind, newDst := range storeKinds {
		t.Run(kind, func(t *testing.T) {
			dst := newDst(t)
			err := transfer.Copy(t.Context(), dst, src)
			if !errors.Is(err, relayer.ErrCorrupt) || errors.Is(err, transfer.ErrDiffers) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error is %v, want %v", err, relayer.ErrCorrupt)
			}
			if len(listAll(t, dst)) != 0 {
				t.Error("a damaged source was copied")
			}
		})
	}
}

// makeDamagedFile changes a byte in every copy of a private part in the file: free
// pages may contain it too.
func makeDamagedFile(t *testing.T, path string) {
	t.Helper()
	store := openAt(t, path)
	fillWithGaps(t, store, 70)
	private := string(listAll(t, store)[7].Private)
	must(t, store.Close())
	last := len(private) - 1
	replaceIn(t, path, private, private[:last]+string(private[last]^1))
}
