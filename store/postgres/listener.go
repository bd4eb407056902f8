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
	awake broadcast // after a notification
}

// broadcast wakes all goroutines that wait for an event. The zero value is ready to use.
type broadcast struct {
	mu   sync.Mutex
	done chan struct{} // nil if nobody waits
}

// next returns a channel that is closed at the next wake.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.done = make(chan struct{})
	}
	return b.done
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done != nil {
		close(b.done)
		b.done = nil
	}
}

// channel is the name of the channel on which instances notify each other.
func (o options) channel() string { return o.schema + "_changes" }

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
// lost, or leads to a former primary.
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
		l.awake.wake()
		waiting, cancel := context.WithTimeout(ctx, maxSilence)
		_, err := conn.WaitForNotification(waiting)
		cancel()
		if err == nil {
			continue
		}
		checking, cancel := context.WithTimeout(ctx, longestPause)
		err = l.store.known.requirePrimary(checking, conn.PgConn())
		if err == nil {
			err = conn.Ping(checking)
		}
		cancel()
		if err != nil {
			return true
		}
	}
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
