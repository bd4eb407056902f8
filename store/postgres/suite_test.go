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

// instance is a service as hosts set them up: how its pool asks, and what an
// administrator has set for its role.
type instance struct {
	mode        pgx.QueryExecMode
	connections int32
	settings    map[string]string
}

// TestTwoInstances has every call go to another of two Stores than the one
// before, each on a pool of its own kind.
func TestTwoInstances(t *testing.T) {
	for name, instances := range map[string][2]instance{
		"one connection and two": {
			{mode: pgx.QueryExecModeSimpleProtocol, connections: 1},
			{mode: pgx.QueryExecModeCacheDescribe, connections: 2},
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
		"odd planners": {
			{mode: pgx.QueryExecModeDescribeExec, connections: 4, settings: map[string]string{
				"default_transaction_isolation": "repeatable read",
				"enable_indexscan":              "off",
				"bytea_output":                  "escape",
			}},
			{mode: pgx.QueryExecModeCacheStatement, connections: 4, settings: map[string]string{
				"plan_cache_mode": "force_generic_plan",
				"enable_nestloop": "off",
				"enable_hashjoin": "off",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pools := [2]*pgxpool.Pool{instances[0].pool(t), instances[1].pool(t)}
			storetest.Run(t, func(t *testing.T) relayer.Store {
				schema := newSchema()
				return &alternating{stores: [2]*postgres.Store{openOn(t, pools[0], schema), openOn(t, pools[1], schema)}}
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

// alternating is two instances behind a load balancer that takes turns.
type alternating struct {
	stores [2]*postgres.Store
	calls  atomic.Uint64
}

func (a *alternating) next() *postgres.Store { return a.stores[a.calls.Add(1)%2] }

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

func (a *alternating) Watch(ctx context.Context) iter.Seq2[relayer.RecordChange, error] {
	return a.next().Watch(ctx)
}

func (a *alternating) Close() error {
	if err := a.stores[0].Check(context.Background()); err != nil && !errors.Is(err, relayer.ErrUnavailable) {
		return err
	}
	return errors.Join(a.stores[0].Close(), a.stores[1].Close())
}

var roles atomic.Int64

// asRole makes a superuser whose sessions have these settings.
func asRole(t *testing.T, settings map[string]string) string {
	t.Helper()
	admin := newPool(t, server.ConnString())
	role := fmt.Sprintf("role_%d", roles.Add(1))
	execute(t, admin, "CREATE ROLE "+role+" SUPERUSER LOGIN")
	for name, value := range settings {
		execute(t, admin, fmt.Sprintf("ALTER ROLE %s SET %s = '%s'", role, name, value))
	}
	return parameter(t, server.ConnString(), "user", role)
}
