package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/sealed"
	"github.com/go-relayer/relayer/store/transfer"
)

func newCheckCommand() *cobra.Command {
	db := database{"--db", defaultDatabase}
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
			total, counts, err := check(command.Context(), db, keys)
			if err == nil {
				command.Printf("no damage found in %s\n%s", relayers(total), sealText(counts))
			}
			return err
		},
	}
	command.Flags().StringVar(&db.name, "db", db.name, "database `file` that no server has open, or a postgres:// URL")
	keys.addFlags(command)
	return command
}

func check(ctx context.Context, db database, keys sealing) (total int, counts sealed.Counts, err error) {
	used, err := keys.keys()
	if err != nil {
		return 0, counts, err
	}
	opened, err := db.open(ctx)
	if err != nil {
		return 0, counts, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	err = opened.(transfer.Checker).Check(ctx)
	if err == nil {
		err = checkRelayers(ctx, opened, used, keys.options())
	}
	if err != nil {
		return 0, counts, fmt.Errorf("%s: %w", db.flag, err)
	}
	if counts, err = countSealed(ctx, opened, used); err != nil {
		return 0, counts, err
	}
	all, err := opened.List(ctx, relayer.StoreQuery{})
	return all.Total, counts, err
}

// checkRelayers compares the relayers with what lists select by, and with their RPC URLs.
func checkRelayers(ctx context.Context, db relayer.Store, keys sealed.Keys, options []sealed.Option) error {
	store, err := sealed.New(db, keys, options...)
	if err != nil {
		return err
	}
	manager, err := relayer.New(store)
	if err != nil {
		return err
	}
	damaged := 0
	for _, problem := range manager.Check(ctx) {
		damaged++
		err = cmp.Or(err, problem)
	}
	if damaged > 1 {
		err = fmt.Errorf("%w (the first of %s)", err, relayers(damaged))
	}
	return err
}
