package storeutil_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// publish publishes a change of a record whose revision is the number.
func publish(f *storeutil.Feed, number, size int) {
	f.Publish(relayer.RecordChange{Record: relayer.Record{Revision: uint64(number), Document: make([]byte, size)}})
}

// pull returns a function that returns the next number of a sequence as text, or "gap",
// or "end".
func pull(t *testing.T, changes iter.Seq2[relayer.RecordChange, error]) func() string {
	next, stop := iter.Pull2(changes)
	t.Cleanup(stop)
	return func() string {
		change, err, ok := next()
		switch {
		case !ok:
			return "end"
		case err == relayer.ErrGap:
			return "gap"
		case err != nil:
			return err.Error()
		}
		return strconv.FormatUint(change.Record.Revision, 10)
	}
}

func watch(t *testing.T, f *storeutil.Feed) func() string {
	return pull(t, f.Watch(t.Context(), ""))
}

func want(t *testing.T, next func() string, items ...string) {
	t.Helper()
	for _, item := range items {
		if got := next(); got != item {
			t.Fatalf("got %s, want %s", got, item)
		}
	}
}

func TestFeed_ChangesFromTheCallOn(t *testing.T) {
	var f storeutil.Feed
	publish(&f, 1, 0)
	first := watch(t, &f)
	publish(&f, 2, 0)
	second := watch(t, &f)
	publish(&f, 3, 0)
	want(t, first, "2", "3")
	want(t, second, "3")
}

func TestFeed_GapByNumber(t *testing.T) {
	var f storeutil.Feed
	slow, fits := watch(t, &f), watch(t, &f)
	for i := range 1024 {
		publish(&f, i, 0)
	}
	for i := range 1024 {
		want(t, fits, fmt.Sprint(i))
	}
	publish(&f, 1024, 0)
	want(t, slow, "gap", "end")
	want(t, fits, "1024")
}

// Every part counts, because the feed keeps all of them in memory.
func TestFeed_GapBySize(t *testing.T) {
	half := strings.Repeat("x", 8<<20)
	for name, change := range map[string]relayer.RecordChange{
		"id":        {Record: relayer.Record{ID: half}},
		"claim":     {Record: relayer.Record{Claim: half}},
		"document":  {Record: relayer.Record{Document: []byte(half)}},
		"private":   {Record: relayer.Record{Private: []byte(half)}},
		"note":      {Record: relayer.Record{Note: []byte(half)}},
		"text":      {Record: relayer.Record{Text: half}},
		"terms":     {Record: relayer.Record{Terms: []string{half[1:], "x"}}},
		"old text":  {OldText: half},
		"old terms": {OldTerms: []string{half[1:], "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			var f storeutil.Feed
			slow, fits := watch(t, &f), watch(t, &f)
			f.Publish(change)
			want(t, fits, "0")
			f.Publish(change)
			publish(&f, 3, 1)
			want(t, slow, "gap", "end")
			want(t, fits, "0", "3")
			publish(&f, 4, 16<<20)
			want(t, fits, "4")
			publish(&f, 5, 16<<20+1) // alone
			want(t, fits, "gap", "end")
		})
	}
}

func TestFeed_Close(t *testing.T) {
	var f storeutil.Feed
	before := watch(t, &f)
	publish(&f, 1, 0)
	f.Close(errors.New("closed"))
	f.Close(errors.New("closed again"))
	publish(&f, 2, 0)
	want(t, before, "1", "closed", "end")
	want(t, watch(t, &f), "closed", "end")
}

// A consumer that waits for a change is woken by Close, and not by the next heartbeat.
func TestFeed_CloseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f storeutil.Feed
		begun, ended := time.Now(), make(chan error)
		go func() {
			for _, err := range f.Watch(t.Context(), "") {
				ended <- err
			}
		}()
		synctest.Wait()
		closed := errors.New("closed")
		f.Close(closed)
		if err := <-ended; err != closed || time.Since(begun) > 0 {
			t.Errorf("error %v after %v, want %v at once", err, time.Since(begun), closed)
		}
	})
}

// published publishes numbers and returns their positions.
func published(t *testing.T, f *storeutil.Feed, numbers, size int) []string {
	t.Helper()
	next, stop := iter.Pull2(f.Watch(t.Context(), ""))
	defer stop()
	positions := make([]string, numbers)
	for i := range positions {
		publish(f, i, size)
		got, err, ok := next()
		if err != nil || !ok || got.Record.Revision != uint64(i) {
			t.Fatalf("got %v, %v, %t", got, err, ok)
		}
		positions[i] = got.Position
	}
	return positions
}

// resumed returns a function that returns the next items after a position.
func resumed(t *testing.T, f *storeutil.Feed, position string) func() string {
	return pull(t, f.Watch(t.Context(), position))
}

func TestFeed_Resume(t *testing.T) {
	var f storeutil.Feed
	positions := published(t, &f, 1500, 0)
	for i, item := range map[int]string{0: "gap", 474: "gap", 475: "476", 1000: "1001", 1498: "1499"} {
		want(t, resumed(t, &f, positions[i]), item)
	}
	last, dropped := resumed(t, &f, positions[1499]), resumed(t, &f, positions[0])
	publish(&f, 1500, 0)
	want(t, last, "1500")
	want(t, dropped, "gap", "end")
}

