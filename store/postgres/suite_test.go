//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/storetest"
)

// instance describes an instance of a service: the pool of its host application and the
// settings of its role.
type instance struct {
	mode        pgx.QueryExecMode
	connections int32
	settings    map[string]string
}

// TestStore_SessionSettings runs the suite on several Stores with different pools and
// settings. Each call goes to another Store than the call before.
func TestStore_SessionSettings(t *testing.T) {
	for name, instances := range map[string][]instance{
		"few connections and odd planners": {
			{mode: pgx.QueryExecModeSimpleProtocol, connections: 1, settings: map[string]string{
				"enable_nestloop": "off",
			}},
			{mode: pgx.QueryExecModeCacheDescribe, connections: 2, settings: map[string]string{
				"plan_cache_mode": "force_generic_plan",
			}},
			{mode: pgx.QueryExecModeDescribeExec, connections: 4, settings: map[string]string{
				"default_transaction_isolation": "repeatable read",
				"enable_indexscan":              "off",
				"bytea_output":                  "escape", // which the driver cannot read in the simple protocol
			}},
		},
		"serializable and read-only by default": {
			{mode: pgx.QueryExecModeCacheStatement, connections: 4, settings: map[string]string{
				"default_transaction_isolation":  "serializable",
				"default_transaction_deferrable": "on",
				"statement_timeout":              "10s",
				"lock_timeout":                   "1ms",
			}},
			{mode: pgx.QueryExecModeExec, connections: 4, settings: map[string]string{
				"default_transaction_read_only": "on",
				"synchronous_commit":            "off",
				"search_path":                   "pg_temp",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pools []*pgxpool.Pool
			for _, i := range instances {
				pools = append(pools, i.pool(t))
			}
			storetest.Run(t, func(t *testing.T) relayer.Store {
				schema := newSchema()
				var stores []*postgres.Store
				for _, pool := range pools {
					stores = append(stores, openOn(t, pool, schema))
				}
				return &alternating{stores: stores}
			})
		})
	}
}

func (i instance) pool(t *testing.T) *pgxpool.Pool {
	return newPoolWith(t, asRole(t, i.settings), func(config *pgxpool.Config) {
		config.ConnConfig.DefaultQueryExecMode = i.mode
		config.MaxConns = i.connections
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

func (a *alternating) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	return a.next().List(ctx, offset, limit)
}

func (a *alternating) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return a.next().Update(ctx, rec)
}

func (a *alternating) Delete(ctx context.Context, id string, revision uint64) error {
	return a.next().Delete(ctx, id, revision)
}

func (a *alternating) Import(ctx context.Context, records []relayer.Record) error {
	return a.next().Import(ctx, records)
}

func (a *alternating) AppendDocument(ctx context.Context, dst []byte, id string) ([]byte, uint64, error) {
	return a.next().AppendDocument(ctx, dst, id)
}

func (a *alternating) AppendDocuments(ctx context.Context, dst []byte, offset, limit int) ([]byte, int, error) {
	return a.next().AppendDocuments(ctx, dst, offset, limit)
}

func (a *alternating) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return a.next().Watch(ctx, after)
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
