// Package sealed encrypts the private part of records, the full RPC URLs of relayers, in a
// [relayer.Store] around a [relayer.Store]. See docs/security.md.
package sealed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
)

// Keys encrypt and authenticate texts under a primary key, and open what other keys have
// sealed. Package keyring has the keys of a file.
//
// All methods must be safe for concurrent use. Seal and Open must return when ctx is done, and
// must not change their arguments. Their errors must contain no secret. An error of a [Store] has
// their text, with URLs masked. It matches [errors.ErrUnsupported], [context.Canceled] or
// [context.DeadlineExceeded] if that error does. Later versions add no methods to Keys.
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

// Store seals what it stores, and returns records without opening them: [Store.Open] returns one
// with its private part in clear. Without [Off], Create and Update seal a private part that
// begins with {. Any other part, such as the part of a record that was read, is stored as it was.
// Get, List and writes return parts in clear with a mark that only a Store reads. So backups,
// copies, imports and checks use the inner store. Its other optional interfaces are hidden. All
// methods are safe for concurrent use.
type Store struct {
	relayer.Store // the inner store
	keys          Keys
	only, off     bool
	writes        sync.Map // of channels that are closed when the writes in progress have ended
}

var _ relayer.Opener = (*Store)(nil)

// Option configures a [Store]. The zero Option is invalid.
type Option struct{ name string }

// Only treats private parts in clear as damage: somebody without the keys may have written
// them. Open returns a [*relayer.CorruptError] for them, and Reseal does not seal them. A change
// that replaces all URLs of a relayer, by the same or by others, repairs it. Use it when
// [Store.Count] counts no private parts in clear.
func Only() Option { return Option{"Only"} }

// Off turns sealing off: new private parts are stored in clear, and Reseal stores all of them
// in clear. What is sealed can still be opened. It excludes [Only].
func Off() Option { return Option{"Off"} }

// New returns a Store around db, which the host opens and closes. Keys without a key, such as the
// zero keyring.Keyring, open and seal nothing: sealed URLs are masked, and URLs that must be
// sealed are refused.
func New(db relayer.Store, keys Keys, options ...Option) (*Store, error) {
	only, off := slices.Contains(options, Only()), slices.Contains(options, Off())
	switch value := reflect.ValueOf(keys); {
	case db == nil:
		return nil, errors.New("sealed: store is nil")
	case keys == nil || value.Kind() == reflect.Pointer && value.IsNil():
		return nil, errors.New("sealed: keys are nil")
	case slices.Contains(options, Option{}):
		return nil, errors.New("sealed: option is empty")
	case only && off:
		return nil, errors.New("sealed: Only and Off exclude each other")
	}
	return &Store{Store: db, keys: keys, only: only, off: off}, nil
}

const (
	// mark is the first byte of a sealed private part, and the version of its format.
	mark = 2

	// clearMark precedes a private part in clear in the records that a Store returns. So Update
	// knows a part that it keeps, which may not be genuine, from a new one, without a second read.
	clearMark = 0
)

func isSealed(private []byte) bool { return len(private) > 0 && private[0] != '{' }

// withClearMark marks the private part of a record if it is in clear. With Off nothing is sealed.
func (s *Store) withClearMark(rec relayer.Record) relayer.Record {
	if len(rec.Private) > 0 && !isSealed(rec.Private) && !s.off {
		rec.Private = append([]byte{clearMark}, rec.Private...)
	}
	return rec
}

// Get returns a record of the inner store.
func (s *Store) Get(ctx context.Context, id string) (relayer.Record, error) {
	rec, err := s.Store.Get(ctx, id)
	return s.withClearMark(rec), err
}

// List returns records of the inner store.
func (s *Store) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	page, err := s.Store.List(ctx, query)
	for i, rec := range page.Records {
		page.Records[i] = s.withClearMark(rec)
	}
	return page, err
}

// associatedData binds a sealed private part to its format and its relayer.
func associatedData(id string) []byte { return []byte("relayer private part 2 " + id) }

// Create seals the private part of the record and creates it in the inner store.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return s.store(ctx, rec, s.Store.Create)
}

// Update seals the private part of the record and updates it in the inner store. A part that Get
// or List returned in clear stays in clear. So a change of another field needs no keys, and does
// not seal what [Only] refuses.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return s.store(ctx, rec, s.Store.Update)
}

