//go:build unix

package sealing_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/store/sealed"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// durable is a store in a file or in PostgreSQL.
type durable interface {
	relayer.Store
	io.Closer
}

// open opens a PostgreSQL database or a file.
func open(ctx context.Context, location string) (durable, error) {
	if strings.HasPrefix(location, "postgres") || strings.Contains(location, "host=") {
		return postgres.Open(ctx, location, postgres.WithTimeout(2*time.Minute)) // on a busy machine
	}
	return bolt.Open(ctx, location)
}

// ringWith returns a keyring of IDs and values, which alternate.
func ringWith(t *testing.T, keys ...string) keyring.Keyring {
	t.Helper()
	ring := mustGet(parseRing(keys...))(t)
	return ring
}

func parseRing(keys ...string) (keyring.Keyring, error) {
	text := "relayer-keyring 1\nprimary " + keys[0] + "\n"
	for pair := range slices.Chunk(keys, 2) {
		value := make([]byte, 32)
		copy(value, pair[1])
		text += "key " + pair[0] + " " + base64.StdEncoding.EncodeToString(value) + "\n"
	}
	return keyring.Parse([]byte(text))
}

// patchOf returns a patch with RPC URLs and headers in full.
func patchOf(endpoints ...relayer.RPCConfig) []byte {
	var full []string
	for _, endpoint := range endpoints {
		var headers []string
		for name, value := range endpoint.Headers {
			headers = append(headers, fmt.Sprintf(`%q:%q`, name, value.Unmasked()))
		}
		full = append(full, fmt.Sprintf(`{"url":%q,"headers":{%s}}`, endpoint.URL.Unmasked(), strings.Join(headers, ",")))
	}
	return []byte(`{"custom_rpc_urls":[` + strings.Join(full, ",") + `]}`)
}

// sealedManager is a Manager with its store.
type sealedManager struct {
	*relayer.Manager
	store *sealed.Store
}

// managerOn returns a Manager with keys whose values depend only on their IDs. The first is primary.
func managerOn(db relayer.Store, ids ...string) (sealedManager, error) {
	var keys []string
	for _, id := range ids {
		keys = append(keys, id, id)
	}
	ring, err := parseRing(keys...)
	if err != nil {
		return sealedManager{}, err
	}
	return managerWith(db, ring)
}

func managerWith(db relayer.Store, keys sealed.Keys, options ...sealed.Option) (sealedManager, error) {
	store, err := sealed.New(db, keys, options...)
	if err != nil {
		return sealedManager{}, err
	}
	m, err := relayer.New(store)
	return sealedManager{m, store}, err
}

// reseal seals all relayers under the primary key, and returns how many were under another one.
func (m sealedManager) reseal(t *testing.T) (count int) {
	t.Helper()
	for id, err := range m.store.Reseal(t.Context()) {
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		count++
	}
	return count
}

// eachPlace runs a test with places for a store: each call of place creates an empty one, and
// returns the function that opens a store in it, which is closed at the end of the test too.
func eachPlace(t *testing.T, test func(t *testing.T, place func(t *testing.T) (open func(t *testing.T) durable))) {
	t.Run("bolt", func(t *testing.T) {
		test(t, func(t *testing.T) func(t *testing.T) durable {
			path := filepath.Join(t.TempDir(), "relayers.db")
			return func(t *testing.T) durable {
				store := mustGet(bolt.Open(t.Context(), path))(t)
				t.Cleanup(func() { must(t, store.Close()) })
				return store
			}
		})
	})
	t.Run("postgres", func(t *testing.T) {
		server, schemas := pgserver.Start(t), 0
		test(t, func(t *testing.T) func(t *testing.T) durable {
			schemas++
			schema := postgres.WithSchema(fmt.Sprint("place_", schemas))
			return func(t *testing.T) durable { return pgtest.Open(t, server.ConnString(), schema) }
		})
	})
}

// eachLocation runs a test on a file and on a PostgreSQL database. The function settled
// waits until no request of a killed child is left.
func eachLocation(t *testing.T, test func(t *testing.T, location string, settled func())) {
	t.Run("bolt", func(t *testing.T) {
		test(t, t.TempDir()+"/relayers.db", func() {})
	})
	t.Run("postgres", func(t *testing.T) {
		server := pgserver.Start(t)
		test(t, server.ConnString()+pgtest.SessionName("child"), func() { pgtest.AwaitSessionsEnd(t, server, "child") })
	})
}

// TestStream_SupersededURLs: PostgreSQL has only the current RPC URLs, so a stream with full URLs
// marks the changes that others have superseded. It logs no damage.
func TestStream_SupersededURLs(t *testing.T) {
	t.Parallel()
	manager := mustGet(managerOn(pgtest.Open(t, pgserver.Start(t).ConnString()), "k1"))(t)
	page := mustGet(manager.List(t.Context(), relayer.ListQuery{}))(t)
	for _, id := range []string{"paused", "deleted", "kept"} {
		body := `{"id":"` + id + `","name":"n","network":"sepolia","network_type":"evm","paused":false,"signer_id":"s","custom_rpc_urls":[{"url":"https://rpc.example/v2/key"}]}`
		mustGet(manager.Documents().Create(t.Context(), []byte(body)))(t)
	}
	mustGet(manager.Pause(t.Context(), "paused"))(t)
	must(t, manager.Delete(t.Context(), "deleted"))
	tokens := mustGet(httpapi.Tokens(map[string][]string{"engine": {"the-token-of-an-engine"}}))(t)
	var logged bytes.Buffer
	api := mustGet(httpapi.New(manager.Manager, tokens, httpapi.WithEngineOperations(), httpapi.WithLogger(slog.New(slog.NewTextHandler(&logged, nil)))))(t)
	server := httptest.NewServer(api)
	request := mustGet(http.NewRequestWithContext(t.Context(), "GET", server.URL+"/api/v1/relayers:watch?rpc_urls=full", nil))(t)
	request.Header.Set("Authorization", "Bearer the-token-of-an-engine")
	request.Header.Set("Last-Event-ID", page.Position)
	response := mustGet(server.Client().Do(request))(t)
	var got []string
	kind := ""
	for lines := bufio.NewScanner(response.Body); len(got) < 5 && lines.Scan(); {
		if name, isEvent := strings.CutPrefix(lines.Text(), "event: "); isEvent {
			kind = name
		}
		if !strings.HasPrefix(lines.Text(), "data: ") {
			continue
		}
		var data struct{ Sealed []string }
		must(t, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &data))
		got = append(got, fmt.Sprint(kind, " full=", strings.Contains(lines.Text(), "/v2/key"), " ", data.Sealed))
	}
	response.Body.Close()
	api.Drain()
	server.Close() // and its last log line
	want := []string{
		"created full=false [paused]", "created full=false [deleted]", "created full=true []", "updated full=true []", "deleted full=false []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the events are\n%q, want\n%q", got, want)
	}
	if strings.Contains(logged.String(), "cannot be opened") {
		t.Errorf("the log has %s", &logged)
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
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
