package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
)

// Store is a [relayer.Store] in PostgreSQL. Make one with [Open] or [New], and
// call [Store.Close] when done with it. All methods are safe for concurrent use,
// and any number of Stores, in any number of processes, may share a schema.
type Store struct {
	pool        *pgxpool.Pool
	ownPool     bool
	opts        options
	sql         statements
	queue       *queue
	unsettled   *unsettled
	unconfirmed unconfirmed
	feed        *feed

	// ended is done once Close has begun.
	ended      context.Context
	end        context.CancelFunc
	background sync.WaitGroup
	closeOnce  sync.Once
}

var _ relayer.Store = (*Store)(nil)

// hostTimeout limits an attempt to connect to one host of the connection string. A
// host that hangs must not keep the pool from the next one for long.
const hostTimeout = 2 * time.Second

// Open connects to the database that the connection string names, a postgres://
// URL or a list of key=value, as the libpq of PostgreSQL reads it; what is not
// in it is taken from the PG… variables of the environment. pool_max_conns in it
// limits the connections (default 4, or the number of CPUs if greater); one more
// listens while there are watchers. connect_timeout limits the attempt to connect
// to each host, in seconds (default 2).
//
// It returns [relayer.ErrUnknownFormat], [relayer.ErrNewerFormat] or, with [WithoutSetup], [ErrNoSchema],
// [relayer.ErrUnavailable] where the server is out of reach, or what is wrong with
// the options. No error has the password in it.
func Open(ctx context.Context, connString string, options ...Option) (*Store, error) {
	config, err := pgxpool.ParseConfig(connString)
	if err != nil || isTornApart(connString) || isTornUp(config.ConnConfig) {
		// The driver's error repeats the string, and can only guess where in it the
		// password is.
		return nil, errors.New("postgres: the connection string cannot be read: it must be a postgres:// URL, percent-encoded, or a list of key=value, with settings that exist")
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "relayer"
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = hostTimeout
	}
	// Of several hosts the driver takes the first that passes.
	validate := config.ConnConfig.ValidateConnect
	config.ConnConfig.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		err := requirePrimary(ctx, conn)
		if err == nil && validate != nil {
			err = validate(ctx, conn)
		}
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", withoutDriver(err))
	}
	store, err := New(ctx, pool, options...)
	if err != nil {
		pool.Close()
		return nil, err
	}
	store.ownPool = true
	return store, nil
}

// isTornApart tells of a URL whose user or password has a / in it, which ends
// what comes before the path: parts of the password would be taken for names of
// a host and a database, which errors may show.
func isTornApart(connString string) bool {
	scheme, rest, _ := strings.Cut(connString, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		return false
	}
	_, rest, _ = strings.Cut(rest, "/")
	path, query, _ := strings.Cut(rest, "?")
	name, _, _ := strings.Cut(query, "=")
	return strings.Contains(path+name, "@")
}

// isTornUp tells of a password with an @ in it, of which the rest is taken for the
// name of a host, and of a URL that is taken for settings.
func isTornUp(config *pgx.ConnConfig) bool {
	for name := range config.RuntimeParams {
		if strings.ContainsFunc(name, func(r rune) bool { return r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			return true
		}
	}
	return strings.Contains(config.Host, "@") ||
		slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool { return strings.Contains(f.Host, "@") })
}

// New keeps relayers in the database of a pool, which stays the host's to close,
// after the Store. Two connections of it are enough: one for writes and one for
// reads. While somebody watches, one more is made outside of the pool. Errors
// are those of [Open].
func New(ctx context.Context, pool *pgxpool.Pool, options ...Option) (*Store, error) {
	if pool == nil {
		return nil, errors.New("postgres: pool is nil")
	}
	opts, err := collect(options)
	if err != nil {
		return nil, err
	}
	if err := prepareSchema(ctx, pool, opts); err != nil {
		return nil, err
	}
	s := &Store{
		pool:      pool,
		opts:      opts,
		sql:       statementsIn(opts.schema),
		queue:     newQueue(opts.timeout),
		unsettled: newUnsettled(),
	}
	s.ended, s.end = context.WithCancel(context.Background())
	s.feed = newFeed(s)
	s.background.Go(s.runWriter)
	s.background.Go(s.pruneChanges)
	return s, nil
}

// Close waits for the writes that were accepted, and ends what runs in the
// background. A pool that Open made is closed, a host's is not. Whatever comes
// after it gets [relayer.ErrUnavailable]. Closing again does nothing.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.queue.close()
		s.end()
		s.feed.close()
		s.background.Wait()
		if s.ownPool {
			s.pool.Close()
		}
	})
	return nil
}

// Get returns the record, or [relayer.ErrNotFound].
func (s *Store) Get(ctx context.Context, id string) (relayer.Record, error) {
	if !isStorable(id) {
		return relayer.Record{}, s.absent(ctx)
	}
	if err := s.confirm(ctx, id); err != nil {
		return relayer.Record{}, err
	}
	var rec relayer.Record
	err := s.read(ctx, s.sql.get, []any{id}, func(rows pgx.Rows) (err error) {
		rec, err = onlyRecord(rows)
		return err
	})
	return rec, err
}

// List returns up to limit records from offset on, oldest first, and the number
// of all.
func (s *Store) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	var recs []relayer.Record
	var total int
	err := s.read(ctx, s.sql.list, []any{int64(offset), int64(limit)}, func(rows pgx.Rows) (err error) {
		recs, total, err = page(rows)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return recs, total, nil
}

// absent is the answer to whoever asks for an id that cannot be there.
func (s *Store) absent(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.ended.Err() != nil {
		return errClosed
	}
	return relayer.ErrNotFound
}
