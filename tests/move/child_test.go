package move

import (
	"context"
	"testing"

	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/child"
)

// task says what a child copies.
type task struct{ From, To location }

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
	return transfer.Copy(ctx, dst, src, transfer.WithProgress(func(p transfer.Progress) { child.Send(p) }))
}

// copyKilled starts a child that copies, and kills it when it has copied enough.
func copyKilled(t *testing.T, from, to location, isEnough func(transfer.Progress) bool) {
	t.Helper()
	p := child.Start(t, task{from, to})
	killed, err := child.Follow(p, func(progress transfer.Progress) {
		if isEnough(progress) {
			p.Kill()
		}
	})
	if err != nil || !killed {
		t.Fatalf("the child was not killed: %v", err)
	}
}
