package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// errNoPrimary means that a connection leads to a standby or to a former primary.
var errNoPrimary = errors.New("no server of the connection string is the primary now")

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
//
// It also remembers the last revision that it has written, and a higher one that it has read
// since. Another server that does not have it is a copy, which was restored or promoted
// separately, unless it was promoted after asynchronous replication, which may lose commits.
type timelines struct {
	mu      sync.Mutex
	highest timeline
	last    lastRevision
}

// lastRevision is the last one that was seen on a server.
type lastRevision struct {
	schema      string
	address     string // of the server
	on          timeline
	number      int64 // 0 if there was none
	synchronous int64 // the last one that this Store has written, if it waited for standbys
}

func revisionOn(conn *pgconn.PgConn, schema string, number int64) lastRevision {
	on, _ := primaryOf(conn)
	return lastRevision{schema: schema, address: conn.Conn().RemoteAddr().String(), on: on, number: number}
}

// errForeign is the error of a server that belongs to another registry.
type errForeign struct{ address, why string }

func (e errForeign) Error() string {
	return fmt.Sprintf("the server %s is not of this registry: %s; if that is intended, restart the instances", e.address, e.why)
}

// acknowledge notes the revision of a commit.
func (t *timelines) acknowledge(conn *pgconn.PgConn, schema string, number int64, isSynchronous bool) {
	written := revisionOn(conn, schema, number)
	if isSynchronous {
		written.synchronous = number
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = written
}

// see notes a revision that was read.
func (t *timelines) see(conn *pgconn.PgConn, schema string, number int64) {
	read := revisionOn(conn, schema, number)
	t.mu.Lock()
	defer t.mu.Unlock()
	if read.on.number > t.last.on.number || read.on.number == t.last.on.number && number > t.last.number {
		read.synchronous = t.last.synchronous
		t.last = read
	}
}

// admits returns false for a former primary and for a server of another cluster.
func (t *timelines) admits(on timeline) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return on == (timeline{}) || t.highest == (timeline{}) || on.system == t.highest.system && on.number >= t.highest.number
}

// check is admits for a new connection. It remembers a higher timeline.
func (t *timelines) check(ctx context.Context, conn *pgconn.PgConn, on timeline) error {
	t.mu.Lock()
	highest, last := t.highest, t.last
	t.mu.Unlock()
	address := conn.Conn().RemoteAddr().String()
	if on != (timeline{}) && highest != (timeline{}) && on.system != highest.system {
		return errForeign{address, fmt.Sprintf("its system identifier is %s, and that of the primary was %s", on.system, highest.system)}
	}
	if !t.admits(on) {
		return errNoPrimary
	}
	if last.number > 0 && address != last.address {
		number, err := askRevision(ctx, conn, last.schema)
		if err != nil {
			return err
		}
		// The revision's timeline decides: another connection may have seen the new one already.
		isPromoted := on == (timeline{}) || on.number > last.on.number
		if number < last.synchronous || number < last.number && !isPromoted {
			return errForeign{address, fmt.Sprintf("its last revision is %d, and that of the primary was %d", number, last.number)}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if on != (timeline{}) && on.number > t.highest.number {
		t.highest = on
	}
	return nil
}

// askRevision returns the last revision of a server, or 0 if it does not have the schema.
func askRevision(ctx context.Context, conn *pgconn.PgConn, schema string) (int64, error) {
	row, err := askRow(ctx, conn, inSchema(schema, `SELECT coalesce((SELECT max(last_revision) FROM $schema.state), 0)`))
	if isRefusal(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(row[0]), 10, 64)
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
// primary, and errForeign if it leads to another registry. It asks the server once per
// connection.
func (t *timelines) requirePrimary(ctx context.Context, conn *pgconn.PgConn) error {
	on, isKnown := primaryOf(conn)
	if isKnown {
		if !t.admits(on) {
			return errNoPrimary
		}
		return nil
	}
	on, err := askTimeline(ctx, conn)
	if err == nil {
		err = t.check(ctx, conn, on)
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
