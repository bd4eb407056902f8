package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// interruption is one way for a call of a store to fail.
type interruption struct {
	err  error
	fail func(call func() error, cancel func()) error
}

var interruptionNames = slices.Sorted(maps.Keys(interruptions))

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
	"cancelled": {context.Canceled, func(call func() error, cancel func()) error {
		cancel()
		return call()
	}},
}

// TestCopyInterrupted has every call that a copy makes fail, one in each copy,
// and calls Copy again.
func TestCopyInterrupted(t *testing.T) {
	for name, interruption := range interruptions {
		t.Run(name, func(t *testing.T) {
			eachPair(t, func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store) {
				src := newSrc(t)
				fillWithGaps(t, src, 70)
				for nth := 0; ; nth++ {
					dst := newDst(t)
					if copyInterrupted(t, dst, src, interruption, nth) <= nth {
						break
					}
					copyAll(t, dst, src)
				}
			})
		})
	}
}

// copyInterrupted interrupts a copy at a call, and returns how many calls it
// made. It fails unless what is left is a beginning.
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

// deaf is a store that never looks at the context of a read.
type deaf struct{ *memory.Store }

func (s deaf) List(_ context.Context, offset, limit int) ([]relayer.Record, int, error) {
	return s.Store.List(context.Background(), offset, limit)
}

// TestCopyCancelledWhileReading: comparing what is there already ends as soon as
// anything else, whatever the stores make of a context.
func TestCopyCancelledWhileReading(t *testing.T) {
	src, dst := memory.New(), memory.New()
	fillWithGaps(t, src, 200)
	copyAll(t, dst, src)
	for _, stage := range []transfer.Stage{transfer.Copying, transfer.Verifying} {
		ctx, cancel := context.WithCancel(context.Background())
		err := transfer.Copy(ctx, deaf{dst}, deaf{src}, transfer.WithProgress(func(p transfer.Progress) {
			if ctx.Err() != nil {
				t.Errorf("%s: goes on to %+v", stage, p)
			}
			if p.Stage == stage && p.Done > 0 {
				cancel()
			}
		}))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error is %v, want %v", stage, err, context.Canceled)
		}
	}
}

// TestCopyAtRandom copies between stores that have been through anything, with
// interruptions anywhere.
func TestCopyAtRandom(t *testing.T) {
	for seed := range int64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			kinds := slices.Sorted(maps.Keys(storeKinds))
			src := storeKinds[kinds[random.Intn(len(kinds))]](t)
			dst := storeKinds[kinds[random.Intn(len(kinds))]](t)
			writeAtRandom(t, src, random, random.Intn(400))
			for range random.Intn(4) {
				name := interruptionNames[random.Intn(len(interruptionNames))]
				copyInterrupted(t, dst, src, interruptions[name], random.Intn(30))
				for range random.Intn(3) {
					put(t, src, randomRecord(random))
				}
			}
			copyAll(t, dst, src)
			wantGoesOn(t, dst, listAll(t, src))
		})
	}
}

func randomRecord(random *rand.Rand) relayer.Record {
	rec := relayer.Record{
		ID:       fmt.Sprintf("%016x", random.Uint64()),
		Document: make([]byte, random.Intn(200)),
		Private:  make([]byte, random.Intn(200)),
	}
	if random.Intn(2) == 0 {
		rec.Claim = "claim of " + rec.ID
	}
	random.Read(rec.Document)
	random.Read(rec.Private)
	return rec
}

func writeAtRandom(t *testing.T, store relayer.Store, random *rand.Rand, writes int) {
	t.Helper()
	var stand []relayer.Record
	for range writes {
		at := random.Intn(len(stand) + 1)
		switch what := random.Intn(4); {
		case at == len(stand) || what < 2:
			stand = append(stand, put(t, store, randomRecord(random)))
		case what == 2:
			stand[at].Document = randomRecord(random).Document
			made, err := store.Update(t.Context(), stand[at])
			if err != nil {
				t.Fatal(err)
			}
			stand[at] = made
		default:
			if err := store.Delete(t.Context(), stand[at].ID, stand[at].Revision); err != nil {
				t.Fatal(err)
			}
			stand = slices.Delete(stand, at, at+1)
		}
	}
}

// late is a store that begins with an unknown outcome: the first write is carried
// out when the next one comes.
type late struct {
	*memory.Store
	pending func()
}

func (s *late) write(ctx context.Context, write func(context.Context) error) error {
	if s.pending == nil {
		s.pending = func() { _ = write(context.WithoutCancel(ctx)) }
		return relayer.ErrOutcomeUnknown
	}
	s.pending()
	return write(ctx)
}

func (s *late) Import(ctx context.Context, records []relayer.Record) error {
	return s.write(ctx, func(ctx context.Context) error { return s.Store.Import(ctx, records) })
}

func (s *late) Create(ctx context.Context, rec relayer.Record) (made relayer.Record, err error) {
	err = s.write(ctx, func(ctx context.Context) error {
		made, err = s.Store.Create(ctx, rec)
		return err
	})
	return made, err
}

// TestCopyAfterLateWrite is of a copy that is taken up before the last write of
// the one before it has ended.
func TestCopyAfterLateWrite(t *testing.T) {
	src := memory.New()
	fillWithGaps(t, src, 70)
	all := listAll(t, src)
	for _, held := range []int{0, 5, 16, len(all) - 1} {
		start := memory.New()
		if err := start.Import(t.Context(), all[:held]); err != nil {
			t.Fatal(err)
		}
		dst := &late{Store: start}
		if err := transfer.Copy(t.Context(), dst, src); !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Fatalf("from %d on: error %v, want ErrOutcomeUnknown", held, err)
		}
		copyAll(t, dst, src)
	}
	dst := fiveMethods{&late{Store: memory.New()}}
	if err := transfer.Copy(t.Context(), dst, src); !errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Fatalf("one by one: error %v, want ErrOutcomeUnknown", err)
	}
	if err := transfer.Copy(t.Context(), dst, src); err != nil {
		t.Errorf("one by one: %v", err)
	}
}
