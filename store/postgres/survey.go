package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// survey connects to every server of the connection string, to determine the highest
// timeline. It does nothing if there is only one server. A server that hangs delays it for
// at most hostTimeout.
//
// A former primary that was not fenced accepts connections. A Store that is connected to it
// detects the new primary only in this way.
func (c *connections) survey(ctx context.Context) {
	if len(c.pool.Config().ConnConfig.Fallbacks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(c.connectTimeout, hostTimeout))
	defer cancel()
	config, err := c.connConfig(ctx)
	if err != nil {
		return
	}
	servers := perServer(config)
	if len(servers) == 1 {
		return
	}
	var asking sync.WaitGroup
	for _, server := range servers {
		asking.Go(func() { c.ask(ctx, server) })
	}
	asking.Wait()
}

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

// errSurveyed ends a connection once the timeline is known.
var errSurveyed = errors.New("surveyed")

func (c *connections) ask(ctx context.Context, server *pgx.ConnConfig) {
	server.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_ = c.known.requirePrimary(ctx, conn)
		return errSurveyed
	}
	if conn, err := pgx.ConnectConfig(ctx, server); err == nil {
		closeSoon(conn)
	}
}

// perServer splits the settings of several servers. Those of one server may be repeated
// without TLS.
func perServer(config *pgx.ConnConfig) []*pgx.ConnConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	var servers []*pgx.ConnConfig
	for _, next := range append([]*pgconn.FallbackConfig{first}, config.Fallbacks...) {
		last := len(servers) - 1
		if last >= 0 && servers[last].Host == next.Host && servers[last].Port == next.Port {
			servers[last].Fallbacks = append(servers[last].Fallbacks, next)
			continue
		}
		server := config.Copy()
		server.Host, server.Port, server.TLSConfig, server.Fallbacks = next.Host, next.Port, next.TLSConfig, nil
		servers = append(servers, server)
	}
	return servers
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
			if !c.known.admits(on) {
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
