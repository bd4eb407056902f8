package move

import (
	"context"
	"testing"

	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/child"
)

// task says what a child copies.
type task struct{ From, To location }

// progress is an event of a child.
type progress struct {
	Stage string
	Done  int
}

// copyStore is the work of a child. Its events are the progress of the copy.
func copyStore(t task) error {
	ctx := context.Background()
	src, err := t.From.open(ctx)
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
func copyKilled(t *testing.T, from, to location, isEnough func(progress) bool) {
	t.Helper()
	p := child.Start(t, task{from, to})
	killed, err := child.Follow(p, func(at progress) {
		if isEnough(at) {
			p.Kill()
		}
	})
	if err != nil || !killed {
		t.Fatalf("the child was not killed: %v", err)
	}
}
