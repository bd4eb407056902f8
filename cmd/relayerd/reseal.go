package main

import (
	"bytes"
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

	"github.com/go-relayer/relayer"
)

func newResealCommand() *cobra.Command {
	var s sealing
	var database string
	command := &cobra.Command{
		Use:   "reseal",
		Short: "Seal the RPC URLs of a database under the primary key",
		Long: `Reseal seals all RPC URLs that are in clear or under another key than the primary key.
With --unseal it stores them in clear. Run it again to resume it. Servers may use a
PostgreSQL database meanwhile: give them the keys first.

The space that a database file frees still contains the earlier form. Run compact after
sealing for the first time.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkDurable("--db", database); err != nil {
				return err
			}
			count, err := resealDatabase(command.Context(), database, s)
			if err != nil {
				return err
			}
			command.Printf("stored the RPC URLs of %s\n", relayers(count))
			return nil
		},
	}
	command.Flags().StringVar(&database, "db", defaultDatabase, "database `file` that no server has open, or a postgres:// URL")
	s.addFlags(command)
	require(command, "keys")
	return command
}

func resealDatabase(ctx context.Context, database string, s sealing) (count int, err error) {
	logger := slog.New(slog.DiscardHandler)
	keys, err := s.load(logger)
	if err != nil {
		return 0, err
	}
	store, closeStore, err := openExisting(ctx, "--db", database, lockOnce())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	options, err := s.options(ctx, keys, store, logger)
	if err != nil {
		return 0, err
	}
	manager, err := relayer.New(store, options...)
	if err != nil {
		return 0, err
	}
	return resealAll(manager.Reseal(ctx), func() {})
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

// startResealing seals in the background what is not under the primary key, and again
// after each signal, which reloads the keys. The returned function stops it.
func startResealing(ctx context.Context, manager *relayer.Manager, keys *keysFile, signals <-chan os.Signal) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			signaled := resealUntil(ctx, manager, keys, signals)
			if !signaled {
				select {
				case <-ctx.Done():
				case <-signals:
				}
			}
			if ctx.Err() == nil {
				keys.reload()
			}
		}
	}()
	return func() { cancel(); <-done }
}

// resealUntil seals everything, or reports that a signal came before the end.
func resealUntil(ctx context.Context, manager *relayer.Manager, keys *keysFile, signals <-chan os.Signal) (signaled bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticker := time.NewTicker(resealInterval)
	defer ticker.Stop()
	count, err := resealAll(manager.Reseal(ctx), func() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
		case <-signals:
			signaled = true
			cancel()
		}
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		keys.logger.Error("not all RPC URLs are under the primary key", "error", err.Error())
	case count > 0:
		keys.logger.Info("all RPC URLs are under the primary key", "stored", count, "primary", keys.PrimaryKeyID())
	}
	return signaled
}

// relayers returns a number of relayers in words.
func relayers(count int) string {
	if count == 1 {
		return "1 relayer"
	}
	return fmt.Sprintf("%d relayers", count)
}

// sealText describes how the RPC URLs of a database are stored, or returns "" if all of
// them are in clear.
func sealText(counts relayer.SealCounts) string {
	if len(counts.Keys) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "RPC URLs of %s are in clear\n", relayers(counts.Clear))
	for _, id := range slices.Sorted(maps.Keys(counts.Keys)) {
		name := "key " + id
		if id == "" {
			name = "a key without a name"
		}
		fmt.Fprintf(&text, "RPC URLs of %s are under %s\n", relayers(counts.Keys[id]), name)
	}
	return text.String()
}

// resealedSource is the source of a copy that seals RPC URLs under the primary key.
func (s *sealing) resealedSource(source, destination relayer.Store) (relayer.Store, error) {
	keys, err := s.load(nil)
	return resealing{source, destination, keys}, err
}

type resealing struct {
	relayer.Store
	destination relayer.Store
	keys        *keysFile
}

// Check implements [relayer.CheckStore].
func (s resealing) Check(ctx context.Context) error {
	return s.Store.(relayer.CheckStore).Check(ctx)
}

func (s resealing) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	records, total, err := s.Store.List(ctx, offset, limit)
	for i := 0; i < len(records) && err == nil; i++ {
		records[i], err = s.reseal(ctx, records[i])
	}
	return records, total, err
}

// reseal returns the sealed part of the destination if that has the same URLs: sealing is
// randomized, and the copy compares bytes.
func (s resealing) reseal(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	opened, err := relayer.OpenRecord(ctx, s.keys, rec)
	if err != nil {
		return relayer.Record{}, err
	}
	copied, err := s.destination.Get(ctx, rec.ID)
	if errors.Is(err, relayer.ErrNotFound) {
		return relayer.ResealRecord(ctx, s.keys, rec)
	}
	if err != nil {
		return relayer.Record{}, err
	}
	if s.isCopied(ctx, copied, opened) {
		rec.Private = copied.Private
		return rec, nil
	}
	return relayer.ResealRecord(ctx, s.keys, rec)
}

// isCopied reports whether a record has the private part of opened, under the primary key.
func (s resealing) isCopied(ctx context.Context, copied, opened relayer.Record) bool {
	have, err := relayer.OpenRecord(ctx, s.keys, copied)
	if err != nil || !bytes.Equal(have.Private, opened.Private) {
		return false
	}
	resealed, err := relayer.ResealRecord(ctx, s.keys, copied)
	return err == nil && bytes.Equal(resealed.Private, copied.Private)
}
