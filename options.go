package relayer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/go-relayer/relayer/rpcguard"
)

// Option configures a [Manager], and the rules of [CreateRequest.Validate]. If an option is
// given more than once, the last one counts, except for [WithObserver] and [WithAdmission]. The
// zero Option is invalid.
type Option struct {
	set func(*settings)
	err error // if an argument is invalid
}

func errorIf(isInvalid bool, problem string) error {
	if isInvalid {
		return errors.New("relayer: " + problem)
	}
	return nil
}

type settings struct {
	observers        []Observer
	resolveAddress   func(context.Context, CreateRequest) (string, error)
	admissions       []func(ctx context.Context, operation Operation, old, changed *Relayer) error
	networkRules     bool
	exclusiveSigners bool
	rpcPolicy        *rpcguard.Policy
	maxPerPage       int
	maxRelayerSize   int
	checkType        func(settings json.RawMessage, found *problems) // of WithSettings; nil accepts any
}

func newSettings(options []Option) (settings, error) {
	s := settings{maxPerPage: 100, maxRelayerSize: 256 << 10}
	for _, option := range options {
		if err := cmp.Or(option.err, errorIf(option.set == nil, "option is empty")); err != nil {
			return settings{}, err
		}
		option.set(&s)
	}
	return s, nil
}

// WithAddressResolver sets the function that returns the address of a new relayer. Without it
// every signer is accepted and the address is "".
//
// In the request that it gets, only NetworkType, Network and SignerID are sure to be valid. It
// must not modify the request, and must be safe for concurrent use. It returns an error that
// matches [ErrUnknownSigner] for a signer that the host does not have, which rejects the request.
// Any other error is a fault of the host, as in [WithAdmission], and so is an address that cannot
// be stored. An address must have at most 256 characters of A-Z a-z 0-9 _ . : and -. With
// [WithNetworkRules] it must also be valid on the network.
func WithAddressResolver(resolve func(ctx context.Context, req CreateRequest) (address string, err error)) Option {
	return Option{func(s *settings) { s.resolveAddress = resolve }, errorIf(resolve == nil, "address resolver is nil")}
}

// WithNetworkRules checks that addresses (a resolver's too), accounts, assets, percentages and
// schedules are possible on their network. The network and the signer of a new relayer must not
// begin or end with a space. In an update or a patch, these rules check only the policy, as a
// whole. It is off by default, as in OpenZeppelin Relayer.
func WithNetworkRules() Option {
	return Option{set: func(s *settings) { s.networkRules = true }}
}

// DefaultPerPage is the number of relayers on a page if the caller gives no number, unless the
// maximum is lower.
const DefaultPerPage = 10

// WithMaxPerPage sets the maximum number of relayers of a page, from 1 to 2147483647.
// The default is 100. See [ListQuery.PerPage].
func WithMaxPerPage(most int) Option {
	problem := fmt.Sprintf("the maximum number of relayers of a page must be from 1 to %d", math.MaxInt32)
	return Option{func(s *settings) { s.maxPerPage = most }, errorIf(most < 1 || most > math.MaxInt32, problem)}
}

// WithMaxRelayerSize sets the maximum size of a relayer as stored, its document and its
// full RPC URLs, in bytes. The default is 262144, 256 KiB. A create, update or patch that
// exceeds it returns a [*ValidationError]. It bounds what a client can make a server read,
// send and keep in memory: patches of limited size add up.
//
// A relayer that was stored above the maximum can be read and deleted, and changed if it does not
// grow. Whatever the maximum, a list of a request has at most 10,000 elements. Pause, resume,
// disable and enable are always possible; a disable cuts the details off at 16 KiB.
func WithMaxRelayerSize(bytes int) Option {
	return Option{func(s *settings) { s.maxRelayerSize = bytes }, errorIf(bytes < 1, "the maximum size of a relayer must be at least 1 byte")}
}

