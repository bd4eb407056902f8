//go:build unix

package sealing_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// Each RPC URL of the leak tests has urlSecret in its path, query or user information, or
// hostSecret in its host. One endpoint has headerSecret in the value of a header.
const (
	urlSecret    = "SecretOfAnRPCURL"
	hostSecret   = "SecretInTheHostOfAnRPCURL"
	headerSecret = "SecretInAHeaderOfAnEndpoint"
)

var secrets = []string{urlSecret, hostSecret, headerSecret}

// secretFiles returns the files below the directories that contain a secret in clear, each with
// the secret that it contains.
func secretFiles(t *testing.T, directories ...string) (found []string) {
	t.Helper()
	for _, secret := range secrets {
		for _, file := range filesWith(t, secret, directories...) {
			found = append(found, file+" has "+secret)
		}
	}
	return found
}

// filesWith returns the files below the directories that contain a text, or the same in
// hexadecimal.
func filesWith(t *testing.T, text string, directories ...string) (found []string) {
	t.Helper()
	count := 0
	for _, directory := range directories {
		err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if os.IsNotExist(err) {
				return nil // the server removes files
			}
			count++
			if bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(hex.EncodeToString([]byte(text)))) {
				found = append(found, path)
			}
			return err
		})
		must(t, err)
	}
	if count == 0 {
		t.Fatal("no file was read")
	}
	return found
}

func secretURLs(n int) []relayer.RPCConfig {
	return []relayer.RPCConfig{
		{
			URL:     relayer.RPCURL(fmt.Sprintf("https://a.example/v2/%s-%d", urlSecret, n)),
			Headers: map[string]relayer.Secret{"Authorization": relayer.Secret(fmt.Sprintf("Bearer %s-%d", headerSecret, n))},
		},
		{URL: relayer.RPCURL(fmt.Sprintf("wss://user:%s%d@b.example", urlSecret, n))},
		{URL: relayer.RPCURL(fmt.Sprintf("https://c.example/?key=%s%d", urlSecret, n))},
		{URL: relayer.RPCURL(fmt.Sprintf("https://%s%d.d.rpc.example", hostSecret, n))},
	}
}

// useStore creates, changes and deletes relayers, with URLs in all texts that a caller gives. If
// seals is set, it seals them under k1, and then under another key.
func useStore(t *testing.T, db relayer.Store, seals bool) {
	t.Helper()
	m, err := relayer.New(db)
	if seals {
		var onSealed sealedManager
		onSealed, err = managerOn(db, "k1")
		m = onSealed.Manager
	}
	must(t, err)
	for i := range 50 {
		id := fmt.Sprintf("r%d", i)
		mustGet(m.Create(t.Context(), definition(id, secretURLs(i))))(t)
		quoted := fmt.Sprintf("failing: %s", secretURLs(i)[i%4].URL.Unmasked())
		mustGet(m.Pause(t.Context(), id, relayer.Reason(quoted)))(t)
		mustGet(m.Disable(t.Context(), id, relayer.DisabledReason{Type: relayer.RPCValidationFailed, Details: quoted}))(t)
		mustGet(m.Patch(t.Context(), id, patchOf(secretURLs(i+100)...)))(t)
	}
	for i := range 10 {
		must(t, m.Delete(t.Context(), fmt.Sprintf("r%d", i)))
	}
	if !seals {
		return
	}
	rotated := mustGet(managerOn(db, "k2", "k1"))(t)
	if count := rotated.reseal(t); count != 40 {
		t.Errorf("%d relayers were sealed again, want 40", count)
	}
}

// sealedAndClear runs a test on a sealed store, which must leave no URL in clear, and as a
// control on another one, which must leave some in each of the places.
func sealedAndClear(t *testing.T, test func(t *testing.T, seals bool) (places map[string][]string)) {
	t.Run("sealed", func(t *testing.T) {
		for place, found := range test(t, true) {
			if len(found) > 0 {
				t.Errorf("%s: URLs in clear in %q", place, found)
			}
		}
	})
	t.Run("control", func(t *testing.T) {
		for place, found := range test(t, false) {
			for _, secret := range secrets {
				if !strings.Contains(strings.Join(found, "\n"), " has "+secret) {
					t.Errorf("%s: found no %s in clear in a store that does not seal", place, secret)
				}
			}
		}
	})
}

func TestBolt_NoURLInClear(t *testing.T) {
	t.Parallel()
	sealedAndClear(t, func(t *testing.T, seals bool) map[string][]string {
		directories := map[string]string{"database": t.TempDir(), "backup": t.TempDir(), "copy": t.TempDir()}
		store := mustGet(bolt.Open(t.Context(), filepath.Join(directories["database"], "relayers.db")))(t)
		useStore(t, store, seals)
		must(t, store.Backup(t.Context(), filepath.Join(directories["backup"], "backup.db")))
		copied := mustGet(bolt.Open(t.Context(), filepath.Join(directories["copy"], "copy.db")))(t)
		must(t, transfer.Copy(t.Context(), copied, store))
		must(t, copied.Close(), store.Close())
		places := make(map[string][]string)
		for place, directory := range directories {
			places[place] = secretFiles(t, directory)
		}
		return places
	})
}

