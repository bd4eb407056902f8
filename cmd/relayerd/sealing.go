package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
		select {
		case file.reloaded <- struct{}{}:
		default: // the last reload is still waiting
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
	switch isSealed := len(counts.Keys) > 0; {
	case s.keys == nil && !isSealed && !s.sealedOnly:
		return s.store, nil
	case s.keys == nil && isSealed: // new RPC URLs would be stored in clear
		s.logger.Warn("the database has sealed RPC URLs, and --keys is not set: RPC URLs can be neither read nor changed")
	case s.sealedOnly && counts.Clear > 0:
		s.logger.Warn("RPC URLs are stored in clear, which is damage: relayerd check --require-sealed names a relayer", "relayers", counts.Clear)
	}
	return sealed.New(s.store, used, s.sealing.options()...)
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

// A server tries again what it could not seal, with exponential backoff: each attempt reads all
// relayers.
const (
	resealRetry        = 10 * time.Second
	longestResealRetry = 5 * time.Minute
)

// reseal stores all RPC URLs as the keys and flags require: at the start, after each reload of the
// keys, and again after a failure. An operator waits for its line, even if nothing was left to do.
func (s *server) reseal(ctx context.Context, store *sealed.Store) {
	delay := resealRetry
	for retry := (<-chan time.Time)(nil); ; {
		select {
		case <-s.keys.reloaded:
			delay = resealRetry
		case <-retry:
		case <-ctx.Done():
			return
		}
		primary, stored, failed, first := s.keys.Keys()[0].ID, 0, 0, error(nil)
		for _, err := range store.Reseal(ctx) {
			if err == nil {
				stored++
			} else {
				failed, first = failed+1, cmp.Or(first, err)
			}
		}
		retry = nil
		switch {
		case ctx.Err() != nil || len(s.keys.reloaded) > 0: // it ends, or begins again
		case failed > 0:
			retry = time.After(delay)
			s.logger.Warn("not all RPC URLs are under the primary key", "stored", stored, "failed", failed, "error", first.Error(), "retry_in", delay)
			delay = min(2*delay, longestResealRetry)
		case s.unseal:
			s.logger.Info("all RPC URLs are in clear", "stored", stored)
		default:
			s.logger.Info("all RPC URLs are under the primary key", "stored", stored, "primary", primary)
		}
	}
}
