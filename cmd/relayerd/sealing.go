package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// keys returns the keys of the file, or [noKeys].
func (s *sealing) keys() (sealed.Keys, error) {
	if s.keysFile == "" {
		return noKeys{}, nil
	}
	return readKeys(s.keysFile)
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

// noKeys are the keys of a database without --keys: only KeyOf works.
type noKeys struct{ keyring.Keyring }

var errNoKeys = fmt.Errorf("there are no keys: use a server that has them, with --keys: %w", errors.ErrUnsupported)

func (noKeys) Seal(context.Context, []byte, []byte) ([]byte, error) { return nil, errNoKeys }

func (noKeys) Open(context.Context, []byte, []byte) ([]byte, error) { return nil, errNoKeys }

// keysFile is a [sealed.Keys] with the current keys of a file.
type keysFile struct {
	current  atomic.Pointer[keyring.Keyring]
	db       atomic.Pointer[relayer.Store] // whose RPC URLs the keys open; nil until it is open
	reloaded chan struct{}                 // receives after a reload
}

func (f *keysFile) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	return f.current.Load().Seal(ctx, plaintext, associatedData)
}

func (f *keysFile) Open(ctx context.Context, text, associatedData []byte) ([]byte, error) {
	return f.current.Load().Open(ctx, text, associatedData)
}

func (f *keysFile) Keys() []sealed.Key { return f.current.Load().Keys() }

func (f *keysFile) KeyOf(text []byte) (sealed.Key, error) { return f.current.Load().KeyOf(text) }

// openKeys returns nil without --keys. A file is rejected if one of its keys has the name of
// another key of the database.
func (s *server) openKeys(ctx context.Context) (*keysFile, error) {
	if s.keysFile == "" {
		return nil, nil
	}
	file := &keysFile{reloaded: make(chan struct{}, 1)}
	return file, s.reloading(ctx, "--keys", func(ctx context.Context) error {
		ring, err := readKeys(s.keysFile)
		db := file.db.Load()
		if err == nil && db != nil {
			_, err = countSealed(ctx, *db, ring)
		}
		if err != nil {
			return err
		}
		file.current.Store(&ring)
		if db == nil {
			return nil
		}
		s.logger.Info("keys read", "keys", len(ring.Keys()), "primary", ring.Keys()[0].ID, "fingerprint", ring.Keys()[0].Fingerprint)
		select {
		case file.reloaded <- struct{}{}:
		default: // the last reload is still waiting for the resealer
		}
		return nil
	}, s.keysFile)
}

// sealedStore returns the database with the keys: a [sealed.Store], unless nothing is sealed. It logs
// how the RPC URLs are stored, and returns an error if a key has the name of another key of the
// database.
func (s *server) sealedStore(ctx context.Context) (relayer.Store, error) {
	var used sealed.Keys = noKeys{}
	if s.keys != nil {
		used = s.keys
		s.keys.db.Store(new(relayer.Store(s.store)))
	}
	counts, err := countSealed(ctx, s.store, used)
	if err != nil {
		return nil, err
	}
	sealedCount := 0
	for _, count := range counts.Keys {
		sealedCount += count
	}
	switch {
	case s.keys == nil && sealedCount > 0: // new RPC URLs would be stored in clear
		s.logger.Warn("the database has sealed RPC URLs, and --keys is not set: RPC URLs can be neither read nor changed")
	case s.keys == nil && !s.sealedOnly:
		return s.store, nil
	case sealedCount > 0 && counts.Clear == 0 && !s.sealedOnly && !s.unseal:
		s.logger.Info("all RPC URLs are sealed: --require-sealed refuses those that somebody stores in clear", "sealed", sealedCount)
	case sealedCount+counts.Clear > 0:
		s.logger.Info("RPC URLs are stored", "sealed", sealedCount, "clear", counts.Clear)
	}
	if s.sealedOnly && counts.Clear > 0 {
		if err := s.logDamage(ctx); err != nil {
			return nil, err
		}
	}
	return sealed.New(s.store, used, s.sealing.options()...)
}

// logDamage logs the relayers whose RPC URLs are in clear, and other damage.
func (s *server) logDamage(ctx context.Context) error {
	store, err := sealed.New(s.store, noKeys{}, sealed.Only())
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
		s.logger.Error("a relayer is damaged", "relayer_id", id, "error", err.Error())
	}
	return nil
}

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

func relayers(count int) string {
	if count == 1 {
		return "1 relayer"
	}
	return fmt.Sprintf("%d relayers", count)
}

const (
	// resealInterval is the time between two relayers that a server seals again: the writes
	// of clients come first.
	resealInterval = 10 * time.Millisecond

	// The delays before a server tries again what it could not seal.
	firstRetry   = time.Second
	longestRetry = 5 * time.Minute
)

// resealer seals in the background what is not under the primary key.
type resealer struct {
	store   *sealed.Store
	keys    *keysFile
	unseals bool // stores in clear instead
	logger  *slog.Logger
}

// run seals everything once, again after each reload of the keys, and after a failure with
// exponential backoff.
func (r resealer) run(ctx context.Context) {
	for delay := firstRetry; ; {
		primary := r.keys.Keys()[0].ID // a reload may change it before the line is logged
		count, err := r.reseal(ctx)
		var retry <-chan time.Time
		switch {
		case ctx.Err() != nil:
			return
		case len(r.keys.reloaded) > 0: // begins again
		case err != nil:
			r.logger.Warn("not all RPC URLs are under the primary key", "error", err.Error(), "retry_in", delay)
			retry, delay = time.After(delay), min(2*delay, longestRetry)
		case r.unseals:
			r.logger.Info("all RPC URLs are in clear", "stored", count)
		default: // the operator waits for the line of each server, even if nothing was left to seal
			r.logger.Info("all RPC URLs are under the primary key", "stored", count, "primary", primary)
		}
		select {
		case <-r.keys.reloaded:
			delay = firstRetry
		case <-retry:
		case <-ctx.Done():
		}
	}
}

// reseal returns the number of relayers that were stored. An error of one relayer does not end
// it. A reload of the keys does.
func (r resealer) reseal(ctx context.Context) (count int, first error) {
	failed := 0
	for id, err := range r.store.Reseal(ctx) {
		switch {
		case err == nil:
			count++
		case id == "":
			return count, err
		default:
			failed++
			first = cmp.Or(first, err)
		}
		select {
		case <-time.After(resealInterval):
		case <-ctx.Done():
		}
		if len(r.keys.reloaded) > 0 || ctx.Err() != nil {
			return count, ctx.Err()
		}
	}
	if failed > 0 {
		return count, fmt.Errorf("stored the RPC URLs of %s, but not those of %s: the first error is: %w", relayers(count), relayers(failed), first)
	}
	return count, nil
}
