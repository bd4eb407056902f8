//go:build unix

package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestNotifyQueue_Full replaces the functions of the server: to fill its queue takes 8 GB.
// Writes succeed without a notification, and watchers receive them.
func TestNotifyQueue_Full(t *testing.T) {
	t.Parallel()
	for name, usage := range map[string]string{"known before": "1.0", "found at the commit": "0.0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, shadow := schemaName(), schemaName()
			admin := newPool(t, server.ConnString())
			execute(t, admin,
				"CREATE SCHEMA "+shadow,
				fmt.Sprintf(`CREATE SEQUENCE %s.refused`, shadow),
				// Another session may fill the queue after the question.
				fmt.Sprintf(`CREATE FUNCTION %s.pg_notification_queue_usage() RETURNS float8 LANGUAGE sql VOLATILE AS
					$$ SELECT CASE WHEN nextval('%[1]s.refused') %% 3 = 0 THEN 1.0 ELSE %s END $$`, shadow, usage),
				fmt.Sprintf(`CREATE FUNCTION %s.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS
					$$ BEGIN RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000'; END $$`, shadow))
			store := openAt(t, parameter(t, server.ConnString(), "search_path", shadow+",pg_catalog"), postgres.WithSchema(schema))
			changes := watch(t, openOn(t, admin, postgres.WithSchema(schema)))
			rec := create(t, store, record("one"))
			changes.want(t, relayer.ChangeCreated, rec)
			rec = update(t, store, rec)
			changes.want(t, relayer.ChangeUpdated, rec)
			remove(t, store, rec)
			changes.want(t, relayer.ChangeDeleted, rec)
		})
	}
}

// TestNotifyQueue_WriteLock replaces the function that returns how full the queue is, because it
// can take many seconds: it deletes what other programs have not read. It may not be called
// under the write lock. While the queue is full, no notification is sent.
func TestNotifyQueue_WriteLock(t *testing.T) {
	t.Parallel()
	schema, shadow := schemaName(), schemaName()
	admin := newPool(t, server.ConnString())
	execute(t, admin,
		"CREATE SCHEMA "+shadow,
		fmt.Sprintf(`CREATE SEQUENCE %s.sent`, shadow),
		fmt.Sprintf(`CREATE TABLE %s.usage AS SELECT 1.0::float8 AS value`, shadow),
		fmt.Sprintf(`CREATE FUNCTION %s.pg_notification_queue_usage() RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN
			IF EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objid = '%s.state'::regclass) THEN
				RAISE EXCEPTION 'under the write lock';
			END IF;
			RETURN (SELECT value FROM %[1]s.usage);
		END $$`, shadow, schema),
		fmt.Sprintf(`CREATE FUNCTION %s.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('%[1]s.sent'); END $$`, shadow))
	store := openAt(t, parameter(t, server.ConnString(), "search_path", shadow+",pg_catalog"), postgres.WithSchema(schema), postgres.WithChangeRetention(50*time.Millisecond))
	rec := create(t, store, record("one"))
	isSent := func() bool {
		before := queryOne[int](t, admin, `SELECT last_value + is_called::int FROM `+shadow+`.sent`)
		rec = update(t, store, rec)
		return queryOne[int](t, admin, `SELECT last_value + is_called::int FROM `+shadow+`.sent`) > before
	}
	eventually(t, "no notification is sent", func() bool { return !isSent() })
	execute(t, admin, `UPDATE `+shadow+`.usage SET value = 0.1`)
	eventually(t, "notifications are sent", isSent)
}
