package feed_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/go-relayer/relayer/internal/feed"
)

var errGap = errors.New("gap")

// same delivers changes that contain no pointers, without their positions.
func same(change int, _ string) int { return change }

// pull returns a function that returns the next item of a subscription as text, or
// "end".
func pull(t *testing.T, f *feed.Feed[int], ctx context.Context) func() string {
	next, stop := iter.Pull2(f.Subscribe(ctx, ""))
	t.Cleanup(stop)
	return func() string {
		change, err, ok := next()
		switch {
		case !ok:
			return "end"
		case err != nil:
			return err.Error()
		}
		return fmt.Sprint(change)
	}
}

func want(t *testing.T, next func() string, items ...string) {
	t.Helper()
	for _, item := range items {
		if got := next(); got != item {
			t.Fatalf("got %s, want %s", got, item)
		}
	}
}

func TestSubscribe_ChangesFromTheCallOn(t *testing.T) {
	f := feed.New(errGap, same)
	f.Publish(1, 0)
	first := pull(t, f, t.Context())
	f.Publish(2, 0)
	second := pull(t, f, t.Context())
	f.Publish(3, 0)
	want(t, first, "2", "3")
	want(t, second, "3")
}

func TestSubscribe_GapByNumber(t *testing.T) {
	f := feed.New(errGap, same)
	slow, fits := pull(t, f, t.Context()), pull(t, f, t.Context())
	for i := range 1024 {
		f.Publish(i, 0)
	}
	for i := range 1024 {
		want(t, fits, fmt.Sprint(i))
	}
	f.Publish(1024, 0)
	want(t, slow, "gap")
	f.Publish(1025, 0)
	want(t, slow, "1025")
	want(t, fits, "1024", "1025")
}

func TestSubscribe_GapBySize(t *testing.T) {
	f := feed.New(errGap, same)
	next := pull(t, f, t.Context())
	f.Publish(1, 16<<20)
	want(t, next, "1")
	f.Publish(2, 16<<20)
	f.Publish(3, 1)
	want(t, next, "gap")
	f.Publish(4, 1)
	f.Publish(5, 16<<20+1)
	want(t, next, "gap")
	f.Publish(6, 1)
	want(t, next, "6")
}

func TestPublishGap(t *testing.T) {
	f := feed.New(errGap, same)
	next := pull(t, f, t.Context())
	f.Publish(1, 0)
	f.PublishGap()
	f.PublishGap()
	want(t, next, "gap")
	f.Publish(2, 0)
	want(t, next, "2")
}

func TestClose_EndsSubscriptions(t *testing.T) {
	f := feed.New(errGap, same)
	before := pull(t, f, t.Context())
	f.Publish(1, 0)
	f.Close(errors.New("closed"))
	f.Close(errors.New("closed again"))
	f.Publish(2, 0)
	want(t, before, "1", "closed", "end")
	want(t, pull(t, f, t.Context()), "closed", "end")
}

// item is a change with its position.
type item struct {
	change   int
	position string
}

func withPosition(change item, position string) item {
	change.position = position
	return change
}

// published publishes numbers and returns their positions.
func published(t *testing.T, f *feed.Feed[item], numbers, size int) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next, stop := iter.Pull2(f.Subscribe(ctx, ""))
	defer stop()
	positions := make([]string, numbers)
	for i := range positions {
		f.Publish(item{change: i}, size)
		got, err, ok := next()
		if err != nil || !ok || got.change != i {
			t.Fatalf("got %v, %v, %t", got, err, ok)
		}
		positions[i] = got.position
	}
	return positions
}

// resumed returns the first item after a position: a number, or "gap".
func resumed(t *testing.T, f *feed.Feed[item], position string) string {
	t.Helper()
	for got, err := range f.Subscribe(t.Context(), position) {
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(got.change)
	}
	return "end"
}

func TestSubscribe_Resume(t *testing.T) {
	f := feed.New(errGap, withPosition)
	positions := published(t, f, 1500, 0)
	for i, want := range map[int]string{0: "gap", 474: "gap", 475: "476", 1000: "1001", 1498: "1499"} {
		if got := resumed(t, f, positions[i]); got != want {
			t.Errorf("after change %d: got %s, want %s", i, got, want)
		}
	}
	next, stop := iter.Pull2(f.Subscribe(t.Context(), positions[1499]))
	defer stop()
	dropped, stop := iter.Pull2(f.Subscribe(t.Context(), positions[0]))
	defer stop()
	f.Publish(item{change: 1500}, 0)
	if got, err, _ := next(); err != nil || got.change != 1500 {
		t.Errorf("after the last change: got %v, %v", got, err)
	}
	if _, err, _ := dropped(); err != errGap {
		t.Errorf("after a dropped change: %v, want a gap", err)
	}
	if got, err, _ := dropped(); err != nil || got.change != 1500 {
		t.Errorf("after the gap: got %v, %v", got, err)
	}
}

