package postgres

// statements are those of one schema. A write answers with one row, whatever
// comes of it, so that a refused one does not end the transaction that it shares
// with others. All writes run under lock: what they find is what stands.
type statements struct {
	lock, version          string
	create, update, remove string
	importAll, forgotten   string
	count, notify          string

	get, document, list, documents string

	position, changes, forget string
}

func statementsIn(schema string) statements {
	in := func(sql string) string { return inSchema(schema, sql) }
	return statements{
		lock:    in(`LOCK TABLE $schema.state IN EXCLUSIVE MODE`),
		version: in(`SELECT version FROM $schema.state`),

		create: in(`
			WITH made AS (
				INSERT INTO $schema.relayers (place, id, revision, claim, document, private, attempt)
				SELECT nextval('$schema.places'), $1::text, nextval('$schema.writes'), $2::bytea, $3::bytea, $4::bytea, $5::uuid
				WHERE NOT EXISTS (SELECT FROM $schema.relayers WHERE id = $1::text)
				AND NOT EXISTS (SELECT FROM $schema.relayers WHERE claim = $2::bytea)
				RETURNING place, revision
			), told AS (
				INSERT INTO $schema.changes (number, kind, id, revision, claim, document, private)
				SELECT revision, 'created', $1::text, revision, $2::bytea, $3::bytea, $4::bytea FROM made
			)
			SELECT made.place, made.revision, stands.revision,
				stands.attempt = $5::uuid AND stands.claim IS NOT DISTINCT FROM $2::bytea
					AND stands.document = $3::bytea AND stands.private = $4::bytea
			FROM (SELECT) AS one
			LEFT JOIN made ON true
			LEFT JOIN $schema.relayers AS stands ON stands.id = $1::text`),

		update: in(`
			WITH made AS (
				UPDATE $schema.relayers
				SET revision = nextval('$schema.writes'), claim = $3::bytea, document = $4::bytea, private = $5::bytea
				WHERE id = $1::text AND revision = $2::bigint
				AND NOT EXISTS (SELECT FROM $schema.relayers AS other WHERE other.claim = $3::bytea AND other.id <> $1::text)
				RETURNING revision
			), told AS (
				INSERT INTO $schema.changes (number, kind, id, revision, claim, document, private)
				SELECT revision, 'updated', $1::text, revision, $3::bytea, $4::bytea, $5::bytea FROM made
			)
			SELECT made.revision, stands.revision
			FROM (SELECT) AS one
			LEFT JOIN made ON true
			LEFT JOIN $schema.relayers AS stands ON stands.id = $1::text`),

		remove: in(`
			WITH gone AS (
				DELETE FROM $schema.relayers WHERE id = $1::text AND revision = $2::bigint RETURNING *
			), told AS (
				INSERT INTO $schema.changes (number, kind, id, revision, claim, document, private)
				SELECT nextval('$schema.writes'), 'deleted', id, revision, claim, document, private FROM gone
			)
			SELECT gone.place, stands.revision
			FROM (SELECT) AS one
			LEFT JOIN gone ON true
			LEFT JOIN $schema.relayers AS stands ON stands.id = $1::text`),

		// Records that are taken over are not told one by one: whoever watches is
		// told to read all relayers again. For EXISTS in the place of a value the
		// server may read the whole table into memory, as it never does for a
		// subquery.
		importAll: in(`
			WITH given AS MATERIALIZED (
				SELECT *, row_number() OVER (PARTITION BY id ORDER BY nth) > 1 AS is_repeated,
					claim IS NOT NULL AND row_number() OVER (PARTITION BY claim ORDER BY nth) > 1 AS claims_again
				FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[])
					WITH ORDINALITY AS given (id, revision, claim, document, private, nth)
			), contending AS (
				SELECT nth, is_repeated OR (SELECT true FROM $schema.relayers AS stands WHERE stands.id = given.id) IS TRUE AS exists,
					claims_again OR (SELECT true FROM $schema.relayers AS stands WHERE stands.claim = given.claim) IS TRUE AS claimed
				FROM given
			), refused AS MATERIALIZED (
				SELECT exists FROM contending WHERE exists OR claimed ORDER BY nth LIMIT 1
			), room AS MATERIALIZED (
				SELECT setval('$schema.places', nextval('$schema.places') + cardinality($1::text[]) - 1) - cardinality($1::text[]) AS before
				WHERE NOT EXISTS (SELECT FROM refused)
			), made AS (
				INSERT INTO $schema.relayers (place, id, revision, claim, document, private)
				SELECT room.before + nth, id, revision, claim, document, private FROM room, given
			), raised AS MATERIALIZED (
				SELECT setval('$schema.writes', greatest(last_value, (SELECT max(revision) FROM given)) + 1) AS number
				FROM room, $schema.writes
			)
			SELECT room.before, raised.number, refused.exists
			FROM (SELECT) AS one LEFT JOIN room ON true LEFT JOIN raised ON true LEFT JOIN refused ON true`),

		// A statement of its own, that is prepared once the turn has come: even to
		// prepare what writes to the table waits for its lock, and for how long the
		// settings of the turn do not say yet.
		forgotten: in(`UPDATE $schema.state SET forgotten = $1::bigint`),

		count: in(`
			INSERT INTO $schema.counts (level, node, live)
			SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[])
			ON CONFLICT (level, node) DO UPDATE SET live = counts.live + excluded.live`),

		notify: `SELECT pg_notify($1::text, '')`,

		get:       in(`SELECT id, revision, claim, document, private FROM $schema.relayer($1::text)`),
		document:  in(`SELECT revision, document FROM $schema.relayer($1::text)`),
		list:      in(`SELECT total, id, revision, claim, document, private FROM $schema.page($1::bigint, $2::bigint)`),
		documents: in(`SELECT total, document FROM $schema.page($1::bigint, $2::bigint)`),

		position: in(`
			SELECT greatest(state.forgotten, last.number), last.made_at
			FROM $schema.state LEFT JOIN (
				SELECT number, made_at FROM $schema.changes ORDER BY number DESC LIMIT 1
			) AS last ON true`),

		changes: in(`
			SELECT is_cut, number, made_at, kind, id, revision, claim, document, private
			FROM $schema.changes_after($1::bigint, $2::bigint)`),

		forget: in(`
			WITH oldest AS (
				SELECT number, made_at FROM $schema.changes ORDER BY number LIMIT 1000
			), last AS (
				SELECT max(number) AS number FROM oldest WHERE made_at < extract(epoch FROM clock_timestamp()) * 1000000 - $1::bigint
			), gone AS (
				DELETE FROM $schema.changes USING last WHERE changes.number <= last.number
			)
			UPDATE $schema.state SET forgotten = greatest(forgotten, last.number) FROM last WHERE last.number IS NOT NULL`),
	}
}
