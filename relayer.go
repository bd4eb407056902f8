package relayer

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// Relayer is one configured transaction-relaying entity, bound to one signer and one network.
//
// It is a copy of what is stored: a change of it has no effect on the store. It contains the full
// RPC URLs, for host code, or masked ones (see [Opener]). Its JSON and what is printed or logged of
// it have masked ones only (see [RPCURL]).
type Relayer struct {
	// ID identifies the relayer: 1 to 64 of A–Z a–z 0–9 _ and -.
	ID string `json:"id" wire:"initial,optional,nonempty" validate:"omitempty,relayer_id"`

	// Name is a display name. It is never empty and need not be unique.
	Name string `json:"name" validate:"required,text"`

	// Network identifies the network within its type, such as "sepolia". The registry has no list
	// of networks. With [WithNetworkRules] a create refuses one that begins or ends with a space.
	Network string `json:"network" wire:"initial" validate:"required,text"`

	// NetworkType is the type of Network. It selects the type of Policy.
	NetworkType NetworkType `json:"network_type" wire:"initial" validate:"required,network_type"`

	// Address is the address of the relayer on its network, from which its transactions are
	// sent, as returned by the host ([WithAddressResolver]). It is empty if the host has none.
	Address string `json:"address" wire:"readonly" validate:"-"`

	// Paused is the switch of operators. The engine sends no transaction while it is true. It
	// is independent of SystemDisabled.
	Paused bool `json:"paused"`

	// SystemDisabled is the switch of the host application, for the results of its
	// health checks. The engine sends no transaction while it is true.
	SystemDisabled bool `json:"system_disabled" wire:"readonly"`

	// DisabledReason is set exactly while SystemDisabled is true.
	DisabledReason *DisabledReason `json:"disabled_reason,omitempty" wire:"readonly"`

	// SignerID identifies the signer whose key signs the transactions.
	SignerID string `json:"signer_id" wire:"initial" validate:"required,text"`

	// NotificationID identifies a notification configuration of the host, which the registry
	// does not look up.
	//
	// It is empty if there is none.
	NotificationID string `json:"notification_id,omitempty" wire:"optional,nonempty" validate:"text"`

	// CustomRPCURLs are the endpoints that the engine uses in place of the usual ones of the
	// network. Every stored endpoint has a weight.
	//
	// It is empty if there are none.
	CustomRPCURLs []RPCConfig `json:"custom_rpc_urls,omitzero" validate:"list,dive"`

	// Policy restricts what the relayer does. It depends on NetworkType.
	//
	// It is an [*EVMPolicy], a [*SolanaPolicy], a [*StellarPolicy], or an [*UnknownPolicy] for a
	// network type of a newer version. It is never nil in a relayer read from a [Manager], except
	// in a [Change] that has only its ID and Revision. A write with nil, or a nil pointer of the
	// right type, stores an empty policy, which restricts nothing, except that users pay the fees
	// on [Solana] ([FeePaidByUser]).
	Policy Policy `json:"policies" wire:"optional"`

	// Labels are texts of the host's choice, by which relayers are found and grouped: at
	// most 32. A key is 1 to 63 of A–Z a–z 0–9 _ . - / and begins and ends with a letter or
	// digit. A value is at most 128 characters without control characters.
	//
	// It is nil if there are none: make the map before you assign to a key.
	Labels map[string]string `json:"labels,omitempty" wire:"optional"`

	// Settings are settings of the host, a JSON object of at most 16 KiB as stored, and 32
	// levels. They are shown to every reader and kept in the history: they must hold no secret,
	// and a URL with user information is refused. So are a name that is given twice, half a
	// surrogate pair, NUL, and a number that is too large for a 64-bit float, or has an exponent
	// below -400. They are stored with sorted names and, outside of lists, without members that
	// are null.
	//
	// It is nil if there are none. Replace it as a whole. See [WithSettings] and [SettingsOf].
	Settings json.RawMessage `json:"settings,omitempty"`

	// Revision grows with every change of the relayer and is never reused for its ID.
	// It is the ETag of the HTTP API, and not part of the JSON form.
	Revision uint64 `json:"-" validate:"-"`

	// LastChange says who made this revision, when and why. It is not part of the JSON form.
	LastChange ChangeInfo `json:"-" validate:"-"`
}

// SettingsOf decodes the settings of a relayer, or returns an error if they do not fit T. They
// are the zero value of T if the relayer has none. Members that T does not have are ignored:
// another version may have stored them. Names match in any letter case, as in encoding/json.
func SettingsOf[T any](r *Relayer) (value T, err error) {
	if len(r.Settings) == 0 {
		return value, nil
	}
	if err := json.Unmarshal(r.Settings, &value); err != nil {
		return *new(T), fmt.Errorf("relayer: settings of %s: %w", r.ID, err)
	}
	return value, nil
}

// Format prints the JSON form of the relayer and its revision for every verb except %p, %T and %w. URLs
// are masked.
func (r Relayer) Format(state fmt.State, _ rune) {
	type plain Relayer // without this method
	strictjson.Print(state, struct {
		plain
		Revision uint64 `json:"revision"`
	}{plain(r), r.Revision})
}

// Format prints the JSON form of the request for every verb except %p, %T and %w. URLs are masked.
func (r CreateRequest) Format(state fmt.State, _ rune) { strictjson.Print(state, r) }

