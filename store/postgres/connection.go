package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// connector is acquire, or acquireAlive for a second attempt.
type connector func(context.Context) (*pgxpool.Conn, error)

// noConnection is the error of an operation that did not come so far as to ask
// the server anything.
type noConnection struct{ error }

func (e noConnection) Unwrap() error { return e.error }

func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	return acquire(ctx, s.pool, s.opts.connectTimeout)
}

func acquire(ctx context.Context, pool *pgxpool.Pool, timeout time.Duration) (*pgxpool.Conn, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := pool.Acquire(waiting)
	if err == nil {
		return conn, nil
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no connection within %v", timeout)
	}
	return nil, noConnection{err}
}

// acquireAlive is for what has failed on a connection that was lost: those that
// lay idle beside it may all be lost as well, so it takes one that answers.
func (s *Store) acquireAlive(ctx context.Context) (*pgxpool.Conn, error) {
	waiting, cancel := context.WithTimeout(ctx, s.opts.connectTimeout)
	defer cancel()
	for {
		conn, err := s.acquire(waiting)
		if err != nil {
			return nil, err
		}
		if conn.Ping(waiting) == nil {
			return conn, nil
		}
		conn.Release()
	}
}
