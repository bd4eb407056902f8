package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/sealed"
	"github.com/go-relayer/relayer/store/transfer"
)

const (
	defaultDatabase = "relayers.db"

	// inMemory names a store that is lost when the process ends.
	inMemory = "memory"

	filePathRule = "a path must not contain @, = or :"

	// historyChanges is how many changes of each relayer a file retains.
	historyChanges = 1000

	// defaultHistory is the default of --history.
	defaultHistory = 90 * 24 * time.Hour
)

// database is what a flag names: a file, the URL of a database in PostgreSQL, or memory.
type database struct{ flag, name string }

// openedStore is a [bolt.Store], a [postgres.Store] or a memoryStore.
type openedStore interface {
	relayer.Store
	Ready(context.Context) error
	Close() error
}

type memoryStore struct{ *memory.Store }

func (memoryStore) Ready(context.Context) error { return nil }
func (memoryStore) Close() error                { return nil }

// forServer opens a database, and creates a missing file or schema.
func (d database) forServer(ctx context.Context, history time.Duration, isHistorySet bool, logger *slog.Logger) (openedStore, error) {
	if d.name == inMemory {
		return memoryStore{memory.New()}, nil
	}
	options := []postgres.Option{postgres.WithLogger(logger)}
	if isHistorySet {
		options = append(options, postgres.WithHistory(-1, history))
	}
	return d.openWith(ctx, options, bolt.WithLogger(logger), bolt.WithHistory(historyChanges, history))
}

// forCommand is forServer for a command. No server may have the file open. It deletes no changes
// of the history of a file. Damage of the history is reported on standard error: it is no damage
// of a relayer.
func (d database) forCommand(ctx context.Context, options ...postgres.Option) (openedStore, error) {
	return d.openWith(ctx, options, bolt.WithLogger(warnings()), bolt.WithHistory(math.MaxInt, math.MaxInt64))
}

// warnings returns the logger of a command.
func warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// open is forCommand for an existing database.
func (d database) open(ctx context.Context) (openedStore, error) {
	if err := d.checkDurable(""); err != nil {
		return nil, err
	}
	if !isPostgres(d.name) {
		if _, err := os.Stat(d.name); err != nil {
			return nil, fileError(d.flag, err, newFileHint)
		}
	}
	return d.forCommand(ctx, postgres.WithoutSetup())
}

// openWith relies on the stores: none of their errors contains a password.
func (d database) openWith(ctx context.Context, ofServer []postgres.Option, ofFile ...bolt.Option) (openedStore, error) {
	if isPostgres(d.name) {
		store, err := postgres.Open(ctx, d.name, ofServer...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.flag, err)
		}
		return store, nil
	}
	file, err := bolt.Open(ctx, d.name, ofFile...)
	if err != nil {
		return nil, fileError(d.flag, err, newFileHint)
	}
	return file, nil
}

// check returns an error for what may be a malformed connection string, without it.
func (d database) check() error {
	if !isPostgres(d.name) && !isFilePath(d.name) {
		return fmt.Errorf("%s must be a file, or a URL that begins with postgres://: %s", d.flag, filePathRule)
	}
	return nil
}

// checkDurable checks a database that must outlive the process. If ofPostgres is not empty, it must
// be a file, and ofPostgres does the same for PostgreSQL.
func (d database) checkDurable(ofPostgres string) error {
	switch {
	case d.name == inMemory:
		return fmt.Errorf("%s must be a file or a postgres:// URL: memory stores nothing", d.flag)
	case ofPostgres != "" && isPostgres(d.name):
		return fmt.Errorf("%s must be a file: use %s for PostgreSQL", d.flag, ofPostgres)
	}
	return d.check()
}

func isPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

func newCheckCommand() *cobra.Command {
	db := database{"--db", defaultDatabase}
	var keys sealing
	command := &cobra.Command{Use: "check", Short: "Check a database for damage", Example: "  relayerd check --db relayers.db",
		Long: `Check reads a whole database and reports damage: pages, checksums and counts that
contradict each other, and relayers by whose fields a list would not find them. If RPC
URLs are sealed, it counts them by key, which needs no keys. With --keys it also opens
them. It changes no relayer.`,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			ctx := command.Context()
			ring, err := readKeys(keys.keysFile)
			if err != nil {
				return err
			}
			opened, err := db.open(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, opened.Close()) }()
			if err = opened.(transfer.Checker).Check(ctx); err == nil {
				err = checkRelayers(ctx, opened, ring, keys.options())
			}
			if err != nil {
				return fmt.Errorf("%s: %w", db.flag, err)
			}
			counts, err := countSealed(ctx, opened, ring)
			if err != nil {
				return err
			}
			all, err := opened.List(ctx, relayer.StoreQuery{})
			if err == nil {
				_, err = fmt.Fprintf(command.OutOrStdout(), "no damage found in %s\n%s", relayers(all.Total), sealText(counts))
			}
			return err
		},
	}
	command.Flags().StringVar(&db.name, "db", db.name, "database `file` that no server has open, or a postgres:// URL")
	keys.addFlags(command)
	return command
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
