package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/sealed"
)

// sealing holds the flags of the keys that seal RPC URLs.
type sealing struct {
	keysFile   string
	unseal     bool
	sealedOnly bool
}

func (s *sealing) addKeysFlag(command *cobra.Command) {
	command.Flags().StringVar(&s.keysFile, "keys", "", "`file` of the keys that seal RPC URLs")
}

func (s *sealing) addFlags(command *cobra.Command) {
	s.addCheckFlags(command)
	command.Flags().BoolVar(&s.unseal, "unseal", false, "store RPC URLs in clear: this turns sealing off")
	command.MarkFlagsMutuallyExclusive("unseal", "require-sealed")
}

func (s *sealing) addCheckFlags(command *cobra.Command) {
	s.addKeysFlag(command)
	command.Flags().BoolVar(&s.sealedOnly, "require-sealed", false, "treat RPC URLs that are stored in clear as damage")
}

// load returns the keys, or nil without --keys.
func (s *sealing) load(logger *slog.Logger) (*keysFile, error) {
	if s.keysFile == "" {
		return nil, nil
	}
	return openKeysFile(s.keysFile, logger)
}

// loadOrNone returns the keys, or noKeys without --keys.
func (s *sealing) loadOrNone() (sealed.Keys, error) {
	if s.keysFile == "" {
		return noKeys{}, nil
	}
	return openKeysFile(s.keysFile, nil)
}

// store returns a database with the keys, which may be nil: a [sealed.Store], unless nothing is
// sealed. It logs how the RPC URLs are stored, and returns an error if the keys are not those of
// the database.
func (s *sealing) store(ctx context.Context, db relayer.Store, keys *keysFile, logger *slog.Logger) (relayer.Store, error) {
	var used sealed.Keys = noKeys{}
	if keys != nil {
		used, keys.db = keys, db
	}
	counts, err := countSealed(ctx, db, used)
	if err != nil {
		return nil, err
	}
	s.logCounts(logger, counts)
	switch {
	case keys == nil && len(counts.Keys) > 0: // new RPC URLs would be stored in clear
		logger.Warn("the database has sealed RPC URLs, and --keys is not set: RPC URLs can be neither read nor changed")
	case keys == nil && !s.sealedOnly:
		return db, nil
	}
	if s.sealedOnly && counts.Clear > 0 {
		if err := logDamage(ctx, db, logger); err != nil {
			return nil, err
		}
	}
	return sealed.New(db, used, s.options()...)
}

func (s *sealing) options() (options []sealed.Option) {
	if s.unseal {
		options = append(options, sealed.Off())
	}
	if s.sealedOnly {
		options = append(options, sealed.Only())
	}
	return options
}

func (s *sealing) logCounts(logger *slog.Logger, counts sealed.Counts) {
	sealed := 0
	for _, count := range counts.Keys {
		sealed += count
	}
	switch {
	case sealed > 0 && counts.Clear == 0 && !s.sealedOnly && !s.unseal:
		logger.Info("all RPC URLs are sealed: --require-sealed refuses those that somebody stores in clear", "sealed", sealed, "clear", 0)
	case sealed+counts.Clear > 0:
		logger.Info("RPC URLs are stored", "sealed", sealed, "clear", counts.Clear)
	}
}

// logDamage logs the relayers whose RPC URLs are in clear, and other damage.
func logDamage(ctx context.Context, db relayer.Store, logger *slog.Logger) error {
	store, err := sealed.New(db, noKeys{}, sealed.Only())
	if err != nil {
		return err
	}
	manager, err := relayer.New(store)
	if err != nil {
		return err
	}
	for id, err := range manager.Check(ctx) {
		if !errors.Is(err, relayer.ErrCorrupt) {
			return fmt.Errorf("--db: %w", err)
		}
		logger.Error("a relayer is damaged", "relayer_id", id, "error", err.Error())
	}
	return nil
}

// noKeys are the keys of a database without --keys: only KeyOf works.
type noKeys struct{ keyring.Keyring }

var errNoKeys = fmt.Errorf("there are no keys: use a server that has them, with --keys: %w", errors.ErrUnsupported)

func (noKeys) Seal(context.Context, []byte, []byte) ([]byte, error) { return nil, errNoKeys }

func (noKeys) Open(context.Context, []byte, []byte) ([]byte, error) { return nil, errNoKeys }

