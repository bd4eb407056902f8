package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// Store is a [relayer.Store] in PostgreSQL. Create one with [Open] or [New] and close
// it with [Store.Close]. All methods are safe for concurrent use. Any number of
// Stores, in any number of processes, can share a schema.
type Store struct {
	*connections
	ownPool     bool
	opts        options
	writer      *connections // of the writes: one connection, which readers leave to them
	queue       *storeutil.Queue[change]
	unconfirmed sync.Map // the IDs of writes of unknown outcome: see hasUnconfirmed
	feed        *feed

	// seen is the last revision of the database that a list or a write found.
	seen atomic.Int64

	// isQueueFull is true after the queue of notifications of the server has refused a commit,
	// until the next check of the servers.
	isQueueFull atomic.Bool

	// ended is done when Close has begun.
	ended      context.Context
	end        context.CancelFunc
	background sync.WaitGroup
	closeOnce  sync.Once
}

var _ relayer.Store = (*Store)(nil)

// hostTimeout is the default of connect_timeout, and the limit of a survey. A host that hangs
// must not keep the pool from the next one for long.
const hostTimeout = 2 * time.Second

// A connection string without pool_max_conns gets at least defaultMaxConns.
const defaultMaxConns = 16

// sessionSettings are the settings of every session: IDs are text, and values may be
// part of a statement.
var sessionSettings = map[string]string{"client_encoding": "UTF8", "standard_conforming_strings": "on"}

// Open connects to a database. The connection string is a postgres:// URL or a list of key=value
// settings, as libpq reads it. The PG… environment variables that pgx knows supply missing
// settings. A password in a file (passfile, PGPASSFILE) is read again for each new connection.
//
// pool_max_conns limits the connections. Its default is 16, or the number of CPUs if greater. One
// more connection listens while there are watchers. connect_timeout limits the attempt to connect
// to each host, in seconds (default 2). Of several hosts the primary is used. sslmode is needed
// if a host is not local. Some settings of libpq, such as keepalives, are ignored with a warning:
// see [WithLogger].
//
// It returns [relayer.ErrUnknownFormat], [relayer.ErrNewerFormat], [relayer.ErrUnavailable] if
// the server cannot be reached, or an error that describes an invalid option, a refusal of the
// server or, with [WithoutSetup], a missing schema. No error contains the password.
func Open(ctx context.Context, connString string, options ...Option) (*Store, error) {
	opts, err := collect(options)
	if err != nil {
		return nil, err
	}
	config, ignored, err := parseConnString(connString)
	if err != nil {
		return nil, err
	}
	if len(ignored) > 0 {
		opts.logger.Warn("settings of the connection string that only libpq has are ignored", "settings", ignored)
	}
	params := config.ConnConfig.RuntimeParams
	params["application_name"] = cmp.Or(params["application_name"], "relayer")
	maps.Copy(params, sessionSettings)
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, hostTimeout)
	noteWarnings(&config.ConnConfig.Config)
	// Connections to a server that hangs stay in the pool for 15 seconds after they
	// were given up. The others must be enough to reach the promoted standby.
	if !strings.Contains(connString, "pool_max_conns") {
		config.MaxConns = max(config.MaxConns, defaultMaxConns)
	}
	// The password of a file can change while the Store is open.
	config.BeforeConnect = func(_ context.Context, next *pgx.ConnConfig) error {
		if now, err := pgxpool.ParseConfig(connString); err == nil && now.ConnConfig.Password != "" {
			next.Password = now.ConnConfig.Password
		}
		return nil
	}
	// Of several hosts the driver takes the first that passes.
	known := new(timelines)
	validate := config.ConnConfig.ValidateConnect
	config.ConnConfig.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		err := known.requirePrimary(ctx, conn)
		if err == nil && validate != nil {
			err = validate(ctx, conn)
		}
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", withoutDriver(err))
	}
	store, err := newStore(ctx, pool, known, opts)
	if err != nil {
		pool.Close()
		return nil, err
	}
	store.ownPool = true
	return store, nil
}

// New uses a pool of the host application, which closes it after the Store. Two of its
// connections are enough: one for writes and one for reads. While there are watchers,
// one more connection is made outside of the pool. The errors are those of [Open].
func New(ctx context.Context, pool *pgxpool.Pool, options ...Option) (*Store, error) {
	if pool == nil {
		return nil, errors.New("postgres: pool is nil")
	}
	opts, err := collect(options)
	if err != nil {
		return nil, err
	}
	return newStore(ctx, pool, new(timelines), opts)
}

func newStore(ctx context.Context, pool *pgxpool.Pool, known *timelines, opts options) (*Store, error) {
	size := int(pool.Config().MaxConns)
	readers := &connections{pool: pool, connectTimeout: opts.connectTimeout, known: known, prober: &prober{lock: make(chan struct{}, 1)}, slots: make(chan struct{}, max(1, size-1)), attempts: max(5, size+1)}
	writer := *readers
	writer.slots = make(chan struct{}, 1)
	if err := prepareSchema(ctx, readers, opts); err != nil {
		return nil, err
	}
	s := &Store{connections: readers, writer: &writer, opts: opts}
	s.queue = storeutil.NewQueue[change](make(chan struct{}, 1), maxBatchWrites, maxBatchBytes, s.writeBatch)
	s.ended, s.end = context.WithCancel(context.Background())
	s.feed = &feed{store: s}
	s.background.Go(func() { s.pruneChanges(pruneInterval) })
	s.background.Go(func() { s.checkServers(pruneInterval) })
	return s, nil
}