// store seals the private part of a record if it is new, and stores the record.
func (s *Store) store(ctx context.Context, rec relayer.Record, put func(context.Context, relayer.Record) (relayer.Record, error)) (relayer.Record, error) {
	private, isKept := bytes.CutPrefix(rec.Private, []byte{clearMark})
	rec.Private = private
	if !isKept && len(private) > 0 && !isSealed(private) && !s.off {
		ended := make(chan struct{})
		s.writes.Store(ended, nil)
		defer close(ended)
		defer s.writes.Delete(ended)
		sealed, err := s.keys.Seal(ctx, private, associatedData(rec.ID))
		if err != nil {
			return relayer.Record{}, sealError{"sealing", rec.ID, err}
		}
		rec.Private = append([]byte{mark}, sealed...)
	}
	stored, err := put(ctx, rec)
	return s.withClearMark(stored), err
}

// Open returns the record with its private part in clear. It returns an error that matches
// [relayer.ErrSealed] and [relayer.ErrUnavailable] if the keys cannot open it, and usually
// [errors.ErrUnsupported] too if there are no keys. With [Only] it returns a
// [*relayer.CorruptError] if the private part is in clear.
func (s *Store) Open(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	private := bytes.TrimPrefix(rec.Private, []byte{clearMark})
	switch {
	case len(private) == 0 || !isSealed(private) && !s.only:
		rec.Private = private
		return rec, nil
	case !isSealed(private):
		return relayer.Record{}, &relayer.CorruptError{ID: rec.ID, Sequence: rec.Sequence, Err: fmt.Errorf(
			"relayer: the private part of %s is in clear and must be sealed: replace all RPC URLs of the relayer, or restore a backup", rec.ID)}
	case private[0] != mark:
		return relayer.Record{}, sealError{"opening", rec.ID, errFormat}
	}
	var err error
	if rec.Private, err = s.keys.Open(ctx, private[1:], associatedData(rec.ID)); err != nil {
		return relayer.Record{}, sealError{"opening", rec.ID, err}
	}
	return rec, nil
}

var errFormat = errors.New("another version of this library has sealed them, in a format that this version does not read: replace all RPC URLs of the relayer")

// sealError is an error of the keys, with its URLs masked.
type sealError struct {
	action, id string
	err        error
}

func (e sealError) Error() string {
	return fmt.Sprintf("relayer: %s the RPC URLs of %s: %v: %s", e.action, e.id, relayer.ErrSealed, mask.Text(e.err.Error()))
}

// Is reports whether the error matches target. An error of the keys that is, for example,
// [relayer.ErrNotFound] says nothing about the relayer.
func (e sealError) Is(target error) bool {
	switch target {
	case relayer.ErrSealed, relayer.ErrUnavailable:
		return true
	case errors.ErrUnsupported, context.Canceled, context.DeadlineExceeded:
		return errors.Is(e.err, target)
	}
	return false
}

// Reseal stores every private part as the options require: sealed under the primary key, or in
// clear with [Off]. It yields the ID of each relayer that it has stored, and the ID and an error
// for each that it cannot open or store, and continues with the next one. An error with an empty
// ID is about a damaged record ([relayer.ErrCorrupt]), or ends the sequence:
// [errors.ErrUnsupported] without keys, the error of [Store.Count] before any write, or a failed
// read. To bound the rate, wait in the loop body. To resume an interrupted Reseal, call it again.
//
// A rotation changes the primary key on every instance, and then calls Reseal on each of them.
// Reseal waits for the writes of this Store that began before the call: do not call it from the
// keys or the inner store. When it has ended without an error on every instance, nothing is under
// another key. A write of unknown outcome may still appear: keep the old key until a later write
// has succeeded, and then reseal again.
//
// It stores with a compare-and-swap. A stored relayer gets a new revision and keeps its note, so
// its last change stays the same. A second range seals what is left.
func (s *Store) Reseal(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if len(s.keys.Keys()) == 0 {
			yield("", fmt.Errorf("relayer: resealing needs keys: %w", errors.ErrUnsupported))
			return
		}
		s.writes.Range(func(ended, _ any) bool {
			select {
			case <-ended.(chan struct{}):
			case <-ctx.Done():
			}
			return true
		})
		_, err := s.Count(ctx)
		err = cmp.Or(ctx.Err(), err)
		if err != nil && (!errors.Is(err, relayer.ErrCorrupt) || errors.Is(err, relayer.ErrSealed)) {
			yield("", err)
			return
		}
		for rec, err := range s.records(ctx) {
			isStored := false
			if err == nil {
				isStored, err = s.reseal(ctx, rec)
			}
			if (isStored || err != nil) && !yield(rec.ID, err) {
				return
			}
		}
	}
}

