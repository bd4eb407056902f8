package relayer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Manager is the registry: it says which relayers exist and what each may do.
// All its methods are safe for concurrent use.
//
// A Manager keeps no relayer itself but in the [Store], which the host opens and
// closes. Several Managers may share a store.
type Manager struct {
	store     Store
	documents DocumentStore

	resolveAddress   AddressResolver
	mayDelete        DeleteGuard
	observers        []Observer
	logger           *slog.Logger
	networkRules     bool
	exclusiveSigners bool
	rpcPolicy        *RPCPolicy
	maxPerPage       uint32

	writing  idLocks
	watchers watchers
}

// New returns a Manager on the store. It returns an error where the store is
// nil or an option is wrong.
func New(store Store, options ...Option) (*Manager, error) {
	if store == nil {
		return nil, errors.New("relayer: store is nil")
	}
	m := &Manager{
		store:      store,
		documents:  documentsOf(store),
		logger:     slog.New(slog.DiscardHandler),
		maxPerPage: DefaultMaxPerPage,
	}
	for _, option := range options {
		if option == nil {
			return nil, errors.New("relayer: option is nil")
		}
		if err := option(m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Create adds a relayer and returns it as stored. It returns a
// [*ValidationError] naming every field that breaks a rule, and [ErrExists]
// where the id is taken. When it returns nil the relayer is as durable as the
// store makes it.
func (m *Manager) Create(ctx context.Context, req CreateRequest) (r *Relayer, err error) {
	defer m.observe(ctx, OperationCreate, &req.ID, begin(&err), &err)
	rec, err := m.create(ctx, &req, new(problems))
	if err != nil {
		return nil, err
	}
	return relayerOf(rec)
}

// Get returns the relayer, or [ErrNotFound].
func (m *Manager) Get(ctx context.Context, id string) (r *Relayer, err error) {
	defer m.observe(ctx, OperationGet, &id, begin(&err), &err)
	if !isID(id) {
		return nil, ErrNotFound
	}
	rec, err := m.store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return relayerOf(rec)
}

// Page is one page of the list of all relayers.
type Page struct {
	Relayers   []*Relayer
	Pagination Pagination
}

// List returns one page of all relayers in creation order, oldest first. Pages
// start at 1, and page 0 is the first page too. More than the maximum per page
// (see [WithMaxPerPage]) is lowered to it, and Pagination.PerPage tells. A page
// past the end, or one of 0 relayers, is empty and has the right total.
func (m *Manager) List(ctx context.Context, page, perPage uint32) (listed *Page, err error) {
	defer m.observe(ctx, OperationList, new(string), begin(&err), &err)
	pagination, offset := m.paginate(page, perPage)
	records, total, err := m.store.List(ctx, offset, int(pagination.PerPage))
	if err != nil {
		return nil, err
	}
	pagination.TotalItems = total
	listed = &Page{Relayers: make([]*Relayer, 0, len(records)), Pagination: pagination}
	for _, rec := range records {
		r, err := relayerOf(rec)
		if err != nil {
			return nil, err
		}
		listed.Relayers = append(listed.Relayers, r)
	}
	return listed, nil
}

// All returns every relayer in creation order, oldest first. It reads a page at
// a time, so that it holds up no writer. A relayer that exists all the while is
// returned exactly once, whatever is created, changed or deleted meanwhile, and
// no id is returned twice; for that it remembers the ids it has returned. It
// ends after the first error.
func (m *Manager) All(ctx context.Context) iter.Seq2[*Relayer, error] {
	return func(yield func(*Relayer, error) bool) {
		for rec, err := range m.allRecords(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			r, err := relayerOf(rec)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// allBatch is how many records allRecords reads at a time, and allOverlap how
// many of them it has read before.
const (
	allBatch   = 100
	allOverlap = 10
)

// allRecords walks the list by offset. A delete moves all later records
// forward, so that an offset counted by what was read can overshoot. A record
// that still stands at the revision it was read at has not been created anew
// since, so that all that comes before it has been read too: the walk is on
// track where a batch has such a record in it, and otherwise it steps back. The
// overlap is of several, so that one that changes all the time does not hold up
// the walk.
func (m *Manager) allRecords(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		read := make(map[string]uint64) // the revision by id
		offset := 0
		for {
			batch, err := m.batch(ctx, offset)
			if err != nil {
				yield(Record{}, err)
				return
			}
			wasRead := func(rec Record) bool { return read[rec.ID] == rec.Revision }
			if offset > 0 && !slices.ContainsFunc(batch, wasRead) {
				offset = max(0, offset-allBatch)
				continue
			}
			for _, rec := range batch {
				_, known := read[rec.ID]
				read[rec.ID] = rec.Revision
				if !known && !yield(rec, nil) {
					return
				}
			}
			if len(batch) < allBatch {
				return
			}
			offset += allBatch - allOverlap
		}
	}
}

func (m *Manager) batch(ctx context.Context, offset int) (batch []Record, err error) {
	defer m.observe(ctx, OperationList, new(string), begin(&err), &err)
	batch, _, err = m.store.List(ctx, offset, allBatch)
	return batch, err
}

// paginate returns the page that is really meant, without its total, and the
// number of relayers before it.
func (m *Manager) paginate(page, perPage uint32) (Pagination, int) {
	page = max(page, 1)
	perPage = min(perPage, m.maxPerPage)
	// Both factors are below 2^32, so the product fits.
	offset := min(uint64(page-1)*uint64(perPage), math.MaxInt)
	return Pagination{CurrentPage: page, PerPage: perPage}, int(offset)
}

// create checks the request and stores the relayer that it asks for. Problems
// found before are told along with those found here. An id that is left out is
// made, and filled in.
func (m *Manager) create(ctx context.Context, req *CreateRequest, found *problems) (Record, error) {
	m.check(*req, found)
	address, err := m.addressOf(ctx, *req, found)
	if problem := found.err(); problem != nil {
		return Record{}, problem
	}
	if err != nil {
		return Record{}, err
	}
	if req.ID == "" {
		made, err := uuid.NewV7()
		if err != nil {
			return Record{}, fmt.Errorf("relayer: making an id: %w", err)
		}
		req.ID = made.String()
	}
	rec, err := m.newRecord(newRelayer(*req, address))
	if err != nil {
		return Record{}, err
	}
	created, err := m.write(ctx, rec.ID, Created, func() (Record, error) { return m.store.Create(ctx, rec) })
	if errors.Is(err, ErrClaimed) {
		err = claimedError()
	}
	return created, err
}

// check adds to found what is wrong with the request in itself.
func (m *Manager) check(req CreateRequest, found *problems) {
	checkRules(&req, found)
	if m.rpcPolicy != nil {
		m.rpcPolicy.checkURLs(req.CustomRPCURLs, found)
	}
	if isNil(req.Policies) {
		return
	}
	if !isKnown(req.Policies) {
		found.Add("policies", "must be an evm, a solana or a stellar policy")
		return
	}
	if req.Policies.NetworkType() != req.NetworkType {
		found.Add("policies", fmt.Sprintf("must be the policy of the network type, not that of %s", req.Policies.NetworkType()))
		return
	}
	if m.networkRules {
		req.Policies.checkNetworkRules(found)
	}
}

// addressOf asks the host for the relayer's address. A request whose signer or
// network is wrong already is not worth the question.
func (m *Manager) addressOf(ctx context.Context, req CreateRequest, found *problems) (string, error) {
	if m.resolveAddress == nil || found.has("signer_id") || found.has("network") || found.has("network_type") {
		return "", nil
	}
	address, err := m.resolveAddress(ctx, req.SignerID, req.NetworkType, req.Network)
	if errors.Is(err, ErrUnknownSigner) {
		found.Add("signer_id", "must be a signer that exists for this network")
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("relayer: resolving the address of a signer: %w", err)
	}
	if problem := m.addressProblem(address, req.NetworkType); problem != "" {
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
func (m *Manager) addressProblem(address string, networkType NetworkType) string {
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
	if m.networkRules {
		return networkAddressProblem(address, networkType)
	}
	return ""
}

// newRelayer returns the relayer that a valid request asks for. It shares
// nothing with the request that it changes.
func newRelayer(req CreateRequest, address string) *Relayer {
	return &Relayer{
		ID:             req.ID,
		Name:           req.Name,
		Network:        req.Network,
		NetworkType:    req.NetworkType,
		Address:        address,
		Paused:         req.Paused,
		SignerID:       req.SignerID,
		NotificationID: req.NotificationID,
		CustomRPCURLs:  withDefaultWeights(req.CustomRPCURLs),
		Policies:       withPolicyDefaults(req.Policies, req.NetworkType),
	}
}

func withDefaultWeights(endpoints []RPCConfig) []RPCConfig {
	endpoints = slices.Clone(endpoints)
	for i := range endpoints {
		if endpoints[i].Weight == nil {
			endpoints[i].Weight = new(DefaultRPCWeight)
		}
	}
	return endpoints
}

// withPolicyDefaults returns the policy to store: a policy of the network type
// even where none was given, with what spec section 2.4 gives a default for.
func withPolicyDefaults(policy Policy, networkType NetworkType) Policy {
	if isNil(policy) {
		policy = newPolicy(networkType)
	}
	solana, ok := policy.(*SolanaPolicy)
	if !ok || solana.FeePaymentStrategy != nil {
		return policy
	}
	completed := *solana
	completed.FeePaymentStrategy = new(FeePaidByUser)
	return &completed
}

// isNil tells whether there is no policy: none at all, or a nil pointer.
func isNil(policy Policy) bool {
	switch policy := policy.(type) {
	case *EVMPolicy:
		return policy == nil
	case *SolanaPolicy:
		return policy == nil
	case *StellarPolicy:
		return policy == nil
	default:
		return policy == nil
	}
}

// isKnown tells whether the policy is of this package. Another type can pass for
// one by embedding it; what it adds would be lost.
func isKnown(policy Policy) bool {
	switch policy.(type) {
	case *EVMPolicy, *SolanaPolicy, *StellarPolicy:
		return true
	default:
		return false
	}
}
