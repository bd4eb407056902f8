//go:build unix

package sealing_test

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// open opens a PostgreSQL database or a file.
func open(ctx context.Context, location string) (relayer.Store, func() error, error) {
	if strings.HasPrefix(location, "postgres") || strings.Contains(location, "host=") {
		store, err := postgres.Open(ctx, location)
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
	store, err := bolt.Open(ctx, location)
	if err != nil {
		return nil, nil, err
	}
	return store, store.Close, nil
}

// ringOf returns a keyring. The value of a key depends only on its ID.
func ringOf(primary string, others ...string) (keyring.Keyring, error) {
	var keys []string
	for _, id := range append([]string{primary}, others...) {
		keys = append(keys, id, id)
	}
	return parseRing(keys...)
}

// ringWith returns a keyring of IDs and values, which alternate.
func ringWith(t *testing.T, keys ...string) keyring.Keyring {
	t.Helper()
	ring, err := parseRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
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

func managerOn(store relayer.Store, primary string, others ...string) (*relayer.Manager, error) {
	ring, err := ringOf(primary, others...)
	if err != nil {
		return nil, err
	}
	return relayer.New(store, relayer.WithSealer(ring))
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
