// Package sealed encrypts the private part of records, the full RPC URLs of relayers, in a
// [relayer.Store] around a [relayer.Store]. See docs/security.md.
package sealed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
)

// Keys encrypt and authenticate texts under a primary key, and open what other keys have
// sealed. Package keyring has the keys of a file; docs/security.md says what those of a key
// management service need.
//
// All methods must be safe for concurrent use. Seal and Open must return when ctx is done, and
// must not change their arguments. Their errors must contain no secret, and can be matched in
// those of a [Store]. Later versions add no methods to it.
type Keys interface {
	// Seal encrypts plaintext under the primary key. The result authenticates plaintext and
	// associatedData, and need not contain associatedData. It may be any bytes.
	Seal(ctx context.Context, plaintext, associatedData []byte) (sealed []byte, err error)

	// Open decrypts a result of Seal. It returns an error if sealed or associatedData was
	// changed, and one that matches [errors.ErrUnsupported] if there are no keys.
	Open(ctx context.Context, sealed, associatedData []byte) (plaintext []byte, err error)

	// Keys returns the keys: first the primary key, which Seal uses, and then the keys that
	// only open. It may return other keys after a rotation.
	Keys() []Key

	// KeyOf returns the key of a result of Seal. It needs no key, and returns an error if
	// the key cannot be determined.
	KeyOf(sealed []byte) (Key, error)
}

// Key identifies a key.
type Key struct {
	ID          string // the name of the key. Two keys may have the same
	Fingerprint string // identifies the value of the key, and does not disclose it. Empty if unknown
}

// String returns the ID and the fingerprint, for messages.
func (k Key) String() string {
	if k.Fingerprint == "" {
		return k.ID
	}
	return k.ID + " (fingerprint " + k.Fingerprint + ")"
}

// Store seals what it stores, and returns records as they are stored: [Store.Open] returns one
// with its private part in clear. A private part in clear is a JSON object. Anything else is
// sealed, and is stored unchanged. The other optional interfaces of the inner store are hidden:
// backups, imports and checks use the inner store. All methods are safe for concurrent use.
type Store struct {
	relayer.Store // the inner store
	keys          Keys
	only, off     bool
	writes        sync.Map // of channels that are closed when the writes in progress have ended
}

var _ relayer.Opener = (*Store)(nil)

// Option configures a [Store]. The zero Option is invalid.
type Option struct{ apply func(*Store) }

// Only treats private parts in clear as damage: somebody without the keys may have written
// them. Open returns a [*relayer.CorruptError] for them, and Reseal does not seal them. A
// change that replaces all URLs of a relayer repairs it. Use it when [Store.Count] counts no
// private parts in clear.
func Only() Option { return Option{func(s *Store) { s.only = true }} }

// Off turns sealing off: new private parts are stored in clear, and Reseal stores all of them
// in clear. What is sealed can still be opened. It excludes [Only].
func Off() Option { return Option{func(s *Store) { s.off = true }} }

// New returns a Store around db, which the host opens and closes. Keys without a key, such as the
// zero keyring.Keyring, open and seal nothing: URLs are masked, and new ones are refused.
func New(db relayer.Store, keys Keys, options ...Option) (*Store, error) {
	if db == nil {
		return nil, errors.New("sealed: store is nil")
	}
	if value := reflect.ValueOf(keys); keys == nil || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil, errors.New("sealed: keys are nil")
	}
	s := &Store{Store: db, keys: keys}
	for _, option := range options {
		if option.apply == nil {
			return nil, errors.New("sealed: option is empty")
		}
		option.apply(s)
	}
	if s.only && s.off {
		return nil, errors.New("sealed: Only and Off exclude each other")
	}
	return s, nil
}

// mark is the first byte of a sealed private part, and the version of its format.
const mark = 2

func isSealed(private []byte) bool { return len(private) > 0 && private[0] != '{' }

// associatedData binds a sealed private part to its format and its relayer.
func associatedData(id string) []byte { return []byte("relayer private part 2 " + id) }

// Create seals the private part of the record and creates it in the inner store.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return s.store(ctx, rec, s.Store.Create)
}

