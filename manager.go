package relayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Manager is the registry of relayers. All its methods are safe for concurrent
// use.
//
// A Manager keeps all relayers in a [Store], which the host opens and closes.
// Several Managers may share a store.
type Manager struct {
	store  Store
	scope  Selector       // of a view
	writes *runningWrites // shared with its views
	settings
}

// New returns a Manager that keeps its relayers in store. It returns an error if
// store or an option is nil, or an option is invalid.
func New(store Store, options ...Option) (*Manager, error) {
	if store == nil {
		return nil, errors.New("relayer: store is nil")
	}
	s, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	return &Manager{store: store, writes: new(runningWrites), settings: s}, nil
}

// Within returns a view of the relayers that the selector selects, with the same store and
// options. To the view, the other relayers do not exist: reads and changes of one return
// [ErrNotFound]. A write that would create a relayer outside of the selection, or move one
// out of it, returns a [*ValidationError]. IDs remain unique in the store, so that a create
// returns [ErrExists] for the ID of any relayer. Views of views intersect.
//
// The selector must be valid and have no search; otherwise every operation of the view
// returns an error.
func (m *Manager) Within(selector Selector) *Manager {
	view := *m
	if selector.hasSearch() {
		selector = Selector{err: invalid(keySearch, "must not be part of a selector of a view")}
	}
	view.scope = m.scope.And(selector)
	return &view
}

// selection returns the selector within that of the Manager.
func (m *Manager) selection(selector Selector) (Selector, error) {
	selector = m.scope.And(selector)
	return selector, selector.Err()
}

// Validate returns a [*ValidationError] with every problem for which a [Manager] with these
// options would reject the request, or nil. Limits of pages and hooks other than that of
// [WithAddressResolver] have no effect. It does not detect what depends on the stored
// relayers: a taken ID, an exclusive signer, and masked RPC URLs, which a program may
// replace by the stored ones.
func (r CreateRequest) Validate(ctx context.Context, options ...Option) error {
	s, err := newSettings(options)
	if err != nil {
		return err
	}
	return s.validate(ctx, newRelayer(r), new(problems))
}

func (s *settings) validate(ctx context.Context, r *Relayer, found *problems) error {
	rec, err := s.prepare(ctx, r, found)
	if err != nil {
		return err
	}
	return s.checkSize(rec, Record{})
}

// prepare returns the record to store for a new relayer, and sets its ID and address.
func (s *settings) prepare(ctx context.Context, r *Relayer, found *problems) (Record, error) {
	s.check(r, found)
	if s.networkRules {
		checkOuterSpaces(found, "network", r.Network)
		checkOuterSpaces(found, "signer_id", r.SignerID)
	}
	address, err := s.addressOf(ctx, r, found)
	if problem := found.err(); problem != nil {
		return Record{}, problem
	}
	if err != nil {
		return Record{}, err
	}
	r.Address = address
	if r.ID == "" {
		generated, err := uuid.NewV7()
		if err != nil {
			return Record{}, fmt.Errorf("relayer: generating an ID: %w", err)
		}
		r.ID = generated.String()
	}
	return s.newRecord(r)
}

// checkSize returns an error if a record exceeds the maximum size and is larger than
// before.
func (s *settings) checkSize(rec, before Record) error {
	size := recordSize(rec)
	if size <= s.maxRelayerSize || size <= recordSize(before) {
		return nil
	}
	return invalid("", fmt.Sprintf("the relayer must be at most %d bytes as stored, not %d", s.maxRelayerSize, size))
}

// recordSize returns the size of a record in bytes, as if the relayer was not paused, so
// that none is too large to resume.
func recordSize(rec Record) int {
	size := len(rec.Document) + len(rec.Private)
	if bytes.Contains(rec.Document, []byte(`"paused":true`)) {
		size += len("false") - len("true")
	}
	return size
}

func (s *settings) check(r *Relayer, found *problems) {
	checkRules(r, found)
	checkLabels(r.Labels, found)
	if s.rpcPolicy != nil {
		s.rpcPolicy.checkURLs(r.CustomRPCURLs, found)
	}
	if r.Policy == nil || isNil(r.Policy) && reflect.TypeOf(r.Policy) == reflect.TypeOf(newPolicy(r.NetworkType)) {
		return
	}
	if !isKnown(r.Policy) {
		found.Add("policies", "must be a policy of one of the network types "+networkTypeList())
		return
	}
	if r.Policy.NetworkType() != r.NetworkType {
		found.Add("policies", otherPolicyMessage(r.Policy))
		return
	}
	if s.networkRules {
		r.Policy.checkNetworkRules(found)
	}
}

// addressOf resolves the address of a relayer, unless its signer or network is
// invalid.
func (s *settings) addressOf(ctx context.Context, r *Relayer, found *problems) (string, error) {
	if s.resolveAddress == nil || found.has("signer_id") || found.has("network") || found.has("network_type") {
		return "", nil
	}
	address, err := s.resolveAddress(ctx, requestOf(r))
	if errors.Is(err, ErrUnknownSigner) {
		found.Add("signer_id", "must be a signer that exists for this network")
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("relayer: resolving the address of a signer: %w", faultError{err})
	}
	if problem := s.addressProblem(address, r.NetworkType); problem != "" {
		// It is not a ValidationError, because the client cannot correct it, and
		// does not quote the address, because a wrong one may be a secret.
		return "", errors.New("relayer: the address from the address resolver " + problem)
	}
	return address, nil
}

// maxAddressLength is the length in bytes of the longest address that a resolver
// may return. It is more than any network needs.
const maxAddressLength = 256

// addressProblem returns why an address from the resolver cannot be stored, or "".
func (s *settings) addressProblem(address string, networkType NetworkType) string {
	if problem := strictjson.TextProblem(address); problem != "" {
		return problem
	}
	if len(address) > maxAddressLength {
		return fmt.Sprintf("must be at most %d bytes", maxAddressLength)
	}
	if strings.ContainsFunc(address, isControlOrSpace) {
		return "must not contain spaces or control characters"
	}
	if strings.Contains(address, "://") {
		return "must not be a URL"
	}
	if strings.Contains(address, "@") {
		return "must not contain @, which could follow credentials"
	}
	if s.networkRules {
		return networkAddressProblem(address, networkType)
	}
	return ""
}
