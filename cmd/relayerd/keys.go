package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/sealed"
)

// keyFlags are the flags of the commands of a key file.
type keyFlags struct {
	path, id string
	db       database
	target   target
	apiKey   string
}

func newKeysCommand(apiKey string) *cobra.Command {
	k := &keyFlags{db: database{flag: "--db"}, apiKey: apiKey}
	command := &cobra.Command{
		Use:   "keys",
		Short: "Manage the file of the keys that seal RPC URLs",
		Long: `A key file is text, with named keys. The primary key seals; every key opens what it has
sealed. To rotate: keys add, wait until the log of every server has the line "all RPC URLs
are under the primary key" with the new key, keys remove. Several servers of one database
need the new key before it is primary: docs/security.md describes it.`,
	}
	add := &cobra.Command{
		Use:     "add",
		Example: "  relayerd keys add --keys relayer.keys --id 2026-07",
		Short:   "Make a key of the file the primary key, or add a random one; the first creates the file",
		RunE:    k.add,
	}
	list := &cobra.Command{
		Use:     "list",
		Example: "  relayerd keys list --keys relayer.keys",
		Short:   "List the names and fingerprints of the keys, the primary key first",
		RunE:    k.list,
	}
	remove := &cobra.Command{
		Use:     "remove",
		Example: "  relayerd keys remove --keys relayer.keys --id 2026-01 --db backup.db",
		Short:   "Remove a key under which a database has no RPC URLs",
		Long: `Remove removes a key, unless it is primary or RPC URLs of the database are under it. With
--server it looks at a backup of a running server, as relayerd backup does. Backups under
the key cannot be read without it: keep a copy as long as they exist.`,
		RunE: k.remove,
	}
	for _, each := range []*cobra.Command{add, list, remove} {
		command.AddCommand(each)
		each.Flags().StringVar(&k.path, "keys", "", "key `file`")
		require(each, "keys")
		if each != list {
			each.Flags().StringVar(&k.id, "id", "", "`name` of the key, such as 2026-07")
			require(each, "id")
		}
	}
	remove.Flags().StringVar(&k.db.name, "db", "", "database `file` that no server has open, or a postgres:// URL")
	k.target.addFlags(remove)
	remove.MarkFlagsOneRequired("db", "server")
	remove.MarkFlagsMutuallyExclusive("db", "server")
	return command
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

func (k *keyFlags) add(command *cobra.Command, _ []string) error {
	if err := checkFile("--keys", k.path); err != nil {
		return err
	}
	done := "made primary the key"
	if !k.isSecondary() {
		done = "added the primary key"
		if err := keyring.AddKey(k.path, k.id); err != nil {
			return fmt.Errorf("--keys: %w", err)
		}
	}
	if err := keyring.UseKey(k.path, k.id); err != nil {
		return fmt.Errorf("--keys: %w", err)
	}
	command.Printf("%s %s\n", done, k.id)
	return nil
}

// isSecondary reports whether the file has the key, and another one is primary.
func (k *keyFlags) isSecondary() bool {
	ring, err := keyring.Load(k.path)
	return err == nil && slices.ContainsFunc(ring.Keys()[1:], func(key sealed.Key) bool { return key.ID == k.id })
}

func (k *keyFlags) list(command *cobra.Command, _ []string) error {
	ring, err := readKeys(k.path)
	if err != nil {
		return err
	}
	role := " primary"
	for _, key := range ring.Keys() {
		command.Printf("%v%s\n", key, role)
		role = ""
	}
	return nil
}

func (k *keyFlags) remove(command *cobra.Command, _ []string) error {
	count, err := k.countUnder(command.Context())
	switch {
	case errors.Is(err, bolt.ErrLocked):
		return fmt.Errorf("%w, or name it with --server", err)
	case err != nil:
		return err
	case count > 0:
		return fmt.Errorf("key %s is in use by %s: start a server with another primary key, which seals them under it", k.id, relayers(count))
	}
	if err := keyring.RemoveKey(k.path, k.id); err != nil {
		return fmt.Errorf("--keys: %w (relayerd keys list shows the keys)", err)
	}
	command.Printf("removed key %s\n", k.id)
	return nil
}

// countUnder returns the number of relayers of the database, or of the server, whose RPC URLs are
// under the key.
func (k *keyFlags) countUnder(ctx context.Context) (count int, err error) {
	ring, err := readKeys(k.path)
	if err != nil {
		return 0, err
	}
	db := k.db
	if k.target.server != "" {
		path, remove, err := k.target.download(ctx, k.apiKey, k.path)
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
	sealing, err := sealed.New(store, noKeys{})
	if err != nil {
		return 0, err
	}
	counts, err := sealing.Count(ctx)
	if errors.Is(err, relayer.ErrCorrupt) { // a damaged relayer may be under the key
		return 0, fmt.Errorf("%w: run relayerd check first", err)
	}
	for _, key := range ring.Keys() {
		for used, number := range counts.Keys {
			if key.ID == k.id && key.Fingerprint == used.Fingerprint {
				count += number
			}
		}
	}
	return count, err
}
