package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

// schemaVersion is the version of the schema that schemaSQL creates, and that this package
// reads and writes.
const schemaVersion = 1

// schemaSQL creates the schema.
//
// The table state has one row. Its counters are the number of relayers, the last sequence number
// and the last revision; they change once per commit, under the write lock. They are ordinary columns
// because a SEQUENCE with a cache would hand out numbers out of order. The time of the last
// change makes, together with its number, the position of the feed, which each page reads.
// The index on last_revision leads to the current version
// of the row past the dead versions that a long transaction keeps.
//
// Each change takes the next revision as its number, and so do a delete and an
// import. The table changes is the history. Its newest part is the change feed, which begins
// after the number pruned. It has no private parts: a reader of the feed takes that of the
// relayer, if the change is its last one. So the only private parts are those of the table
// relayers, and a private part that is replaced or deleted is in no table. ANALYZE would copy
// some of them into the statistics of the server, so that column has none.
//
// The table pruning has one row as well: the number of the last change that the feed has
// lost, and its time, which together identify it; the number up to which the history has lost
// all changes; and the number of the last change that has displaced the one that was, for its
// relayer, too many. It also has the retention, which is that of all instances: the ages in
// microseconds, and the number of changes of each relayer. It is a separate table, so that
// pruning and writers do not wait for each other.
//
// The changes of an ID are counted: nth is 1 for the first, and a relayer has the nth of its last
// change. An ID without a relayer and without stored changes begins again. So the change that a
// later one displaces is found with one look into the index. That index has the negative count: no
// other index has that order, so the planner cannot prefer to read another one and filter it by ID.
//
// The table postings is the index of terms: for each term and chunk of 512 sequence numbers,
// the bits of the records that have the term (an inverted index of bitmaps). A
// selection combines the bits of its terms, so that it reads one bit for each term and record
// of the registry, wherever its page is. The empty term, which all records have, leads to the
// beginning of a page. Writes flip bits, and rows without bits are deleted. The pages have room for new
// versions of a row (heap-only tuple updates).
//
// Reads are functions for two reasons. A later version can change the tables under
// older readers, and a function can have planner settings, which keep the planner to
// the indexes. Without these settings the server keeps plans that it made for small
// tables, and estimates the size of a page badly. At times it then sorts a table or
// compiles the statement, which takes a hundred times as long.
const schemaSQL = `
CREATE TABLE $schema.state (
	version integer NOT NULL,
	minimum_writer integer NOT NULL,
	total bigint NOT NULL CHECK (total >= 0),
	last_sequence bigint NOT NULL,
	last_revision bigint PRIMARY KEY,
	last_changed_at bigint NOT NULL
);
INSERT INTO $schema.state VALUES (1, 1, 0, 0, 0, 0);

CREATE TABLE $schema.pruning (
	pruned bigint NOT NULL,
	pruned_at bigint NOT NULL,
	history_pruned bigint NOT NULL,
	displaced bigint NOT NULL,
	feed_age bigint NOT NULL,
	history_age bigint NOT NULL,
	history_changes bigint NOT NULL
);
INSERT INTO $schema.pruning VALUES (0, 0, 0, 0, 600000000, 7776000000000, 1000);

CREATE TABLE $schema.relayers (
	sequence bigint PRIMARY KEY,
	id text COLLATE "C" NOT NULL UNIQUE,
	nth bigint NOT NULL,
	revision bigint NOT NULL,
	claim bytea UNIQUE,
	terms text[] COLLATE "C" NOT NULL,
	text text COLLATE "C" NOT NULL,
	note bytea NOT NULL,
	document bytea NOT NULL,
	private bytea NOT NULL
);
ALTER TABLE $schema.relayers ALTER COLUMN private SET STATISTICS 0;

CREATE TABLE $schema.postings (
	term text COLLATE "C",
	chunk bigint,
	bits bit(512) NOT NULL,
	PRIMARY KEY (term, chunk)
) WITH (fillfactor = 70);

CREATE TABLE $schema.changes (
	number bigint PRIMARY KEY,
	changed_at bigint NOT NULL DEFAULT extract(epoch FROM clock_timestamp()) * 1000000,
	sequence bigint NOT NULL,
	kind text NOT NULL,
	id text COLLATE "C" NOT NULL,
	nth bigint NOT NULL,
	claim bytea,
	terms text[] COLLATE "C" NOT NULL,
	old_terms text[] COLLATE "C",
	text text COLLATE "C" NOT NULL,
	old_text text COLLATE "C",
	note bytea NOT NULL,
	document bytea NOT NULL
);
CREATE INDEX changes_of_id ON $schema.changes (id, (-nth));

CREATE FUNCTION $schema.relayer(wanted text)
RETURNS TABLE ($record)
LANGUAGE plpgsql STABLE $settings AS $body$
BEGIN
	$primaryOnly
	RETURN QUERY SELECT $columns FROM $schema.relayers r WHERE r.id = wanted;
END
$body$;

CREATE FUNCTION $schema.changes_after(seen bigint, seen_at bigint)
RETURNS TABLE (is_cut boolean, is_last boolean, number bigint, changed_at bigint, kind text, old_terms text[], old_text text, $record)
LANGUAGE plpgsql STABLE $joining AS $body$
#variable_conflict use_column
DECLARE
	size bigint := 0;
	last bigint;
BEGIN
	$primaryOnly
	SELECT pruned > seen OR pruned = seen AND pruned_at <> seen_at
			OR pruned < seen AND NOT EXISTS (
			SELECT FROM $schema.changes WHERE number = seen AND changed_at = seen_at)
		INTO is_cut FROM $schema.pruning;
	IF is_cut THEN
		RETURN NEXT;
		RETURN;
	END IF;
	SELECT last_revision INTO last FROM $schema.state ORDER BY last_revision DESC LIMIT 1;
	FOR is_last, number, changed_at, kind, old_terms, old_text, id, revision, sequence, claim, terms, text, note, document, private IN
		SELECT r.number = last, r.number, r.changed_at, r.kind, $oldColumns, $changeColumns, coalesce(stored.private, '')
		FROM $schema.changes r
		LEFT JOIN LATERAL (SELECT p.private FROM $schema.relayers p WHERE p.id = r.id AND p.revision = r.number AND p.sequence = r.sequence OFFSET 0) AS stored ON true
		WHERE r.number > seen ORDER BY r.number LIMIT 128
	LOOP
		RETURN NEXT;
		size := size + octet_length(document) + octet_length(private);
		EXIT WHEN size > 262144;
	END LOOP;
END
$body$;

CREATE FUNCTION $schema.history(wanted text, before bigint, most bigint)
RETURNS TABLE (kind text, old_terms text[], old_text text, $record)
LANGUAGE plpgsql STABLE $settings AS $body$
DECLARE
	most_of_id bigint;
	last bigint;
BEGIN
	$primaryOnly
	SELECT p.history_changes INTO most_of_id FROM $schema.pruning p WHERE p.history_age > 0;
	IF coalesce(most_of_id, 0) = 0 THEN
		RAISE EXCEPTION 'no history is retained' USING ERRCODE = '$noHistory';
	END IF;
	IF wanted = '' THEN
		RETURN QUERY SELECT r.kind, $oldColumns, $changeColumns, ''::bytea
			FROM $schema.changes r WHERE r.number < before AND r.kind <> 'imported' ORDER BY r.number DESC LIMIT most;
	ELSE
		SELECT r.nth INTO last FROM $schema.changes r WHERE r.id = wanted ORDER BY -r.nth LIMIT 1;
		RETURN QUERY SELECT r.kind, $oldColumns, $changeColumns, ''::bytea
			FROM $schema.changes r
			WHERE r.id = wanted AND -r.nth < most_of_id - last AND r.number < before
			AND -r.nth > coalesce((SELECT -s.nth FROM $schema.changes s WHERE s.number = before AND s.id = wanted), -last - 1)
			ORDER BY -r.nth LIMIT most;
	END IF;
END
$body$;

CREATE FUNCTION $schema.page(after bigint, first bigint, most bigint)
RETURNS TABLE (total bigint, last_number bigint, last_changed_at bigint, $record)
LANGUAGE plpgsql STABLE $settings AS $body$
#variable_conflict use_column
DECLARE
	first_chunk bigint := 0;
	live bigint;
	passed bigint := 0;
BEGIN
	$primaryOnly
	SELECT s.total, s.last_revision, s.last_changed_at
		INTO total, last_number, last_changed_at FROM $schema.state s ORDER BY s.last_revision DESC LIMIT 1;
	IF first >= total OR most = 0 THEN
		RETURN NEXT;
		RETURN;
	END IF;
	IF after = 0 THEN
		FOR first_chunk, live IN
			SELECT p.chunk, bit_count(p.bits) FROM $schema.postings p WHERE p.term = '' ORDER BY p.chunk
		LOOP
			EXIT WHEN first < passed + live;
			passed := passed + live;
		END LOOP;
	END IF;
	RETURN QUERY
		SELECT total, last_number, last_changed_at, $columns
		FROM $schema.relayers r WHERE r.sequence >= greatest(first_chunk << 9, after + 1)
		ORDER BY r.sequence OFFSET first - passed LIMIT most;
	IF NOT FOUND THEN
		RETURN NEXT;
	END IF;
END
$body$;

CREATE FUNCTION $schema.selection(wanted text[], conditions integer[], ids text[], needed integer, patterns text[], after bigint, first bigint, most bigint)
RETURNS TABLE (total bigint, last_number bigint, last_changed_at bigint, $record)
LANGUAGE plpgsql STABLE $joining AS $body$
#variable_conflict use_column
BEGIN
	$primaryOnly
	RETURN QUERY
		-- For each condition, the bits of the records that it selects.
		WITH held AS (
			SELECT found.chunk, given.condition, bit_or(found.bits) AS bits
			FROM unnest(wanted, conditions) AS given (term, condition), LATERAL (
				SELECT p.chunk, p.bits FROM $schema.postings AS p WHERE p.term = given.term OFFSET 0) AS found
			GROUP BY found.chunk, given.condition
			UNION ALL
			SELECT sequence >> 9, 0, bit_or($bitAt)
			FROM unnest(ids) AS given (id), LATERAL (
				SELECT r.sequence FROM $schema.relayers AS r WHERE r.id = given.id OFFSET 0) AS found
			GROUP BY 1
		), matching AS (
			SELECT chunk, bit_and(bits) AS bits FROM held GROUP BY chunk HAVING count(*) = needed
		), selected AS (
			SELECT chunk, bits FROM matching WHERE patterns IS NULL
			UNION ALL
			SELECT matching.chunk, bit_or($bitAt)
			FROM matching, LATERAL (
				SELECT r.sequence FROM $schema.relayers AS r
				WHERE r.sequence BETWEEN matching.chunk << 9 AND matching.chunk << 9 | 511
				AND get_bit(matching.bits, (r.sequence & 511)::integer) = 1 AND r.text LIKE ANY (patterns) OFFSET 0) AS found
			WHERE patterns IS NOT NULL GROUP BY matching.chunk
		), -- What is not after the given sequence number is added to what the page skips.
		counted AS MATERIALIZED (
			SELECT chunk, bits, bit_count(bits) AS live, (sum(bit_count(bits)) OVER (ORDER BY chunk))::bigint - bit_count(bits) AS passed FROM selected
		), skipped AS MATERIALIZED (
			SELECT first + coalesce(sum(CASE WHEN chunk < after >> 9 THEN live
				ELSE bit_count(bits & ~ (~ 0::bit(512) >> (after & 511)::integer + 1)) END), 0)::bigint AS count
			FROM counted WHERE chunk <= after >> 9
		), page AS MATERIALIZED (
			SELECT chunk << 9 | bit AS sequence
			FROM skipped, counted, generate_series(0, 511) AS bit
			WHERE passed + live > skipped.count AND passed - skipped.count < most AND get_bit(bits, bit) = 1
			ORDER BY 1 OFFSET (SELECT skipped.count - min(passed) FROM skipped, counted WHERE passed + live > skipped.count GROUP BY skipped.count) LIMIT most
		)
		SELECT every.total, last.number, last.changed_at, $columns
		FROM (SELECT coalesce(sum(live), 0)::bigint AS total FROM counted) AS every
		CROSS JOIN (
			SELECT last_revision AS number, last_changed_at AS changed_at FROM $schema.state ORDER BY last_revision DESC LIMIT 1) AS last
		LEFT JOIN page ON true
		LEFT JOIN LATERAL (SELECT * FROM $schema.relayers AS r WHERE r.sequence = page.sequence OFFSET 0) AS r ON true
		ORDER BY page.sequence;
END
$body$;
`

