package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/bolt"
)

func newKeysCommand(apiKey string) *cobra.Command {
	command := &cobra.Command{
		Use:   "keys",
		Short: "Manage the file of the keys that seal RPC URLs",
		Long: `A key file is text, with named keys. The primary key seals; every key opens what it has
sealed. To rotate: keys add, wait until the log of every server has the line "all RPC URLs
are under the primary key" with the new key, keys remove. Several servers of one database
need the new key before it is primary: docs/security.md describes it.`,
	}
	command.AddCommand(newKeysAddCommand(), newKeysListCommand(), newKeysRemoveCommand(apiKey))
	return command
}

// keyFlags are the flags of a command that changes a key file.
type keyFlags struct{ path, id string }

func (k *keyFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&k.path, "keys", "", "key `file`")
	command.Flags().StringVar(&k.id, "id", "", "`name` of the key, such as 2026-07")
	require(command, "keys", "id")
}

// readKeys reads a key file.
func readKeys(path string) (ring keyring.Keyring, err error) {
	if err := checkFile("--keys", path); err != nil {
		return ring, err
	}
	if ring, err = keyring.Load(path); err != nil {
		err = inputError("--keys", path, "create it with relayerd keys add", err)
	}
	return ring, err
}

func newKeysAddCommand() *cobra.Command {
	var k keyFlags
	command := &cobra.Command{
		Use:     "add",
		Example: "  relayerd keys add --keys relayer.keys --id 2026-07",
		Short:   "Add a new random key and make it the primary key; the first one creates the file",
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkFile("--keys", k.path); err != nil {
				return err
			}
			err := keyring.AddKey(k.path, k.id)
			if err == nil {
				err = keyring.UseKey(k.path, k.id)
			}
			if err != nil {
				return fmt.Errorf("--keys: %w", err)
			}
			command.Printf("added the primary key %s\n", k.id)
			return nil
		},
	}
	k.add(command)
	return command
}

func newKeysListCommand() *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:     "list",
		Example: "  relayerd keys list --keys relayer.keys",
		Short:   "List the names and fingerprints of the keys, the primary key first",
		RunE: func(command *cobra.Command, _ []string) error {
			keys, err := readKeys(path)
			if err != nil {
				return err
			}
			role := " primary"
			for _, key := range keys.Keys() {
				command.Printf("%v%s\n", key, role)
				role = ""
			}
			return nil
		},
	}
	command.Flags().StringVar(&path, "keys", "", "key `file`")
	require(command, "keys")
	return command
}

func newKeysRemoveCommand(apiKey string) *cobra.Command {
	var k keyFlags
	var t target
	db := database{flag: "--db"}
	command := &cobra.Command{
		Use:     "remove",
		Example: "  relayerd keys remove --keys relayer.keys --id 2026-01 --db backup.db",
		Short:   "Remove a key under which a database has no RPC URLs",
		Long: `Remove removes a key, unless it is primary or RPC URLs of the database are under it. With
--server it looks at a backup of a running server, as relayerd backup does. Backups under
the key cannot be read without it: keep a copy as long as they exist.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := readKeys(k.path); err != nil {
				return err
			}
			count, err := k.countUnder(command.Context(), db, &t, apiKey)
			if errors.Is(err, bolt.ErrLocked) {
				return fmt.Errorf("%w, or name it with --server", err)
			}
			if err != nil {
				return err
			}
			if count > 0 {
				return fmt.Errorf("key %s is in use by %s: start a server with another primary key, which seals them under it", k.id, relayers(count))
			}
			if err := keyring.RemoveKey(k.path, k.id); err != nil {
				return fmt.Errorf("--keys: %w (relayerd keys list shows the keys)", err)
			}
			command.Printf("removed key %s\n", k.id)
			return nil
		},
	}
	k.add(command)
	command.Flags().StringVar(&db.name, "db", "", "database `file` that no server has open, or a postgres:// URL")
	t.addFlags(command)
	command.MarkFlagsOneRequired("db", "server")
	command.MarkFlagsMutuallyExclusive("db", "server")
	return command
}

// countUnder returns the number of relayers of a database, or of a server, whose RPC URLs are
// under the key.
func (k keyFlags) countUnder(ctx context.Context, db database, t *target, apiKey string) (count int, err error) {
	if t.server != "" {
		path, remove, err := t.download(ctx, apiKey, "")
		if err != nil {
			return 0, err
		}
		defer remove()
		db = database{"--server", path}
	}
	store, err := db.open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ring, err := keyring.Load(k.path)
	if err != nil {
		return 0, err
	}
	fingerprints := make(map[string]bool)
	for _, key := range ring.Keys() {
		fingerprints[key.Fingerprint] = key.ID == k.id
	}
	counts, err := countSealed(ctx, store, noKeys{})
	for key, number := range counts.Keys {
		if fingerprints[key.Fingerprint] {
			count += number
		}
	}
	return count, err
}
