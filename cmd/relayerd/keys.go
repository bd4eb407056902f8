package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer/keyring"
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
		Long: `The primary key of a key file seals; every key opens what it has sealed. To rotate: keys add,
wait until the log of every server has the line "all RPC URLs are under the primary key" with
the new key, keys remove. docs/security.md describes it.`,
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
		Long: `With --server it looks at a backup of a running server, as relayerd backup does. RPC URLs of
backups under the key are lost without it: keep a copy as long as the backups exist.`,
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
	ring, err = keyring.Load(path)
	return ring, fileError("--keys", err, "create it with relayerd keys add")
}

func (k *keyFlags) add(command *cobra.Command, _ []string) error {
	if err := checkFile("--keys", k.path); err != nil {
		return err
	}
	ring, err := keyring.Load(k.path)
	if err != nil || !slices.ContainsFunc(ring.Keys()[1:], func(key sealed.Key) bool { return key.ID == k.id }) {
		err = keyring.AddKey(k.path, k.id)
	}
	if err == nil {
		err = keyring.UseKey(k.path, k.id)
	}
	if err != nil {
		return fmt.Errorf("--keys: %w", err)
	}
	command.Printf("the primary key is %s\n", k.id)
	return nil
}

func (k *keyFlags) list(command *cobra.Command, _ []string) error {
	ring, err := readKeys(k.path)
	role := " primary"
	for _, key := range ring.Keys() {
		command.Printf("%v%s\n", key, role)
		role = ""
	}
	return err
}

func (k *keyFlags) remove(command *cobra.Command, _ []string) error {
	count, err := k.countUnder(command.Context())
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
		downloaded, remove, err := k.target.download(ctx, k.apiKey, k.path)
		if err != nil {
			return 0, err
		}
		defer remove()
		db = downloaded
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
	counts, err := sealing.Count(ctx) // a damaged relayer may be under the key
	for _, key := range ring.Keys() {
		for used, number := range counts.Keys {
			if key.ID == k.id && key.Fingerprint == used.Fingerprint {
				count += number
			}
		}
	}
	return count, err
}
