//go:build unix

package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestNotifyQueue_Full: while the queue is full, writes succeed without a notification, and
// watchers receive them. Later notifications are sent again. The test replaces a function of the
// server: to fill its queue takes 8 GB.
func TestNotifyQueue_Full(t *testing.T) {
	t.Parallel()
	schema, shadow := schemaName(), schemaName()
	admin := newPool(t, server.ConnString())
	execute(t, admin,
		"CREATE SCHEMA "+shadow,
		fmt.Sprintf(`CREATE TABLE %s.queue AS SELECT true AS is_full`, shadow),
		fmt.Sprintf(`CREATE SEQUENCE %s.sent`, shadow),
		fmt.Sprintf(`CREATE FUNCTION %s.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
			IF (SELECT is_full FROM %[1]s.queue) THEN
				RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000';
			END IF;
			PERFORM nextval('%[1]s.sent');
		END $$`, shadow))
	store := openAt(t, parameter(t, server.ConnString(), "search_path", shadow+",pg_catalog"), postgres.WithSchema(schema))
	store.PruneEach(time.Second)
	changes := watch(t, openOn(t, admin, postgres.WithSchema(schema)))
	rec := create(t, store, record("one"))
	changes.want(t, relayer.ChangeCreated, rec)
	rec = update(t, store, rec)
	changes.want(t, relayer.ChangeUpdated, rec)
	execute(t, admin, `UPDATE `+shadow+`.queue SET is_full = false`)
	eventually(t, "notifications are sent", func() bool {
		rec = update(t, store, rec)
		return queryOne[bool](t, admin, `SELECT is_called FROM `+shadow+`.sent`)
	})
}
