package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
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
			total, sealed, err := check(command.Context(), database, keys)
			if err != nil {
				return err
			}
			command.Printf("no damage found in %s\n%s", relayers(total), sealText(sealed))
			return nil
		},
	}
	command.Flags().StringVar(&database, "db", defaultDatabase, "database `file` that no server has open, or a postgres:// URL")
	keys.addCheckFlags(command)
	return command
}

func check(ctx context.Context, database string, keys sealing) (total int, sealed relayer.SealCounts, err error) {
	sealer, err := keys.sealer()
	if err != nil {
		return 0, sealed, err
	}
	store, closeStore, err := openExisting(ctx, "--db", database, lockOnce())
	if err != nil {
		return 0, sealed, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	if err := store.(transfer.Checker).Check(ctx); err != nil {
		return 0, sealed, fmt.Errorf("--db: %w", err)
	}
	var options []relayer.Option
	if keys.keysFile != "" {
		options = append(options, relayer.WithSealer(sealer))
	}
	if keys.sealedOnly {
		options = append(options, relayer.WithSealedOnly())
	}
	if err := checkRelayers(ctx, store, options); err != nil {
		return 0, sealed, fmt.Errorf("--db: %w", err)
	}
	if sealed, err = countSealed(ctx, store, sealer); err != nil {
		return 0, sealed, err
	}
	if err := checkKeyNames(sealed); err != nil {
		return 0, sealed, err
	}
	all, err := store.List(ctx, relayer.StoreQuery{})
	return all.Total, sealed, err
}

// checkRelayers compares the relayers with what lists select by, and with their RPC URLs.
func checkRelayers(ctx context.Context, store relayer.Store, options []relayer.Option) error {
	manager, err := relayer.New(store, options...)
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