// Parts of the functions.
const (
	record  = `id text, revision bigint, sequence bigint, claim bytea, terms text[], text text, note bytea, document bytea, private bytea`
	columns = `r.id, r.revision, r.sequence, r.claim, r.terms, r.text, r.note, r.document, r.private`

	// changeColumns has no private part.
	changeColumns = `r.id, r.number, r.sequence, r.claim, r.terms, r.text, r.note, r.document`
	// oldColumns are stored only if they differ from the new ones.
	oldColumns = `CASE WHEN r.kind <> 'created' THEN coalesce(r.old_terms, r.terms) END, CASE WHEN r.kind <> 'created' THEN coalesce(r.old_text, r.text) END`
)

const functionSettings = `
	SET jit = off SET plan_cache_mode = force_generic_plan
	SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off`

// joinSettings are the settings of selection and changes_after, which look up what they join in
// lateral subqueries that cannot be flattened (OFFSET 0). Otherwise a server whose statistics say
// that a table is empty reads its whole index, and joins that.
const joinSettings = `
	SET jit = off SET plan_cache_mode = force_generic_plan
	SET enable_nestloop = on SET enable_indexscan = on
	SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off`

// primaryOnly keeps a function from returning what a standby has, which may be old. A
// connection is asked once where it leads, but a pooler may lead it elsewhere later.
const primaryOnly = `
	IF pg_is_in_recovery() THEN
		RAISE EXCEPTION 'the server is a standby' USING ERRCODE = 'read_only_sql_transaction';
	END IF;`

