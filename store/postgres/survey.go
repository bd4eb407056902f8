package postgres

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// survey connects to every server of the connection string, one after the other, to determine the
// highest timeline. It does nothing if there is only one server.
//
// A former primary that was not fenced accepts connections. A Store that is connected to it
// detects the new primary only in this way.
func (c *connections) survey(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	config, err := c.connConfig(ctx)
	if err != nil {
		return
	}
	// The settings of one server may be repeated without TLS.
	servers := map[string]bool{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))): true}
	for _, next := range config.Fallbacks {
		servers[net.JoinHostPort(next.Host, strconv.Itoa(int(next.Port)))] = true
	}
	if len(servers) == 1 {
		return
	}
	config.ConnectTimeout = hostTimeout / time.Duration(len(servers)) // a server that hangs leaves time for the others
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_ = c.known.requirePrimary(ctx, conn)
		return errSurveyed
	}
	_, _ = pgx.ConnectConfig(ctx, config)
}

// errSurveyed makes the driver connect to the next server.
var errSurveyed = errors.New("surveyed")

// surveyInterval limits how often slow calls of a Store ask all servers.
const surveyInterval = 2 * time.Second

func (p *prober) isSurveyDue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	isDue := time.Since(p.surveyed) >= surveyInterval
	if isDue {
		p.surveyed = time.Now()
	}
	return isDue
}

// whilePrimary returns a context that ends with the timeout, or once the server of a
// connection is known to be a former primary. If the server takes longer than the
// interval, as a commit whose standbys follow another server, the others are surveyed, once in
// a surveyInterval.
// The caller calls stop.
func (c *connections) whilePrimary(conn *pgconn.PgConn, timeout, interval time.Duration) (ctx context.Context, stop func()) {
	unlimited, cancelCause := context.WithCancelCause(context.Background())
	ctx, cancel := context.WithTimeout(unlimited, timeout)
	on, _ := primaryOf(conn)
	done := make(chan struct{})
	timer := time.AfterFunc(interval, func() {
		defer close(done)
		for ctx.Err() == nil {
			if c.prober.isSurveyDue() {
				c.survey(ctx)
			}
			if c.known.check(on) != nil {
				cancelCause(errFormerPrimary)
			}
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	})
	return ctx, func() {
		cancel()
		cancelCause(nil)
		if !timer.Stop() {
			<-done
		}
	}
}