// Close waits for accepted writes and ends the background goroutines. It closes a pool
// that Open created, but not that of a host application. Later calls of other methods
// return [relayer.ErrUnavailable]. Closing again does nothing.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.end()
		s.queue.Close()
		s.feed.close()
		s.background.Wait()
		if s.ownPool {
			s.pool.Close()
		}
	})
	return nil
}

// Get returns a record, or [relayer.ErrNotFound]. After a write of the record through this Store
// with an unknown outcome, it returns [relayer.ErrUnavailable] until a commit has succeeded.
func (s *Store) Get(ctx context.Context, id string) (rec relayer.Record, err error) {
	if checkLimits(relayer.Record{ID: id}) != nil {
		return relayer.Record{}, cmp.Or(s.stopped(ctx), relayer.ErrNotFound)
	}
	// A change that finds nothing left to do reads the record and writes nothing.
	if _, found := s.unconfirmed.Load(id); found {
		if err := s.confirm(ctx); err != nil {
			return relayer.Record{}, err
		}
	}
	err = s.read(ctx, s.in(sqlGet), []any{id}, func(rows pgx.Rows) (err error) {
		rec, err = onlyRecord(rows)
		return err
	})
	return rec, err
}

// List returns the selected records of the page, oldest first, the number of all selected
// records, and the position of the feed, in one snapshot. A page costs the same after any
// sequence number, unless the query has an offset too. An offset without After adds the read of a
// short row for each 512 relayers before the page: a millisecond for a million. A selection costs
// a read of the index for each of its terms, about 2,000 short rows for a million records. A
// search reads the texts of all records that the terms and IDs select.
func (s *Store) List(ctx context.Context, query relayer.StoreQuery) (found relayer.Listing, err error) {
	sql, parameters, columns := s.listing(query)
	var last mark
	seen := s.seen.Load()
	err = s.read(ctx, sql, parameters, func(rows pgx.Rows) (err error) {
		found, last, err = scanPage(rows, columns)
		return err
	})
	if err == nil {
		s.see(seen, last.number)
	}
	return found, err
}

// see notes the last revision of the database, and logs that it lacks one that was seen before
// the call began, as after a failover that has lost writes.
func (s *Store) see(before, last int64) {
	if last < before {
		if s.seen.CompareAndSwap(before, last) {
			s.opts.logger.Error("the database has lost revisions: a failover or a restore has undone writes", "revision", last, "seen", before)
		}
		return
	}
	for seen := s.seen.Load(); seen < last && !s.seen.CompareAndSwap(seen, last); seen = s.seen.Load() {
	}
}

// A greater offset or limit selects the same as maxOffset. Sums of two do not overflow.
const maxOffset = 1 << 53

// listing returns the statement of a query, its parameters, and the columns of its rows. A
// selection ignores the hint DocumentsOnly, which its callers do not give: they check the terms
// of the records.
func (s *Store) listing(query relayer.StoreQuery) (sql string, parameters []any, columns func(*row) []any) {
	after, offset, limit := int64(min(query.After, maxOffset)), min(int64(query.Offset), maxOffset), min(int64(query.Limit), maxOffset)
	if len(query.Terms)+len(query.IDs)+len(query.Contains) == 0 {
		if parameters = []any{after, offset, limit}; query.DocumentsOnly {
			return s.in(sqlListDocuments), parameters, (*row).documentColumns
		}
		return s.in(sqlList), parameters, (*row).columns
	}
	needed := len(query.Terms)
	terms, conditions := []string{}, []int32{}
	for i, anyOf := range query.Terms {
		for _, term := range storable(anyOf) {
			if term != everyTerm {
				terms, conditions = append(terms, term), append(conditions, int32(i+1))
			}
		}
	}
	if len(query.IDs) > 0 {
		needed++
	}
	if needed == 0 {
		terms, conditions, needed = []string{everyTerm}, []int32{1}, 1
	}
	var patterns []string // NULL without texts
	if len(query.Contains) > 0 {
		patterns = storable(query.Contains)
	}
	for i, text := range patterns {
		patterns[i] = "%" + patternEscaper.Replace(text) + "%"
	}
	return s.in(sqlSelection), []any{terms, conditions, storable(query.IDs), int32(needed), patterns, after, offset, limit}, (*row).columns
}

// patternEscaper makes a text a pattern of LIKE that matches it.
var patternEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// storable returns the texts that a record can have.
func storable(texts []string) []string {
	return slices.DeleteFunc(notNull(slices.Clone(texts)), func(text string) bool { return !isStorable(text) })
}

// stopped returns the error of ctx, or errClosed after Close.
func (s *Store) stopped(ctx context.Context) error {
	if ctx.Err() == nil && s.ended.Err() != nil {
		return errClosed
	}
	return ctx.Err()
}