// countSealed counts how the RPC URLs of a database are stored. It leaves out damaged
// relayers, which must not prevent the start of a server, and returns an error if one of the
// keys has the name of another key of the database.
func countSealed(ctx context.Context, db relayer.Store, keys sealed.Keys) (sealed.Counts, error) {
	store, err := sealed.New(db, keys)
	if err != nil {
		return sealed.Counts{}, err
	}
	counts, err := store.Count(ctx)
	switch {
	case errors.Is(err, relayer.ErrSealed):
		return sealed.Counts{}, fmt.Errorf("--keys: %w", err)
	case err != nil && !errors.Is(err, relayer.ErrCorrupt):
		return sealed.Counts{}, fmt.Errorf("--db: %w", err)
	}
	return counts, nil
}

// keysFile is a [sealed.Keys] with the keys of a file.
type keysFile struct {
	path    string
	logger  *slog.Logger
	db      relayer.Store // whose RPC URLs the keys open
	current atomic.Pointer[keyring.Keyring]
}

func openKeysFile(path string, logger *slog.Logger) (*keysFile, error) {
	if err := checkFile("--keys", path); err != nil {
		return nil, err
	}
	file := &keysFile{path: path, logger: logger}
	ring, err := file.read()
	file.current.Store(&ring)
	return file, err
}

func (f *keysFile) read() (keyring.Keyring, error) {
	ring, err := keyring.Load(f.path)
	if err != nil {
		err = inputError("--keys", f.path, "create it with relayerd keys add", err)
	}
	return ring, err
}

// reload reads the file for a running server. If it is invalid, or has not the keys of the
// database, the earlier keys stay in use.
func (f *keysFile) reload(ctx context.Context) {
	ring, err := f.read()
	if err == nil {
		_, err = countSealed(ctx, f.db, ring)
	}
	if err != nil {
		f.logger.Error("keys not reloaded: the earlier keys stay in use", "error", err.Error())
		return
	}
	f.current.Store(&ring)
	f.logger.Info("keys reloaded", "keys", len(ring.Keys()), "primary", f.primary().ID, "fingerprint", f.primary().Fingerprint)
}

func (f *keysFile) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	return f.current.Load().Seal(ctx, plaintext, associatedData)
}

func (f *keysFile) Open(ctx context.Context, text, associatedData []byte) ([]byte, error) {
	return f.current.Load().Open(ctx, text, associatedData)
}

func (f *keysFile) Keys() []sealed.Key { return f.current.Load().Keys() }

func (f *keysFile) KeyOf(text []byte) (sealed.Key, error) { return f.current.Load().KeyOf(text) }

func (f *keysFile) primary() sealed.Key { return f.Keys()[0] }

// named returns the key with the ID.
func (f *keysFile) named(id string) (key sealed.Key, isFound bool) {
	for _, key := range f.Keys() {
		if key.ID == id {
			return key, true
		}
	}
	return sealed.Key{}, false
}

func newKeysCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "keys",
		Short: "Manage the file of the keys that seal RPC URLs",
		Long: `A key file has named keys. The primary key seals; every key opens what it has sealed.
To rotate: keys add, SIGHUP, keys use, SIGHUP, wait until the log of every server has the
line "all RPC URLs are under the primary key" with the new key, keys remove. Several
servers of one database need the same file: copy it to all of them before each SIGHUP.`,
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
		if _, _, err := k.existing(); err != nil {
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

// existing returns the keys of the file and the named one.
func (k *keyFlags) existing() (*keysFile, sealed.Key, error) {
	keys, err := openKeysFile(k.path, nil)
	if err != nil {
		return nil, sealed.Key{}, err
	}
	key, isFound := keys.named(k.id)
	if !isFound {
		return nil, sealed.Key{}, fmt.Errorf("--keys: %s has no key %s (relayerd keys list --keys %[1]s shows the keys)", k.path, k.id)
	}
	return keys, key, nil
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
		Short:   "List the names and fingerprints of the keys, the primary key first",
		RunE: func(command *cobra.Command, _ []string) error {
			keys, err := openKeysFile(s.keysFile, nil)
			if err != nil {
				return err
			}
			for _, key := range keys.Keys() {
				role := ""
				if key == keys.primary() {
					role = " primary"
				}
				command.Printf("%v%s\n", key, role)
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
			keys, key, err := k.existing()
			if err != nil {
				return err
			}
			if key == keys.primary() {
				return fmt.Errorf("key %s is the primary key: make another one primary with relayerd keys use, and seal the RPC URLs under it", k.id)
			}
			count, err := countUnder(command.Context(), database, key)
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
func countUnder(ctx context.Context, database string, key sealed.Key) (count int, err error) {
	store, closeStore, err := openExisting(ctx, "--db", database, lockOnce())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	counts, err := countSealed(ctx, store, noKeys{})
	for sealedUnder, number := range counts.Keys {
		if sealedUnder.Fingerprint == key.Fingerprint {
			count += number
		}
	}
	return count, err
}