// parts replaces names in schemaSQL by SQL.
var parts = strings.NewReplacer("$settings", functionSettings, "$joining", joinSettings, "$primaryOnly", primaryOnly,
	"$noHistory", noHistory, "$bitAt", bitAt, "$record", record, "$columns", columns, "$changeColumns", changeColumns, "$oldColumns", oldColumns)

// in returns a statement for the schema of the Store.
func (s *Store) in(sql string) string { return inSchema(s.opts.schema, sql) }

func inSchema(schema, sql string) string {
	return strings.ReplaceAll(sql, "$schema", pgx.Identifier{schema}.Sanitize())
}

// prepareSchema creates the schema if it is missing. Otherwise it creates nothing, so a role
// without the privilege to do so can use the schema.
func prepareSchema(ctx context.Context, connections *connections, opts options) error {
	conn, err := connections.acquire(ctx)
	if err == nil {
		defer conn.Release()
		err = openSchema(ctx, conn, opts)
	}
	if err == nil {
		err = setRetention(ctx, conn, opts)
	}
	if err != nil {
		return setupError(ctx, connections.pool.Config().ConnConfig, opts, err)
	}
	return nil
}

// setRetention changes the retention of the database to what the options say.
func setRetention(ctx context.Context, conn *conn, opts options) error {
	if opts.historyAge == nil && opts.historyChanges == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, opts.timeout)
	defer cancel()
	return transact(ctx, conn, opts, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, inSchema(opts.schema, sqlSetRetention), opts.historyAge, opts.historyChanges)
		return err
	})
}

