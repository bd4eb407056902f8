package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/sealed"
)

// sealing holds the flags of the keys that seal RPC URLs.
type sealing struct {
	keysFile   string
	unseal     bool
	sealedOnly bool
}

func (s *sealing) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&s.keysFile, "keys", "", "`file` of the keys that seal RPC URLs")
	command.Flags().BoolVar(&s.sealedOnly, "require-sealed", false, "treat RPC URLs that are stored in clear as damage")
}

// options returns the options of the [sealed.Store].
func (s *sealing) options() (options []sealed.Option) {
	if s.unseal {
		options = append(options, sealed.Off())
	}
	if s.sealedOnly {
		options = append(options, sealed.Only())
	}
	return options
}

// keysFile is a [sealed.Keys] with the current keys of a file.
type keysFile struct {
	*atomic.Pointer[keyring.Keyring]
}

func (f keysFile) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	return f.Load().Seal(ctx, plaintext, associatedData)
}

func (f keysFile) Open(ctx context.Context, text, associatedData []byte) ([]byte, error) {
	return f.Load().Open(ctx, text, associatedData)
}

func (f keysFile) Keys() []sealed.Key { return f.Load().Keys() }

func (f keysFile) KeyOf(text []byte) (sealed.Key, error) { return f.Load().KeyOf(text) }

// sealedStore returns the database, as a [sealed.Store] if --keys is set or something is sealed.
// It warns if the flags do not fit. Keys with the name of a key that they lack are rejected.
func (s *server) sealedStore(ctx context.Context) (relayer.Store, error) {
	var none keyring.Keyring
	if s.keysFile == "" {
		counts, err := countSealed(ctx, s.store, none)
		if err != nil || len(counts.Keys) == 0 {
			return s.store, err
		}
		// New RPC URLs would be stored in clear.
		s.logger.Warn("the database has sealed RPC URLs, and --keys is not set: RPC URLs can be neither read nor changed")
		return sealed.New(s.store, none)
	}
	var used keyring.Keyring // the keys in memory, which may be their only copy
	load := func(ctx context.Context) (ring keyring.Keyring, err error) {
		if ring, err = readKeys(s.keysFile); err != nil {
			return ring, err
		}
		counts, err := countSealed(ctx, s.store, ring)
		for key, count := range counts.Keys {
			isSame := func(other sealed.Key) bool { return other.Fingerprint == key.Fingerprint }
			if slices.ContainsFunc(used.Keys(), isSame) && !slices.ContainsFunc(ring.Keys(), isSame) {
				err = fmt.Errorf("--keys: the file lacks key %v, which seals RPC URLs of %s: put it back, or restart to give up these URLs", key, relayers(count))
			}
		}
		if err == nil {
			used = ring
		}
		if s.sealedOnly && counts.Clear > 0 {
			s.logger.Warn("RPC URLs are stored in clear, which is damage: relayerd check --require-sealed names a relayer", "relayers", counts.Clear)
		}
		return ring, err
	}
	var err error
	if s.keys.Pointer, err = reloading(ctx, s, "--keys", load, s.keysFile); err != nil {
		return nil, err
	}
	return sealed.New(s.store, s.keys, s.sealing.options()...)
}

// countSealed counts how the RPC URLs of a database are stored. It leaves out damaged relayers,
// which must not prevent the start of a server, and returns an error if the keys have the name of
// a key that they lack.
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

// sealText describes how the RPC URLs of a database are stored, or returns "" if all of
// them are in clear.
func sealText(counts sealed.Counts) string {
	if len(counts.Keys) == 0 {
		return ""
	}
	lines := make([]string, 0, len(counts.Keys))
	for key, count := range counts.Keys {
		name := "key " + printable(key.String())
		if key.ID == "" {
			name = "a key without a name"
		}
		lines = append(lines, fmt.Sprintf("RPC URLs of %s are under %s\n", relayers(count), name))
	}
	slices.Sort(lines)
	return fmt.Sprintf("RPC URLs of %s are in clear\n", relayers(counts.Clear)) + strings.Join(lines, "")
}

// resealRetry is the time after which a server tries again what it could not seal. Each attempt reads
// all relayers.
const resealRetry = 30 * time.Second

