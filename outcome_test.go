package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

// late is a store that performs a write, waits until the context is done, and cannot
// report the outcome.
type late struct{ relayer.Store }

func (s late) end(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	<-ctx.Done()
	// A store may read back what it could not confirm, and find its own write.
	return fmt.Errorf("%w: %w: %w", relayer.ErrOutcomeUnknown, ctx.Err(), relayer.ErrConflict)
}

func (s late) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	rec, err := s.Store.Create(ctx, rec)
	return rec, s.end(ctx, err)
}

func (s late) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	rec, err := s.Store.Update(ctx, rec)
	return rec, s.end(ctx, err)
}

func (s late) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return s.end(ctx, s.Store.Delete(ctx, id, revision, note))
}

// A done context does not hide that a write may have taken effect.
func TestWrites_UnknownOutcomeAndDoneContext(t *testing.T) {
	for name, write := range map[string]func(context.Context, *relayer.Manager) error{
		"create": func(ctx context.Context, m *relayer.Manager) error { return second(m.Create(ctx, minimal("new"))) },
		"create document": func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Documents().Create(ctx, []byte(evmBody())))
		},
		"update": func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Update(ctx, "evm", func(r *relayer.Relayer) error { r.Name = "m"; return nil }))
		},
		"patch": func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Patch(ctx, "evm", patchtest.JSON(map[string]any{"name": "m"})))
		},
		"pause": func(ctx context.Context, m *relayer.Manager) error { return second(m.Pause(ctx, "evm")) },
		"disable": func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Disable(ctx, "evm", relayer.DisabledReason{Type: "x"}))
		},
		"delete": func(ctx context.Context, m *relayer.Manager) error { return m.Delete(ctx, "evm") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				registryOn(t, store)
				var observed error
				m := managerOf(t, late{store}, atEnd(func(_ relayer.Operation, err error) { observed = err }))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := write(ctx, m)
				if !errors.Is(err, relayer.ErrOutcomeUnknown) || errors.Is(err, relayer.ErrUnavailable) || observed != err {
					t.Errorf("got %v, observed %v", err, observed)
				}
			})
		})
	}
}
