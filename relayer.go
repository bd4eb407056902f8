package relayer

import "fmt"

// NetworkType is the kind of blockchain network a relayer works on. It decides
// the shape of the relayer's [Policy] (spec section 2.1).
type NetworkType string

// The network types.
const (
	EVM     NetworkType = "evm"
	Solana  NetworkType = "solana"
	Stellar NetworkType = "stellar"
)

// Relayer is one configured transaction-relaying entity, bound to one signer
// and one network (spec section 2.1).
//
// It is a copy of what is stored: changing it changes nothing else. It carries
// the full RPC URLs, for host code; encoded as JSON, printed or logged it shows
// them masked (see [RPCURL]).
type Relayer struct {
	// ID identifies the relayer: 1 to 64 of A–Z a–z 0–9 _ and -.
	ID string `json:"id"`

	// Name is for people. It is never empty and need not be unique.
	Name string `json:"name"`

	// Network identifies the network within its type, such as "sepolia".
	Network string `json:"network"`

	// NetworkType says which kind of network Network is.
	NetworkType NetworkType `json:"network_type"`

	// Address is the relayer's address on its network, as the host's
	// [AddressResolver] gave it; empty where the host has none.
	Address string `json:"address"`

	// Paused is the operator's switch. It is independent of SystemDisabled.
	Paused bool `json:"paused"`

	// SystemDisabled is the host's own switch, for what its health checks find.
	SystemDisabled bool `json:"system_disabled"`

	// DisabledReason is there exactly while SystemDisabled is true.
	DisabledReason *DisabledReason `json:"disabled_reason,omitempty"`

	// SignerID identifies the signer whose key signs the transactions.
	SignerID string `json:"signer_id"`

	// NotificationID identifies a notification configuration of the host; empty
	// where there is none.
	NotificationID string `json:"notification_id,omitempty"`

	// CustomRPCURLs are the endpoints used in place of the network's own; nil
	// where there are none. Every weight is set.
	CustomRPCURLs []RPCConfig `json:"custom_rpc_urls,omitzero"`

	// Policies says what the relayer may do. Its dynamic type follows
	// NetworkType: [*EVMPolicy], [*SolanaPolicy] or [*StellarPolicy]; a relayer
	// read from a [Manager] always has one.
	Policies Policy `json:"policies"`

	// Revision grows with every change of this relayer and is never used again
	// for its id. It is the ETag over HTTP and no member of the JSON form.
	Revision uint64 `json:"-"`
}

// Format prints the relayer with its URLs masked, whatever the verb. Without it
// a verb that is wrong for a pointer, as in %s of a []*Relayer, would print the
// URLs without asking them.
func (r Relayer) Format(state fmt.State, verb rune) {
	type plain Relayer // without this method
	fmt.Fprintf(state, fmt.FormatString(state, verb), plain(r))
}

// Format prints the request with its URLs masked, as [Relayer.Format] does.
func (r CreateRequest) Format(state fmt.State, verb rune) {
	type plain CreateRequest // without this method
	fmt.Fprintf(state, fmt.FormatString(state, verb), plain(r))
}

// Format prints the endpoint with its URL masked, as [Relayer.Format] does.
func (c RPCConfig) Format(state fmt.State, verb rune) {
	type plain RPCConfig // without this method
	fmt.Fprintf(state, fmt.FormatString(state, verb), plain(c))
}

// RPCConfig is one custom RPC endpoint (spec section 2.2).
type RPCConfig struct {
	// URL is an absolute http, https, ws or wss URL with a host.
	URL RPCURL `json:"url" validate:"rpc_url"`

	// Weight is the share of the endpoint relative to the others, from 0 to 100.
	// Nil means [DefaultRPCWeight].
	Weight *float64 `json:"weight" validate:"omitnil,gte=0,lte=100"`
}

// DefaultRPCWeight is the weight of an [RPCConfig] that gives none.
const DefaultRPCWeight = 100.0

// DisabledReason says why the host has disabled a relayer (spec section 2.3).
type DisabledReason struct {
	// Type is the kind of reason: one of the constants here, or a string of the
	// host's own.
	Type DisabledReasonType `json:"type"`

	// Details is free text.
	Details string `json:"details"`
}

// DisabledReasonType is the kind of a [DisabledReason].
type DisabledReasonType string

// The kinds of reason that clients of this interface know.
const (
	NonceSyncFailed     DisabledReasonType = "NonceSyncFailed"
	RPCValidationFailed DisabledReasonType = "RpcValidationFailed"
	BalanceCheckFailed  DisabledReasonType = "BalanceCheckFailed"
	SequenceSyncFailed  DisabledReasonType = "SequenceSyncFailed"
)

// CreateRequest is what a caller says of a relayer to be (spec section 4.2).
// The zero value of an optional field leaves it out.
type CreateRequest struct {
	// ID is optional: 1 to 64 of A–Z a–z 0–9 _ and -. Left out, a UUIDv7 is
	// made, so that ids made later sort later.
	ID string `json:"id" validate:"omitempty,relayer_id" wire:"optional,nonempty"`

	// Name is required.
	Name string `json:"name" validate:"required,text"`

	// Network is required: the network's identifier, such as "sepolia".
	Network string `json:"network" validate:"required,text"`

	// NetworkType is required: [EVM], [Solana] or [Stellar].
	NetworkType NetworkType `json:"network_type" validate:"required,oneof=evm solana stellar"`

	// Paused says whether the relayer starts out paused.
	Paused bool `json:"paused"`

	// SignerID is required. With an [AddressResolver] it must be a signer that
	// the host has.
	SignerID string `json:"signer_id" validate:"required,text"`

	// NotificationID is optional.
	NotificationID string `json:"notification_id" validate:"text" wire:"optional,nonempty"`

	// CustomRPCURLs are optional.
	CustomRPCURLs []RPCConfig `json:"custom_rpc_urls" validate:"dive" wire:"optional"`

	// Policies is optional: nil, or the policy type that goes with NetworkType.
	Policies Policy `json:"policies" wire:"optional"`
}
