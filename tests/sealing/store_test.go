//go:build unix

package sealing_test

import (
	"bytes"
	"context"
	"encoding/base64"
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
	text := "relayer-keyring 1\nprimary " + primary + "\n"
	for _, id := range append([]string{primary}, others...) {
		value := bytes.Repeat([]byte{0}, 32)
		copy(value, id)
		text += "key " + id + " " + base64.StdEncoding.EncodeToString(value) + "\n"
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