// reseal stores a private part as the options require, and reports whether it has. It begins
// again if another writer was faster.
func (s *Store) reseal(ctx context.Context, rec relayer.Record) (isStored bool, err error) {
	for ; err == nil && !s.isAsRequired(rec.Private); rec, err = s.Store.Get(ctx, rec.ID) {
		opened, failure := s.Open(ctx, rec)
		if failure == nil {
			_, failure = s.Update(ctx, opened)
		}
		if !errors.Is(failure, relayer.ErrConflict) && !errors.Is(failure, relayer.ErrNotFound) {
			return failure == nil, failure
		}
	}
	if errors.Is(err, relayer.ErrNotFound) { // another writer has deleted it
		err = nil
	}
	return false, err
}

func (s *Store) isAsRequired(private []byte) bool {
	if len(private) == 0 || s.off {
		return !isSealed(private)
	}
	return isSealed(private) && slices.Index(s.keys.Keys(), s.keyOf(private)) == 0 // under the primary key
}

// keyOf returns the zero Key if the key of a sealed private part cannot be determined.
func (s *Store) keyOf(private []byte) Key {
	if key, err := s.keys.KeyOf(private[1:]); err == nil && private[0] == mark {
		return key
	}
	return Key{}
}

// Counts has the numbers of private parts by the key that sealed them.
type Counts struct {
	Clear int         // those that are not sealed
	Keys  map[Key]int // under the zero Key those whose key cannot be determined
}

// Count counts the private parts of all relayers by the key that sealed them, without opening
// them. A relayer without RPC URLs has none. If a part is under a key that the keys do not have,
// and they have another key of that ID, the error matches [relayer.ErrSealed] and has both
// fingerprints: the keys are probably those of another database. Call it before a Manager uses
// new keys. If relayers are damaged, it returns the counts of the others with an error that
// matches [relayer.ErrCorrupt].
func (s *Store) Count(ctx context.Context) (Counts, error) {
	counts := Counts{Keys: make(map[Key]int)}
	var damage error
	for rec, err := range s.records(ctx) {
		switch {
		case errors.Is(err, relayer.ErrCorrupt):
			damage = cmp.Or(damage, err)
		case err != nil:
			return Counts{}, err
		case isSealed(rec.Private):
			counts.Keys[s.keyOf(rec.Private)]++
		case len(rec.Private) > 0:
			counts.Clear++
		}
	}
	return counts, errors.Join(s.checkKeys(counts), damage)
}

// checkKeys returns an error if parts are under a key that the keys do not have, and they have
// another key of that ID.
func (s *Store) checkKeys(counts Counts) error {
	keys := s.keys.Keys()
	for used, count := range counts.Keys {
		hasKey := slices.ContainsFunc(keys, func(key Key) bool { return key.Fingerprint == used.Fingerprint })
		i := slices.IndexFunc(keys, func(key Key) bool { return key.ID == used.ID })
		if i >= 0 && !hasKey && used.Fingerprint != "" {
			return fmt.Errorf("relayer: %w under another key of the same name: the keys have %s, and the URLs of %d relayers are under %s: use the right keys, or add that key under another name",
				relayer.ErrSealed, keys[i], count, used)
		}
	}
	return nil
}

// records yields all records in creation order, even those that are created meanwhile. It yields an
// error that matches [relayer.ErrCorrupt] for each damaged record and continues behind it. Any other
// error is the last.
func (s *Store) records(ctx context.Context) iter.Seq2[relayer.Record, error] {
	const pageSize = 100
	return func(yield func(relayer.Record, error) bool) {
		for after := uint64(0); ; {
			page, err := s.Store.List(ctx, relayer.StoreQuery{After: after, Limit: pageSize})
			for _, rec := range page.Records {
				if after = rec.Sequence; !yield(rec, nil) {
					return
				}
			}
			if err == nil && len(page.Records) == 0 || err != nil && !yield(relayer.Record{}, err) {
				return
			}
			if corrupt, isDamaged := errors.AsType[*relayer.CorruptError](err); isDamaged && corrupt.Sequence > after {
				after = corrupt.Sequence
			} else if err != nil {
				return
			}
		}
	}
}