// WithExclusiveSigners allows only one relayer for each signer and network: two relayers would
// use the same nonces. Spaces around both, and the letter case of the network, make no
// difference. The store enforces it atomically, by a claim that is stored with the relayer. An
// [ActionUpdate] without the option removes the claim. Create returns a problem of signer_id if
// another relayer has the claim. A delete frees it.
//
// It is off by default. A relayer that was stored without it has no claim, so a create can use its
// signer. The next update or patch that stores a change sets the claim, unless another relayer has
// it by then. Pause, resume, disable and enable do not.
func WithExclusiveSigners() Option {
	return Option{set: func(s *settings) { s.exclusiveSigners = true }}
}

// WithRPCPolicy rejects custom RPC URLs that the policy does not permit, in creates and in the
// changes that are checked ([Manager.Update], [Manager.Patch]). The problem names the field, such
// as custom_rpc_urls[0].url, and does not quote the URL.
//
// Stored relayers are not checked. Because a changed relayer is checked as a whole, a relayer
// with a URL that is no longer permitted can be changed only together with that URL. Pause,
// resume, disable, enable and delete are always possible. If sealed URLs are not opened (see
// [Manager.Update]), only their visible part is checked, and only if the whole host is visible.
//
// The Manager keeps a copy. [New] returns the error of [rpcguard.Policy.Validate].
func WithRPCPolicy(policy rpcguard.Policy) Option {
	policy.AllowedHosts, policy.AllowedAddresses = slices.Clone(policy.AllowedHosts), slices.Clone(policy.AllowedAddresses)
	return Option{func(s *settings) { s.rpcPolicy = &policy }, policy.Validate()}
}

// WithObserver calls observe for every operation: for metrics, traces and audit. If it is
// given more than once, all observers are called, in the order given; their functions for
// the end are called in the opposite order. [Manager.All] and [Manager.Check]
// are observed as the lists that they read. A watch is not observed.
func WithObserver(observe Observer) Option {
	return Option{func(s *settings) { s.observers = append(s.observers, observe) }, errorIf(observe == nil, "observer is nil")}
}

// WithAdmission calls admit before every write, so the host can refuse the write, such as a
// delete while transactions are pending. It does not call admit for [ActionPause] and
// [ActionDisable], the switches for emergencies. The [Operation] has all but the results. Old and
// changed are copies of the relayer before and after the write, both with the old revision. Old
// is nil for a create, and changed is nil for a delete. RPC URLs are masked if the store is an
// [Opener], or if they are sealed or damaged. The hook may read from the Manager: its reads are
// separate operations.
//
// A [Manager.Update], or a patch with other members than paused, is an [ActionUpdate] even if it
// pauses or disables too. To permit every pause, return nil for an ActionUpdate if changed.Paused
// && !old.Paused, whatever else changes. If admit returns an error, nothing is stored. The sender
// of an HTTP request sees the error only if it is a [*ValidationError], such as [Refuse] returns.
// Any other error is a fault of the server, and does not match the errors of this package or
// [errors.ErrUnsupported], even if it wraps one. Admit is not called if the write changes
// nothing. It is called again if another writer changes the relayer before the write is stored.
// It must be safe for concurrent use. If the option is given more than once, every function must
// admit the write.
func WithAdmission(admit func(ctx context.Context, operation Operation, old, changed *Relayer) error) Option {
	return Option{func(s *settings) { s.admissions = append(s.admissions, admit) }, errorIf(admit == nil, "admission is nil")}
}

// WriteOption is an option of a write: see [IfRevision], [DryRun] and [Reason]. The zero
// WriteOption is invalid.
type WriteOption struct {
	set func(*WriteSettings)
	err error
}

// IfRevision permits a change only if the current revision of the relayer is one of these
// (optimistic concurrency); otherwise the change returns [ErrConflict]. With several such options,
// each must permit it. Without this option, a change that loses a race against another writer is
// retried on the new revision.
//
// IfRevision() without arguments never permits the change. Revision 0, which no stored relayer
// has, is [ErrNoRevision]. A create, which has no current revision, ignores all other conditions.
func IfRevision(revisions ...uint64) WriteOption {
	if slices.Contains(revisions, 0) {
		return WriteOption{err: ErrNoRevision}
	}
	revisions = append([]uint64{}, revisions...) // never nil
	return WriteOption{set: func(s *WriteSettings) {
		if s.Revisions == nil {
			s.Revisions = revisions
		}
		s.Revisions = slices.DeleteFunc(slices.Clone(s.Revisions), func(revision uint64) bool { return !slices.Contains(revisions, revision) })
	}}
}

