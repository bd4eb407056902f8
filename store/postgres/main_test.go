//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// server is shared by most tests, each of which uses a separate schema.
var server *pgserver.Server

func TestMain(m *testing.M) {
	var err error
	// Most tests wait for the server, so that more of them than processors can run.
	flag.Parse()
	err = flag.Set("test.parallel", strconv.Itoa(max(8, runtime.GOMAXPROCS(0))))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// A killed process loses nothing that it has written, also without fsync.
	if server, err = pgserver.New("fsync = off", "max_connections = 300"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv("STORETEST_STEPS") == "" && !*long {
		os.Setenv("STORETEST_STEPS", "250")
	}
	code := m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var schemas atomic.Int64

// schemaName returns a name that no other test uses.
func schemaName() string { return fmt.Sprintf("test_%d", schemas.Add(1)) }

func newSchema() postgres.Option { return postgres.WithSchema(schemaName()) }

func open(t testing.TB, options ...postgres.Option) *postgres.Store {
	t.Helper()
	return openAt(t, server.ConnString(), options...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustGet returns a function that returns the value, or fails the test with the error.
func mustGet[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// errorOf returns the error of a call that has another result too.
func errorOf[T any](_ T, err error) error { return err }

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

// longTimeouts are not exceeded on a busy machine. A client that stalls while it holds the
// write lock loses it after a tenth of them.
var longTimeouts = postgres.Options(postgres.ConnectTimeout(waitLimit), postgres.WithTimeout(waitLimit))

// openPruner opens a Store that soon leaves nothing of a change but its effect.
func openPruner(t testing.TB, schema string) *postgres.Store {
	t.Helper()
	store := open(t, postgres.WithSchema(schema), postgres.WithHistory(0, 0))
	must(t, store.PruneSoon())
	return store
}

func openAt(t testing.TB, connString string, options ...postgres.Option) *postgres.Store {
	t.Helper()
	return closeAtEnd(t, mustGet(postgres.Open(t.Context(), connString, append([]postgres.Option{longTimeouts}, options...)...))(t))
}

// openImpatient opens a Store with short timeouts. On a busy machine they can expire although
// the server works, so that what has to succeed is repeated.
func openImpatient(t testing.TB, connString string, options ...postgres.Option) *postgres.Store {
	t.Helper()
	options = append([]postgres.Option{longTimeouts}, options...)
	return closeAtEnd(t, untilAvailable(t, func() (*postgres.Store, error) { return postgres.Open(t.Context(), connString, options...) }))
}

// openImpatientOn is openImpatient on a pool of the host application.
func openImpatientOn(t testing.TB, pool *pgxpool.Pool, options ...postgres.Option) *postgres.Store {
	t.Helper()
	options = append([]postgres.Option{longTimeouts}, options...)
	return closeAtEnd(t, untilAvailable(t, func() (*postgres.Store, error) { return postgres.New(t.Context(), pool, options...) }))
}

// untilAvailable repeats a call until the server responds in time.
func untilAvailable[T any](t testing.TB, call func() (T, error)) (result T) {
	t.Helper()
	eventually(t, "the server responds in time", func() bool {
		var err error
		if result, err = call(); err != nil && !errors.Is(err, relayer.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	return result
}

// openOn opens a Store on a pool of the host application.
func openOn(t testing.TB, pool *pgxpool.Pool, options ...postgres.Option) *postgres.Store {
	t.Helper()
	return closeAtEnd(t, mustGet(postgres.New(t.Context(), pool, append([]postgres.Option{longTimeouts}, options...)...))(t))
}

func closeAtEnd(t testing.TB, store *postgres.Store) *postgres.Store {
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

// newAdmin returns a pool, and the name of a schema that does not exist yet.
func newAdmin(t testing.TB) (admin *pgxpool.Pool, schema string) {
	t.Helper()
	return newPool(t, server.ConnString()), schemaName()
}

// newPool returns a pool of the host application.
func newPool(t testing.TB, connString string) *pgxpool.Pool {
	t.Helper()
	return newPoolWith(t, connString, func(*pgxpool.Config) {})
}

func newPoolWith(t testing.TB, connString string, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config := mustGet(pgxpool.ParseConfig(connString))(t)
	change(config)
	pool := mustGet(pgxpool.NewWithConfig(context.Background(), config))(t)
	t.Cleanup(pool.Close)
	return pool
}

// parameter sets a parameter of a connection string.
func parameter(t testing.TB, connString, name, value string) string {
	t.Helper()
	parsed := mustGet(url.Parse(connString))(t)
	query := parsed.Query()
	query.Set(name, value)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

// execute runs statements without parameters.
func execute(t testing.TB, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := pool.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// queryOne returns the value of a query with one row and one column.
func queryOne[T any](t testing.TB, pool *pgxpool.Pool, sql string, arguments ...any) T {
	t.Helper()
	var value T
	if err := pool.QueryRow(context.Background(), sql, arguments...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// record returns a record with distinct content in every field.
func record(id string) relayer.Record {
	return relayer.Record{
		ID:       id,
		Claim:    "claim of " + id,
		Terms:    []string{"common", "id=" + id},
		Text:     "text of " + id,
		Note:     []byte("note of " + id),
		Document: []byte(`{"id":"` + id + `"}`),
		Private:  []byte(`{"secret":"` + id + `"}`),
	}
}

func numbered(i int) string { return fmt.Sprintf("r%06d", i) }

func create(t testing.TB, store relayer.Store, rec relayer.Record) relayer.Record {
	t.Helper()
	made, err := store.Create(context.Background(), rec)
	if err != nil {
		t.Fatalf("create %q: %v", rec.ID, err)
	}
	return made
}

func update(t testing.TB, store relayer.Store, rec relayer.Record) relayer.Record {
	t.Helper()
	made, err := store.Update(context.Background(), rec)
	if err != nil {
		t.Fatalf("update %q: %v", rec.ID, err)
	}
	return made
}

func remove(t testing.TB, store relayer.Store, rec relayer.Record) {
	t.Helper()
	if err := store.Delete(context.Background(), rec.ID, rec.Revision, rec.Note); err != nil {
		t.Fatalf("delete %q: %v", rec.ID, err)
	}
}

func get(t testing.TB, store relayer.Store, id string) relayer.Record {
	t.Helper()
	rec, err := store.Get(context.Background(), id)
	if err != nil {
		t.Fatalf("get %q: %v", id, err)
	}
	return rec
}

// wantStored fails unless a store returns a record.
func wantStored(t testing.TB, store relayer.Store, want relayer.Record) {
	t.Helper()
	if got := get(t, store, want.ID); !same(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// wantStoredSoon is wantStored for a store whose timeouts a busy machine can exceed.
func wantStoredSoon(t testing.TB, store relayer.Store, want relayer.Record) {
	t.Helper()
	got := untilAvailable(t, func() (relayer.Record, error) { return store.Get(t.Context(), want.ID) })
	if !same(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// same reports whether two records are equal, revision included. Imported records have no
// sequence number before they are read.
func same(a, b relayer.Record) bool {
	isSameSequence := a.Sequence == b.Sequence || a.Sequence == 0 || b.Sequence == 0
	return isSameSequence && a.ID == b.ID && a.Revision == b.Revision && a.Claim == b.Claim && slices.Equal(a.Terms, b.Terms) && a.Text == b.Text &&
		string(a.Document) == string(b.Document) && string(a.Private) == string(b.Private) && string(a.Note) == string(b.Note)
}

// sameChange is same for records of changes. One that is not the last of its record need not
// have the private part.
func sameChange(a, b relayer.Record) bool {
	if len(a.Private) == 0 || len(b.Private) == 0 {
		a.Private, b.Private = nil, nil
	}
	return same(a, b)
}

func list(ctx context.Context, store relayer.Store, query relayer.StoreQuery) ([]relayer.Record, int, error) {
	found, err := store.List(ctx, query)
	return found.Records, found.Total, err
}

// wantTotal fails unless a store has a number of records.
func wantTotal(t testing.TB, store relayer.Store, want int) {
	t.Helper()
	recs, total, err := list(t.Context(), store, relayer.StoreQuery{Limit: want + 1})
	if len(recs) != want || total != want || err != nil {
		t.Errorf("listed %d of %d, error %v, want %d", len(recs), total, err, want)
	}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	within(t, what, waitLimit, holds)
}

func within(t testing.TB, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, limit)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// wantWithin fails if more time than the limit has passed.
func wantWithin(t testing.TB, what string, begun time.Time, limit time.Duration) {
	t.Helper()
	if took := time.Since(begun); took > limit {
		t.Errorf("%s took %v, want at most %v", what, took, limit)
	}
}

// inBackground runs a function and returns its error in a channel.
func inBackground(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}

// The write lock of a schema is an advisory lock, whose key is the table state.
const (
	takeWriteLock = `SELECT pg_advisory_xact_lock(($1 || '.state')::regclass::oid::bigint)`
	isWriteLock   = `locktype = 'advisory' AND classid = 0 AND objsubid = 1 AND objid = ($1 || '.state')::regclass`
)

// holdWriteLock takes the write lock of a schema until it is released, as another
// instance does that has stopped in the middle of a transaction.
func holdWriteLock(t testing.TB, pool *pgxpool.Pool, schema string) (release func()) {
	t.Helper()
	return holdTransaction(t, pool, takeWriteLock, schema)
}

// holdTransaction executes a statement in a transaction, which keeps its snapshot and its locks
// until it is released.
func holdTransaction(t testing.TB, pool *pgxpool.Pool, sql string, arguments ...any) (release func()) {
	t.Helper()
	tx := mustGet(pool.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
	release = func() { _ = tx.Rollback(context.Background()) }
	t.Cleanup(release)
	must(t, errorOf(tx.Exec(context.Background(), sql, arguments...)))
	return release
}
