package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

// read runs one statement and passes its rows to use. It returns the error of the
// context or one of package relayer: ErrNotFound and ErrCorrupt of use unchanged.
func (s *Store) read(ctx context.Context, sql string, args []any, use func(pgx.Rows) error) error {
	err := s.tryRead(ctx, sql, args, use)
	if err == nil || err == ctx.Err() || errors.Is(err, relayer.ErrNotFound) || errors.Is(err, relayer.ErrCorrupt) {
		return err
	}
	if hasCode(err, noHistory) {
		return errNoHistory
	}
	return failed(err)
}

// tryRead repeats a read that fails for a transient reason. It returns the errors of
// the driver unchanged.
func (s *Store) tryRead(ctx context.Context, sql string, args []any, use func(pgx.Rows) error) error {
	var err error
	for range s.attempts {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		err = s.readOnce(ctx, sql, args, use)
		if err == nil || errors.Is(err, relayer.ErrNotFound) || errors.Is(err, relayer.ErrCorrupt) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, ok := errors.AsType[noConnection](err); ok || !isTransient(err) {
			return s.explain(ctx, err)
		}
	}
	return err
}

func (s *Store) readOnce(ctx context.Context, sql string, args []any, use func(pgx.Rows) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.timeout)
	defer cancel()
	rows, err := conn.Query(limited, sql, args...)
	if err == nil {
		err = use(rows)
		rows.Close()
	}
	release(conn, err)
	if ctx.Err() != nil {
		return err
	}
	return s.causeOf(limited, err)
}
