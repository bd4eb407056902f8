//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

func TestSchema_ConcurrentSetup(t *testing.T) {
	t.Parallel()
	for range 3 {
		schema := newSchema()
		const instances = 20
		stores := make(chan *postgres.Store, instances)
		begin := make(chan struct{})
		for range instances {
			go func() {
				<-begin
				store, err := postgres.Open(t.Context(), parameter(t, server.ConnString(), "pool_max_conns", "2"), longTimeouts, schema)
				if err != nil {
					t.Error(err)
				}
				stores <- store
			}()
		}
		close(begin)
		made := 0
		for range instances {
			store := <-stores
			if store == nil {
				continue
			}
			made++
			create(t, store, record(numbered(made)))
			wantTotal(t, store, made)
			must(t, store.Close())
		}
	}
}

// A process may pause while it creates the schema, for longer than one that holds the write
// lock.
func TestSchema_PausedSetup(t *testing.T) {
	t.Parallel()
	const timeout = 10 * time.Second
	p := newProxy(t, server.Socket())
	p.obey(func(sql string) fault {
		if strings.Contains(sql, "CREATE SCHEMA") {
			time.Sleep(timeout/10 + timeout/20)
		}
		return none
	})
	create(t, openAt(t, p.connString(), newSchema(), postgres.WithTimeout(timeout)), record("one"))
}

// If a process stops while it creates the schema, another one creates it.
func TestSchema_StoppedSetup(t *testing.T) {
	t.Parallel()
	options := []postgres.Option{newSchema(), postgres.WithTimeout(8 * time.Second)}
	p := newProxy(t, server.Socket())
	arrived, goOn := make(chan struct{}), make(chan struct{})
	stop, resume := sync.OnceFunc(func() { close(arrived); <-goOn }), sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(resume)
	p.obey(func(sql string) fault {
		if strings.Contains(sql, "CREATE SCHEMA") {
			stop()
		}
		return none
	})
	stopped := inBackground(func() error { return errorOf(postgres.Open(t.Context(), p.connString(), options...)) })
	<-arrived
	create(t, openAt(t, server.ConnString(), options...), record("one"))
	resume()
	wantError(t, <-stopped, relayer.ErrUnavailable)
}

func TestWithSchema_Names(t *testing.T) {
	t.Parallel()
	connString := newDatabase(t)
	for name, accepted := range map[string]bool{
		"r":                     true,
		"relayer_2":             true,
		"_hidden":               true,
		"select":                true, // a keyword, which must be quoted
		"pgrelayer":             true,
		strings.Repeat("n", 48): true,
		strings.Repeat("n", 49): false,
		"":                      false,
		"2nd":                   false,
		"Relayer":               false,
		"with-dash":             false,
		"with space":            false,
		`with"quote`:            false,
		"with.dot":              false,
		"with$dollar":           false,
		"ümlaut":                false,
		"pg_relayer":            false,
		"pg_catalog":            false,
		"information_schema":    false,
	} {
		t.Run(name, func(t *testing.T) {
			store, err := postgres.Open(t.Context(), connString, longTimeouts, postgres.WithSchema(name))
			if (err == nil) != accepted {
				t.Fatalf("error %v, accepted should be %t", err, accepted)
			}
			if err != nil {
				return
			}
			closeAtEnd(t, store)
			made := create(t, store, record("one"))
			wantStored(t, store, made)
		})
	}
}