// TestHistory_NoURLWithoutSealing: the history has no URL in clear, also if the relayers do.
func TestHistory_NoURLWithoutSealing(t *testing.T) {
	t.Parallel()
	eachLocation(t, func(t *testing.T, location string, _ func()) {
		store := mustGet(open(t.Context(), location))(t)
		useStore(t, store, false)
		must(t, store.Close())
		history := filepath.Join(t.TempDir(), "relayer_changes")
		if _, isBolt := store.(*bolt.Store); isBolt {
			dumpHistory(t, location, history)
		} else {
			history = filepath.Join(copyTables(t, pgtest.Connect(t, location)), filepath.Base(history))
		}
		if found := secretFiles(t, history); len(found) > 0 {
			t.Error("the history has URLs in clear")
		}
		for _, masked := range []string{"https://a.example/***", "failing: wss://b.example", "failing: https://c.example/***", "https://***.d.rpc.example", "failing: https://***.d.rpc.example"} {
			if len(filesWith(t, masked, history)) == 0 {
				t.Errorf("control: the history does not have %q", masked)
			}
		}
	})
}

// dumpHistory writes the keys and values of the history of a file to another file.
func dumpHistory(t *testing.T, path, to string) {
	t.Helper()
	db := mustGet(bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true}))(t)
	var dump []byte
	err := db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("history")).ForEach(func(key, value []byte) error {
			dump = append(append(dump, key...), value...)
			return nil
		})
	})
	must(t, err, db.Close(), os.WriteFile(to, dump, 0o600))
}

// The server has the defaults of PostgreSQL: rows, changes, write-ahead log and what COPY
// writes.
func TestPostgres_NoURLInClear(t *testing.T) {
	t.Parallel()
	sealedAndClear(t, func(t *testing.T, seals bool) map[string][]string {
		server := pgserver.Start(t)
		store := mustGet(open(t.Context(), server.ConnString()))(t)
		useStore(t, store, seals)
		must(t, store.Close())
		conn := pgtest.Connect(t, server.ConnString())
		copies := copyTables(t, conn)
		var data string
		must(t, conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&data))
		mustGet(conn.Exec(t.Context(), "CHECKPOINT"))(t)
		return map[string][]string{
			"tables":          secretFiles(t, filepath.Join(data, "base")),
			"write-ahead log": secretFiles(t, filepath.Join(data, "pg_wal")),
			"COPY files":      secretFiles(t, copies),
			"server and log":  append(secretFiles(t, filepath.Dir(data)), secretFiles(t, data)...),
		}
	})
}

// TestPostgres_ResealedTables seals relayers that were stored in clear, with earlier revisions and
// deletes. After VACUUM FULL only the write-ahead log has URLs in clear.
func TestPostgres_ResealedTables(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	conn := pgtest.Connect(t, server.ConnString())
	execute := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	store := mustGet(open(t.Context(), server.ConnString()))(t)
	useStore(t, store, false)
	execute("ANALYZE")
	var data string
	must(t, conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&data))
	tables := filepath.Join(data, "base")
	execute("CHECKPOINT")
	if len(secretFiles(t, tables)) == 0 {
		t.Fatal("found no URL in clear before the reseal")
	}
	m := mustGet(managerOn(store, "k1"))(t)
	m.reseal(t)
	must(t, store.Close())
	if found := secretFiles(t, copyTables(t, conn)); len(found) > 0 {
		t.Errorf("the tables have URLs in clear: %q", found)
	}
	execute("VACUUM FULL")
	execute("CHECKPOINT")
	if found := secretFiles(t, tables); len(found) > 0 {
		t.Errorf("after VACUUM FULL there are URLs in clear in %q", found)
	}
	if len(secretFiles(t, filepath.Join(data, "pg_wal"))) == 0 {
		t.Error("the write-ahead log has no URL in clear: the documentation says that it has")
	}
}

// copyTables writes every table of the store to a file as text.
func copyTables(t *testing.T, conn *pgx.Conn) (directory string) {
	t.Helper()
	directory = t.TempDir()
	rows := mustGet(conn.Query(t.Context(), `SELECT schemaname || '.' || relname FROM pg_stat_user_tables`))(t)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		t.Fatalf("the tables are %q; error %v", tables, err)
	}
	for _, table := range tables {
		file := mustGet(os.Create(filepath.Join(directory, strings.ReplaceAll(table, ".", "_"))))(t)
		_, err := conn.PgConn().CopyTo(t.Context(), file, "COPY "+table+" TO STDOUT")
		must(t, err, file.Close())
	}
	return directory
}