// Update seals the private part of the record and updates it in the inner store. A private
// part in clear that is stored already is kept as it is: a change of another field needs no
// keys, and what [Only] refuses does not become genuine.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if s.seals(rec.Private) {
		stored, err := s.Get(ctx, rec.ID)
		if err != nil {
			return relayer.Record{}, err
		}
		if !bytes.Equal(stored.Private, rec.Private) {
			return s.store(ctx, rec, s.Store.Update)
		}
	}
	return s.Store.Update(ctx, rec)
}

// seals reports whether a private part is to be sealed.
func (s *Store) seals(private []byte) bool { return len(private) > 0 && !isSealed(private) && !s.off }

// store seals the private part of a record, and stores it.
func (s *Store) store(ctx context.Context, rec relayer.Record, put func(context.Context, relayer.Record) (relayer.Record, error)) (relayer.Record, error) {
	if !s.seals(rec.Private) {
		return put(ctx, rec)
	}
	ended := make(chan struct{})
	s.writes.Store(ended, nil)
	defer close(ended)
	defer s.writes.Delete(ended)
	sealed, err := s.keys.Seal(ctx, rec.Private, associatedData(rec.ID))
	if err != nil {
		return relayer.Record{}, sealError{"sealing", rec.ID, err}
	}
	rec.Private = append([]byte{mark}, sealed...)
	return put(ctx, rec)
}

// awaitWrites waits until the writes that have begun have ended, or ctx is done.
func (s *Store) awaitWrites(ctx context.Context) (err error) {
	s.writes.Range(func(ended, _ any) bool {
		select {
		case <-ended.(chan struct{}):
		case <-ctx.Done():
			err = ctx.Err()
		}
		return err == nil
	})
	return err
}

// Open returns the record with its private part in clear. It returns an error that matches
// [relayer.ErrSealed] and [relayer.ErrUnavailable] if the keys cannot open it, and
// [errors.ErrUnsupported] too if there are no keys. With [Only] it returns a
// [*relayer.CorruptError] if the private part is in clear.
func (s *Store) Open(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	switch {
	case len(rec.Private) == 0 || !isSealed(rec.Private) && !s.only:
		return rec, nil
	case !isSealed(rec.Private):
		return relayer.Record{}, &relayer.CorruptError{ID: rec.ID, Sequence: rec.Sequence, Err: fmt.Errorf(
			"relayer: the private part of %s is in clear and must be sealed: replace all RPC URLs of the relayer, or restore a backup", rec.ID)}
	case rec.Private[0] != mark:
		return relayer.Record{}, sealError{"opening", rec.ID, errFormat}
	}
	private, err := s.keys.Open(ctx, rec.Private[1:], associatedData(rec.ID))
	if err != nil {
		return relayer.Record{}, sealError{"opening", rec.ID, err}
	}
	rec.Private = private
	return rec, nil
}

var errFormat = errors.New("another version of this library has sealed them, in a format that this version does not read: replace all RPC URLs of the relayer")

// sealError is an error of the keys, with its URLs masked. It matches [relayer.ErrSealed] and
// [relayer.ErrUnavailable], and no other error of package relayer, which would give it a
// meaning for callers: that the relayer is unknown, for example.
type sealError struct {
	action, id string
	err        error
}

func (e sealError) Error() string {
	return fmt.Sprintf("relayer: %s the RPC URLs of %s: %v: %s", e.action, e.id, relayer.ErrSealed, mask.Text(e.err.Error()))
}

// hidden are the other errors of package relayer.
var hidden = []error{
	relayer.ErrNotFound, relayer.ErrExists, relayer.ErrClaimed, relayer.ErrConflict, relayer.ErrNoRevision, relayer.ErrInvalid, relayer.ErrUnknownSigner,
	relayer.ErrOutcomeUnknown, relayer.ErrCorrupt, relayer.ErrUnknownFormat, relayer.ErrNewerFormat, relayer.ErrGap,
}

// Is reports whether the error matches target.
func (e sealError) Is(target error) bool {
	return target == relayer.ErrSealed || target == relayer.ErrUnavailable || !slices.Contains(hidden, target) && errors.Is(e.err, target)
}

// As sets target to a matching error of the keys.
func (e sealError) As(target any) bool {
	switch target.(type) {
	case **relayer.ValidationError, **relayer.CorruptError:
		return false
	}
	return errors.As(e.err, target)
}