// TestSchema_UnknownFormat: a schema of another program, or of an earlier version of this package, is
// not changed. The error says how to move the relayers.
func TestSchema_UnknownFormat(t *testing.T) {
	t.Parallel()
	for name, statements := range map[string]string{
		"state with other columns":                    `CREATE TABLE $.state (key text, value text)`,
		"state with another version":                  `CREATE TABLE $.state (version text); INSERT INTO $.state VALUES ('draft')`,
		"state with version 1":                        `CREATE TABLE $.state (version integer); INSERT INTO $.state VALUES (1)`,
		"state without a version":                     `CREATE TABLE $.state (version integer, pruned bigint)`,
		"state with a null":                           `CREATE TABLE $.state (version integer, pruned bigint); INSERT INTO $.state VALUES (NULL, 0)`,
		"state that is a view":                        `CREATE VIEW $.state AS SELECT 1 AS version, 'x' AS name`,
		"relayers":                                    `CREATE TABLE $.relayers (name text); INSERT INTO $.relayers VALUES ('theirs')`,
		"changes":                                     `CREATE TABLE $.changes (name text)`,
		"postings that is a view":                     `CREATE VIEW $.postings AS SELECT 1 AS one`,
		"changes that is a sequence":                  `CREATE SEQUENCE $.changes`,
		"postings that is a type":                     `CREATE TYPE $.postings AS ENUM ('one')`,
		"page that is a function":                     `CREATE FUNCTION $.page(bigint, bigint, bigint) RETURNS int LANGUAGE sql AS 'SELECT 1'`,
		"an index with the name of a table":           `CREATE TABLE $.theirs (id int); CREATE INDEX postings ON $.theirs (id)`,
		"a state like ours, without the other tables": `CREATE TABLE $.state (version integer, pruned bigint); INSERT INTO $.state VALUES (1, 0)`,

		"ours, without postings": `DROP FUNCTION $.selection; DROP TABLE $.postings`,
		"ours, without notes":    `ALTER TABLE $.relayers DROP COLUMN note`,
		"ours, without counts":   `ALTER TABLE $.relayers DROP COLUMN nth`,
		"ours, with min_writer":  `ALTER TABLE $.state RENAME minimum_writer TO min_writer`,
		"ours, without a writer": `ALTER TABLE $.state DROP COLUMN minimum_writer`,
		"ours, without a state":  `DROP TABLE $.state`,
		"ours, without relayer":  `DROP FUNCTION $.relayer`,
		"ours, without page":     `DROP FUNCTION $.page`,
		"ours, without a feed":   `DROP FUNCTION $.changes_after`,
		"ours, without history":  `DROP FUNCTION $.history`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin, schema := newAdmin(t)
			if strings.HasPrefix(name, "ours") {
				create(t, openOn(t, admin, postgres.WithSchema(schema)), record("one"))
			} else {
				execute(t, admin, "CREATE SCHEMA "+schema)
			}
			execute(t, admin, strings.Split(strings.ReplaceAll(statements, "$", schema), "; ")...)
			before := contents(t, admin, schema)
			_, err := postgres.New(t.Context(), admin, longTimeouts, postgres.WithSchema(schema))
			if !errors.Is(err, relayer.ErrUnknownFormat) || !strings.Contains(err.Error(), "export the relayers with that version and apply them to a new schema") {
				t.Errorf("error %v, want ErrUnknownFormat and how to move the relayers", err)
			}
			if after := contents(t, admin, schema); after != before {
				t.Errorf("the schema holds\n%s\nand held\n%s", after, before)
			}
		})
	}
}

// contents returns everything in a schema, down to the rows.
func contents(t *testing.T, pool *pgxpool.Pool, schema string) string {
	return queryOne[string](t, pool, `
		SELECT string_agg(what, E'\n' ORDER BY what) FROM (
			SELECT relkind::text || ' ' || relname || ' ' || coalesce(query_to_xml(
				CASE WHEN relkind IN ('r', 'v', 'S') THEN format('SELECT * FROM %I.%I', nspname, relname) ELSE 'SELECT 1' END,
				true, true, '')::text, '') AS what
			FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = $1
			UNION ALL SELECT 'function ' || proname || ' ' || prosrc FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = $1
			UNION ALL SELECT 'type ' || typname FROM pg_type JOIN pg_namespace n ON n.oid = typnamespace WHERE nspname = $1
		) AS all_of_it`, schema)
}

// newDatabase is for tests of certain schema names.
func newDatabase(t *testing.T) string {
	t.Helper()
	name := schemaName()
	execute(t, newPool(t, server.ConnString()), "CREATE DATABASE "+name)
	return parameter(t, server.ConnString(), "database", name)
}

// TestSchema_Public uses the schema that exists in every database, with and without
// tables of another application.
func TestSchema_Public(t *testing.T) {
	t.Parallel()
	ours, theirs := newDatabase(t), newDatabase(t)
	store := openAt(t, ours, postgres.WithSchema("public"))
	made := create(t, store, record("one"))
	wantStored(t, openAt(t, ours, postgres.WithSchema("public")), made)

	pool := newPool(t, theirs)
	execute(t, pool, "CREATE TABLE public.relayers (id serial, name text)", "INSERT INTO public.relayers (name) VALUES ('theirs')")
	before := contents(t, pool, "public")
	wantError(t, errorOf(postgres.Open(t.Context(), theirs, longTimeouts, postgres.WithSchema("public"))), relayer.ErrUnknownFormat)
	if after := contents(t, pool, "public"); after != before {
		t.Errorf("the schema holds\n%s\nand held\n%s", after, before)
	}
	// In another schema both can coexist.
	create(t, openAt(t, theirs), record("one"))
}

