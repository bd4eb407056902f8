package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Plan is the difference between a configuration and a registry.
type Plan struct {
	// Entries has one entry for each relayer: first those of the configuration in its
	// order, then the others of the registry in creation order.
	Entries []Entry

	prune       bool
	keepPaused  bool
	sendURLs    bool
	selector    relayer.Selector
	isUnchecked bool // the registry has not checked all changes
}

// Entry is what a plan does with one relayer. It contains no secret.
type Entry struct {
	ID     string
	Action Action

	// Changes are the fields that an update changes, or those of a create.
	Changes []Change

	// Problems are the reasons for which the entry is Blocked.
	Problems []relayer.FieldError

	// MaskedURLs reports that RPC URLs were compared only by their visible part,
	// because the registry masks them.
	MaskedURLs bool

	// apply is a function, so that an entry that is printed shows no request.
	apply func(ctx context.Context, options ...relayer.WriteOption) error
}

// Action is what a plan does with a relayer.
type Action string

// The actions. The last three change nothing.
const (
	Create    Action = "create"
	Update    Action = "update"
	Delete    Action = "delete"
	Unchanged Action = "unchanged"
	Extra     Action = "extra"   // not in the configuration, and kept without WithPrune
	Blocked   Action = "blocked" // the relayer cannot be made equal to the configuration
)

// Change is one field of an [Update] or a [Create], or a part of one.
type Change struct {
	// Path is the JSON path of the field, such as policies.min_balance.
	Path string

	// Old and New are the values as JSON, with RPC URLs masked, or "" if not set. If
	// they are equal, the hidden parts of the URLs differ, or may differ.
	Old, New string
}

// Option configures [New]. The zero Option is invalid.
type Option struct{ apply func(*Plan) error }

// WithPrune deletes the relayers of the registry that the configuration does not list.
func WithPrune() Option {
	return Option{func(p *Plan) error {
		p.prune = true
		return nil
	}}
}

// WithKeepPaused leaves paused of existing relayers as it is. The configuration then
// determines it only for new ones.
func WithKeepPaused() Option {
	return Option{func(p *Plan) error {
		p.keepPaused = true
		return nil
	}}
}

// WithSendRPCURLs writes the RPC URLs of every relayer that has some, if the registry masks
// them, although no difference is visible.
func WithSendRPCURLs() Option {
	return Option{func(p *Plan) error {
		p.sendURLs = true
		return nil
	}}
}

// WithSelector limits the plan to the relayers that the selector selects, for example those
// of a team. The others are not read, and so never deleted. An entry is [Blocked] if the
// selector does not select the relayer of the configuration, or the stored one.
func WithSelector(selector relayer.Selector) Option {
	return Option{func(p *Plan) error {
		p.selector = selector
		return selector.Err()
	}}
}

// New compares relayers with a registry. It reads all relayers in one pass of pages, and
// again only those that differ, if the list has no revisions. Then it tries every change
// with [relayer.DryRun], if the registry supports and permits that: an entry that the
// registry rejects is [Blocked]. New returns a [*relayer.ValidationError] if a request is
// invalid, has no ID, or has the ID of another, and an error that matches
// [relayer.ErrSealed] if a Manager has the wrong keys for its RPC URLs.
func New(ctx context.Context, registry relayer.Registry, relayers []relayer.CreateRequest, options ...Option) (*Plan, error) {
	if registry == nil {
		return nil, errors.New("plan: registry is nil")
	}
	p := new(Plan)
	for _, option := range options {
		if option.apply == nil {
			return nil, errors.New("plan: option is empty")
		}
		if err := option.apply(p); err != nil {
			return nil, err
		}
	}
	if err := check(ctx, relayers); err != nil {
		return nil, err
	}
	b := &builder{Plan: p, registry: registry, isMasked: isMasked(registry)}
	if err := b.readAll(ctx); err != nil {
		return nil, err
	}
	for _, req := range relayers {
		if err := b.addDesired(ctx, req.WithDefaults()); err != nil {
			return nil, fmt.Errorf("%s: %w", req.ID, err)
		}
	}
	for _, r := range b.listed {
		if err := b.addExtra(ctx, r); err != nil {
			return nil, fmt.Errorf("%s: %w", r.ID, err)
		}
	}
	return p, b.checkChanges(ctx)
}

