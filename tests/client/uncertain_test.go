//go:build unix

package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
)

// uncertain is a store that fails: it is unavailable, or it reports an unknown outcome
// of a write that took effect or did not.
type uncertain struct {
	relayer.Store
	rate *atomic.Int64 // failures per 1,000 writes
}

// deadline is that of the requests to a server with an uncertain store.
const deadline = 20 * time.Millisecond

func withDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), deadline)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (s *uncertain) write(ctx context.Context, run func() error) error {
	if rand.Int64N(1000) >= s.rate.Load() {
		return run()
	}
	kind := rand.IntN(5)
	if kind == 0 {
		return fmt.Errorf("%w: a failure of the test", relayer.ErrUnavailable)
	}
	if kind < 3 { // it takes effect
		if err := run(); err != nil {
			return err
		}
	}
	if kind%2 == 0 { // the failure is noticed late, as a deadline of the host
		<-ctx.Done()
		return fmt.Errorf("%w: %w", relayer.ErrOutcomeUnknown, ctx.Err())
	}
	return fmt.Errorf("%w: a failure of the test", relayer.ErrOutcomeUnknown)
}

func (s *uncertain) Create(ctx context.Context, rec relayer.Record) (created relayer.Record, err error) {
	err = s.write(ctx, func() error { created, err = s.Store.Create(ctx, rec); return err })
	return created, err
}

func (s *uncertain) Update(ctx context.Context, rec relayer.Record) (updated relayer.Record, err error) {
	err = s.write(ctx, func() error { updated, err = s.Store.Update(ctx, rec); return err })
	return updated, err
}

func (s *uncertain) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return s.write(ctx, func() error { return s.Store.Delete(ctx, id, revision, note) })
}
