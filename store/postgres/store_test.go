//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/store/storetest"
)

// session describes the connections of an instance of a service.
type session struct {
	mode        pgx.QueryExecMode
	connections int32
	settings    map[string]string // of the role
	pooler      string            // the mode of PgBouncer; without it the connections are direct
}

// sessions use every query mode, and settings that change plans, formats, isolation and
// durability.
var sessions = []session{
	{mode: pgx.QueryExecModeSimpleProtocol, connections: 1, settings: map[string]string{
		"enable_nestloop": "off",
	}},
	{mode: pgx.QueryExecModeCacheDescribe, connections: 2, settings: map[string]string{
		"plan_cache_mode": "force_generic_plan",
	}},
	{mode: pgx.QueryExecModeDescribeExec, connections: 2, settings: map[string]string{
		"default_transaction_isolation": "repeatable read",
		"enable_indexscan":              "off",
		"bytea_output":                  "escape", // which the driver cannot read in the simple protocol
	}},
	{mode: pgx.QueryExecModeCacheStatement, connections: 2, settings: map[string]string{
		"default_transaction_isolation":  "serializable",
		"default_transaction_deferrable": "on",
		"statement_timeout":              "10s",
		"lock_timeout":                   "1ms",
	}},
	{mode: pgx.QueryExecModeExec, connections: 2, settings: map[string]string{
		"default_transaction_read_only": "on",
		"synchronous_commit":            "off",
		"search_path":                   "pg_temp",
	}},
	{mode: pgx.QueryExecModeCacheStatement, connections: 2, pooler: "session"},
	{mode: pgx.QueryExecModeCacheDescribe, connections: 2, pooler: "transaction"},
}

var long = flag.Bool("long", false, "run the whole suite on the sessions, more random calls, and the plans with all statistics and sessions")

// ofSessions are the cases whose statements, values and errors may depend on the session.
var ofSessions = regexp.MustCompile(`/(random|.*_limits|.*_byte|large)`)

// TestStore_Sessions runs the suite on a Store for each of the sessions. Each call goes to
// another Store than the call before.
func TestStore_Sessions(t *testing.T) {
	t.Parallel()
	var pools []*pgxpool.Pool
	for _, s := range sessions {
		pools = append(pools, s.pool(t))
	}
	storetest.Run(t, func(t *testing.T) relayer.Store {
		if !*long && !ofSessions.MatchString(t.Name()) {
			t.Skip("does not depend on the session: needs -long")
		}
		t.Parallel()
		schema := newSchema()
		var stores []*postgres.Store
		for _, pool := range pools {
			stores = append(stores, openOn(t, pool, schema))
		}
		return &alternating{stores: stores}
	})
}

func (s session) pool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	connString := asRole(t, s.settings)
	if s.pooler != "" {
		connString = pgserver.StartPgBouncer(t, server, s.pooler, pgserver.ResetAlways)
	}
	return newPoolWith(t, connString, func(config *pgxpool.Config) {
		config.ConnConfig.DefaultQueryExecMode = s.mode
		config.MaxConns = s.connections
	})
}

// alternating sends each call to the next of several Stores.
type alternating struct {
	stores []*postgres.Store
	calls  atomic.Uint64
}

func (a *alternating) next() *postgres.Store { return a.stores[a.calls.Add(1)%uint64(len(a.stores))] }

func (a *alternating) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return a.next().Create(ctx, rec)
}

func (a *alternating) Get(ctx context.Context, id string) (relayer.Record, error) {
	return a.next().Get(ctx, id)
}

func (a *alternating) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	return a.next().List(ctx, query)
}

func (a *alternating) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return a.next().Update(ctx, rec)
}

func (a *alternating) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return a.next().Delete(ctx, id, revision, note)
}

func (a *alternating) History(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	return a.next().History(ctx, query)
}

func (a *alternating) Import(ctx context.Context, records []relayer.Record) error {
	return a.next().Import(ctx, records)
}

func (a *alternating) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	return a.next().ImportHistory(ctx, changes)
}

func (a *alternating) Check(ctx context.Context) error { return a.next().Check(ctx) }

// Watch leaves out the last Store. The suite ends change feeds in the middle of their
// reads, which cancels them. In transaction mode PgBouncer before 1.21 can end at a
// cancellation with "server in bad state".
func (a *alternating) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	direct := a.stores[:len(a.stores)-1]
	return direct[a.calls.Add(1)%uint64(len(direct))].Watch(ctx, after)
}

func (a *alternating) Close() error {
	var failed error
	if err := a.stores[0].Check(context.Background()); !errors.Is(err, relayer.ErrUnavailable) {
		failed = err
	}
	for _, store := range a.stores {
		failed = errors.Join(failed, store.Close())
	}
	return failed
}

var roles atomic.Int64

func roleName() string { return fmt.Sprintf("role_%d", roles.Add(1)) }

// limitedTo creates a role with the given privileges on a schema, and returns its connection string.
func limitedTo(t *testing.T, schema string, grants ...string) string {
	t.Helper()
	admin := newPool(t, server.ConnString())
	execute(t, admin, "CREATE ROLE "+schema+" LOGIN", "GRANT USAGE ON SCHEMA "+schema+" TO "+schema)
	for _, grant := range grants {
		execute(t, admin, grant+" IN SCHEMA "+schema+" TO "+schema)
	}
	return parameter(t, server.ConnString(), "user", schema)
}

// asRole creates a superuser whose sessions have these settings.
func asRole(t *testing.T, settings map[string]string) string {
	t.Helper()
	admin := newPool(t, server.ConnString())
	role := roleName()
	execute(t, admin, "CREATE ROLE "+role+" SUPERUSER LOGIN")
	for name, value := range settings {
		execute(t, admin, fmt.Sprintf("ALTER ROLE %s SET %s = '%s'", role, name, value))
	}
	return parameter(t, server.ConnString(), "user", role)
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.RunDurable(t, func(t *testing.T) func(t *testing.T) relayer.Store {
		t.Parallel()
		schema := newSchema()
		return func(t *testing.T) relayer.Store {
			store := mustGet(postgres.Open(t.Context(), server.ConnString(), longTimeouts, schema))(t)
			return checked{store, t}
		}
	})
}

// checked is a Store that runs Check before it is closed.
type checked struct {
	*postgres.Store
	t *testing.T
}

// Close may be called again, when there is nothing to check.
func (c checked) Close() error {
	if err := c.Check(context.Background()); err != nil && !errors.Is(err, relayer.ErrUnavailable) {
		c.t.Error(err)
	}
	return c.Store.Close()
}