// reseal stores all RPC URLs as the keys and flags require: at the start, after each reload of the
// keys, and again after a failure. An operator waits for its line, even if nothing was left to do.
func (s *server) reseal(ctx context.Context, store *sealed.Store) {
	var used *keyring.Keyring
	var next time.Time // zero if nothing is left to do
	for isRunning := true; isRunning; isRunning = sleep(ctx, checkInterval) {
		if keys := s.keys.Load(); keys != used {
			used, next = keys, time.Now()
		}
		if next.IsZero() || time.Now().Before(next) {
			continue
		}
		primary, stored, failed, first := used.Keys()[0].ID, 0, 0, error(nil)
		for _, err := range store.Reseal(ctx) {
			if err == nil {
				stored++
			} else {
				failed, first = failed+1, cmp.Or(first, err)
			}
		}
		next = time.Time{}
		switch {
		case ctx.Err() != nil || s.keys.Load() != used: // it ends, or begins again
		case failed > 0:
			next = time.Now().Add(resealRetry)
			s.logger.Warn("not all RPC URLs are under the primary key", "stored", stored, "failed", failed, "error", first.Error(), "retry_in", resealRetry)
		case s.unseal:
			s.logger.Info("all RPC URLs are in clear", "stored", stored)
		default:
			s.logger.Info("all RPC URLs are under the primary key", "stored", stored, "primary", primary)
		}
	}
}

// keyFlags are the flags of the commands of a key file.
type keyFlags struct {
	path, id string
	db       database
	target   target
}

func newKeysCommand(apiKey string) *cobra.Command {
	k := &keyFlags{db: database{flag: "--db"}, target: target{apiKey: apiKey}}
	command := &cobra.Command{Use: "keys", Short: "Manage the file of the keys that seal RPC URLs",
		Long: `The primary key of a key file seals; every key opens what it has sealed. To rotate: keys add,
wait until the log of every server has the line "all RPC URLs are under the primary key" with
the new key, keys remove. docs/security.md describes it.`}
	list := &cobra.Command{Use: "list", Short: "List the names and fingerprints of the keys, the primary key first",
		Example: "  relayerd keys list --keys relayer.keys", RunE: k.list}
	add := &cobra.Command{Use: "add", Short: "Make a key of the file the primary key, or add a random one; the first creates the file",
		Example: "  relayerd keys add --keys relayer.keys --id 2026-07", RunE: k.add}
	remove := &cobra.Command{Use: "remove", Short: "Remove a key under which a database has no RPC URLs",
		Example: "  relayerd keys remove --keys relayer.keys --id 2026-01 --db backup.db",
		Long: `With --server it looks at a backup of a running server, as relayerd backup does. RPC URLs of
backups under the key are lost without it: keep a copy as long as the backups exist.`, RunE: k.remove}
	for _, each := range []*cobra.Command{list, add, remove} {
		command.AddCommand(each)
		each.Flags().StringVar(&k.path, "keys", "", "key `file`")
		_ = each.MarkFlagRequired("keys")
		if each != list {
			each.Flags().StringVar(&k.id, "id", "", "`name` of the key, such as 2026-07")
			_ = each.MarkFlagRequired("id")
		}
	}
	remove.Flags().StringVar(&k.db.name, "db", "", "database `file` that no server has open, or a postgres:// URL")
	k.target.addFlags(remove)
	remove.MarkFlagsOneRequired("db", "server")
	remove.MarkFlagsMutuallyExclusive("db", "server")
	return command
}

// readKeys reads a key file. Without a path there are no keys.
func readKeys(path string) (ring keyring.Keyring, err error) {
	if err = checkFile("--keys", path); err != nil || path == "" {
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
		_, printErr := fmt.Fprintf(command.OutOrStdout(), "%v%s\n", key, role)
		err, role = cmp.Or(err, printErr), ""
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
	if k.target.server != "" {
		path, err := k.target.download(ctx, k.path)
		if err != nil {
			return 0, err
		}
		defer func() { _ = os.Remove(path) }()
		k.db = database{"--server", path}
	}
	store, err := k.db.open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	sealing, err := sealed.New(store, keyring.Keyring{})
	if err != nil {
		return 0, err
	}
	counts, err := sealing.Count(ctx) // a damaged relayer may be under the key
	i := slices.IndexFunc(ring.Keys(), func(key sealed.Key) bool { return key.ID == k.id })
	for used, number := range counts.Keys {
		if i >= 0 && used.Fingerprint == ring.Keys()[i].Fingerprint {
			count += number
		}
	}
	return count, err
}