// errUnknownFormat is the error of a schema that no release has created.
var errUnknownFormat = fmt.Errorf("%w: another program or an earlier development version created it: export the relayers with that version and apply them to a new schema",
	relayer.ErrUnknownFormat)

func openSchema(ctx context.Context, conn *conn, opts options) error {
	waiting, cancel := context.WithTimeout(ctx, opts.timeout)
	defer cancel()
	if err := checkSession(waiting, conn); err != nil {
		return err
	}
	found, err := readFormat(waiting, conn.Conn(), opts.schema)
	if hasCode(err, undefinedTable) {
		if opts.withoutSetup {
			return errNoSchema
		}
		if err = createSchema(waiting, conn, opts); err == nil {
			found, err = readFormat(waiting, conn.Conn(), opts.schema)
		}
	}
	if err != nil {
		return err
	}
	if err := found.permits(schemaVersion); err != nil || found.version > schemaVersion {
		return err
	}
	_, err = conn.Exec(waiting, inSchema(opts.schema, shape))
	return err
}

// checkSession returns an error if the server is an engine that cannot order writes as PostgreSQL
// does, or if the session or the database does not support all texts. The server reports the
// settings that Open sets without a query.
func checkSession(ctx context.Context, conn *conn) error {
	for name, want := range sessionSettings {
		if is := conn.Conn().PgConn().ParameterStatus(name); is != want {
			return fmt.Errorf("%w setting of the session: %s must be %s, and is %s", errUnsupported, name, want, is)
		}
	}
	var version, encoding string
	if err := conn.QueryRow(ctx, `SELECT version(), current_setting('server_encoding')`).Scan(&version, &encoding); err != nil {
		return err
	}
	for mark, engine := range unsupportedEngines {
		if strings.Contains(version, mark) {
			return fmt.Errorf("%w database: %s has no advisory locks, which order writes, and no LISTEN/NOTIFY, or not by default; use PostgreSQL", errUnsupported, engine)
		}
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w database: its encoding is %s and must be UTF8: create another with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0", errUnsupported, encoding)
	}
	return nil
}

