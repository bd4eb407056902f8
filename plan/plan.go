package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

// Plan is the difference between a configuration and a registry. [New] makes it, and it
// never changes: it shares no memory with the relayers that New gets. Its methods are safe
// for concurrent use.
type Plan struct {
	entries     []Entry // not nil in a plan of New
	isUnchecked bool    // the registry has not checked all changes
}

// Entries returns a copy of the entries, one for each relayer: first those of the
// configuration in its order, then the others of the registry in creation order.
func (p *Plan) Entries() []Entry {
	entries := slices.Clone(p.entries)
	for i, entry := range entries {
		entries[i].Changes, entries[i].Problems = slices.Clone(entry.Changes), slices.Clone(entry.Problems)
	}
	return entries
}

// MarshalJSON returns an object with the member entries and, only if the registry has not
// checked the changes and may reject some, "unchecked":true. It contains no secret.
func (p Plan) MarshalJSON() ([]byte, error) {
	return strictjson.Encode(struct {
		Entries     []Entry `json:"entries"`
		IsUnchecked bool    `json:"unchecked,omitempty"`
	}{p.entries, p.isUnchecked})
}

// Entry is what a plan does with one relayer. It contains no secret.
type Entry struct {
	ID     string `json:"id"`
	Action Action `json:"action"`

	// Changes are the fields that an update changes, or those of a create.
	Changes []Change `json:"changes,omitempty"`

	// Problems are the reasons for which the entry is Blocked.
	Problems []relayer.FieldError `json:"problems,omitempty"`

	// MaskedURLs reports that RPC URLs were compared only by their visible part,
	// because the registry masks them.
	MaskedURLs bool `json:"masked_rpc_urls,omitempty"`

	// apply is a function, so that an entry that is printed shows no request.
	apply writeFunc
}

// writeFunc makes the change of an entry. It may be called concurrently with others.
type writeFunc func(ctx context.Context, options ...relayer.WriteOption) error

// Action is what a plan does with a relayer.
type Action string

// The actions. The last three change nothing.
const (
	Create    Action = "create"
	Update    Action = "update"
	Delete    Action = "delete"
	Unchanged Action = "unchanged"
	Extra     Action = "extra"   // not in the configuration, and kept without [Options.Prune]
	Blocked   Action = "blocked" // the relayer cannot be made equal to the configuration
)

// Change is one field of an [Update] or a [Create], or a part of one.
type Change struct {
	// Path is the JSON path of the field, such as policies.min_balance, or
	// custom_rpc_urls[0].url of an update.
	Path string `json:"path"`

	// Old and New are the values as texts of JSON, with RPC URLs masked, or "" if not set.
	// If they are equal, the hidden parts of the URLs differ, or may differ.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// Options are options of [New]. The zero value plans all relayers of the registry, and
// deletes none.
type Options struct {
	// Prune deletes the relayers of the registry that the configuration does not list.
	Prune bool

	// KeepPaused leaves paused of existing relayers as it is. The configuration then
	// determines it only for new ones.
	KeepPaused bool

	// SendRPCURLs writes the RPC URLs of every relayer that has some, if the registry masks
	// them, although no difference is visible.
	SendRPCURLs bool

	// Selector limits the plan to the relayers that it selects, for example those of a team.
	// The others are not read, and so never deleted. An entry is [Blocked] if the selector
	// does not select the relayer of the configuration, or the stored one.
	Selector relayer.Selector
}

// New compares relayers with a registry. It reads all relayers in one pass of pages. Then it
// tries every change with [relayer.DryRun], if the registry supports and permits that: an
// entry that the registry rejects is [Blocked]. New returns a [*relayer.ValidationError] if a
// request is invalid, has no ID, or has the ID of another, and an error that matches
// [relayer.ErrSealed] if the registry has the wrong keys for its RPC URLs.
func New(ctx context.Context, registry relayer.Registry, relayers []relayer.CreateRequest, options Options) (*Plan, error) {
	if registry == nil {
		return nil, errors.New("plan: registry is nil")
	}
	if err := options.Selector.Err(); err != nil {
		return nil, err
	}
	relayers, err := checked(ctx, relayers)
	if err != nil {
		return nil, err
	}
	b := &builder{Options: options, Plan: &Plan{entries: []Entry{}}, registry: registry, isMasked: isMasked(registry)}
	if err := b.readAll(ctx); err != nil {
		return nil, err
	}
	for _, req := range relayers {
		if err := b.addDesired(req); err != nil {
			return nil, fmt.Errorf("%s: %w", req.ID, err)
		}
	}
	for _, r := range b.listed {
		if b.stored[r.ID] != nil {
			b.addExtra(r)
		}
	}
	if err := b.checkChanges(ctx); err != nil {
		return nil, err
	}
	return b.Plan, nil
}

var (
	errHidden     = errors.New("the ID is taken by a relayer that this token or selector may not use, or another writer has created it: choose another ID, or make the plan again")
	errNoRevision = errors.New("the registry returns no revision, so that a change could overwrite that of another writer")
)

// checkChanges tries the changes, and blocks those that the registry rejects.
func (b *builder) checkChanges(ctx context.Context) error {
	isRejected := func(err error) bool { return concernsOne(err) || errors.Is(err, relayer.ErrSealed) }
	for i, err := range tryAll(ctx, b.entries, isRejected, relayer.DryRun()) {
		switch {
		case err == nil:
		case errors.Is(err, relayer.ErrExists):
			b.entries[i] = blocked(b.entries[i].ID, errHidden)
		case isRejected(err):
			b.entries[i] = blocked(b.entries[i].ID, err)
		case isRefused(err):
			b.isUnchecked = true
		default:
			return fmt.Errorf("%s: %w", b.entries[i].ID, err)
		}
	}
	return nil
}

// isRefused reports whether the registry does not have an operation, or does not permit it.
func isRefused(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, wire.ErrForbidden)
}

