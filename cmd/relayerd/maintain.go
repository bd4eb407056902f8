package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

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

func newBackupCommand() *cobra.Command {
	var database, destination string
	command := &cobra.Command{
		Use:     "backup",
		Example: "  relayerd backup --db relayers.db --to backup.db",
		Short:   "Copy a database file to a new file",
		Long: `Backup checks a database file, copies it to a new file and checks the copy. The new
file appears only when it is complete and synced. An existing file is not replaced.`,
		RunE: func(command *cobra.Command, _ []string) error {
			return copyAndPrint(command, fileCopy{"--db", database, "--to", destination, "pg_dump"})
		},
	}
	command.Flags().StringVar(&database, "db", defaultDatabase, "database `file` that no server has open")
	command.Flags().StringVar(&destination, "to", "", "`file` to create")
	require(command, "to")
	return command
}

func newRestoreCommand() *cobra.Command {
	var source, database string
	command := &cobra.Command{
		Use:     "restore",
		Example: "  relayerd restore --from backup.db --db relayers.db",
		Short:   "Create a database file from a backup",
		Long: `Restore checks a backup, copies it to a new database file and checks the copy. The
new file appears only when it is complete and synced. An existing database is not
replaced: move it to another name first.`,
		RunE: func(command *cobra.Command, _ []string) error {
			return copyAndPrint(command, fileCopy{"--from", source, "--db", database, "pg_restore"})
		},
	}
	command.Flags().StringVar(&source, "from", "", "backup `file`")
	command.Flags().StringVar(&database, "db", defaultDatabase, "database `file` to create")
	require(command, "from")
	return command
}

func copyAndPrint(command *cobra.Command, c fileCopy) error {
	total, err := c.run(command.Context())
	if err != nil {
		return err
	}
	command.Printf("copied %s to %s\n", relayers(total), c.destination)
	return nil
}

func newCompactCommand() *cobra.Command {
	var database string
	command := &cobra.Command{
		Use:     "compact",
		Example: "  relayerd compact --db relayers.db",
		Short:   "Shrink a database file to the space that its relayers need",
		Long: `Compact rewrites a database file without its unused pages. Order, revisions and ETags
stay the same. It checks the file, and compares the new one with its relayers before it
replaces it. The directory needs free space for the new file.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := cmp.Or(checkDatabaseFile("--db", database, "VACUUM FULL"), checkExists("--db", database)); err != nil {
				return err
			}
			before, after, err := bolt.Compact(command.Context(), database)
			if err != nil {
				return fileError("--db", database, err)
			}
			command.Printf("compacted from %d to %d bytes\n", before, after)
			return nil
		},
	}
	command.Flags().StringVar(&database, "db", defaultDatabase, "database `file` that no server has open")
	return command
}

func newCopyCommand() *cobra.Command {
	var source, destination string
	command := &cobra.Command{
		Use:     "copy",
		Example: "  relayerd copy --from relayers.db --to postgres://registry@db.internal/registry?sslmode=verify-full",
		Short:   "Copy all relayers from one database to another",
		Long: `Copy adds all relayers of one database to another, with their order and revisions, and
compares both at the end. Run it again to resume an interrupted copy. Stop the servers
of both databases first. Sealed RPC URLs are copied as they are.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkDurable("--to", destination); err != nil {
				return err
			}
			if err := checkSource("--from", source, "--to", destination); err != nil {
				return err
			}
			return copyDatabase(command.Context(), source, destination, command.ErrOrStderr())
		},
	}
	const databases = "database `file` that no server has open, or a postgres:// URL"
	command.Flags().StringVar(&source, "from", "", databases)
	command.Flags().StringVar(&destination, "to", "", databases+"; created if missing")
	require(command, "from", "to")
	return command
}

// copyDatabase shows the progress on stderr.
func copyDatabase(ctx context.Context, from, to string, stderr io.Writer) (err error) {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	source, closeSource, err := openExisting(ctx, "--from", from, lockOnce())
	if err != nil {
		return err
	}
	// The source is only read, so that an error of the close loses nothing.
	defer func() { _ = closeSource() }()
	destination, closeDestination, err := openStore(ctx, "--to", to, everything, lockOnce())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDestination()) }()
	return copyAll(ctx, destination, source, newProgress(stderr, logger))
}
