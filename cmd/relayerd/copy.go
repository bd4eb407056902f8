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
	*cobra.Command
	from, to   database
	ofPostgres string // does the same for PostgreSQL, if both must be files
	run        func(ctx context.Context, c *verifiedCopy) (result string, err error)
}

func newCopyCommands(apiKey string) (commands []*cobra.Command) {
	t := target{apiKey: apiKey}
	backUp := func(ctx context.Context, c *verifiedCopy) (string, error) {
		if t.server != "" {
			downloaded, remove, err := t.download(ctx, c.to.name)
			if err != nil {
				return "", err
			}
			defer remove()
			c.from = downloaded
		}
		return copyFile(ctx, c)
	}
	for _, c := range []*verifiedCopy{
		{&cobra.Command{Use: "backup", Example: "--server https://registry.internal --to backup.db",
			Short: "Copy a database file, or that of a running server, to a new file", Long: `Backup checks a database file, copies it to a new file and checks the copy. The new
file appears only when it is complete and synced. An existing file is not replaced. With
--server it copies the file of a running server. Its token needs the role backup.`,
		}, database{"--db", defaultDatabase}, database{flag: "--to"}, "pg_dump", backUp},
		{&cobra.Command{Use: "restore", Example: "--from backup.db --db relayers.db",
			Short: "Create a database file from a backup", Long: `Restore checks a backup, copies it to a new database file and checks the copy. The
new file appears only when it is complete and synced. It does not replace a database.`,
		}, database{flag: "--from"}, database{"--db", defaultDatabase}, "pg_restore", copyFile},
		{&cobra.Command{Use: "compact", Example: "--db relayers.db",
			Short: "Shrink a database file to the space that its relayers need", Long: `Compact rewrites a database file without its unused pages. Order, revisions and ETags
stay the same. It checks the file, and compares the new one with its relayers before it
replaces it. The directory needs free space for the new file.`,
		}, database{"--db", defaultDatabase}, database{}, "VACUUM FULL", compact},
		{&cobra.Command{Use: "copy", Example: "--from relayers.db --to postgres://registry@db.internal/registry?sslmode=verify-full",
			Short: "Copy all relayers from one database to another", Long: `Copy adds all relayers of one database to another, with their order and revisions, and
compares both at the end. Run it again to resume an interrupted copy. Stop the servers
of both databases first. Sealed RPC URLs are copied as they are.`,
		}, database{flag: "--from"}, database{flag: "--to"}, "", addAll},
	} {
		commands = append(commands, c.complete())
	}
	t.addFlags(commands[0])
	commands[0].MarkFlagsMutuallyExclusive("db", "server")
	return commands
}

// complete adds the flags of the databases, which are required unless they have a default.
func (c *verifiedCopy) complete() *cobra.Command {
	c.Example = "  relayerd " + c.Use + " " + c.Example
	databases := []*database{&c.from, &c.to}
	if c.to.flag == "" {
		databases = databases[:1]
	}
	for _, d := range databases {
		flag := strings.TrimPrefix(d.flag, "--")
		c.Flags().StringVar(&d.name, flag, d.name, "database `file` that no server has open; copy also takes a postgres:// URL")
		if d.name == "" {
			_ = c.MarkFlagRequired(flag)
		}
	}
	c.RunE = func(command *cobra.Command, _ []string) error {
		for _, d := range databases {
			if err := d.checkDurable(c.ofPostgres); err != nil {
				return err
			}
		}
		result, err := c.run(command.Context(), c)
		if err == nil {
			command.Println(result)
		}
		return err
	}
	return c.Command
}

// copyFile copies a database file to a new one.
func copyFile(ctx context.Context, c *verifiedCopy) (string, error) {
	store, err := c.from.open(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = store.Close() }() // nothing was written
	source := store.(*bolt.Store)
	if err := source.Check(ctx); err != nil {
		return "", fmt.Errorf("%s: %w", c.from.flag, err)
	}
	if err := source.Backup(ctx, c.to.name); err != nil {
		return "", fileError(c.to.flag, err, newFileHint)
	}
	return copied(ctx, source)
}

func copied(ctx context.Context, source relayer.Store) (string, error) {
	all, err := source.List(ctx, relayer.StoreQuery{})
	return "copied " + relayers(all.Total), err
}

func compact(ctx context.Context, c *verifiedCopy) (string, error) {
	before, after, err := bolt.Compact(ctx, c.from.name)
	return fmt.Sprintf("compacted from %d to %d bytes", before, after), fileError(c.from.flag, err, newFileHint)
}

// addAll adds the relayers that an earlier run has not copied, verifies all, and logs its progress.
func addAll(ctx context.Context, c *verifiedCopy) (result string, err error) {
	source, err := c.from.open(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = source.Close() }() // nothing was written
	destination, err := c.to.forCommand(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, destination.Close()) }()
	if err := transfer.Copy(ctx, destination, source, transfer.WithProgress(progress(c.ErrOrStderr()))); err != nil {
		return "", err
	}
	return copied(ctx, source)
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