func blocked(id string, err error) Entry {
	var problems wire.Problems
	problems.AddBelow("", err)
	return Entry{ID: id, Action: Blocked, Problems: problems}
}

func isMasked(registry relayer.Reader) bool {
	masking, ok := registry.(interface{ MasksRPCURLs() bool })
	return ok && masking.MasksRPCURLs()
}

// checked returns copies of the requests. It checks them like [Parse], because those of
// another origin may be invalid.
func checked(ctx context.Context, requests []relayer.CreateRequest) ([]relayer.CreateRequest, error) {
	found, ids := new(wire.Problems), make(positions)
	copies := make([]relayer.CreateRequest, len(requests))
	for i, req := range requests {
		if found.Full() {
			break
		}
		err := req.Validate(ctx)
		if err == nil {
			copies[i], err = wire.WithDefaults(req)
		}
		ids.add(i, req.ID, err, found)
	}
	return copies, found.Err()
}

type builder struct {
	Options
	*Plan
	registry relayer.Registry
	isMasked bool
	listed   []*relayer.Relayer          // in creation order
	stored   map[string]*relayer.Relayer // by ID, those that are not compared yet
}

func (b *builder) readAll(ctx context.Context) error {
	b.stored = make(map[string]*relayer.Relayer)
	for r, err := range b.registry.All(ctx, b.Selector) {
		if err != nil {
			return err
		}
		own := *r
		own.CustomRPCURLs = slices.Clone(r.CustomRPCURLs)
		if !b.isMasked {
			err = reveal(ctx, b.registry, &own)
		}
		if isRefused(err) {
			b.isMasked = true
		} else if err != nil {
			return err
		}
		b.listed = append(b.listed, &own)
		b.stored[r.ID] = &own
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

// reveal replaces masked RPC URLs by the full ones, if the registry has them. If it cannot
// open them, the error matches [relayer.ErrSealed], and [errors.ErrUnsupported] too if it has
// no keys.
func reveal(ctx context.Context, registry relayer.Reader, r *relayer.Relayer) error {
	source, ok := registry.(relayer.Registry)
	isHidden := func(endpoint relayer.RPCConfig) bool { return endpoint.URL.IsMasked() }
	if !ok || isMasked(registry) || !slices.ContainsFunc(r.CustomRPCURLs, isHidden) {
		return nil
	}
	endpoints, err := source.RPCURLs(ctx, r.ID)
	if errors.Is(err, relayer.ErrNotFound) {
		return nil // deleted since
	}
	if err == nil {
		r.CustomRPCURLs = slices.Clone(endpoints)
	}
	return err
}

func (b *builder) addDesired(req relayer.CreateRequest) error {
	stored := b.stored[req.ID]
	delete(b.stored, req.ID)
	if stored != nil && b.KeepPaused {
		req.Paused = stored.Paused
	}
	isSelected, err := b.selects(req, stored)
	if err != nil {
		return err
	}
	entry := blocked(req.ID, fmt.Errorf("the selector %s does not select the relayer of the file", b.Selector))
	if isSelected {
		entry, err = b.compare(req, stored)
	}
	if entry.Action == Update && stored.Revision == 0 {
		entry = blocked(req.ID, errNoRevision)
	}
	b.entries = append(b.entries, entry)
	return err
}

// selects reports whether the selector selects the relayer as the configuration has it.
func (b *builder) selects(req relayer.CreateRequest, stored *relayer.Relayer) (bool, error) {
	if b.Selector.IsZero() {
		return true, nil
	}
	var planned relayer.Relayer
	body, err := req.MarshalUnmasked()
	if err == nil {
		err = planned.UnmarshalJSON(body)
	}
	planned.SystemDisabled = stored != nil && stored.SystemDisabled
	return b.Selector.Matches(&planned), err
}

func (b *builder) addExtra(r *relayer.Relayer) {
	entry := Entry{ID: r.ID, Action: Extra}
	switch {
	case b.Prune && r.Revision == 0:
		entry = blocked(r.ID, errNoRevision)
	case b.Prune:
		entry.Action, entry.apply = Delete, b.deletion(r)
	}
	b.entries = append(b.entries, entry)
}

// deletion returns the delete of a relayer. A relayer that is deleted already is no
// failure.
func (b *builder) deletion(r *relayer.Relayer) writeFunc {
	return func(ctx context.Context, options ...relayer.WriteOption) error {
		err := b.registry.Delete(ctx, r.ID, underRevision(r, options)...)
		if errors.Is(err, relayer.ErrNotFound) {
			return nil
		}
		return err
	}
}

func underRevision(r *relayer.Relayer, options []relayer.WriteOption) []relayer.WriteOption {
	return append([]relayer.WriteOption{relayer.IfRevision(r.Revision)}, options...)
}

// HasChanges reports whether Apply would change the registry.
func (p *Plan) HasChanges() bool {
	changes, deletes := pending(p.entries)
	return len(changes)+len(deletes) > 0
}

// Err returns an error for every entry that is [Blocked], or nil if none is. The errors
// match [relayer.ErrInvalid].
func (p *Plan) Err() error { return errors.Join(problemsOf(p.entries)...) }

func problemsOf(entries []Entry) (all []error) {
	for _, entry := range entries {
		if entry.Action == Blocked {
			all = append(all, fmt.Errorf("%s: %w", entry.ID, &relayer.ValidationError{Fields: slices.Clone(entry.Problems)}))
		}
	}
	return all
}
