package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/transfer"
)

// verifiedCopy is a command that copies one database to another, and verifies the copy.
type verifiedCopy struct {
	from, to   database
	ofPostgres string // does the same for PostgreSQL, if both must be files
}

func newBackupCommand(apiKey string) *cobra.Command {
	var t target
	c := &verifiedCopy{database{"--db", defaultDatabase}, database{flag: "--to"}, "pg_dump"}
	command := c.command("backup", "--server https://registry.internal --to backup.db", "Copy a database file, or that of a running server, to a new file",
		`Backup checks a database file, copies it to a new file and checks the copy. The new
file appears only when it is complete and synced. An existing file is not replaced. With
--server it copies the file of a running server, and needs a token with the role backup.`,
		func(command *cobra.Command) error {
			if t.server != "" {
				path, remove, err := t.download(command.Context(), apiKey, c.to.name)
				if err != nil {
					return err
				}
				defer remove()
				c.from = database{"--server", path}
			}
			return c.copyFile(command)
		})
	t.addFlags(command)
	command.MarkFlagsMutuallyExclusive("db", "server")
	return command
}

func newRestoreCommand() *cobra.Command {
	c := &verifiedCopy{database{flag: "--from"}, database{"--db", defaultDatabase}, "pg_restore"}
	return c.command("restore", "--from backup.db --db relayers.db", "Create a database file from a backup",
		`Restore checks a backup, copies it to a new database file and checks the copy. The
new file appears only when it is complete and synced. It does not replace a database.`, c.copyFile)
}

func newCopyCommand() *cobra.Command {
	c := &verifiedCopy{database{flag: "--from"}, database{flag: "--to"}, ""}
	return c.command("copy", "--from relayers.db --to postgres://registry@db.internal/registry?sslmode=verify-full", "Copy all relayers from one database to another",
		`Copy adds all relayers of one database to another, with their order and revisions, and
compares both at the end. Run it again to resume an interrupted copy. Stop the servers
of both databases first. Sealed RPC URLs are copied as they are.`, c.addAll)
}

func newCompactCommand() *cobra.Command {
	c := &verifiedCopy{database{"--db", defaultDatabase}, database{}, "VACUUM FULL"}
	return c.command("compact", "--db relayers.db", "Shrink a database file to the space that its relayers need",
		`Compact rewrites a database file without its unused pages. Order, revisions and ETags
stay the same. It checks the file, and compares the new one with its relayers before it
replaces it. The directory needs free space for the new file.`,
		func(command *cobra.Command) error {
			if err := c.from.checkExists(); err != nil {
				return err
			}
			before, after, err := bolt.Compact(command.Context(), c.from.name)
			if err == nil {
				command.Printf("compacted from %d to %d bytes\n", before, after)
			}
			return c.from.fileError(err)
		})
}

// command returns a command with the flags of the databases, which are required unless they have a
// default. It checks them and calls run.
func (c *verifiedCopy) command(name, example, short, long string, run func(*cobra.Command) error) *cobra.Command {
	command := &cobra.Command{Use: name, Example: "  relayerd " + name + " " + example, Short: short, Long: long}
	var databases []*database
	for _, d := range []*database{&c.from, &c.to} {
		if flag := strings.TrimPrefix(d.flag, "--"); flag != "" {
			databases = append(databases, d)
			command.Flags().StringVar(&d.name, flag, d.name, "database `file` that no server has open; copy also takes a postgres:// URL")
			if d.name == "" {
				require(command, flag)
			}
		}
	}
	command.RunE = func(command *cobra.Command, _ []string) error {
		for _, d := range databases {
			if err := d.checkDurable(c.ofPostgres); err != nil {
				return err
			}
		}
		return run(command)
	}
	return command
}

// copyFile copies a database file to a new one.
func (c *verifiedCopy) copyFile(command *cobra.Command) error {
	store, err := c.from.open(command.Context())
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // nothing was written
	source := store.(*bolt.Store)
	if err := source.Check(command.Context()); err != nil {
		return fmt.Errorf("%s: %w", c.from.flag, err)
	}
	if err := c.to.fileError(source.Backup(command.Context(), c.to.name)); err != nil {
		return err
	}
	return printCopied(command, source)
}

func printCopied(command *cobra.Command, source relayer.Store) error {
	all, err := source.List(command.Context(), relayer.StoreQuery{})
	if err == nil {
		command.Printf("copied %s\n", relayers(all.Total))
	}
	return err
}

// addAll adds the relayers that an earlier run has not copied, verifies all, and logs its progress.
func (c *verifiedCopy) addAll(command *cobra.Command) (err error) {
	ctx := command.Context()
	source, err := c.from.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // nothing was written
	destination, err := c.to.forCommand(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, destination.Close()) }()
	if err := transfer.Copy(ctx, destination, source, transfer.WithProgress(progress(command.ErrOrStderr()))); err != nil {
		return copyError(err)
	}
	return printCopied(command, source)
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

// progress logs the begin and the end of each stage, and a line each second.
func progress(stderr io.Writer) func(stage string, done, total int) {
	logger, loggedAt := slog.New(slog.NewTextHandler(stderr, nil)), time.Time{}
	return func(stage string, done, total int) {
		if done == 0 || done == total || time.Since(loggedAt) >= time.Second {
			loggedAt = time.Now()
			logger.Info(stage, "done", done, "total", total)
		}
	}
}
