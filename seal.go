package relayer

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-relayer/relayer/internal/mask"
)

// sealedMark is the first byte of a sealed private part, and the version of its format. A
// private part in clear is a JSON object.
const sealedMark = 1

func isSealed(private []byte) bool { return len(private) > 0 && private[0] == sealedMark }

// associatedData binds a sealed private part to its format and its relayer.
func associatedData(id string) []byte { return []byte("relayer private part 1 " + id) }

// openRecord returns the record with its private part in clear. It returns an error that
// matches [ErrSealed] if the sealer cannot open it, and [errors.ErrUnsupported] too if it is
// sealed and there is no sealer.
func (s *settings) openRecord(ctx context.Context, rec Record) (Record, error) {
	if !isSealed(rec.Private) {
		return rec, s.checkClear(rec)
	}
	if s.sealer == nil {
		return Record{}, withoutSealer("opening", rec.ID)
	}
	private, err := s.sealer.Open(ctx, rec.Private[1:], associatedData(rec.ID))
	if err != nil {
		return Record{}, sealingError("opening", rec.ID, err)
	}
	rec.Private = private
	return rec, nil
}

// checkClear returns a [*CorruptError] if the private part is in clear and must be sealed.
func (s *settings) checkClear(rec Record) error {
	if !s.sealedOnly || len(rec.Private) == 0 || isSealed(rec.Private) {
		return nil
	}
	return corruptPart(rec, "is in clear and must be sealed: replace all RPC URLs of the relayer, or restore a backup")
}

// seal returns the record, whose private part is in clear, as it is to be stored.
func (s *settings) seal(ctx context.Context, rec Record) (Record, error) {
	switch {
	case len(rec.Private) == 0 || s.storesClear || s.sealer == nil && !s.sealedOnly:
		return rec, nil
	case s.sealer == nil:
		return Record{}, withoutSealer("sealing", rec.ID)
	}
	return sealRecord(ctx, s.sealer, rec)
}

// sealRecord seals the private part of a record, which is in clear.
func sealRecord(ctx context.Context, sealer Sealer, rec Record) (Record, error) {
	sealed, err := sealer.Seal(ctx, rec.Private, associatedData(rec.ID))
	if err != nil {
		return Record{}, sealingError("sealing", rec.ID, err)
	}
	rec.Private = append([]byte{sealedMark}, sealed...)
	return rec, nil
}

func withoutSealer(action, id string) error {
	return sealingError(action, id, fmt.Errorf("there is no sealer: %w", errors.ErrUnsupported))
}

func sealingError(action, id string, err error) error {
	if errors.Is(err, errors.ErrUnsupported) { // there are no keys
		err = mask.Error(err)
	} else {
		err = faultError{err}
	}
	return fmt.Errorf("relayer: %s the RPC URLs of %s: %w: %w", action, id, sealError{ErrSealed}, err)
}

// sealError is an [ErrSealed] that matches [ErrUnavailable] too.
type sealError struct{ error }

func (e sealError) Unwrap() []error { return []error{e.error, ErrUnavailable} }

// masks reports whether the Manager returns the RPC URLs of the record masked. With a
// sealer it does so whether or not they are sealed yet.
func (m *Manager) masks(rec Record) bool {
	return m.sealer != nil || m.sealedOnly || isSealed(rec.Private)
}

// relayerOf decodes a record without calling the sealer.
func (m *Manager) relayerOf(rec Record) (*Relayer, error) {
	if m.masks(rec) {
		return maskedRelayerOf(rec)
	}
	return unmaskedRelayerOf(rec)
}

// maskedRelayerOf decodes a record into a relayer whose RPC URLs are masked.
func maskedRelayerOf(rec Record) (*Relayer, error) {
	r, err := documentRelayer(rec)
	if err != nil {
		return nil, err
	}
	for i := range r.CustomRPCURLs {
		r.CustomRPCURLs[i].URL = RPCURL(mask.Marked(r.CustomRPCURLs[i].URL.Unmasked()))
	}
	return r, nil
}

// openedRelayerOf decodes a record into a relayer with its full RPC URLs, or with masked
// ones if they cannot be opened.
func (m *Manager) openedRelayerOf(ctx context.Context, rec Record) (*Relayer, error) {
	opened, err := m.openRecord(ctx, rec)
	if err != nil {
		return maskedRelayerOf(rec)
	}
	return unmaskedRelayerOf(opened)
}
