package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
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
--server it copies the file of a running server. Set API_KEY to a token with the role backup.`,
		func(command *cobra.Command) error {
			if t.server != "" {
				downloaded, remove, err := t.download(command.Context(), apiKey, c.to.name)
				if err != nil {
					return err
				}
				defer remove()
				c.from = downloaded
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
	c := &verifiedCopy{from: database{flag: "--from"}, to: database{flag: "--to"}}
	return c.command("copy", "--from relayers.db --to postgres://registry@db.internal/registry?sslmode=verify-full", "Copy all relayers from one database to another",
		`Copy adds all relayers of one database to another, with their order and revisions, and
compares both at the end. Run it again to resume an interrupted copy. Stop the servers
of both databases first. Sealed RPC URLs are copied as they are.`, c.addAll)
}

func newCompactCommand() *cobra.Command {
	c := &verifiedCopy{from: database{"--db", defaultDatabase}, ofPostgres: "VACUUM FULL"}
	return c.command("compact", "--db relayers.db", "Shrink a database file to the space that its relayers need",
		`Compact rewrites a database file without its unused pages. Order, revisions and ETags
stay the same. It checks the file, and compares the new one with its relayers before it
replaces it. The directory needs free space for the new file.`,
		func(command *cobra.Command) error {
			before, after, err := bolt.Compact(command.Context(), c.from.name)
			if err == nil {
				command.Printf("compacted from %d to %d bytes\n", before, after)
			}
			return fileError(c.from.flag, err, newFileHint)
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
	if err := source.Backup(command.Context(), c.to.name); err != nil {
		return fileError(c.to.flag, err, newFileHint)
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
		return err
	}
	return printCopied(command, source)
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

const (
	// backupPath responds with a copy of the database file.
	backupPath = "/backup"

	// backupTimeout bounds the time to wait for other copies, and to write and send one.
	backupTimeout = time.Hour
)

// download returns the handler of [backupPath], for tokens with the role backup. For all others, and
// with another store, the path does not exist. One backup is written and sent at a time: each needs
// as much memory and space as the database.
func (s *server) download(api http.Handler) http.Handler {
	file, isFile := s.store.(*bolt.Store)
	slot := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, granted := s.tokens.grantFor(r)
		if !isFile || !granted.mayBackUp() {
			api.ServeHTTP(w, r)
			return
		}
		control, end := http.NewResponseController(w), time.Now().Add(backupTimeout)
		_, _ = control.SetReadDeadline(end), control.SetWriteDeadline(end)
		select {
		case slot <- struct{}{}:
			defer func() { <-slot }()
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // a response without a body would look like an empty backup
		}
		backup, err := s.temporaryBackup(r.Context(), file)
		if err == nil {
			err = sendFile(w, r, backup)
		} else {
			http.Error(w, "the backup failed: see the log of the server", http.StatusInternalServerError)
		}
		if err != nil {
			s.logger.Error("backup failed", "principal", actor.ID, "error", err.Error())
			return
		}
		s.logger.Info("backup sent", "principal", actor.ID, "address", r.RemoteAddr)
	})
}

// sendFile sends a file and closes it. It ignores Range: the next request would get a part of another
// backup.
func sendFile(w http.ResponseWriter, r *http.Request, file *os.File) error {
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	if r.Method == http.MethodHead {
		return nil
	}
	_, err = io.Copy(w, file)
	return err
}

// temporaryBackup writes a backup next to the database. The file has no name any more.
func (s *server) temporaryBackup(ctx context.Context, from *bolt.Store) (*os.File, error) {
	// A start of the server removes files with this suffix of package bolt.
	path := fmt.Sprint(s.database, ".tmp", time.Now().UnixNano())
	if err := from.Backup(ctx, path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	return file, errors.Join(err, os.Remove(path))
}

// download writes a backup of the server to a new file next to path. It returns the file and a
// function that removes it.
func (t *target) download(ctx context.Context, apiKey, path string) (downloaded database, remove func(), err error) {
	if _, err := t.open(apiKey); err != nil { // checks the flags
		return downloaded, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(t.server, "/")+backupPath, nil)
	if err != nil {
		return downloaded, nil, errors.New("--server must be the URL of a server")
	}
	request.Header.Set("Authorization", "Bearer "+apiKey)
	// A redirect would send the token to another server: RoundTrip follows none.
	response, err := t.transport.RoundTrip(request)
	if err != nil {
		return downloaded, nil, fmt.Errorf("--server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		advice := "see the log of the server"
		if response.StatusCode < http.StatusInternalServerError {
			advice = "the token in API_KEY needs the role backup, and the server a database file; use pg_dump for PostgreSQL"
		}
		return downloaded, nil, fmt.Errorf("--server: status %s: %s", response.Status, advice)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".download*")
	if err != nil {
		return downloaded, nil, err
	}
	remove = func() { _ = os.Remove(file.Name()) }
	_, err = io.Copy(file, response.Body)
	if err = errors.Join(err, file.Close()); err != nil {
		remove()
		return downloaded, nil, fmt.Errorf("--server: the backup is incomplete: %w", err)
	}
	return database{"--server", file.Name()}, remove, nil
}
