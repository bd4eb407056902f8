package relayer

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// WithExclusiveSigners lets a signer have only one relayer on each network: two
// would fight over its nonces. The store enforces it atomically, by a claim that
// is stored with the relayer. A create that comes second is refused with a
// problem of signer_id, and a delete frees the signer.
//
// It is off by default. A relayer stored or changed while it was off holds no
// claim: it gets one when it is next changed, unless another has it by then.
func WithExclusiveSigners() Option {
	return func(m *Manager) error {
		m.exclusiveSigners = true
		return nil
	}
}

// claimOf returns what the relayer's record claims. A digest keeps it within
// what a store takes, however long the names are.
func (m *Manager) claimOf(r *Relayer) string {
	if !m.exclusiveSigners {
		return ""
	}
	digest := sha256.New()
	for _, part := range []string{string(r.NetworkType), r.Network, r.SignerID} {
		// The length keeps "ab"+"c" and "a"+"bc" apart.
		digest.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return "signer-" + hex.EncodeToString(digest.Sum(nil))
}

func claimedError() error {
	return &ValidationError{Fields: []FieldError{{
		Field:   "signer_id",
		Message: "must not be a signer that another relayer uses on this network",
	}}}
}