func TestFeed_ResumeAfterLargeChanges(t *testing.T) {
	var f storeutil.Feed
	positions := published(t, &f, 10, 4<<20)
	for i, item := range map[int]string{4: "gap", 5: "6", 8: "9"} {
		want(t, resumed(t, &f, positions[i]), item)
	}
}

// A position is of one Feed: another one, as after a restart, reports a gap.
func TestFeed_PositionOfAnotherFeed(t *testing.T) {
	var one, other storeutil.Feed
	positions := published(t, &one, 3, 0)
	published(t, &other, 3, 0)
	for _, position := range append(positions, positions[0]+"0", positions[0][:17]+"0"+positions[0][17:], "x", " ") {
		want(t, resumed(t, &other, position), "gap", "end")
	}
	for _, position := range []string{positions[0] + " ", positions[0][:17] + "0" + positions[0][17:], "1", positions[0][:17]} {
		want(t, resumed(t, &one, position), "gap", "end")
	}
}

func TestFeed_EndsWithContext(t *testing.T) {
	var f storeutil.Feed
	ctx, cancel := context.WithCancel(t.Context())
	next := pull(t, f.Watch(ctx, ""))
	publish(&f, 1, 0)
	publish(&f, 2, 0)
	want(t, next, "1")
	cancel()
	want(t, next, "end")
	publish(&f, 3, 0)
	want(t, pull(t, f.Watch(ctx, "")), "end")
	want(t, pull(t, f.Watch(ctx, "unknown")), "end")
}

func TestFeed_RangedOnce(t *testing.T) {
	var f storeutil.Feed
	changes := f.Watch(t.Context(), "")
	publish(&f, 1, 0)
	for range changes {
		break
	}
	publish(&f, 2, 0)
	for change, err := range changes {
		t.Errorf("got %v, %v", change, err)
	}
}

func TestFeed_Position(t *testing.T) {
	var f storeutil.Feed
	start := f.Position()
	if again := f.Position(); again != start {
		t.Errorf("two positions at one point: %q and %q", start, again)
	}
	publish(&f, 1, 0)
	behind := f.Position()
	publish(&f, 2, 0)
	want(t, resumed(t, &f, start), "1", "2")
	want(t, resumed(t, &f, behind), "2")

	change, err, _ := first(t, f.Watch(t.Context(), start))
	if change.Position != behind || err != nil {
		t.Errorf("the change has the position %q, and the feed had %q; error %v", change.Position, behind, err)
	}
}

func first(t *testing.T, changes iter.Seq2[relayer.RecordChange, error]) (relayer.RecordChange, error, bool) {
	t.Helper()
	next, stop := iter.Pull2(changes)
	defer stop()
	return next()
}

// An idle feed has a heartbeat every few seconds, whose time is the present, and at whose
// position a consumer can resume.
func TestFeed_Heartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f storeutil.Feed
		next, stop := iter.Pull2(f.Watch(t.Context(), ""))
		defer stop()
		for number := range 3 {
			publish(&f, number, 0)
			change, err, _ := next()
			if change.Kind == relayer.ChangeHeartbeat || err != nil || !change.Time.Equal(time.Now()) {
				t.Fatalf("got %+v, error %v, want a change of now", change, err)
			}
			for range 3 {
				before := time.Now()
				beat, err, _ := next()
				want := relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: change.Position, Time: time.Now()}
				if err != nil || !reflect.DeepEqual(beat, want) || time.Since(before) > 5*time.Second {
					t.Fatalf("got %+v after %s, error %v, want %+v within 5 s", beat, time.Since(before), err, want)
				}
			}
		}
	})
}

// A change that waits for a slow consumer has the time at which it was published.
func TestFeed_TimeOfChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f storeutil.Feed
		next, stop := iter.Pull2(f.Watch(t.Context(), ""))
		defer stop()
		var published []time.Time
		for number := range 3 {
			publish(&f, number, 0)
			published = append(published, time.Now())
			time.Sleep(time.Minute)
		}
		for _, want := range published {
			if change, err, _ := next(); !change.Time.Equal(want) || err != nil {
				t.Errorf("the time is %s, want %s; error %v", change.Time, want, err)
			}
		}
		if beat, err, _ := next(); beat.Kind != relayer.ChangeHeartbeat || !beat.Time.Equal(time.Now()) || err != nil {
			t.Errorf("got %+v, error %v, want a heartbeat of now", beat, err)
		}
	})
}

// All consumers get the same order, which is that of each publisher.
func TestFeed_ConcurrentPublishers(t *testing.T) {
	var f storeutil.Feed
	ctx, cancel := context.WithCancel(t.Context())
	got := make([][]int, 4)
	var consumers, publishers sync.WaitGroup
	const each, count = 100, 8
	for i := range got {
		changes := f.Watch(ctx, "")
		consumers.Go(func() {
			for change, err := range changes {
				if err != nil {
					t.Error(err)
				}
				got[i] = append(got[i], int(change.Record.Revision))
				if len(got[i]) == each*count {
					return
				}
			}
		})
	}
	for publisher := range count {
		publishers.Go(func() {
			for i := range each {
				publish(&f, publisher*each+i, 1)
				brief, leave := context.WithCancel(ctx)
				_ = f.Watch(brief, "")
				leave()
			}
		})
	}
	consumers.Wait()
	cancel()
	publishers.Wait()
	for _, changes := range got {
		if !slices.Equal(changes, got[0]) {
			t.Error("two consumers got different orders")
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
