package postgres

// The counters of a transaction are settings that end with it; the stored counters
// are raised once, at the commit. If every write of a batch raised the stored ones,
// each would leave a dead row version behind.
const (
	nextSequence = `set_config('relayer.last_sequence', (current_setting('relayer.last_sequence')::bigint + 1)::text, true)::bigint`
	nextRevision = `set_config('relayer.last_revision', (current_setting('relayer.last_revision')::bigint + 1)::text, true)::bigint`
)

// countOfID is the nth of the last stored change of the ID, or 0. An update and a delete use the
// nth of the row of the relayer, which costs no look into the changes.
const countOfID = `coalesce((SELECT c.nth FROM $schema.changes AS c WHERE c.id = $1::text ORDER BY -c.nth LIMIT 1), 0)`

// bitAt is the chunk of a sequence number, with only its bit set.
const bitAt = `set_bit(0::bit(512), (sequence & 511)::integer, 1)`

// The statements. A write returns one row, even if it is refused, so only a refused import aborts
// the transaction that it shares with others. All writes run under the write lock, so they read
// the current state.
const (
	// A lock of the table would keep vacuum from it. The key is that of the table, and the lock
	// ends with the transaction, so that it works through a pooler in transaction mode.
	sqlLock  = `SELECT pg_advisory_xact_lock('$schema.state'::regclass::oid::bigint)`
	sqlState = `
		SELECT version, minimum_writer, last_sequence, last_revision,
			set_config('relayer.last_sequence', last_sequence::text, true),
			set_config('relayer.last_revision', last_revision::text, true)
		FROM $schema.state ORDER BY last_revision DESC LIMIT 1`

	sqlCreate = `
		WITH made AS (
			INSERT INTO $schema.relayers (sequence, id, nth, revision, claim, terms, text, note, document, private)
			SELECT ` + nextSequence + `, $1::text, ` + countOfID + ` + ($8::bigint IS NULL)::integer, coalesce($8::bigint, ` + nextRevision + `), $2::bytea, $3::text[], $4::text, $5::bytea, $6::bytea, $7::bytea
			WHERE NOT EXISTS (SELECT FROM $schema.relayers WHERE id = $1::text)
			AND NOT EXISTS (SELECT FROM $schema.relayers WHERE claim = $2::bytea)
			RETURNING sequence, nth, revision
		), change AS (
			INSERT INTO $schema.changes (number, kind, sequence, id, nth, claim, terms, text, note, document)
			SELECT revision, 'created', sequence, $1::text, nth, $2::bytea, $3::text[], $4::text, $5::bytea, $6::bytea FROM made
			WHERE $8::bigint IS NULL
			RETURNING number
		)
		SELECT made.sequence, CASE WHEN $8::bigint IS NULL THEN change.number ELSE made.revision END, EXISTS (SELECT FROM $schema.relayers WHERE id = $1::text),
			made.revision IS NULL AND EXISTS (SELECT FROM $schema.relayers WHERE claim = $2::bytea)
		FROM (SELECT) AS one LEFT JOIN made ON true LEFT JOIN change ON true`

	sqlUpdate = `
		WITH stored AS MATERIALIZED (
			SELECT sequence, revision, terms, text FROM $schema.relayers WHERE id = $1::text
		), made AS (
			UPDATE $schema.relayers
			SET revision = ` + nextRevision + `, nth = nth + 1, claim = $3::bytea, terms = $4::text[], text = $5::text, note = $6::bytea,
				document = $7::bytea, private = $8::bytea
			WHERE id = $1::text AND revision = $2::bigint
			AND NOT EXISTS (SELECT FROM $schema.relayers AS other WHERE other.claim = $3::bytea AND other.id <> $1::text)
			RETURNING revision, nth
		), change AS (
			INSERT INTO $schema.changes (number, kind, sequence, id, nth, claim, terms, old_terms, text, old_text, note, document)
			SELECT made.revision, 'updated', stored.sequence, $1::text, made.nth, $3::bytea, $4::text[], nullif(stored.terms, $4::text[]),
				$5::text, nullif(stored.text, $5::text), $6::bytea, $7::bytea
			FROM made, stored
			RETURNING number
		)
		SELECT change.number, stored.revision, stored.sequence, stored.terms,
			change.number IS NULL AND EXISTS (SELECT FROM $schema.relayers AS other WHERE other.claim = $3::bytea AND other.id <> $1::text)
		FROM (SELECT) AS one LEFT JOIN change ON true LEFT JOIN stored ON true`

	sqlRemove = `
		WITH gone AS (
			DELETE FROM $schema.relayers WHERE id = $1::text AND revision = $2::bigint RETURNING *
		), change AS (
			INSERT INTO $schema.changes (number, kind, sequence, id, nth, claim, terms, text, note, document)
			SELECT ` + nextRevision + `, 'deleted', sequence, id, nth + 1, claim, terms, text, $3::bytea, document FROM gone
			RETURNING number
		)
		SELECT gone.sequence, gone.terms, change.number, stored.revision
		FROM (SELECT) AS one
		LEFT JOIN gone ON true
		LEFT JOIN change ON true
		LEFT JOIN $schema.relayers AS stored ON stored.id = $1::text`

	// An import is one change, after its creates: it means that watchers should read all
	// relayers again.
	sqlImportEnd = `
		INSERT INTO $schema.changes (number, kind, sequence, id, nth, terms, text, note, document)
		SELECT set_config('relayer.last_revision', (greatest(current_setting('relayer.last_revision')::bigint, $1::bigint) + 1)::text, true)::bigint,
			'imported', 0, '', 0, '{}', '', '', ''
		RETURNING number`

	sqlImportChange = `
		WITH room AS MATERIALIZED (
			SELECT (SELECT history_age = 0 OR history_changes = 0 FROM $schema.pruning) AS is_none,
				$2::bigint <= current_setting('relayer.last_revision')::bigint AS is_late
		), made AS (
			INSERT INTO $schema.changes (number, kind, sequence, id, nth, claim, terms, old_terms, text, old_text, note, document)
			SELECT $2::bigint, $3::text, $4::bigint, $1::text, ` + countOfID + ` + 1, $5::bytea, $6::text[], nullif($7::text[], $6::text[]),
				$8::text, nullif($9::text, $8::text), $10::bytea, $11::bytea
			FROM room WHERE NOT is_none AND NOT is_late
			RETURNING number, nth
		), counted AS (
			UPDATE $schema.relayers SET nth = made.nth FROM made WHERE id = $1::text
		)
		SELECT is_none, is_late, CASE WHEN number IS NOT NULL THEN set_config('relayer.last_revision', number::text, true) END
		FROM room LEFT JOIN made ON true`

	// The feed does not have the imported changes: it begins after them.
	sqlImportedChanges = `
		UPDATE $schema.pruning SET pruned = last.number, pruned_at = last.changed_at
		FROM $schema.changes AS last WHERE last.number = current_setting('relayer.last_revision')::bigint
		RETURNING pruned`

	// The statement timeout of the server must not end the commit: the server would report
	// success without having waited for the synchronous standby. If a trigger or row-level security
	// drops the update of state, the division by zero fails the statement. While the queue of
	// notifications is full, the server would refuse the commit, so no notification is sent, and
	// watchers poll.
	sqlFinish = `
		WITH flipped AS (
			INSERT INTO $schema.postings (term, chunk, bits)
			SELECT term, sequence >> 9, bit_xor(` + bitAt + `)
			FROM unnest($1::text[], $2::bigint[]) AS flipped (term, sequence)
			GROUP BY 1, 2 HAVING bit_xor(` + bitAt + `) <> 0::bit(512)
			ON CONFLICT (term, chunk) DO UPDATE SET bits = postings.bits # excluded.bits
		), advanced AS (
			UPDATE $schema.state SET total = total + $3::bigint, last_sequence = $4::bigint, last_revision = $5::bigint,
				last_changed_at = coalesce((SELECT changed_at FROM $schema.changes WHERE number = $5::bigint), last_changed_at)
			WHERE last_revision = $6::bigint
			RETURNING 1
		)
		SELECT CASE WHEN $8::boolean THEN pg_notify($7::text, '') END, set_config('statement_timeout', '0', true),
			1 / (SELECT count(*) FROM advanced)`

	// A join could read the whole index, if the statistics say that a table is empty.
	// No row moves under the write lock.
	sqlDropEmpty = `
		DELETE FROM $schema.postings WHERE ctid = ANY (ARRAY(
			SELECT stored.ctid
			FROM unnest($1::text[], $2::bigint[]) AS lost (term, sequence), LATERAL (
				SELECT p.ctid FROM $schema.postings AS p
				WHERE p.term = lost.term AND p.chunk = lost.sequence >> 9 AND p.bits = 0::bit(512) OFFSET 0) AS stored))`

	sqlGet = `SELECT ` + recordColumns + ` FROM $schema.relayer($1::text)`

	// The time of the oldest change ends a search by time, without a look-up for each change.
	sqlHistory = `
		WITH found AS MATERIALIZED (SELECT * FROM $schema.history($1::text, $2::bigint, $3::bigint))
		SELECT CASE WHEN revision = (SELECT min(revision) FROM found)
				THEN (SELECT changed_at FROM $schema.changes WHERE number = revision) END,
			kind, old_terms, old_text, ` + recordColumns + ` FROM found`

	sqlList          = `SELECT total, last_number, last_changed_at, ` + recordColumns + fromPage
	sqlListDocuments = `SELECT total, last_number, last_changed_at, id, revision, sequence, note, document` + fromPage
	sqlSelection     = `SELECT total, last_number, last_changed_at, ` + recordColumns + ` FROM $schema.selection($1::text[], $2::integer[], $3::text[], $4::integer, $5::text[], $6::bigint, $7::bigint, $8::bigint)`

	sqlChanges = `
		SELECT is_cut, is_last, number, changed_at, kind, old_terms, old_text, ` + recordColumns + `
		FROM $schema.changes_after($1::bigint, $2::bigint)`

	// A server crash may undo a step, which is then repeated: no step has to wait
	// for the disk or for a standby.
	sqlLockPruning = `
		SELECT pruned, history_pruned, greatest(displaced, history_pruned), feed_age,
			CASE WHEN history_changes = 0 THEN 0 ELSE history_age END, history_changes
		FROM $schema.pruning, (SELECT set_config('synchronous_commit', 'off', true)) AS setting
		FOR UPDATE OF pruning SKIP LOCKED`

	// The scan begins at the last pruned number, past the deleted rows that a long
	// transaction keeps. Nothing is pruned if a newer version forbids it.
	sqlPrune = `
		WITH ` + oldest + `, last AS (
			SELECT number, changed_at FROM oldest
			WHERE changed_at < extract(epoch FROM clock_timestamp()) * 1000000 - $3::bigint
			ORDER BY number DESC LIMIT 1
		)
		UPDATE $schema.pruning SET pruned = last.number, pruned_at = last.changed_at FROM last`

	// A change that the feed has lost displaces the one of its relayer that is now too
	// old by number. A scan over the relayers or the history is not needed.
	sqlDisplace = `
		WITH ` + oldest + `, passed AS MATERIALIZED (
			SELECT number, id, nth FROM oldest WHERE number <= ` + lostByFeed + `
		), gone AS (
			DELETE FROM $schema.changes WHERE ctid = ANY (ARRAY(
				SELECT stored.ctid
				FROM passed, LATERAL (
					SELECT c.ctid FROM $schema.changes AS c WHERE c.id = passed.id AND -c.nth = $3::bigint - passed.nth OFFSET 0) AS stored))
		)
		UPDATE $schema.pruning SET displaced = last.number FROM (SELECT max(number) AS number FROM passed) AS last WHERE last.number > 0`

	// The feed needs the changes that it has not lost. Without a history, no other change is
	// kept, regardless of its time.
	sqlPruneHistory = `
		WITH ` + oldest + `, last AS (
			SELECT number FROM oldest
			WHERE number <= ` + lostByFeed + `
			AND ($3::bigint = 0 OR changed_at < extract(epoch FROM clock_timestamp()) * 1000000 - $3::bigint)
			ORDER BY number DESC LIMIT 1
		), gone AS (
			DELETE FROM $schema.changes WHERE number > $1::bigint AND number <= (SELECT last.number FROM last)
		)
		UPDATE $schema.pruning SET history_pruned = last.number FROM last`

	// Another number of changes applies to those that are stored too.
	sqlSetRetention = `
		UPDATE $schema.pruning
		SET history_age = coalesce($1::bigint, history_age), history_changes = coalesce($2::bigint, history_changes),
			displaced = CASE WHEN history_changes <> $2::bigint THEN 0 ELSE displaced END
		WHERE history_age <> $1::bigint OR history_changes <> $2::bigint`
)

// Parts of the statements.
const (
	recordColumns = `id, revision, sequence, claim, terms, text, note, document, private`
	fromPage      = ` FROM $schema.page($1::bigint, $2::bigint, $3::bigint)`

	lostByFeed = `(SELECT pruned FROM $schema.pruning)`

	oldest = `oldest AS (
				SELECT number, changed_at, id, nth FROM $schema.changes
				WHERE number > $1::bigint AND $4::integer >= (
					SELECT minimum_writer FROM $schema.state ORDER BY last_revision DESC LIMIT 1)
				ORDER BY number LIMIT $2::integer
			)`
)
