package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A listener that has lost its connection reconnects with exponential backoff. If it
// receives nothing for a while, it tests the connection.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = 5 * time.Second
	maxSilence    = 30 * time.Second
)

// listener receives the notifications of all instances on a separate connection.
type listener struct {
	store *Store

	mu    sync.Mutex
	awake chan struct{} // closed at the next wake
}

// channel is the name of the channel on which instances notify each other.
func (o options) channel() string { return o.schema + "_changes" }

// next returns a channel that is closed at the next wake.
func (l *listener) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.awake
}

func (l *listener) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.awake)
	l.awake = make(chan struct{})
}

// listen listens until ctx is done, on a new connection whenever one is lost.
func (l *listener) listen(ctx context.Context) {
	pause := shortestPause
	for ctx.Err() == nil {
		if l.listenOnce(ctx) {
			pause = shortestPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// listenOnce reports whether the LISTEN succeeded. It returns when the connection is
// lost.
func (l *listener) listenOnce(ctx context.Context) bool {
	conn, err := l.connect(ctx)
	if err != nil {
		return false
	}
	defer closeSoon(conn)
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{l.store.opts.channel()}.Sanitize()); err != nil {
		return false
	}
	for {
		// Also after the LISTEN: notifications before it were not received.
		l.wake()
		if !l.await(ctx, conn) {
			return true
		}
	}
}

// await waits for a notification, for a limited time. It returns false if the connection
// is lost.
func (l *listener) await(ctx context.Context, conn *pgx.Conn) bool {
	waiting, cancel := context.WithTimeout(ctx, maxSilence)
	defer cancel()
	if _, err := conn.WaitForNotification(waiting); err == nil {
		return true
	}
	if ctx.Err() != nil || conn.IsClosed() {
		return false
	}
	checking, cancelCheck := context.WithTimeout(ctx, longestPause)
	defer cancelCheck()
	return l.check(checking, conn) == nil
}

func closeSoon(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// connect opens a connection with the settings of the pool, but outside of it: a listener
// would occupy a connection of the pool all the time.
func (l *listener) connect(ctx context.Context) (*pgx.Conn, error) {
	s := l.store
	ctx, cancel := context.WithTimeout(ctx, s.opts.timeout)
	defer cancel()
	config, err := s.connConfig(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := s.known.requirePrimary(ctx, conn.PgConn()); err != nil {
		closeSoon(conn)
		return nil, err
	}
	return conn, nil
}

// check returns an error if the connection is lost, or if its server has become a former
// primary.
func (l *listener) check(ctx context.Context, conn *pgx.Conn) error {
	if err := l.store.known.requirePrimary(ctx, conn.PgConn()); err != nil {
		return err
	}
	return conn.Ping(ctx)
}
