package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A listener that has lost its connection tries again after a while, and longer
// each time. Where it hears nothing it asks now and then whether the connection
// still stands.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = 5 * time.Second
	silence       = 30 * time.Second
)

// listener receives the notifications of all instances on a connection of its own.
type listener struct {
	channel string
	connect func(context.Context) (*pgx.Conn, error)

	mu    sync.Mutex
	awake chan struct{} // closed at the next wake
}

func newListener(connect func(context.Context) (*pgx.Conn, error), schema string) *listener {
	return &listener{channel: schema + "_changes", connect: connect, awake: make(chan struct{})}
}

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

// listen listens until ctx is done, on one connection after the other.
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

// listenOnce tells whether it came to listen at all.
func (l *listener) listenOnce(ctx context.Context) bool {
	conn, err := l.connect(ctx)
	if err != nil {
		return false
	}
	defer closeSoon(conn)
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{l.channel}.Sanitize()); err != nil {
		return false
	}
	for {
		// Also after the LISTEN: what was written before it has been told to nobody.
		l.wake()
		if !isHeard(ctx, conn) {
			return true
		}
	}
}

// isHeard waits for a notification, or for long enough, and is false where the
// connection is lost.
func isHeard(ctx context.Context, conn *pgx.Conn) bool {
	waiting, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	if _, err := conn.WaitForNotification(waiting); err == nil {
		return true
	}
	if ctx.Err() != nil || conn.IsClosed() {
		return false
	}
	asking, cancelAsking := context.WithTimeout(ctx, longestPause)
	defer cancelAsking()
	return conn.Ping(asking) == nil
}

func closeSoon(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// connectAlone makes a connection like those of the pool beside it: one that
// listens for as long as somebody watches would be missing there.
func (s *Store) connectAlone(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.timeout)
	defer cancel()
	pool := s.pool.Config()
	config := pool.ConnConfig.Copy()
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config)
}