// checkChanges tries the changes, and blocks those that the registry rejects.
func (b *builder) checkChanges(ctx context.Context) error {
	for i, entry := range b.Entries {
		if entry.apply == nil {
			continue
		}
		err := entry.apply(ctx, relayer.DryRun())
		switch {
		case err == nil:
		case errors.Is(err, relayer.ErrExists):
			taken, err := b.taken(ctx, entry.ID)
			if err != nil {
				return fmt.Errorf("%s: %w", entry.ID, err)
			}
			b.Entries[i] = taken
		case concernsOne(err), errors.Is(err, relayer.ErrSealed):
			b.Entries[i] = blocked(entry.ID, err)
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, wire.ErrForbidden):
			b.isUnchecked = true
			return nil
		default:
			return fmt.Errorf("%s: %w", entry.ID, err)
		}
	}
	return nil
}

// taken returns the entry of a relayer to create whose ID exists, although the registry did
// not list it.
func (b *builder) taken(ctx context.Context, id string) (Entry, error) {
	other, err := b.read(ctx, id)
	if err != nil {
		return Entry{}, err
	}
	if other == nil {
		return blockedEntry(id, "the ID is taken by a relayer that this token may not use: choose another ID"), nil
	}
	return blockedEntry(id, "the relayer was created by another writer: make the plan again"), nil
}

func blocked(id string, err error) Entry {
	if invalid, ok := errors.AsType[*relayer.ValidationError](err); ok {
		return Entry{ID: id, Action: Blocked, Problems: invalid.Fields}
	}
	return blockedEntry(id, err.Error())
}

func blockedEntry(id, problem string) Entry {
	return Entry{ID: id, Action: Blocked, Problems: []relayer.FieldError{{Message: problem}}}
}

func isMasked(registry relayer.Reader) bool {
	masking, ok := registry.(interface{ MasksRPCURLs() bool })
	return ok && masking.MasksRPCURLs()
}

// check checks requests like [Parse]: those of another origin may be invalid.
func check(ctx context.Context, requests []relayer.CreateRequest) error {
	found, ids := new(wire.Problems), make(positions)
	for i, req := range requests {
		if found.Full() {
			break
		}
		if err := req.Validate(ctx); err != nil {
			found.AddBelow(relayerPath(i), err)
			continue
		}
		ids.add(i, req.ID, found)
	}
	return found.Err()
}

type builder struct {
	*Plan
	registry relayer.Registry
	isMasked bool
	listed   []*relayer.Relayer          // in creation order
	stored   map[string]*relayer.Relayer // by ID
	desired  map[string]bool             // by ID
}

func (b *builder) readAll(ctx context.Context) error {
	b.stored, b.desired = make(map[string]*relayer.Relayer), make(map[string]bool)
	for r, err := range b.registry.All(ctx, b.selector) {
		if err != nil {
			return err
		}
		if err := reveal(ctx, b.registry, r); errors.Is(err, errors.ErrUnsupported) {
			b.isMasked = true
		} else if err != nil {
			return err
		}
		b.listed = append(b.listed, r)
		b.stored[r.ID] = r
	}
	if b.isMasked {
		b.mask()
	}
	return nil
}

// mask gives all RPC URLs the form in which servers return them.
func (b *builder) mask() {
	for _, r := range b.listed {
		for i, endpoint := range r.CustomRPCURLs {
			r.CustomRPCURLs[i].URL = relayer.RPCURL(endpoint.URL.String())
		}
	}
}

// reveal replaces masked RPC URLs by the full ones, if the registry is a Manager. It
// returns an error that matches [relayer.ErrSealed] if the Manager cannot open them, and
// [errors.ErrUnsupported] too if it has no keys.
func reveal(ctx context.Context, registry relayer.Reader, r *relayer.Relayer) error {
	isMasked := func(endpoint relayer.RPCConfig) bool { return endpoint.URL.IsMasked() }
	manager, ok := registry.(*relayer.Manager)
	if !ok || !slices.ContainsFunc(r.CustomRPCURLs, isMasked) {
		return nil
	}
	endpoints, err := manager.RPCURLs(ctx, r.ID)
	if errors.Is(err, relayer.ErrNotFound) {
		return nil // deleted since
	}
	if err != nil {
		return err
	}
	r.CustomRPCURLs = endpoints
	return nil
}