// DryRun runs the checks, hooks and conditions of the write, and stores nothing. The write
// returns what it would return, with the current revision, or revision 0 for a create. Of
// [Relayer.LastChange] only Changed is set: what the write would change, with custom_rpc_urls
// if the secret of a URL differs. A dry run does not detect what fails only when the store
// writes: a full store, new URLs that cannot be sealed, or the delete of a damaged relayer.
func DryRun() WriteOption {
	return WriteOption{set: func(s *WriteSettings) { s.DryRun = true }}
}

// AllRelayers permits a [Manager.PauseAll] or a [Manager.ResumeAll] with the zero [Selector], which
// selects all relayers. Other writes ignore it.
func AllRelayers() WriteOption {
	return WriteOption{set: func(s *WriteSettings) { s.All = true }}
}

// PausedBy limits a [Manager.ResumeAll] to the relayers that a request, such as a
// [Manager.PauseAll], has paused: see [BulkResult.RequestID] and [ChangeInfo.PausedBy]. What was
// paused before, or was resumed and paused again, stays paused. The ID must be 1 to 128 bytes of
// UTF-8 without control characters. Otherwise, and for a [Manager.PauseAll], the option is a
// [*ValidationError]. Other writes ignore a valid ID.
func PausedBy(requestID string) WriteOption {
	option := WriteOption{set: func(s *WriteSettings) { s.PausedBy = requestID }}
	switch {
	case requestID == "":
		option.err = invalid("paused_by", "must not be empty")
	case requestID != shortened(requestID, maxRequestIDLength):
		option.err = invalid("paused_by", fmt.Sprintf("must be at most %d bytes of UTF-8 without control characters", maxRequestIDLength))
	}
	return option
}

// Reason stores the text, without spaces around it, with the change. URLs in it are masked like
// an [RPCURL], and so is what looks like a key. The text has at most 256 characters
// on one line; otherwise the write returns a [*ValidationError]. A text that is longer after
// masking is cut off at 256 characters. The last of several reasons counts.
func Reason(text string) WriteOption {
	text = strings.Trim(text, " ") // as in a header
	isControl := problemIf(strings.ContainsFunc(text, unicode.IsControl), "must be one line without control characters")
	if problem := cmp.Or(isControl, textProblem(text, maxReasonLength)); problem != "" {
		return WriteOption{err: invalid("change_reason", problem)}
	}
	masked := maskedText(text) // it is logged and kept in the history
	return WriteOption{set: func(s *WriteSettings) { s.Reason = masked }}
}

// WriteSettings is the result of write options, for implementations of [Registry].
type WriteSettings struct {
	// Revisions are the current revisions at which the write is permitted. Nil permits
	// it at any revision; an empty list permits only a create.
	Revisions []uint64

	DryRun   bool   // the write is only checked: see [DryRun]
	Reason   string // the text of the last valid [Reason]
	All      bool   // the zero selector is permitted: see [AllRelayers]
	PausedBy string // the request ID of the last valid [PausedBy]
}

// NewWriteSettings combines options. It returns the settings of the valid options, and the first
// error of the others: [ErrNoRevision] if a condition has revision 0, a [*ValidationError] for an
// invalid [Reason] or [PausedBy], or the error of a zero option.
func NewWriteSettings(options ...WriteOption) (s WriteSettings, err error) {
	for _, option := range options {
		problem := cmp.Or(option.err, errorIf(option.set == nil, "write option is empty"))
		if err = cmp.Or(err, problem); problem == nil {
			option.set(&s)
		}
	}
	return s, err
}
