package relayer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
)

// Option sets up a [Manager].
type Option func(*Manager) error

// AddressResolver returns the address that a signer has on a network. It returns
// an error that matches [ErrUnknownSigner] for a signer that the host does not
// have. Any other error is a fault of the host, and the operation returns it. So
// is an address that cannot be stored: more than 256 bytes, not UTF-8, with spaces
// or control characters, a URL, or, with [WithNetworkRules], not an address of the
// network. It is called by many goroutines at once.
type AddressResolver func(ctx context.Context, signerID string, networkType NetworkType, network string) (address string, err error)

// WithAddressResolver makes the Manager ask the host for the address of every
// relayer it creates, and refuse signers that the host does not have. Without
// it any signer is taken and the address is "".
func WithAddressResolver(resolve AddressResolver) Option {
	return func(m *Manager) error {
		if resolve == nil {
			return errors.New("relayer: address resolver is nil")
		}
		m.resolveAddress = resolve
		return nil
	}
}

// WithLogger sets the logger for faults that no caller sees: a panic of an
// [Observer]. Without it nothing is logged. The log entry has no RPC URL and no
// other part of a relayer but its id.
func WithLogger(logger *slog.Logger) Option {
	return func(m *Manager) error {
		if logger == nil {
			return errors.New("relayer: logger is nil")
		}
		m.logger = logger
		return nil
	}
}

// WithNetworkRules makes the Manager check that addresses, accounts, assets,
// percentages and schedules are ones that the network could have. The address
// that an [AddressResolver] returns is checked too. It is off by default, because
// the interface does not ask for it.
func WithNetworkRules() Option {
	return func(m *Manager) error {
		m.networkRules = true
		return nil
	}
}

// DefaultPerPage is how many relayers a page has where the caller does not say
// (spec section 8).
const DefaultPerPage = 10

// DefaultMaxPerPage is the most relayers that a page has, unless
// [WithMaxPerPage] says otherwise.
const DefaultMaxPerPage = 100

// WithMaxPerPage sets the most relayers that a page has, from 1 to 2147483647.
// A caller that asks for more gets this many and is told so.
func WithMaxPerPage(most uint32) Option {
	return func(m *Manager) error {
		if most < 1 || most > math.MaxInt32 {
			return fmt.Errorf("relayer: the most relayers of a page must be from 1 to %d", math.MaxInt32)
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
