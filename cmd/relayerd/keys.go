package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/bolt"
)

// sealing holds the flags of the keys that seal RPC URLs.
type sealing struct {
	keysFile string
	unseal   bool
}

func (s *sealing) addKeysFlag(command *cobra.Command) {
	command.Flags().StringVar(&s.keysFile, "keys", "", "`file` of the keys that seal RPC URLs in the database")
}

func (s *sealing) addFlags(command *cobra.Command) {
	s.addKeysFlag(command)
	command.Flags().BoolVar(&s.unseal, "unseal", false, "store RPC URLs in clear: this turns sealing off")
	annotate(command, "unseal", needs, "keys")
}

// load returns the keys, or nil without --keys.
func (s *sealing) load(logger *slog.Logger) (*keysFile, error) {
	if s.keysFile == "" {
		return nil, nil
	}
	return openKeysFile(s.keysFile, logger)
}

// options returns the options of a Manager on the store with the keys, which may be nil.
func (s *sealing) options(ctx context.Context, keys *keysFile, store relayer.Store, logger *slog.Logger) ([]relayer.Option, error) {
	switch {
	case keys == nil:
		return withoutKeys(ctx, store, logger)
	case s.unseal:
		return []relayer.Option{relayer.WithUnsealing(keys)}, nil
	}
	return []relayer.Option{relayer.WithSealer(keys)}, nil
}

// withoutKeys returns the options of a Manager that has no keys. If the store has sealed
// RPC URLs, new ones are rejected: they would be stored in clear.
func withoutKeys(ctx context.Context, store relayer.Store, logger *slog.Logger) ([]relayer.Option, error) {
	isSealed, err := hasSealed(ctx, store)
	if !isSealed || err != nil {
		return nil, err
	}
	logger.Warn("the database has sealed RPC URLs, and --keys is not set: RPC URLs can be neither read nor changed")
	return []relayer.Option{relayer.WithSealer(keyring.Keyring{})}, nil
}

// hasSealed reports whether a store has a sealed part. It skips damaged records, which
// must not prevent the start of the server. It reads from the last record to the first: if
// another server deletes records meanwhile, the later ones move to lower offsets, which are
// read afterwards.
func hasSealed(ctx context.Context, store relayer.Store) (bool, error) {
	_, end, err := store.List(ctx, relayer.StoreQuery{})
	// The records of a page with a damaged one are read one by one.
	for limit := sealedPage; end > 0 && err == nil; {
		var records []relayer.Record
		offset := max(0, end-limit)
		records, _, err = store.List(ctx, relayer.StoreQuery{Offset: offset, Limit: end - offset})
		if errors.Is(err, relayer.ErrCorrupt) {
			err = nil
			if limit > 1 {
				limit = 1
				continue
			}
		}
		if slices.ContainsFunc(records, isSealed) {
			return true, nil
		}
		if end = offset; end%sealedPage == 0 {
			limit = sealedPage
		}
	}
	if err != nil {
		return false, fmt.Errorf("--db: %w", err)
	}
	return false, nil
}

// sealedPage is the number of records that hasSealed reads at a time.
const sealedPage = 500

func isSealed(rec relayer.Record) bool {
	_, err := relayer.OpenRecord(context.Background(), nil, rec)
	return errors.Is(err, relayer.ErrSealed)
}

// keysFile is a [relayer.KeyedSealer] with the keys of a file.
type keysFile struct {
	path    string
	logger  *slog.Logger
	current atomic.Pointer[keyring.Keyring]
}

func openKeysFile(path string, logger *slog.Logger) (*keysFile, error) {
	if err := checkFile("--keys", path); err != nil {
		return nil, err
	}
	file := &keysFile{path: path, logger: logger}
	return file, file.load()
}

// load reads the file. If it is invalid, the earlier keys stay in use.
func (f *keysFile) load() error {
	ring, err := keyring.Load(f.path)
	if err != nil {
		return inputError("--keys", f.path, "create it with relayerd keys add", err)
	}
	f.current.Store(&ring)
	return nil
}

// reload is load for a running server.
func (f *keysFile) reload() {
	if err := f.load(); err != nil {
		f.logger.Error("keys not reloaded: the earlier keys stay in use", "error", err.Error())
		return
	}
	f.logger.Info("keys reloaded", "keys", len(f.current.Load().KeyIDs()), "primary", f.PrimaryKeyID())
}

func (f *keysFile) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	return f.current.Load().Seal(ctx, plaintext, associatedData)
}

func (f *keysFile) Open(ctx context.Context, sealed, associatedData []byte) ([]byte, error) {
	return f.current.Load().Open(ctx, sealed, associatedData)
}

func (f *keysFile) PrimaryKeyID() string { return f.current.Load().PrimaryKeyID() }

func (f *keysFile) KeyID(sealed []byte) (string, error) { return keyring.KeyID(sealed) }

func newKeysCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "keys",
		Short: "Manage the file of the keys that seal RPC URLs",
		Long: `A key file has named keys. The primary key seals; every key opens what it has sealed.
To rotate: keys add, SIGHUP, keys use, SIGHUP, wait until check shows no RPC URLs under the
old key, keys remove. Several servers of one database need the same file: copy it to all
of them before each SIGHUP.`,
	}
	add := &cobra.Command{Use: "add", Short: "Add a new random key; the first one creates the file and is primary"}
	use := &cobra.Command{
		Use:   "use",
		Short: "Make a key the primary key",
		Long: `Use makes a key the primary key. Before one server seals with it, every server must
have it: see relayerd keys --help.`,
	}
	addKey := func(k *keyFlags) error { return k.change(keyring.AddKey) }
	useKey := func(k *keyFlags) error {
		if _, err := k.existing(); err != nil {
			return err
		}
		return k.change(keyring.UseKey)
	}
	command.AddCommand(changing(add, addKey, "added key %s\n"), newKeysListCommand(), changing(use, useKey, "key %s is primary\n"), newKeysRemoveCommand())
	return command
}

// keyFlags are the flags of a command that changes a key file.
type keyFlags struct{ path, id string }

func (k *keyFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&k.path, "keys", "", "key `file`")
	command.Flags().StringVar(&k.id, "id", "", "`name` of the key, such as 2026-07")
	require(command, "keys", "id")
}

func (k *keyFlags) change(modify func(path, id string) error) error {
	if err := checkFile("--keys", k.path); err != nil {
		return err
	}
	if err := modify(k.path, k.id); err != nil {
		return fmt.Errorf("--keys: %w", err)
	}
	return nil
}

// existing returns an error if the file has no such key.
func (k *keyFlags) existing() (*keysFile, error) {
	keys, err := openKeysFile(k.path, nil)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(keys.current.Load().KeyIDs(), k.id) {
		return nil, fmt.Errorf("--keys: %s has no key %s (relayerd keys list --keys %[1]s shows the keys)", k.path, k.id)
	}
	return keys, nil
}

// changing makes a command change the key file, and print what it has done.
func changing(command *cobra.Command, modify func(*keyFlags) error, done string) *cobra.Command {
	var k keyFlags
	command.Example = "  relayerd keys " + command.Use + " --keys relayer.keys --id 2026-07"
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := modify(&k); err != nil {
			return err
		}
		command.Printf(done, k.id)
		return nil
	}
	k.add(command)
	return command
}

func newKeysListCommand() *cobra.Command {
	var s sealing
	command := &cobra.Command{
		Use:     "list",
		Example: "  relayerd keys list --keys relayer.keys",
		Short:   "List the names of the keys",
		RunE: func(command *cobra.Command, _ []string) error {
			keys, err := openKeysFile(s.keysFile, nil)
			if err != nil {
				return err
			}
			ring := keys.current.Load()
			for _, id := range ring.KeyIDs() {
				if id == ring.PrimaryKeyID() {
					id += " primary"
				}
				command.Println(id)
			}
			return nil
		},
	}
	s.addKeysFlag(command)
	require(command, "keys")
	return command
}

func newKeysRemoveCommand() *cobra.Command {
	var k keyFlags
	var database string
	command := &cobra.Command{
		Use:     "remove",
		Example: "  relayerd keys remove --keys relayer.keys --id 2026-01 --db backup.db",
		Short:   "Remove a key under which the database has no RPC URLs",
		Long: `Remove removes a key, unless it is primary or RPC URLs of the database are under it.
Backups under the key cannot be read without it: keep a copy as long as they exist.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkDurable("--db", database); err != nil {
				return err
			}
			keys, err := k.existing()
			if err != nil {
				return err
			}
			if keys.PrimaryKeyID() == k.id {
				return fmt.Errorf("key %s is the primary key: make another one primary with relayerd keys use, and seal the RPC URLs under it", k.id)
			}
			count, err := countUnder(command.Context(), database, k.id)
			if errors.Is(err, bolt.ErrLocked) {
				return fmt.Errorf("%w, or name a backup that it has written since the RPC URLs are under the primary key", err)
			}
			if err != nil {
				return err
			}
			if count > 0 {
				return fmt.Errorf("key %s is in use by %s of --db: seal the RPC URLs under the primary key with relayerd reseal", k.id, relayers(count))
			}
			if err := k.change(keyring.RemoveKey); err != nil {
				return err
			}
			command.Printf("removed key %s\n", k.id)
			return nil
		},
	}
	k.add(command)
	command.Flags().StringVar(&database, "db", "", "database `file` that no server has open, its backup, or a postgres:// URL")
	require(command, "db")
	return command
}

// countUnder returns the number of relayers of a database whose RPC URLs are under a key.
func countUnder(ctx context.Context, database, id string) (int, error) {
	store, closeStore, err := openExisting(ctx, "--db", database, lockOnce())
	if err != nil {
		return 0, err
	}
	counts, err := countSealed(ctx, store)
	return counts.Keys[id], errors.Join(err, closeStore())
}

// countSealed needs no keys.
func countSealed(ctx context.Context, store relayer.Store) (relayer.SealCounts, error) {
	manager, err := relayer.New(store, relayer.WithSealer(keyring.Keyring{}))
	if err != nil {
		return relayer.SealCounts{}, err
	}
	counts, err := manager.CountSealed(ctx)
	if err != nil {
		return relayer.SealCounts{}, fmt.Errorf("--db: %w", err)
	}
	return counts, nil
}
