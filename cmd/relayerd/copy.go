package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/transfer"
)

// verifiedCopy holds the flags of a command that copies a database.
type verifiedCopy struct {
	fromFlag, from, toFlag, to string

	// ofPostgres does for PostgreSQL what the command does, which writes a new file. If it is
	// empty, the command copies between any databases, and resumes an earlier copy.
	ofPostgres string
}

func newBackupCommand() *cobra.Command {
	return verifiedCopy{"db", defaultDatabase, "to", "", "pg_dump"}.command("backup", "--db relayers.db --to backup.db", "Copy a database file to a new file",
		`Backup checks a database file, copies it to a new file and checks the copy. The new
file appears only when it is complete and synced. An existing file is not replaced.`)
}

func newRestoreCommand() *cobra.Command {
	return verifiedCopy{"from", "", "db", defaultDatabase, "pg_restore"}.command("restore", "--from backup.db --db relayers.db", "Create a database file from a backup",
		`Restore checks a backup, copies it to a new database file and checks the copy. The
new file appears only when it is complete and synced. It does not replace a database.`)
}

func newCopyCommand() *cobra.Command {
	return verifiedCopy{fromFlag: "from", toFlag: "to"}.command("copy", "--from relayers.db --to postgres://registry@db.internal/registry?sslmode=verify-full",
		"Copy all relayers from one database to another", `Copy adds all relayers of one database to another, with their order and revisions, and
compares both at the end. Run it again to resume an interrupted copy. Stop the servers
of both databases first. Sealed RPC URLs are copied as they are.`)
}

func newCompactCommand() *cobra.Command {
	return verifiedCopy{"db", defaultDatabase, "", "", "VACUUM FULL"}.command("compact", "--db relayers.db", "Shrink a database file to the space that its relayers need",
		`Compact rewrites a database file without its unused pages. Order, revisions and ETags
stay the same. It checks the file, and compares the new one with its relayers before it
replaces it. The directory needs free space for the new file.`)
}

func (c verifiedCopy) command(name, example, short, long string) *cobra.Command {
	command := &cobra.Command{Use: name, Example: "  relayerd " + name + " " + example, Short: short, Long: long}
	usage := "database `file` that no server has open"
	if c.ofPostgres == "" {
		usage += ", or a postgres:// URL"
	}
	command.Flags().StringVar(&c.from, c.fromFlag, c.from, usage)
	if c.toFlag != "" {
		command.Flags().StringVar(&c.to, c.toFlag, c.to, usage+"; created if missing")
	}
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.DefValue == "" {
			require(command, flag.Name)
		}
	})
	command.RunE = func(command *cobra.Command, _ []string) error {
		result, err := c.run(command.Context(), "--"+c.fromFlag, "--"+c.toFlag, command.ErrOrStderr())
		if err == nil {
			command.Println(result)
		}
		return err
	}
	return command
}

// run returns what to print. The lock of the source is held until the end.
func (c verifiedCopy) run(ctx context.Context, fromFlag, toFlag string, stderr io.Writer) (result string, err error) {
	switch {
	case c.toFlag == "": // compact
		err = cmp.Or(checkDatabaseFile(fromFlag, c.from, c.ofPostgres), checkExists(fromFlag, c.from))
	case c.ofPostgres != "":
		err = cmp.Or(checkDatabaseFile(fromFlag, c.from, c.ofPostgres), checkDatabaseFile(toFlag, c.to, c.ofPostgres))
	default:
		err = cmp.Or(checkDurable(toFlag, c.to), checkSource(fromFlag, c.from, toFlag, c.to))
	}
	if err != nil {
		return "", err
	}
	if c.toFlag == "" {
		before, after, err := bolt.Compact(ctx, c.from)
		return fmt.Sprintf("compacted from %d to %d bytes", before, after), fileError(fromFlag, c.from, err)
	}
	source, closeSource, err := openExisting(ctx, fromFlag, c.from, lockOnce())
	if err != nil {
		return "", err
	}
	defer func() { _ = closeSource() }() // nothing was written
	if c.ofPostgres == "" {
		err = addAll(ctx, source, toFlag, c.to, slog.New(slog.NewTextHandler(stderr, nil)))
	} else if err = source.(transfer.Checker).Check(ctx); err != nil {
		err = fmt.Errorf("%s: %w", fromFlag, err)
	} else {
		err = backUpTo(ctx, source.(*bolt.Store), toFlag, c.to)
	}
	all, listErr := source.List(ctx, relayer.StoreQuery{})
	return "copied " + relayers(all.Total), cmp.Or(err, listErr)
}

// backUpTo writes a new file. If a server has opened a file at the path, the error says so.
func backUpTo(ctx context.Context, source *bolt.Store, flag, path string) error {
	err := source.Backup(ctx, path)
	if errors.Is(err, fs.ErrExist) {
		existing, openErr := openExistingFile(ctx, flag, path, lockOnce())
		if errors.Is(openErr, bolt.ErrLocked) {
			return openErr
		}
		if openErr == nil {
			_ = existing.Close() // nothing was written
		}
		err = fmt.Errorf("%s exists: move it to another name first", path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// addAll adds the relayers that an earlier run has not copied, verifies all, and logs its progress.
func addAll(ctx context.Context, source relayer.Store, flag, to string, logger *slog.Logger) (err error) {
	destination, closeDestination, err := openStore(ctx, flag, to, everything, lockOnce())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDestination()) }()
	var loggedAt time.Time
	return copyError(transfer.Copy(ctx, destination, source, transfer.WithProgress(func(stage string, done, total int) {
		if done == 0 || done == total || time.Since(loggedAt) >= time.Second {
			loggedAt = time.Now()
			logger.Info(stage, "done", done, "total", total)
		}
	})))
}

// copyError adds advice.
func copyError(err error) error {
	switch {
	case errors.Is(err, transfer.ErrDiffers):
		return fmt.Errorf("%w (if everything was copied before, do not copy again)", err)
	case errors.Is(err, relayer.ErrCorrupt): // a retry does not help, even if it matches ErrUnavailable too
		return err
	case errors.Is(err, relayer.ErrUnavailable), errors.Is(err, relayer.ErrOutcomeUnknown), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w (run the same command again to resume)", err)
	}
	return err
}
