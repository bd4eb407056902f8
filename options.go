package relayer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
)

// Option configures a [Manager].
type Option func(*Manager) error

// AddressResolver returns the address that a signer has on a network. It returns
// an error that matches [ErrUnknownSigner] for a signer that the host does not
// have. Any other error is returned by the operation as a server error. The same
// applies to an address that cannot be stored: longer than 256 bytes, not UTF-8,
// with spaces, control characters or @, a URL, or, with [WithNetworkRules], invalid
// on the network. It must be safe for concurrent use.
type AddressResolver func(ctx context.Context, signerID string, networkType NetworkType, network string) (address string, err error)

// WithAddressResolver sets the function that returns the address of a new relayer.
// Signers for which it returns [ErrUnknownSigner] are rejected. Without it every signer is accepted and the
// address is "".
func WithAddressResolver(resolve AddressResolver) Option {
	return func(m *Manager) error {
		if resolve == nil {
			return errors.New("relayer: address resolver is nil")
		}
		m.resolveAddress = resolve
		return nil
	}
}

// WithLogger sets the logger for failures that no caller gets as an error: a panic of an
// [Observer]. Without it nothing is logged. A log entry contains only the ID of a relayer.
func WithLogger(logger *slog.Logger) Option {
	return func(m *Manager) error {
		if logger == nil {
			return errors.New("relayer: logger is nil")
		}
		m.logger = logger
		return nil
	}
}

// WithNetworkRules checks that addresses, accounts, assets, percentages and schedules are
// possible on their network, and the address that an [AddressResolver] returns. It is off
// by default, because the interface does not require it.
func WithNetworkRules() Option {
	return func(m *Manager) error {
		m.networkRules = true
		return nil
	}
}

// DefaultPerPage is the number of relayers of a page if the caller does not give one.
const DefaultPerPage = 10

// DefaultMaxPerPage is the maximum number of relayers of a page without
// [WithMaxPerPage].
const DefaultMaxPerPage = 100

// WithMaxPerPage sets the maximum number of relayers of a page, from 1 to 2147483647. A
// larger request is lowered to it, and the [Pagination] shows the number used.
func WithMaxPerPage(most uint32) Option {
	return func(m *Manager) error {
		if most < 1 || most > math.MaxInt32 {
			return fmt.Errorf("relayer: the maximum number of relayers of a page must be from 1 to %d", math.MaxInt32)
		}
		m.maxPerPage = most
		return nil
	}
}

// WithExclusiveSigners allows only one relayer for each signer and network: two
// relayers would use the same nonces. The store enforces it atomically, by a claim
// that is stored with the relayer. Create returns a problem of signer_id if another
// relayer uses the signer. A delete frees it.
//
// It is off by default. A relayer that was stored without it has no claim; its next
// change adds one, unless another relayer has it by then.
func WithExclusiveSigners() Option {
	return func(m *Manager) error {
		m.exclusiveSigners = true
		return nil
	}
}
