package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/sealed"
	"github.com/go-relayer/relayer/store/transfer"
)

// lockOnce makes a command fail at once if a server has the file open.
func lockOnce() bolt.Option { return bolt.WithLockTimeout(0) }

func newCheckCommand() *cobra.Command {
	var database string
	var keys sealing
	command := &cobra.Command{
		Use:     "check",
		Example: "  relayerd check --db relayers.db",
		Short:   "Check a database for damage",
		Long: `Check reads a whole database and reports damage: pages, checksums and counts that
contradict each other, and relayers by whose fields a list would not find them. If RPC
URLs are sealed, it counts them by key, which needs no keys. With --keys it also opens
them. It changes no relayer.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkDurable("--db", database); err != nil {
				return err
			}
			total, counts, err := check(command.Context(), database, keys)
			if err != nil {
				return err
			}
			command.Printf("no damage found in %s\n%s", relayers(total), sealText(counts))
			return nil
		},
	}
	command.Flags().StringVar(&database, "db", defaultDatabase, "database `file` that no server has open, or a postgres:// URL")
	keys.addCheckFlags(command)
	return command
}

func check(ctx context.Context, database string, keys sealing) (total int, counts sealed.Counts, err error) {
	used, err := keys.loadOrNone()
	if err != nil {
		return 0, counts, err
	}
	db, closeStore, err := openExisting(ctx, "--db", database, lockOnce())
	if err != nil {
		return 0, counts, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	if err := db.(transfer.Checker).Check(ctx); err != nil {
		return 0, counts, fmt.Errorf("--db: %w", err)
	}
	store, err := sealed.New(db, used, keys.options()...)
	if err != nil {
		return 0, counts, err
	}
	if err := checkRelayers(ctx, store); err != nil {
		return 0, counts, fmt.Errorf("--db: %w", err)
	}
	if counts, err = countSealed(ctx, db, used); err != nil {
		return 0, counts, err
	}
	if err := checkKeyNames(counts); err != nil {
		return 0, counts, err
	}
	all, err := db.List(ctx, relayer.StoreQuery{})
	return all.Total, counts, err
}

// checkRelayers compares the relayers with what lists select by, and with their RPC URLs.
func checkRelayers(ctx context.Context, store relayer.Store) error {
	manager, err := relayer.New(store)
	if err != nil {
		return err
	}
	damaged := 0
	var first error
	for _, err := range manager.Check(ctx) {
		damaged++
		first = cmp.Or(first, err)
	}
	if damaged > 1 {
		return fmt.Errorf("%w (the first of %s)", first, relayers(damaged))
	}
	return first
}
