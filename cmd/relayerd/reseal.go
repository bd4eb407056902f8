package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer/store/sealed"
)

func newResealCommand() *cobra.Command {
	var t sealedDatabase
	command := &cobra.Command{
		Use:     "reseal",
		Example: "  relayerd reseal --db relayers.db --keys relayer.keys",
		Short:   "Seal the RPC URLs of a database under the primary key",
		Long: `Reseal seals all RPC URLs that are in clear or under another key than the primary key.
With --require-sealed it reports those in clear, and does not seal them. With --unseal it
stores them in clear. Run it again to resume it. Servers may use a PostgreSQL database
meanwhile: give them the keys first.

The space that a database file frees still contains the earlier form. Run compact after
sealing for the first time.`,
		RunE: func(command *cobra.Command, _ []string) error {
			count, err := t.reseal(command.Context())
			if err != nil {
				return err
			}
			command.Printf("stored the RPC URLs of %s\n", relayers(count))
			return nil
		},
	}
	command.Flags().StringVar(&t.database, "db", defaultDatabase, "database `file` that no server has open, or a postgres:// URL")
	t.sealing.addFlags(command)
	require(command, "keys")
	return command
}

// sealedDatabase holds the flags of reseal.
type sealedDatabase struct {
	sealing
	database string
}

func (t *sealedDatabase) open(ctx context.Context) (*sealed.Store, func() error, error) {
	if err := checkDurable("--db", t.database); err != nil {
		return nil, nil, err
	}
	logger := slog.New(slog.DiscardHandler)
	keys, err := t.sealing.load(logger)
	if err != nil {
		return nil, nil, err
	}
	db, closeStore, err := openExisting(ctx, "--db", t.database, lockOnce())
	if err != nil {
		return nil, nil, err
	}
	store, err := t.sealing.store(ctx, db, keys, logger)
	if err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	return store.(*sealed.Store), closeStore, nil // --keys is required
}

func (t *sealedDatabase) reseal(ctx context.Context) (count int, err error) {
	store, closeStore, err := t.open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	return resealAll(store.Reseal(ctx), func() {})
}

// resealAll returns the number of relayers that were stored. An error of one relayer does
// not end it; the first one is returned with their number. wait bounds the rate.
func resealAll(resealed func(yield func(string, error) bool), wait func()) (count int, err error) {
	failed := 0
	var first error
	for id, err := range resealed {
		switch {
		case err == nil:
			count++
		case id == "":
			return count, err
		default:
			failed++
			if first == nil {
				first = err
			}
		}
		wait()
	}
	if failed > 0 {
		return count, fmt.Errorf("stored the RPC URLs of %s, but not those of %s: the first error is: %w", relayers(count), relayers(failed), first)
	}
	return count, nil
}

// resealInterval is the time between two relayers that a server seals again: the writes
// of clients come first.
const resealInterval = 10 * time.Millisecond

// The delays before a server tries again what it could not seal.
const (
	firstRetry   = time.Second
	longestRetry = 5 * time.Minute
)

// resealer seals in the background what is not under the primary key.
type resealer struct {
	store   *sealed.Store
	keys    *keysFile
	unseals bool             // stores in clear instead
	signals <-chan os.Signal // each one reloads the keys
}

// run seals everything once, again after each signal, and after a failure with exponential
// backoff.
func (r resealer) run(ctx context.Context) {
	delay := firstRetry
	for ctx.Err() == nil {
		count, signaled, err := r.reseal(ctx)
		var retry <-chan time.Time
		switch {
		case signaled || ctx.Err() != nil:
		case err != nil:
			r.keys.logger.Error("not all RPC URLs are under the primary key", "error", err.Error(), "retry_in", delay)
			retry, delay = time.After(delay), min(2*delay, longestRetry)
		case r.unseals:
			r.keys.logger.Info("all RPC URLs are in clear", "stored", count)
		default: // the operator waits for the line of each server, also if nothing was left to seal
			r.keys.logger.Info("all RPC URLs are under the primary key", "stored", count, "primary", r.keys.primary().ID)
		}
		if signaled || r.isSignaled(ctx, retry) {
			r.keys.reload(ctx)
			delay = firstRetry
		}
	}
}

// isSignaled waits for a signal, or until retry receives or ctx is done.
func (r resealer) isSignaled(ctx context.Context, retry <-chan time.Time) bool {
	select {
	case <-r.signals:
		return true
	case <-retry:
	case <-ctx.Done():
	}
	return false
}

// reseal seals everything, or reports that a signal came before the end.
func (r resealer) reseal(ctx context.Context) (count int, signaled bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticker := time.NewTicker(resealInterval)
	defer ticker.Stop()
	count, err = resealAll(r.store.Reseal(ctx), func() {
		if signaled = signaled || r.isSignaled(ctx, ticker.C); signaled {
			cancel()
		}
	})
	return count, signaled, err
}

func relayers(count int) string {
	if count == 1 {
		return "1 relayer"
	}
	return fmt.Sprintf("%d relayers", count)
}

// sealText describes how the RPC URLs of a database are stored, or returns "" if all of
// them are in clear.
func sealText(counts sealed.Counts) string {
	if len(counts.Keys) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "RPC URLs of %s are in clear\n", relayers(counts.Clear))
	for _, key := range sortedKeys(counts) {
		name := "key " + printable(key.String())
		if key.ID == "" {
			name = "a key without a name"
		}
		fmt.Fprintf(&text, "RPC URLs of %s are under %s\n", relayers(counts.Keys[key]), name)
	}
	return text.String()
}

func sortedKeys(counts sealed.Counts) []sealed.Key {
	return slices.SortedFunc(maps.Keys(counts.Keys), func(a, b sealed.Key) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
}

// checkKeyNames returns an error if two keys of a database have one name: a key file cannot
// have both under it.
func checkKeyNames(counts sealed.Counts) error {
	keys := sortedKeys(counts)
	for i, key := range keys[min(1, len(keys)):] {
		if before := keys[i]; before.ID == key.ID {
			return fmt.Errorf("--db: RPC URLs are sealed under two keys with the name %s: %s with the fingerprint %s, and %s with the fingerprint %s: add one of the keys to the key file under another name, and run reseal",
				key.ID, relayers(counts.Keys[before]), before.Fingerprint, relayers(counts.Keys[key]), key.Fingerprint)
		}
	}
	return nil
}
