package powerloss

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// fileName is the name of the store's file on the disk.
const fileName = "relayers.db"

// readVersions returns the version of each relayer in the store, by ID. It is
// damagedVersion if the record matches no version.
func readVersions(ctx context.Context, store relayer.Store) (map[string]int, error) {
	all, err := store.List(ctx, relayer.StoreQuery{Limit: 1 << 30})
	if err != nil {
		return nil, err
	}
	if len(all.Records) != all.Total {
		return nil, errors.New("the list and its total differ")
	}
	manager, err := newManager(store)
	if err != nil {
		return nil, err
	}
	held := make(map[string]int)
	for _, rec := range all.Records {
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

// damagedVersion is the version of a record that matches no version.
const damagedVersion = -1

// change is an entry of the history. Its version is 0 after a delete.
type change = ledger.Change[int]

// recentChanges is more than a round makes.
const recentChanges = 20_000

// readHistory reads the changes of relayers after a revision.
func (f *finding) readHistory(ctx context.Context, store relayer.Store, after uint64) error {
	entries, err := store.History(ctx, relayer.HistoryQuery{Limit: recentChanges})
	f.Revision = after
	for _, entry := range entries {
		if entry.Record.ID == afterTheCut || entry.Record.Revision <= after {
			continue
		}
		f.Revision = max(f.Revision, entry.Record.Revision)
		c := change{Key: entry.Record.ID}
		if entry.Kind != relayer.ChangeDeleted {
			var relayer struct{ Name string }
			if err := json.Unmarshal(entry.Record.Document, &relayer); err != nil {
				return err
			}
			if _, err := fmt.Sscanf(relayer.Name, "version %d", &c.Value); err != nil {
				return err
			}
		}
		f.History = append(f.History, c)
	}
	return err
}

// isWhole reports whether a record equals this version of itself, to the last byte.
func isWhole(ctx context.Context, rec relayer.Record, version int) bool {
	want, err := recordsOf(ctx, version, rec.ID)
	return err == nil && rec.Claim == want[0].Claim && rec.Text == want[0].Text &&
		bytes.Equal(rec.Document, want[0].Document) && bytes.Equal(rec.Private, want[0].Private)
}
