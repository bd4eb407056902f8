package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/transfer"
)

// verifiedCopy is a command that copies one database to another, and verifies the copy.
type verifiedCopy struct {
	*cobra.Command
	from, to   database // without to, the copy replaces from
	ofPostgres string   // does the same for PostgreSQL, if both must be files
	server     target   // of which backup copies the file
}

func newCopyCommands(apiKey string) (commands []*cobra.Command) {
	for _, c := range []*verifiedCopy{
		{Command: &cobra.Command{Use: "backup", Example: "--server https://registry.internal --to backup.db",
			Short: "Copy a database file, or that of a running server, to a new file",
			Long: `Backup checks a database file, copies it to a new file and checks the copy. The new
file appears only when it is complete and synced. An existing file is not replaced. With
--server it copies the file of a running server. Its token needs the role backup.`,
		}, from: database{"--db", defaultDatabase}, to: database{flag: "--to"}, ofPostgres: "pg_dump", server: target{apiKey: apiKey}},
		{Command: &cobra.Command{Use: "restore", Example: "--from backup.db --db relayers.db",
			Short: "Create a database file from a backup",
			Long: `Restore checks a backup, copies it to a new database file and checks the copy. The
new file appears only when it is complete and synced. It does not replace a database.`,
		}, from: database{flag: "--from"}, to: database{"--db", defaultDatabase}, ofPostgres: "psql"},
		{Command: &cobra.Command{Use: "compact", Example: "--db relayers.db",
			Short: "Shrink a database file to the space that its relayers need",
			Long: `Compact rewrites a database file without its unused pages. Order, revisions and ETags
stay the same. It checks the file, and compares the new one with its relayers before it
replaces it. The directory needs free space for the new file.`,
		}, from: database{"--db", defaultDatabase}, ofPostgres: "VACUUM FULL"},
		{Command: &cobra.Command{Use: "copy", Example: "--from relayers.db --to postgres://registry@db.internal/registry?sslmode=verify-full",
			Short: "Copy all relayers from one database to another",
			Long: `Copy adds all relayers of one database to another, with their order and revisions, and
compares both at the end. A million relayers take minutes. Run it again to resume an
interrupted copy. Stop the servers of both databases first. Sealed RPC URLs are copied as
they are.`,
		}, from: database{flag: "--from"}, to: database{flag: "--to"}},
	} {
		c.Example = "  relayerd " + c.Use + " " + c.Example
		for _, d := range []*database{&c.from, &c.to} {
			usage := "database `file` that no server has open"
			if c.ofPostgres == "" {
				usage += ", or a postgres:// URL"
			} else if d == &c.to {
				usage = "new database `file`"
			}
			if flag := strings.TrimPrefix(d.flag, "--"); flag != "" {
				c.Flags().StringVar(&d.name, flag, d.name, usage)
				if d.name == "" {
					_ = c.MarkFlagRequired(flag)
				}
			}
		}
		if c.Use == "backup" {
			c.server.addFlags(c.Command)
			c.MarkFlagsMutuallyExclusive("db", "server")
		}
		c.RunE = func(command *cobra.Command, _ []string) error { return c.run(command.Context()) }
		commands = append(commands, c.Command)
	}
	return commands
}

func (c *verifiedCopy) run(ctx context.Context) error {
	if err := cmp.Or(c.from.checkDurable(c.ofPostgres), c.to.checkDurable(c.ofPostgres)); err != nil {
		return err
	}
	if c.to.flag == "" {
		before, after, err := bolt.Compact(ctx, c.from.name, bolt.WithLogger(warnings()))
		if err == nil {
			c.Printf("compacted from %d to %d bytes\n", before, after)
		}
		return fileError(c.from.flag, err, newFileHint)
	}
	if c.server.server != "" {
		if _, err := os.Lstat(c.to.name); err == nil {
			return fileError(c.to.flag, fmt.Errorf("%s: %w", c.to.name, fs.ErrExist), "")
		}
		path, err := c.server.download(ctx, c.to.name)
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(path) }()
		c.from = database{"--server", path}
	}
	source, err := c.from.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // nothing was written
	if c.ofPostgres == "" {
		// It adds the relayers that an earlier run did not copy, and verifies all relayers.
		var destination openedStore
		if destination, err = c.to.forCommand(ctx); err == nil {
			err = errors.Join(transfer.Copy(ctx, destination, source), destination.Close())
		}
	} else if err = fileError(c.from.flag, source.(*bolt.Store).Check(ctx), newFileHint); err == nil {
		err = fileError(c.to.flag, source.(*bolt.Store).Backup(ctx, c.to.name), newFileHint)
	}
	all, listErr := source.List(ctx, relayer.StoreQuery{})
	if err = cmp.Or(err, listErr); err == nil {
		c.Printf("copied %s\n", relayers(all.Total))
	}
	return err
}
