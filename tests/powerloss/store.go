package powerloss

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/faulty"
)

// The stores under test.
const (
	boltStore      = "store/bolt"
	earlyStore     = "store/bolt, acknowledging early"
	engineStore    = "bbolt"
	unsyncedEngine = "bbolt without sync"
)

// fileName is the name of the store's file on the disk.
const fileName = "relayers.db"

type checkedStore interface {
	relayer.Store
	transfer.Importer
	transfer.Checker
	Close() error
}

// openStore opens the store for a child.
func openStore(kind, path string) (relayer.Store, error) {
	if kind == earlyStore {
		store, err := bolt.Open(context.Background(), path)
		return faulty.NewEarly(store), err
	}
	return openSound(kind, path)
}

// openSound opens the store with syncs, as it is opened after a power cut.
func openSound(kind, path string) (checkedStore, error) {
	switch kind {
	case boltStore, earlyStore:
		return bolt.Open(context.Background(), path)
	case engineStore, unsyncedEngine:
		return openEngine(path, kind == engineStore)
	}
	return nil, fmt.Errorf("no store %q", kind)
}

// readVersions returns the version of each relayer in the store, by ID. It is
// damagedVersion if the record matches no version.
func readVersions(ctx context.Context, store relayer.Store) (map[string]int, error) {
	records, total, err := store.List(ctx, relayer.StoreQuery{Limit: 1 << 30})
	if err != nil {
		return nil, err
	}
	if len(records) != total {
		return nil, errors.New("the list and its total differ")
	}
	manager, err := newManager(store)
	if err != nil {
		return nil, err
	}
	held := make(map[string]int)
	for _, rec := range records {
		held[rec.ID] = damagedVersion
		r, err := manager.Get(ctx, rec.ID)
		if err != nil {
			continue
		}
		if version, err := versionOf(r); err == nil && isWhole(ctx, rec, version) {
			held[rec.ID] = version
		}
	}
	return held, nil
}

// isWhole reports whether a record equals this version of itself, to the last byte.
func isWhole(ctx context.Context, rec relayer.Record, version int) bool {
	want, err := recordsOf(ctx, version, rec.ID)
	return err == nil && rec.Claim == want[0].Claim &&
		bytes.Equal(rec.Document, want[0].Document) && bytes.Equal(rec.Private, want[0].Private)
}