// revealIfSupported leaves RPC URLs masked if the Manager has no keys. With wrong keys it
// returns an error, because their URLs would look like equal ones.
func revealIfSupported(ctx context.Context, registry relayer.Reader, r *relayer.Relayer) error {
	if err := reveal(ctx, registry, r); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

func (b *builder) addDesired(ctx context.Context, req relayer.CreateRequest) error {
	b.desired[req.ID] = true
	stored := b.stored[req.ID]
	problem, err := b.selectionProblem(ctx, req, stored)
	if err != nil {
		return err
	}
	if problem != "" {
		b.Entries = append(b.Entries, blockedEntry(req.ID, problem))
		return nil
	}
	entry, err := b.compare(req, stored)
	if err != nil {
		return err
	}
	if entry.Action == Update && stored.Revision == 0 {
		// The list has no revisions. The relayer may have changed since.
		if stored, err = b.read(ctx, req.ID); err != nil {
			return err
		}
		if entry, err = b.compare(req, stored); err != nil {
			return err
		}
	}
	if entry.Action == Update && stored.Revision == 0 {
		entry = withoutRevision(req.ID)
	}
	b.Entries = append(b.Entries, entry)
	return nil
}

// selectionProblem returns why a relayer is outside of the selector, or "".
func (b *builder) selectionProblem(ctx context.Context, req relayer.CreateRequest, stored *relayer.Relayer) (string, error) {
	if b.selector.IsZero() {
		return "", nil
	}
	planned := relayer.Relayer{
		ID: req.ID, Name: req.Name, Network: req.Network, NetworkType: req.NetworkType, Paused: req.Paused,
		SignerID: req.SignerID, NotificationID: req.NotificationID, Labels: req.Labels,
	}
	if stored != nil {
		planned.SystemDisabled = stored.SystemDisabled
		if b.keepPaused {
			planned.Paused = stored.Paused
		}
	}
	if !b.selector.Matches(&planned) {
		return fmt.Sprintf("the selector %s does not select the relayer of the file", b.selector), nil
	}
	if stored != nil {
		return "", nil
	}
	other, err := b.read(ctx, req.ID)
	if err != nil || other == nil {
		return "", err
	}
	return fmt.Sprintf("the selector %s does not select the stored relayer with this ID", b.selector), nil
}

// withoutRevision returns the entry of a relayer that cannot be changed conditionally.
func withoutRevision(id string) Entry {
	return blockedEntry(id, "the registry returns no revision, so that a change could overwrite that of another writer")
}

func (b *builder) addExtra(ctx context.Context, r *relayer.Relayer) (err error) {
	if b.desired[r.ID] {
		return nil
	}
	if !b.prune {
		b.Entries = append(b.Entries, Entry{ID: r.ID, Action: Extra})
		return nil
	}
	if r.Revision == 0 {
		r, err = b.read(ctx, r.ID)
		if r == nil || err != nil {
			return err // deleted since
		}
	}
	entry := withoutRevision(r.ID)
	if r.Revision != 0 {
		entry = Entry{ID: r.ID, Action: Delete, apply: b.deletion(r)}
	}
	b.Entries = append(b.Entries, entry)
	return nil
}

// deletion returns the delete of a relayer. A relayer that is deleted already is no
// failure.
func (b *builder) deletion(r *relayer.Relayer) func(context.Context, ...relayer.WriteOption) error {
	return func(ctx context.Context, options ...relayer.WriteOption) error {
		err := b.registry.Delete(ctx, r.ID, append(options, relayer.IfRevision(r.Revision))...)
		if errors.Is(err, relayer.ErrNotFound) {
			return nil
		}
		return err
	}
}

// read returns a relayer, or nil if it does not exist.
func (b *builder) read(ctx context.Context, id string) (*relayer.Relayer, error) {
	r, err := b.registry.Get(ctx, id)
	if errors.Is(err, relayer.ErrNotFound) {
		return nil, nil
	}
	return r, err
}

// HasChanges reports whether Apply would change the registry.
func (p *Plan) HasChanges() bool {
	changes, deletes := p.pending()
	return len(changes)+len(deletes) > 0
}

// Err returns an error for every entry that is [Blocked], or nil if none is. The errors
// match [relayer.ErrInvalid].
func (p *Plan) Err() error {
	var all []error
	for _, entry := range p.Entries {
		if entry.Action == Blocked {
			all = append(all, fmt.Errorf("%s: %w", entry.ID, &relayer.ValidationError{Fields: entry.Problems}))
		}
	}
	return errors.Join(all...)
}
