//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// turnTest is a Store of a schema of which the test itself can take the turn.
func turnTest(t *testing.T, options ...postgres.Option) (store *postgres.Store, admin *pgxpool.Pool, schema string) {
	t.Helper()
	schema = schemaName()
	return open(t, append(options, postgres.WithSchema(schema))...), newPool(t, server.ConnString()), schema
}

// wantWaiting waits until sessions wait for the turn.
func wantWaiting(t *testing.T, admin *pgxpool.Pool, schema string, count int) {
	t.Helper()
	eventually(t, "writes wait for the turn", func() bool {
		return queryOne[int](t, admin, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = ($1 || '.state')::regclass`, schema) >= count
	})
}

// TestContextEndsWhileWaitingForTheTurn: what has been sent is told as it ends,
// and what has not is given up at once.
func TestContextEndsWhileWaitingForTheTurn(t *testing.T) {
	t.Parallel()
	store, admin, schema := turnTest(t)
	release := holdTurn(t, admin, schema)
	ctx, cancel := context.WithCancel(t.Context())
	sent := inBackground(func() error { _, err := store.Create(ctx, record("sent")); return err })
	wantWaiting(t, admin, schema, 1)
	queued := inBackground(func() error { _, err := store.Create(ctx, record("queued")); return err })
	select {
	case err := <-queued:
		t.Fatalf("a create ends before its turn: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	select {
	case err := <-queued:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v of a create that had not begun, want the context's", err)
		}
	case <-time.After(time.Second):
		t.Fatal("a create that has not begun waits on, without its caller")
	}
	release()
	if err := <-sent; err != nil {
		t.Errorf("error %v of a create that had begun", err)
	}
	get(t, store, "sent")
	create(t, store, record("after"))
	if _, err := store.Get(t.Context(), "queued"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("the create that was given up: error %v, want ErrNotFound", err)
	}
}

// TestTurnThatDoesNotCome: however many writes wait, and for however long the
// turn is held, they all end in time, and none is carried out later.
func TestTurnThatDoesNotCome(t *testing.T) {
	t.Parallel()
	const timeout = 400 * time.Millisecond
	store, admin, schema := turnTest(t, postgres.WithTimeout(timeout))
	one := create(t, store, record("one"))
	release := holdTurn(t, admin, schema)
	first := inBackground(func() error { _, err := store.Create(t.Context(), record("first")); return err })
	wantWaiting(t, admin, schema, 1)
	const many = 60
	begun := time.Now()
	ends := make(chan error, many)
	for i := range many {
		go func() {
			_, err := store.Create(context.Background(), record(numbered(i)))
			ends <- err
		}()
	}
	// Reads need no turn.
	if got := get(t, store, "one"); !same(got, one) {
		t.Errorf("got %+v, want %+v", got, one)
	}
	if err := <-first; !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	for range many {
		if err := <-ends; !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("error %v, want ErrUnavailable", err)
		}
	}
	if took := time.Since(begun); took > 2*timeout+soon {
		t.Errorf("the writes took %v", took)
	}
	release()
	create(t, store, record("after"))
	if _, total, err := store.List(t.Context(), 0, 0); total != 2 || err != nil {
		t.Errorf("%d relayers, error %v, want 2", total, err)
	}
	wantWhole(t, store)
}

// TestWriteLock_StalledMessage holds up the second message of a write on its way to
// the server. The write lock goes to other writers, and the write is repeated.
func TestWriteLock_StalledMessage(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	p := newProxy(t, server.Socket())
	stalled, other := openAt(t, p.connString(), postgres.WithSchema(schema)), open(t, postgres.WithSchema(schema))
	arrived, goOn := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(letGo)
	p.obey(func(sql string) fault {
		// The first statement of the second message.
		if strings.Contains(sql, ".counts") {
			close(arrived)
			<-goOn
		}
		return none
	})
	created := inBackground(func() error { _, err := stalled.Create(t.Context(), record("stalled")); return err })
	<-arrived
	p.obey(func(string) fault { return none })
	create(t, other, record("one"))
	letGo()
	if err := <-created; err != nil {
		t.Error(err)
	}
	get(t, other, "stalled")
	wantWhole(t, other)
}

// stallVariable is set in a child process. It has the connection string and the
// schema of a Store, in which the child creates a relayer.
const stallVariable = "POSTGRES_TEST_STALL"

// stall creates a relayer and stops its own process in the middle of the
// transaction, while it holds the write lock.
func stall(task string) error {
	connString, schema, _ := strings.Cut(task, " ")
	config, err := pgxpool.ParseConfig(connString)
	if err != nil {
		return err
	}
	between := &afterBatch{}
	config.ConnConfig.Tracer = between
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := postgres.New(context.Background(), pool, postgres.WithSchema(schema))
	if err != nil {
		return err
	}
	defer store.Close()
	between.once(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) })
	_, err = store.Create(context.Background(), record("stalled"))
	return err
}

// TestWriteLock_StalledProcess stops a process that holds the write lock. The
// writers of another instance wait for it and get no error, and the create of the
// stopped process succeeds once it goes on.
func TestWriteLock_StalledProcess(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	store := open(t, postgres.WithSchema(schema))
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), stallVariable+"="+server.ConnString()+" "+schema)
	var output bytes.Buffer
	child.Stdout, child.Stderr = &output, &output
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceValue(child.Wait)
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = ended()
	})
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(child.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the child has not stopped: status %v, error %v\n%s", status, err, &output)
	}
	if holding := queryOne[int](t, newPool(t, server.ConnString()), `
		SELECT count(*) FROM pg_locks WHERE granted AND mode = 'ExclusiveLock' AND relation = ($1 || '.state')::regclass`, schema); holding != 1 {
		t.Fatalf("%d sessions hold the write lock", holding)
	}
	var writing sync.WaitGroup
	for writer := range 4 {
		writing.Go(func() {
			for i := range 5 {
				if _, err := store.Create(t.Context(), record(fmt.Sprintf("%d-%d", writer, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := ended(); err != nil {
		t.Errorf("the child: %v\n%s", err, &output)
	}
	get(t, store, "stalled")
	wantWhole(t, store)
}

// sabotage has the server call a function for each new row of relayers.
func sabotage(t *testing.T, admin *pgxpool.Pool, schema, body string) {
	t.Helper()
	execute(t, admin,
		fmt.Sprintf(`CREATE SEQUENCE %s.sabotaged`, schema),
		fmt.Sprintf(`CREATE FUNCTION %s.sabotage() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s RETURN NULL; END $$`, schema, body))
}

const (
	atOnce   = `CREATE TRIGGER sabotage AFTER INSERT ON %s.relayers FOR EACH ROW EXECUTE FUNCTION %[1]s.sabotage()`
	atCommit = `CREATE CONSTRAINT TRIGGER sabotage AFTER INSERT ON %s.relayers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %[1]s.sabotage()`
)

// failures is how often the sabotage has been met.
func failures(t *testing.T, admin *pgxpool.Pool, schema string) int {
	t.Helper()
	return queryOne[int](t, admin, fmt.Sprintf(`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM %s.sabotaged`, schema))
}

// TestTransactionsInEachOthersWay: what the server asks to try again is tried
// again, wherever it asks, and not for ever.
func TestTransactionsInEachOthersWay(t *testing.T) {
	t.Parallel()
	for where, trigger := range map[string]string{"at once": atOnce, "at the commit": atCommit} {
		for _, code := range []string{"40001", "40P01"} {
			t.Run(code+" "+where, func(t *testing.T) {
				store, admin, schema := turnTest(t)
				sabotage(t, admin, schema, fmt.Sprintf(`
					IF nextval('%s.sabotaged') <= 3 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '%s'; END IF;`, schema, code))
				execute(t, admin, fmt.Sprintf(trigger, schema))
				create(t, store, record("one"))
				if met := failures(t, admin, schema); met != 4 {
					t.Errorf("tried %d times, want 4", met)
				}
				execute(t, admin, fmt.Sprintf(`ALTER SEQUENCE %s.sabotaged MINVALUE -1000000 RESTART -1000000`, schema))
				_, err := store.Create(t.Context(), record("two"))
				if !errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("error %v, want ErrUnavailable", err)
				}
				wantNoDriver(t, "Create", err)
				if met := failures(t, admin, schema) + 1_000_001; met < 2 || met > 20 {
					t.Errorf("tried %d times", met)
				}
				execute(t, admin, fmt.Sprintf(`DROP TRIGGER sabotage ON %s.relayers`, schema))
				create(t, store, record("two"))
				wantWhole(t, store)
			})
		}
	}
}

// TestRefusedWriteFailsNoOther: of the writes that share a turn the server
// refuses one for what is in it.
func TestRefusedWriteFailsNoOther(t *testing.T) {
	t.Parallel()
	for where, trigger := range map[string]string{"at once": atOnce, "at the commit": atCommit} {
		t.Run(where, func(t *testing.T) {
			store, admin, schema := turnTest(t)
			sabotage(t, admin, schema, `IF NEW.id = 'bad' THEN RAISE EXCEPTION 'not this one'; END IF;`)
			execute(t, admin, fmt.Sprintf(trigger, schema))
			release := holdTurn(t, admin, schema)
			first := inBackground(func() error { _, err := store.Create(t.Context(), record("first")); return err })
			wantWaiting(t, admin, schema, 1)
			const many = 20
			good := make(chan error, many)
			bad := make(chan error, 1)
			for i := range many {
				go func() { _, err := store.Create(t.Context(), record(numbered(i))); good <- err }()
				if i == many/2 {
					go func() { _, err := store.Create(t.Context(), record("bad")); bad <- err }()
				}
			}
			time.Sleep(50 * time.Millisecond)
			release()
			for range many {
				if err := <-good; err != nil {
					t.Error(err)
				}
			}
			if err := <-first; err != nil {
				t.Error(err)
			}
			if err := <-bad; !errors.Is(err, relayer.ErrUnavailable) {
				t.Errorf("error %v, want ErrUnavailable", err)
			}
			if _, total, err := store.List(t.Context(), 0, 0); total != many+1 || err != nil {
				t.Errorf("%d relayers, error %v, want %d", total, err, many+1)
			}
			wantWhole(t, store)
		})
	}
}

// TestErrorsQuoteNoRow: what the server says of a row that it refuses stays
// between it and the Store.
func TestErrorsQuoteNoRow(t *testing.T) {
	t.Parallel()
	store, admin, schema := turnTest(t)
	execute(t, admin, fmt.Sprintf(`ALTER TABLE %s.relayers ADD CHECK (length(private) < 10)`, schema))
	_, err := store.Create(t.Context(), with(record("one"), "", secret))
	if !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	wantNoDriver(t, "Create", err)
}
