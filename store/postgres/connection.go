package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"
)

// noConnection is the error of an attempt that has sent nothing to the server.
type noConnection struct{ error }

func (e noConnection) Unwrap() error { return e.error }

// connections hands out connections of a pool that lead to the current primary.
type connections struct {
	pool           *pgxpool.Pool
	connectTimeout time.Duration
	known          *timelines
	prober         *prober
	slots          chan struct{} // one for each connection that may be in use
	attempts       int           // of a call: after a restart of the server, each connection of the pool may be lost
}

// prober lets one caller at a time look for a primary while none can be reached. Otherwise all
// waiting calls would connect to all hosts again and again, also to the standby that is about to
// be promoted.
type prober struct {
	lock     chan struct{}             // held by the caller that looks for a primary
	failure  atomic.Pointer[error]     // why no primary could be reached; nil if one could
	surveyed atomic.Pointer[time.Time] // when a slow call has last asked all servers
}

func (p *prober) lastFailure() error {
	if failure := p.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// conn is a connection of the pool that occupies a slot.
type conn struct {
	*pooled
	slots chan struct{}
}

type pooled = pgxpool.Conn

func (c *conn) Release() {
	c.pooled.Release()
	<-c.slots
}

// acquire returns a connection to a primary. If there is none for a temporary reason, it
// waits for one until the timeout.
func (c *connections) acquire(ctx context.Context) (*conn, error) {
	waiting, cancel := context.WithTimeout(ctx, c.connectTimeout)
	defer cancel()
	late := fmt.Errorf("no connection within %v", c.connectTimeout)
	select {
	case c.slots <- struct{}{}:
	case <-waiting.Done():
		return nil, noConnection{cmp.Or(ctx.Err(), c.prober.lastFailure(), late)}
	}
	found, err := c.probe(ctx, waiting, late)
	if err != nil {
		<-c.slots
		return nil, noConnection{err}
	}
	return &conn{found, c.slots}, nil
}

// probe waits for a connection to a primary, unless it is refused. If waiting ends, its error is
// late, the last reason, or the error of ctx.
func (c *connections) probe(ctx, waiting context.Context, late error) (*pooled, error) {
	isProber := false
	defer func() {
		if isProber {
			<-c.prober.lock
		}
	}()
	for pause := time.Millisecond; ; pause = min(2*pause, maxAcquirePause) {
		if !isProber && c.prober.lastFailure() != nil {
			select {
			case c.prober.lock <- struct{}{}:
				isProber = true
			case <-waiting.Done():
				return nil, cmp.Or(ctx.Err(), c.prober.lastFailure(), late)
			}
			if isProber = c.prober.lastFailure() != nil; !isProber {
				<-c.prober.lock // another caller has found a primary
			}
		}
		found, err := c.acquirePrimary(waiting)
		switch {
		case err == nil:
			c.prober.failure.Store(nil)
			return found, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errOtherCluster):
			late = errOtherCluster
		case errors.Is(err, errNoPrimary):
			late = errNoPrimary
		case isFault(err) || errors.Is(err, puddle.ErrClosedPool):
			return nil, err // the server refuses the role or the database: another attempt cannot succeed
		case waiting.Err() == nil:
			late = fmt.Errorf("no connection within %v: %w", c.connectTimeout, err)
		}
		if isAway(err) {
			c.prober.failure.Store(new(late))
		}
		select {
		case <-waiting.Done():
			return nil, late
		case <-time.After(pause):
		}
	}
}

// isAway reports whether the attempt to connect to each host has failed, and not because all
// connections of a server are in use.
func isAway(err error) bool {
	_, isUnconnected := errors.AsType[*pgconn.ConnectError](err)
	return errors.Is(err, errNoPrimary) || errors.Is(err, errOtherCluster) || isUnconnected && !hasCode(err, tooManyConnections)
}

const maxAcquirePause = 25 * time.Millisecond

// acquirePrimary returns errNoPrimary if the pool has connected to another server. It discards
// connections that lead to a former primary; the pool discards those that fail its ping.
func (c *connections) acquirePrimary(ctx context.Context) (*pooled, error) {
	for {
		found, err := c.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		_, isKnown := primaryOf(found.Conn().PgConn())
		err = c.known.requirePrimary(ctx, found.Conn().PgConn())
		if err == nil {
			return found, nil
		}
		closeNow(found)
		found.Release()
		if !isKnown && (errors.Is(err, errNoPrimary) || errors.Is(err, errOtherCluster)) || isRefusal(err) || ctx.Err() != nil {
			return nil, err
		}
	}
}

const warnedKey = "github.com/go-relayer/relayer/store/postgres: warned"

// noteWarnings makes a connection note warnings. If the wait of a commit for the
// synchronous standby is canceled, the server reports success and a warning.
func noteWarnings(config *pgconn.Config) {
	config.OnNotice = func(conn *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.Code == warningCode {
			conn.CustomData()[warnedKey] = true
		}
	}
}

// takeWarning reports whether the connection has received a warning since the last call.
func takeWarning(conn *pgconn.PgConn) bool {
	_, warned := conn.CustomData()[warnedKey]
	delete(conn.CustomData(), warnedKey)
	return warned
}

// closeNow closes a connection, so that the pool makes a new one. It does not wait for the
// server, which may hang.
func closeNow(conn *pooled) {
	_ = conn.Conn().PgConn().Conn().Close()
	closeSoon(conn.Conn())
}

// release returns a connection to the pool, unless the server has turned out to be a
// standby: a pooler may lead a connection to another server than at first.
func release(conn *conn, err error) {
	if isStandbyError(err) {
		closeNow(conn.pooled)
	}
	conn.Release()
}

// connConfig returns the settings of a new connection, as the pool makes them.
func (c *connections) connConfig(ctx context.Context) (*pgx.ConnConfig, error) {
	pool := c.pool.Config()
	config := pool.ConnConfig.Copy()
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	return config, nil
}
