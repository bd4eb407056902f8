package groupcommit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer/internal/groupcommit"
)

var errRefused = errors.New("refused")

// start calls Do for each value and returns when all of them wait.
func start(t *testing.T, q *groupcommit.Queue[int], size int, values ...int) []chan error {
	t.Helper()
	var results []chan error
	for _, value := range values {
		result := make(chan error, 1)
		before := q.Len()
		go func() { result <- q.DoLeading(t.Context(), size, value, func() {}) }()
		for q.Len() == before {
			time.Sleep(time.Millisecond)
		}
		results = append(results, result)
	}
	return results
}

func values(batch []*groupcommit.Write[int]) (values []int) {
	for _, w := range batch {
		values = append(values, w.Value)
	}
	return values
}

func finish(batch []*groupcommit.Write[int], err error) {
	for _, w := range batch {
		w.Finish(err)
	}
}

func TestTake_OrderAndResults(t *testing.T) {
	q := groupcommit.New[int](groupcommit.Limits{Writes: 10, Bytes: 100})
	results := start(t, q, 1, 1, 2, 3)
	if !q.Wait() {
		t.Fatal("Wait returned false for an open queue")
	}
	batch := q.Take()
	if got := values(batch); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("batch is %v", got)
	}
	batch[0].Finish(errRefused)
	finish(batch[1:], nil)
	for i, want := range []error{errRefused, nil, nil} {
		if err := <-results[i]; err != want {
			t.Errorf("write %d: error is %v, want %v", i+1, err, want)
		}
	}
}

func TestDoLeading_CallerWrites(t *testing.T) {
	q := groupcommit.New[int](groupcommit.Limits{Writes: 10, Bytes: 100})
	err := q.DoLeading(t.Context(), 1, 7, func() {
		batch := q.Take()
		if got := values(batch); !slices.Equal(got, []int{7}) {
			t.Errorf("batch is %v", got)
		}
		finish(batch, errRefused)
	})
	if err != errRefused || q.Len() != 0 {
		t.Errorf("error is %v, want %v; %d writes wait", err, errRefused, q.Len())
	}
}

func TestTake_Limits(t *testing.T) {
	tests := []struct {
		name   string
		limits groupcommit.Limits
		size   int
		want   [][]int
	}{
		{"writes", groupcommit.Limits{Writes: 2, Bytes: 100}, 1, [][]int{{1, 2}, {3, 4}, {5}}},
		{"bytes", groupcommit.Limits{Writes: 10, Bytes: 30}, 10, [][]int{{1, 2, 3}, {4, 5}}},
		{"one write above the byte limit", groupcommit.Limits{Writes: 10, Bytes: 5}, 10, [][]int{{1}, {2}, {3}, {4}, {5}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := groupcommit.New[int](test.limits)
			results := start(t, q, test.size, 1, 2, 3, 4, 5)
			for _, want := range test.want {
				batch := q.Take()
				if got := values(batch); !slices.Equal(got, want) {
					t.Errorf("batch is %v, want %v", got, want)
				}
				finish(batch, nil)
			}
			for _, result := range results {
				<-result
			}
		})
	}
}

func TestDo_ContextEndsWhileWaiting(t *testing.T) {
	q := groupcommit.New[int](groupcommit.Limits{Writes: 10, Bytes: 100})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := q.DoLeading(ctx, 1, 1, func() {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	results := start(t, q, 1, 2)
	batch := q.Take()
	if got := values(batch); !slices.Equal(got, []int{2}) {
		t.Errorf("batch is %v, want the live write alone", got)
	}
	finish(batch, nil)
	<-results[0]
}

func TestDo_ContextEndsAfterTake(t *testing.T) {
	q := groupcommit.New[int](groupcommit.Limits{Writes: 10, Bytes: 100})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- q.DoLeading(ctx, 1, 1, func() {}) }()
	q.Wait()
	batch := q.Take()
	cancel()
	select {
	case err := <-result:
		t.Fatalf("Do returned %v before the write was finished", err)
	case <-time.After(20 * time.Millisecond):
	}
	finish(batch, errRefused)
	if err := <-result; err != errRefused {
		t.Errorf("error is %v, want %v", err, errRefused)
	}
}

func TestClose_RejectsNewKeepsWaiting(t *testing.T) {
	q := groupcommit.New[int](groupcommit.Limits{Writes: 10, Bytes: 100})
	results := start(t, q, 1, 1)
	q.Close()
	if err := q.DoLeading(t.Context(), 1, 2, func() {}); !errors.Is(err, groupcommit.ErrClosed) {
		t.Errorf("Do after Close: error is %v", err)
	}
	if !q.Wait() {
		t.Error("Wait returned false with a write waiting")
	}
	finish(q.Take(), nil)
	if err := <-results[0]; err != nil {
		t.Errorf("the write accepted before Close: error is %v", err)
	}
	if q.Wait() {
		t.Error("Wait returned true for a closed, empty queue")
	}
}