// DisabledReason is the reason for which the host disabled a relayer. Every URL in it is
// masked like an [RPCURL] before it is stored, so that Details may be the text of an error
// that quotes a URL with a key.
type DisabledReason struct {
	// Type is the kind of reason: [NonceSyncFailed], [RPCValidationFailed],
	// [BalanceCheckFailed], [SequenceSyncFailed], or another text of at most 256 characters.
	Type DisabledReasonType `json:"type" wire:"nonempty" validate:"required,max=256,text"`

	// Details is free text. A disable keeps at most 16 KiB of it.
	Details string `json:"details" wire:"optional" validate:"text"`
}

// DisabledReasonType is the kind of a [DisabledReason].
type DisabledReasonType string

// Kinds of reason of OpenZeppelin Relayer.
const (
	NonceSyncFailed     DisabledReasonType = "NonceSyncFailed"
	RPCValidationFailed DisabledReasonType = "RpcValidationFailed"
	BalanceCheckFailed  DisabledReasonType = "BalanceCheckFailed"
	SequenceSyncFailed  DisabledReasonType = "SequenceSyncFailed"
)

// CreateRequest describes the relayer to create. See [Relayer] for the fields. The zero value of
// an optional field omits it.
type CreateRequest struct {
	// ID is optional. If it is omitted, a UUIDv7 is generated; the IDs of one process sort by time.
	ID string `json:"id,omitempty"`

	// Name, Network, NetworkType and SignerID are required, and in JSON also paused. If Paused is
	// true, the relayer is created paused. NetworkType is one of [NetworkTypes]. The resolver of
	// [WithAddressResolver], if any, must accept the signer.
	Name        string      `json:"name"`
	Network     string      `json:"network"`
	NetworkType NetworkType `json:"network_type"`
	Paused      bool        `json:"paused"`
	SignerID    string      `json:"signer_id"`

	// The other fields are optional. Policy is nil, or the policy type of NetworkType.
	NotificationID string            `json:"notification_id,omitempty"`
	CustomRPCURLs  []RPCConfig       `json:"custom_rpc_urls,omitzero"`
	Policy         Policy            `json:"policies,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Settings       json.RawMessage   `json:"settings,omitempty"`
}

// ChangeInfo says who made a change of a relayer, when and why, and what it changed. What is
// unknown is empty.
type ChangeInfo struct {
	// Revision is the revision of the relayer that the change made. It is 0 in PausedBy and
	// for a dry run.
	Revision uint64 `json:"revision,omitempty"`

	// Time is when the change was made, in UTC and whole milliseconds, by the clock of the
	// process that made it.
	Time time.Time `json:"time,omitzero"`

	// Actor is the [Actor.ID], cut off at 256 bytes, with U+FFFD for control characters.
	Actor string `json:"actor,omitempty"`

	// Action is what the caller did. A pause together with other changes is an update.
	Action Action `json:"action,omitempty"`

	// Reason is the text given with [Reason], in which every URL is masked.
	Reason string `json:"reason,omitempty"`

	// RequestID is the [Actor.RequestID], cut off at 128 bytes in the same way: after a lost
	// response, the sender finds its own change by this ID.
	RequestID string `json:"request_id,omitempty"`

	// Changed are the paths of the fields that the change changed, such as
	// policies.gas_price_cap, labels.team or disabled_reason.type, sorted: the members of an
	// object are fields of their own, and a list is one field. If they have over 600 bytes with
	// commas, only the members of the top level are listed. It is empty for a create and a
	// delete, and in a view if the change may have moved the relayer into or out of the view. For
	// a dry run it is never nil and has what would change: for a create or a delete, every field
	// of the JSON form.
	Changed []string `json:"changed,omitzero"`

	// PausedBy is the change that paused the relayer, without Revision, Action and Changed. Later
	// changes do not replace it. The create of a paused relayer counts as a pause. It is nil if
	// the relayer is not paused, or if that change is unknown. [Manager.History] omits it;
	// [Document.LastChange] has it in [Documents.History] too.
	PausedBy *ChangeInfo `json:"paused_by,omitempty"`
}

// Action is what a caller does to relayers. It names operations in metrics, logs and access
// rules. Later versions may add actions: code that permits actions must refuse those that it
// does not know.
type Action string

// The actions.
const (
	ActionCreate  Action = "create"
	ActionGet     Action = "get"
	ActionList    Action = "list"
	ActionWatch   Action = "watch"
	ActionUpdate  Action = "update"
	ActionPause   Action = "pause"
	ActionResume  Action = "resume"
	ActionDisable Action = "disable"
	ActionEnable  Action = "enable"
	ActionDelete  Action = "delete"

	// ActionReveal is [Manager.RPCURLs], or a read with [Documents.WithFullURLs]. A [Manager.Get]
	// is ActionGet.
	ActionReveal Action = "reveal"
)

// IsWrite reports whether the action changes relayers. It is true for an unknown action, and false
// for [ActionReveal]: grant that one separately.
func (a Action) IsWrite() bool {
	return a != ActionGet && a != ActionList && a != ActionWatch && a != ActionReveal
}

// IsID reports whether id can be the ID of a relayer: 1 to 64 of A–Z a–z 0–9 _ and -. The ID of an
// [Operation] can be a text for which it returns false.
func IsID(id string) bool {
	return id != "" && len(id) <= limits.ID && strings.Trim(id, idCharacters) == ""
}

const idCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

func idProblem(value string) string {
	return problemIf(!IsID(value), "must be 1 to 64 characters of A-Z a-z 0-9 _ and -")
}

func newRelayer(req CreateRequest) *Relayer {
	r := new(Relayer)
	strictjson.CopyFields(r, &req)
	return r
}
