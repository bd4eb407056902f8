package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"
)

// connector is acquire, or acquireAlive for a second attempt.
type connector func(context.Context) (*pgxpool.Conn, error)

// noConnection is the error of an operation that has sent nothing to the server.
type noConnection struct{ error }

func (e noConnection) Unwrap() error { return e.error }

func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	return acquire(ctx, s.pool, s.opts.connectTimeout)
}

// acquire returns a connection to a primary. Until the timeout it waits for one if the
// reason why there is none may pass.
func acquire(ctx context.Context, pool *pgxpool.Pool, timeout time.Duration) (*pgxpool.Conn, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	late := fmt.Errorf("no connection within %v", timeout)
	for pause := time.Millisecond; ; pause = min(2*pause, maxAcquirePause) {
		conn, err := acquirePrimary(waiting, pool)
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, noConnection{ctx.Err()}
		case errors.Is(err, errStandby):
			late = errStandby
		case !mayPass(err):
			return nil, noConnection{err}
		case waiting.Err() == nil:
			late = fmt.Errorf("no connection within %v: %w", timeout, err)
		}
		select {
		case <-waiting.Done():
			return nil, noConnection{late}
		case <-time.After(pause):
		}
	}
}

// maxAcquirePause is the longest pause between two attempts to get a connection.
const maxAcquirePause = 25 * time.Millisecond

// mayPass reports whether another attempt to connect may succeed: the server restarts, a
// failover is not complete, or all of its connections are in use. It returns false if the
// server refuses the role or the database, and if the pool is closed.
func mayPass(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return !errors.Is(err, puddle.ErrClosedPool)
	}
	switch refusal.Code[:min(2, len(refusal.Code))] {
	case connectionException, "53", "57": // resources, intervention of an operator
		return true
	}
	return false
}

// acquirePrimary returns errStandby if the pool has connected to a standby. Idle
// connections that have been lost are discarded.
func acquirePrimary(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	for {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		err = requirePrimary(ctx, conn.Conn().PgConn())
		if err == nil {
			return conn, nil
		}
		discard(conn)
		if errors.Is(err, errStandby) || isRefusal(err) || ctx.Err() != nil {
			return nil, err
		}
	}
}

var errStandby = errors.New("the server is a standby: name the primary, or all servers of the cluster with target_session_attrs=primary")

// primaryKey marks a connection that was found to lead to a primary. It cannot
// become a standby without a restart, which ends the connection.
const primaryKey = "github.com/go-relayer/relayer/store/postgres: primary"

// requirePrimary asks a new connection once whether it leads to a primary.
func requirePrimary(ctx context.Context, conn *pgconn.PgConn) error {
	if conn.CustomData()[primaryKey] != nil {
		return nil
	}
	results, err := conn.Exec(ctx, `SELECT pg_is_in_recovery()`).ReadAll()
	if err != nil {
		return err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != "f" {
		return errStandby
	}
	conn.CustomData()[primaryKey] = true
	return nil
}

// warnedKey marks a connection that has received a warning.
const warnedKey = "github.com/go-relayer/relayer/store/postgres: warned"

// noteWarnings makes a connection note warnings. If the wait of a commit for the
// synchronous standby is canceled, the server reports success and a warning.
func noteWarnings(config *pgconn.Config) {
	next := config.OnNotice
	config.OnNotice = func(conn *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.Code == warningCode {
			conn.CustomData()[warnedKey] = true
		}
		if next != nil {
			next(conn, notice)
		}
	}
}

// takeWarning reports whether the connection has received a warning since the last
// call.
func takeWarning(conn *pgconn.PgConn) bool {
	_, warned := conn.CustomData()[warnedKey]
	delete(conn.CustomData(), warnedKey)
	return warned
}

// discard closes a connection, so that the pool makes a new one.
func discard(conn *pgxpool.Conn) {
	closeSoon(conn.Conn())
	conn.Release()
}

// release returns a connection to the pool, unless the server has turned out to be a
// standby: a pooler may lead a connection to another server than at first.
func release(conn *pgxpool.Conn, err error) {
	if isStandbyError(err) {
		discard(conn)
		return
	}
	conn.Release()
}

// acquireAlive is acquire after a connection was lost: others that were idle may be
// lost as well, so it takes one that answers.
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
