package postgres

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errNoPrimary means that a connection leads to a standby or to a former primary.
var errNoPrimary = errors.New("no server of the connection string is the primary now")

// errOtherCluster means that a connection leads to a server with another system identifier.
var errOtherCluster = errors.New("the server belongs to another cluster than the primary before: if that is intended, restart the instances")

// errFormerPrimary ends what was begun on a former primary.
var errFormerPrimary = errors.New("another server has been promoted meanwhile")

// timeline is the history that a primary writes. The promotion of a standby begins the
// next timeline. Another cluster has another system identifier. The
// zero value is unknown: some managed services do not report it.
type timeline struct {
	system string
	number int64
}

// timelines remembers the highest timeline that a Store has seen. A primary of a lower one
// is a former primary that was not fenced: its writes would wait for standbys that
// follow another server, and what it returns may be old.
type timelines struct {
	mu      sync.Mutex
	highest timeline
}

// check returns errNoPrimary for a former primary, and errOtherCluster for a server of another
// cluster. It remembers a higher timeline.
func (t *timelines) check(on timeline) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case on == (timeline{}):
		return nil
	case t.highest != (timeline{}) && on.system != t.highest.system:
		return errOtherCluster
	case on.number < t.highest.number:
		return errNoPrimary
	}
	t.highest = on
	return nil
}

// primaryKey marks a connection that was found to lead to a primary, with the timeline. A
// primary cannot become a standby without a restart, which ends the connection.
const primaryKey = "github.com/go-relayer/relayer/store/postgres: primary"

// primaryOf returns the timeline with which a connection is marked.
func primaryOf(conn *pgconn.PgConn) (on timeline, ok bool) {
	on, ok = conn.CustomData()[primaryKey].(timeline)
	return on, ok
}

// requirePrimary returns errNoPrimary if a connection leads to a standby or to a former
// primary, and errOtherCluster if it leads to one of another cluster. It asks the server once per
// connection.
func (t *timelines) requirePrimary(ctx context.Context, conn *pgconn.PgConn) error {
	if on, isKnown := primaryOf(conn); isKnown {
		return t.check(on)
	}
	on, err := askTimeline(ctx, conn)
	if err == nil {
		err = t.check(on)
	}
	if err == nil {
		conn.CustomData()[primaryKey] = on
	}
	return err
}

// askTimeline returns errNoPrimary if the server is a standby.
func askTimeline(ctx context.Context, conn *pgconn.PgConn) (timeline, error) {
	row, err := askRow(ctx, conn, `
		SELECT pg_is_in_recovery(), system_identifier, CASE WHEN NOT pg_is_in_recovery() THEN pg_walfile_name(pg_current_wal_lsn()) END
		FROM pg_control_system()`)
	if isRefusal(err) {
		row, err = askRow(ctx, conn, `SELECT pg_is_in_recovery()`)
	}
	switch {
	case err != nil:
		return timeline{}, err
	case string(row[0]) != "f":
		return timeline{}, errNoPrimary
	case len(row) < 3 || len(row[2]) < 8:
		return timeline{}, nil
	}
	// The name of a file of the write-ahead log begins with the timeline.
	number, err := strconv.ParseInt(string(row[2][:8]), 16, 64)
	return timeline{system: string(row[1]), number: number}, err
}

func askRow(ctx context.Context, conn *pgconn.PgConn, sql string) ([][]byte, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, errors.New("the server returned no row")
	}
	return results[0].Rows[0], nil
}

// survey connects to every server of the connection string, one after the other, to determine the
// highest timeline. It does nothing if there is only one server.
//
// A former primary that was not fenced accepts connections. A Store that is connected to it may
// detect the new primary only in this way.
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
	last := p.surveyed.Load()
	return (last == nil || time.Since(*last) >= surveyInterval) && p.surveyed.CompareAndSwap(last, new(time.Now()))
}

// whilePrimary returns a context that ends with the timeout, or once the server of a connection
// is known to be a former primary. If the server takes longer than the interval, as a commit
// whose standbys follow another server, all servers are surveyed, at most once in a
// surveyInterval. The caller calls stop.
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