// shape fails if tables or functions are missing, or if the tables belong to something else that
// also has a table state. It does not join them: the planner would try every order of the join.
const shape = `
	SELECT (SELECT total FROM $schema.state WHERE false), (SELECT history_changes FROM $schema.pruning WHERE false),
		EXISTS (SELECT nth, note FROM $schema.relayers WHERE false), (SELECT bits FROM $schema.postings WHERE false),
		(SELECT nth FROM $schema.changes WHERE false),
		EXISTS (SELECT FROM $schema.relayer('') WHERE false), EXISTS (SELECT FROM $schema.page(0, 0, 0) WHERE false),
		EXISTS (SELECT FROM $schema.selection('{}', '{}', '{}', 0, NULL, 0, 0, 0) WHERE false),
		EXISTS (SELECT FROM $schema.changes_after(0, 0) WHERE false), EXISTS (SELECT FROM $schema.history('', 0, 0) WHERE false)`

func readFormat(ctx context.Context, conn *pgx.Conn, schema string) (found format, err error) {
	var version, minWriter string
	err = conn.QueryRow(ctx, inSchema(schema, `
		SELECT coalesce(version::text, ''), coalesce(minimum_writer::text, '') FROM $schema.state LIMIT 1`)).Scan(&version, &minWriter)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return format{}, err
	}
	found.version, err = strconv.Atoi(version)
	if err == nil {
		found.minWriter, err = strconv.Atoi(minWriter)
	}
	if err != nil || found.version < 1 {
		return format{}, errUnknownFormat
	}
	return found, nil
}

// createSchema creates the schema. Of several instances that start at once the first
// does so; the others wait for the lock and find it done.
func createSchema(ctx context.Context, conn *conn, opts options) error {
	return transact(ctx, conn, opts, func(tx pgx.Tx) error {
		const lockClass = 0x72656c79
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, lockClass, opts.schema); err != nil {
			return err
		}
		var hasSchema, hasState bool
		err := tx.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL, to_regclass($2) IS NOT NULL`,
			pgx.Identifier{opts.schema}.Sanitize(), pgx.Identifier{opts.schema, "state"}.Sanitize()).Scan(&hasSchema, &hasState)
		if err != nil || hasState {
			return err
		}
		if !hasSchema {
			if _, err := tx.Exec(ctx, inSchema(opts.schema, `CREATE SCHEMA $schema`)); err != nil {
				return err
			}
		}
		_, err = tx.Conn().PgConn().Exec(ctx, inSchema(opts.schema, parts.Replace(schemaSQL))).ReadAll()
		return err
	})
}

func setupError(ctx context.Context, config *pgx.ConnConfig, opts options, err error) error {
	_, isUnconnected := errors.AsType[noConnection](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded) && !isUnconnected:
		return failed(fmt.Errorf("%w within %v", errNoResponse, opts.timeout))
	case hasCode(err, undefinedObject, invalidParameter) || isUnconnected && hasCode(err, syntaxError, cannotChangeNow):
		// The server quotes the setting, or its value, which may be a part of a password.
		message := "postgres: the server refuses a setting of the connection string or the environment"
		if setting := refusedSetting(config, err); setting != "" {
			message += ": " + setting
		}
		return errors.New(message)
	case errors.Is(err, relayer.ErrUnknownFormat) ||
		hasCode(err, undefinedTable, undefinedColumn, undefinedFunction, duplicateTable, duplicateFunction, duplicateObject):
		return fmt.Errorf("postgres: schema %s: %w", opts.schema, errUnknownFormat) // something is missing or has another form
	case errors.Is(err, relayer.ErrNewerFormat) || errors.Is(err, errNoSchema) || errors.Is(err, errUnsupported) || isFault(err):
		return fmt.Errorf("postgres: schema %s: %w", opts.schema, withoutDriver(err))
	}
	return failed(err)
}

// errUnsupported is the error of Open and New if the Store could not read or write correctly. It
// is not [relayer.ErrUnavailable]: a retry cannot succeed.
var errUnsupported = errors.New("unsupported")

// unsupportedEngines speak PostgreSQL's protocol. Each is recognized by a part of version().
var unsupportedEngines = map[string]string{"CockroachDB": "CockroachDB", "-YB-": "YugabyteDB"}

// format is the version of the schema and the minimum version of its writers. A later
// version of this package may change the schema under the write lock while instances of
// this version run: they go on reading through the functions of the schema, and writing
// and pruning if minWriter permits it. The functions, and the names that the statements of this
// version contain, stay: each write reads minWriter in its transaction.
type format struct{ version, minWriter int }

func (f format) permits(version int) error {
	if f.minWriter <= version {
		return nil
	}
	return fmt.Errorf("%w: it is of version %d and needs writers of version %d, and this package writes version %d",
		relayer.ErrNewerFormat, f.version, f.minWriter, version)
}