func TestSubscribe_ResumeAfterLargeChanges(t *testing.T) {
	f := feed.New(errGap, withPosition)
	positions := published(t, f, 10, 4<<20)
	for i, want := range map[int]string{4: "gap", 5: "6", 8: "9"} {
		if got := resumed(t, f, positions[i]); got != want {
			t.Errorf("after change %d: got %s, want %s", i, got, want)
		}
	}
}

func TestSubscribe_ResumeAfterGap(t *testing.T) {
	f := feed.New(errGap, withPosition)
	before := published(t, f, 1, 0)[0]
	f.PublishGap()
	after := published(t, f, 2, 0)[0]
	if got := resumed(t, f, before); got != "gap" {
		t.Errorf("before the gap: got %s", got)
	}
	if got := resumed(t, f, after); got != "1" {
		t.Errorf("after the gap: got %s", got)
	}
}

// A position is of one Feed: another one, as after a restart, reports a gap.
func TestSubscribe_PositionOfAnotherFeed(t *testing.T) {
	one, other := feed.New(errGap, withPosition), feed.New(errGap, withPosition)
	positions := published(t, one, 3, 0)
	published(t, other, 3, 0)
	for _, position := range positions {
		if got := resumed(t, other, position); got != "gap" {
			t.Errorf("got %s", got)
		}
	}
}

func TestSubscribe_EndsWithContext(t *testing.T) {
	f := feed.New(errGap, same)
	ctx, cancel := context.WithCancel(t.Context())
	next := pull(t, f, ctx)
	f.Publish(1, 0)
	f.Publish(2, 0)
	want(t, next, "1")
	cancel()
	want(t, next, "end")
	f.Publish(3, 0)
	want(t, pull(t, f, ctx), "end")
}

func TestSubscribe_RangedOnce(t *testing.T) {
	f := feed.New(errGap, same)
	changes := f.Subscribe(t.Context(), "")
	f.Publish(1, 0)
	for range changes {
		break
	}
	f.Publish(2, 0)
	for change, err := range changes {
		t.Errorf("got %d, %v", change, err)
	}
}

// All subscribers get the same order, which is that of each publisher.
func TestPublish_Concurrent(t *testing.T) {
	f := feed.New(errGap, same)
	ctx, cancel := context.WithCancel(t.Context())
	got := make([][]int, 4)
	var subscribers, publishers sync.WaitGroup
	const each, count = 100, 8
	for i := range got {
		changes := f.Subscribe(ctx, "")
		subscribers.Go(func() {
			for change, err := range changes {
				if err != nil {
					t.Error(err)
				}
				got[i] = append(got[i], change)
				if len(got[i]) == each*count {
					return
				}
			}
		})
	}
	for publisher := range count {
		publishers.Go(func() {
			for i := range each {
				f.Publish(publisher*each+i, 1)
				brief, leave := context.WithCancel(ctx)
				_ = f.Subscribe(brief, "")
				leave()
			}
		})
	}
	subscribers.Wait()
	cancel()
	publishers.Wait()
	for _, changes := range got {
		if !slices.Equal(changes, got[0]) {
			t.Error("two subscribers got different orders")
		}
		last := make(map[int]int)
		for _, change := range changes {
			if publisher := change / each; last[publisher] > change {
				t.Errorf("%d after %d", change, last[publisher])
			} else {
				last[publisher] = change
			}
		}
	}
}

func TestSubscribe_Clone(t *testing.T) {
	f := feed.New(errGap, func(change []int, _ string) []int { return slices.Clone(change) })
	subscribe := func() func() ([]int, error, bool) {
		next, stop := iter.Pull2(f.Subscribe(t.Context(), ""))
		t.Cleanup(stop)
		return next
	}
	first, second := subscribe(), subscribe()
	f.Publish([]int{1}, 0)
	change, _, _ := first()
	change[0] = 2
	if got, _, _ := second(); !slices.Equal(got, []int{1}) {
		t.Errorf("got %v, which the other subscriber modified", got)
	}
}