// TestSchema_RoleWithoutCreate has a role with only the documented grants.
func TestSchema_RoleWithoutCreate(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	execute(t, admin, "CREATE ROLE "+schema+" LOGIN")
	connString := parameter(t, server.ConnString(), "user", schema)
	if _, err := postgres.Open(t.Context(), connString, longTimeouts, postgres.WithSchema(schema)); err == nil || errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("error %v of a role that may not create the schema", err)
	}
	owner := openOn(t, admin, postgres.WithSchema(schema))
	if _, err := postgres.Open(t.Context(), connString, longTimeouts, postgres.WithSchema(schema)); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("error %v of a role that may not use the schema", err)
	}
	execute(t, admin,
		fmt.Sprintf("REVOKE ALL ON FUNCTION %s.page(bigint, bigint, bigint) FROM PUBLIC", schema),
		fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %[1]s", schema),
		fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %[1]s", schema),
		fmt.Sprintf("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %s TO %[1]s", schema))

	store := openAt(t, connString, postgres.WithSchema(schema))
	changes := watch(t, store)
	rec := create(t, store, record("one"))
	changes.want(t, relayer.ChangeCreated, rec)
	rec = update(t, owner, rec)
	changes.want(t, relayer.ChangeUpdated, rec)
	wantTotal(t, store, 1)
	remove(t, store, rec)
	changes.want(t, relayer.ChangeDeleted, rec)
	imported := record("two")
	imported.Revision = 99
	must(t, store.Import(t.Context(), []relayer.Record{imported}))
	changes.wantGap(t)
	must(t, store.Check(t.Context()))
	must(t, openAt(t, connString, postgres.WithSchema(schema), postgres.WithHistory(0, 0)).PruneSoon())
	eventually(t, "the changes are pruned", func() bool {
		return queryOne[int](t, admin, fmt.Sprintf("SELECT count(*) FROM %s.changes", schema)) == 0
	})
}

// TestSchema_Notifications: a notification reaches only the listeners of its schema.
func TestSchema_Notifications(t *testing.T) {
	t.Parallel()
	schema, other := schemaName(), schemaName()
	pool := newPool(t, server.ConnString())
	conn := mustGet(pgx.Connect(t.Context(), server.ConnString()))(t)
	defer conn.Close(context.Background())
	for _, channel := range []string{schema, other} {
		must(t, errorOf(conn.Exec(t.Context(), fmt.Sprintf("LISTEN %s_changes", channel))))
	}
	create(t, openOn(t, pool, postgres.WithSchema(schema)), record("one"))
	notification, err := conn.WaitForNotification(t.Context())
	if err != nil || notification.Channel != schema+"_changes" || notification.Payload != "" {
		t.Errorf("notification %+v, error %v", notification, err)
	}
	create(t, openOn(t, pool, postgres.WithSchema(other)), record("one"))
	notification, err = conn.WaitForNotification(t.Context())
	if err != nil || notification.Channel != other+"_changes" {
		t.Errorf("notification %+v, error %v", notification, err)
	}
}

// TestSchema_Catalog checks what no call shows: indexes, and collations that the
// database of the tests has by default.
func TestSchema_Catalog(t *testing.T) {
	t.Parallel()
	pool := newPool(t, server.ConnString())
	schema := schemaName()
	openOn(t, pool, postgres.WithSchema(schema))
	for what, c := range map[string]struct{ sql, want string }{
		"collations of ids": {`
			SELECT string_agg(table_name || ' ' || collation_name, ', ' ORDER BY table_name) FROM information_schema.columns
			WHERE table_schema = $1 AND column_name IN ('id', 'term')`, "changes C, postings C, relayers C"},
		"types of what is kept": {`
			SELECT string_agg(DISTINCT column_name || ' ' || data_type, ', ') FROM information_schema.columns
			WHERE table_schema = $1 AND column_name IN ('claim', 'document', 'private')`, "claim bytea, document bytea, private bytea"},
		"tables with RPC URLs": {`
			SELECT string_agg(table_name, ', ') FROM information_schema.columns
			WHERE table_schema = $1 AND column_name = 'private'`, "relayers"},
		"unique columns of relayers": {`
			SELECT string_agg(attname, ', ' ORDER BY attname) FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
			WHERE indrelid = ($1 || '.relayers')::regclass AND indisunique AND indnatts = 1 AND indpred IS NULL`, "claim, id, sequence"},
		"sequences, which a cache would let hand out numbers out of order": {`
			SELECT count(*)::text FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'S'`, "0"},
		"tables that a crash would empty": {`
			SELECT count(*)::text FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relpersistence <> 'p'`, "0"},
	} {
		if got := queryOne[string](t, pool, c.sql, schema); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestWithoutSetup_MissingSchema(t *testing.T) {
	name := schemaName()
	schema := postgres.WithSchema(name)
	pool := newPool(t, server.ConnString())
	store, err := postgres.New(t.Context(), pool, longTimeouts, schema, postgres.WithoutSetup())
	if !errors.Is(err, postgres.ErrNoSchema) {
		t.Fatalf("error is %v, store is %v, want ErrNoSchema", err, store)
	}
	if queryOne[bool](t, pool, `SELECT to_regnamespace($1) IS NOT NULL`, name) {
		t.Error("the schema was created")
	}
	create(t, openOn(t, pool, schema), record("one"))
	get(t, openOn(t, pool, schema, postgres.WithoutSetup()), "one")
}
