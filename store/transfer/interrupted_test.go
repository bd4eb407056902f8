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

// interruption is one way in which a call of a store fails.
type interruption struct {
	err  error
	fail func(call func() error, cancel func()) error
}

var interruptions = map[string]interruption{
	"unavailable": {relayer.ErrUnavailable, func(func() error, func()) error {
		return relayer.ErrUnavailable
	}},
	"unknown and done": {relayer.ErrOutcomeUnknown, func(call func() error, _ func()) error {
		_ = call()
		return relayer.ErrOutcomeUnknown
	}},
	"unknown and not done": {relayer.ErrOutcomeUnknown, func(func() error, func()) error {
		return relayer.ErrOutcomeUnknown
	}},
	"canceled": {context.Canceled, func(call func() error, cancel func()) error {
		cancel()
		return call()
	}},
}

// TestCopy_Interrupted fails every call that a copy makes, one in each copy, and calls
// Copy again: no record and no change is missing or doubled.
func TestCopy_Interrupted(t *testing.T) {
	for name, interruption := range interruptions {
		t.Run(name, func(t *testing.T) {
			eachPair(t, func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store) {
				src := newSrc(t)
				fillWithGaps(t, src, 40)
				for nth := 0; ; nth++ {
					dst := newDst(t)
					if copyInterrupted(t, dst, src, interruption, nth) <= nth {
						break
					}
					copyAll(t, dst, src)
					if _, ok := dst.(transfer.HistoryImporter); ok {
						wantHistory(t, dst, pastOf(t, src))
					}
				}
			})
		})
	}
}

// copyInterrupted interrupts a copy at its nth call and returns the number of calls. It
// fails unless the destination contains a beginning of the source.
func copyInterrupted(t *testing.T, dst, src relayer.Store, interruption interruption, nth int) (calls int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	through := func(method string, call func() error) error {
		calls++
		if calls-1 == nth {
			return interruption.fail(call, cancel)
		}
		return call()
	}
	err := transfer.Copy(ctx, intercept(dst, through), intercept(src, through))
	var want error
	if nth < calls {
		want = interruption.err
	}
	if !errors.Is(err, want) || errors.Is(err, transfer.ErrDiffers) {
		t.Fatalf("interrupted at call %d of %d: error is %v, want %v", nth, calls, err, want)
	}
	wantBeginning(t, dst, src)
	return calls
}

// contextIgnorer is a store that ignores the context of a read.
type contextIgnorer struct{ *memory.Store }

func (s contextIgnorer) List(_ context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	return s.Store.List(context.Background(), query)
}

// A canceled context ends the comparison too, even if the stores ignore it.
func TestCopy_CanceledWhileReading(t *testing.T) {
	src, dst := memory.New(), memory.New()
	fillWithGaps(t, src, 200)
	copyAll(t, dst, src)
	for _, nth := range []int{2, 4} { // the first lists of the comparison and of the verification
		ctx, cancel := context.WithCancel(context.Background())
		var from relayer.Store = contextIgnorer{src}
		from = beforeList(from, nth, cancel)
		from = beforeList(from, nth+1, func() { t.Errorf("list %d: goes on", nth) })
		if err := transfer.Copy(ctx, contextIgnorer{dst}, from); !errors.Is(err, context.Canceled) {
			t.Errorf("list %d: error is %v, want %v", nth, err, context.Canceled)
		}
	}
}

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
