package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Plan is the difference between a configuration and a registry. [New] makes it, and it
// never changes: it shares no memory with the relayers that New gets. Its methods are safe
// for concurrent use.
type Plan struct {
	entries     []Entry // not nil in a plan of New
	isUnchecked bool    // the registry has not checked all changes
	isEmpty     bool    // the configuration has no relayers
	maxDeletes  int     // 0 if it is not given
}

// Entries returns the entries, one for each relayer: first those of the configuration in its
// order, then the others of the registry in creation order. Their changes and problems must not
// be modified.
func (p *Plan) Entries() []Entry { return slices.Clone(p.entries) }

// Entry is what a plan does with one relayer. It contains no secret.
type Entry struct {
	ID     string `json:"id"`
	Action Action `json:"action"`

	// Changes are the fields whose JSON differs, or all fields of a create.
	Changes []Change `json:"changes,omitempty"`

	// Problems are the reasons for which the entry is Blocked.
	Problems []relayer.FieldError `json:"problems,omitempty"`

	// apply makes the change, and returns what a dry run would change. It may run concurrently
	// with those of other entries. It is a function, so an entry that is printed shows no request.
	apply func(ctx context.Context, options ...relayer.WriteOption) (changed []string, err error)

	// urls are the masked RPC URLs of an update that sends them, until its dry run has shown
	// whether they change.
	urls string
}

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

// Change is a field, or a part of a field, of an [Update] or [Create].
type Change struct {
	// Path is the JSON path of the field, such as policies.min_balance.
	Path string `json:"path"`

	// Old and New are the values as texts of JSON, with RPC URLs masked, or "" if not set. If
	// they are equal, hidden parts differ.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// Options are options of [New]. The zero value plans all relayers of the registry, and
// deletes none.
type Options struct {
	// Prune deletes the relayers of the registry that the configuration does not list.
	Prune bool

	// MaxDeletes is the maximum number of deletes. If the plan has more, [Plan.Apply] changes
	// nothing, and [Plan.Err] and [Plan.String] report it. 0 means 10, or no deletes if the
	// configuration is empty. [New] rejects a negative number.
	MaxDeletes int

	// KeepPaused leaves paused of existing relayers as it is. The configuration then
	// determines it only for new ones.
	KeepPaused bool

	// Selector limits the plan to the relayers that it selects, for example the relayers of a
	// team. The others are not read, and so never deleted. An entry is [Blocked] if the selector
	// does not select the relayer of the configuration or, if dry runs are permitted, the stored
	// relayer.
	Selector relayer.Selector
}

// New compares relayers with a registry. It reads all relayers in one pass of pages. Then it
// tries every change with [relayer.DryRun], and an update of every relayer for which the
// configuration has full RPC URLs, because only the registry can compare these. An entry that
// the registry rejects is [Blocked].
//
// New returns a [*relayer.ValidationError] if a request is invalid, has no ID, or repeats an ID.
// It returns an error if there are RPC URLs to compare, and the registry does not support or
// permit dry runs.
func New(ctx context.Context, registry relayer.Registry, relayers []relayer.CreateRequest, options Options) (*Plan, error) {
	if registry == nil {
		return nil, errors.New("plan: registry is nil")
	}
	found := new(wire.Problems)
	desired := check(ctx, len(relayers), found, func(i int) (relayer.CreateRequest, error) { return relayers[i], nil })
	if err := cmp.Or(options.Selector.Err(), found.Err()); err != nil {
		return nil, err
	}
	if options.MaxDeletes < 0 {
		return nil, errors.New("plan: MaxDeletes is negative")
	}
	b := &builder{Options: options, Plan: &Plan{entries: []Entry{}, isEmpty: len(relayers) == 0, maxDeletes: options.MaxDeletes}, registry: registry}
	stored := make(map[string]*relayer.Relayer) // the listed ones that are not compared yet
	var listed []*relayer.Relayer               // in creation order
	for r, err := range registry.All(ctx, options.Selector) {
		if err != nil {
			return nil, err
		}
		listed, stored[r.ID] = append(listed, r), r
	}
	for _, req := range desired {
		if err := b.addDesired(req, stored[req.ID]); err != nil {
			return nil, fmt.Errorf("%s: %w", req.ID, err)
		}
		delete(stored, req.ID)
	}
	for _, r := range listed {
		if stored[r.ID] != nil {
			b.addExtra(r)
		}
	}
	if err := b.checkChanges(ctx); err != nil {
		return nil, err
	}
	return b.Plan, nil
}

var (
	errHidden      = errors.New("the ID is taken by a relayer that this token or selector may not use, or another writer has created it: choose another ID, or make the plan again")
	errNotCompared = errors.New("the RPC URLs could not be compared, because the registry has not tried the update: use a token that may write, or the masked RPC URLs that the registry has now")
)

// checkChanges tries the changes, and blocks those that the registry rejects.
func (b *builder) checkChanges(ctx context.Context) error {
	isRejected := func(err error) bool {
		return concernsOne(err) || errors.Is(err, relayer.ErrSealed) || errors.Is(err, relayer.ErrNoRevision)
	}
	isTolerated := func(err error) bool { return isRejected(err) || isRefused(err) }
	for i, tried := range tryAll(ctx, b.entries, isTolerated, relayer.DryRun()) {
		entry := &b.entries[i]
		switch err := tried.err; {
		case err == nil:
			entry.settle(tried.changed)
		case errors.Is(err, relayer.ErrExists):
			*entry = blocked(entry.ID, errHidden)
		case isRejected(err):
			*entry = blocked(entry.ID, err)
		case isRefused(err):
			b.isUnchecked = true
		default:
			return fmt.Errorf("%s: %w", entry.ID, err)
		}
		switch {
		case entry.urls != "" && tried.err != nil:
			return fmt.Errorf("%s: %w: %w", entry.ID, errNotCompared, tried.err)
		case entry.urls != "":
			return fmt.Errorf("%s: %w", entry.ID, errNotCompared)
		}
	}
	return nil
}

// settle changes an update to what the registry would change, which is nil if the registry
// does not say it.
func (e *Entry) settle(changed []string) {
	if e.Action != Update || changed == nil {
		return
	}
	isListed := slices.ContainsFunc(e.Changes, func(change Change) bool { return change.Path == urlsPath })
	if slices.Contains(changed, urlsPath) && !isListed {
		e.Changes = append(e.Changes, Change{Path: urlsPath, Old: e.urls, New: e.urls})
	}
	e.urls = ""
	if len(changed) == 0 {
		*e = Entry{ID: e.ID, Action: Unchanged}
	}
}

// isRefused reports whether the registry does not have an operation, or does not permit it.
func isRefused(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, wire.ErrForbidden)
}

func blocked(id string, err error) Entry {
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		invalid = &relayer.ValidationError{Fields: []relayer.FieldError{{Message: err.Error()}}}
	}
	return Entry{ID: id, Action: Blocked, Problems: slices.Clone(invalid.Fields)}
}

// builder makes a plan.
type builder struct {
	Options
	*Plan
	registry relayer.Registry
}

// addDesired adds the entry of a relayer of the configuration. stored is nil if the registry does
// not have it.
func (b *builder) addDesired(req relayer.CreateRequest, stored *relayer.Relayer) error {
	desired, err := relayerOf(req)
	if err != nil {
		return err
	}
	if stored != nil {
		desired.SystemDisabled = stored.SystemDisabled // for the selector
		if b.KeepPaused {
			desired.Paused = stored.Paused
		}
	}
	entry := blocked(desired.ID, fmt.Errorf("the selector %s does not select the relayer of the file", b.Selector))
	if b.Selector.Matches(desired) {
		entry, err = b.compare(desired, stored)
	}
	b.entries = append(b.entries, entry)
	return err
}

func (b *builder) addExtra(r *relayer.Relayer) {
	entry := Entry{ID: r.ID, Action: Extra}
	if b.Prune {
		entry.Action = Delete
		entry.apply = func(ctx context.Context, options ...relayer.WriteOption) ([]string, error) {
			err := b.registry.Delete(ctx, r.ID, underRevision(r, options)...)
			if errors.Is(err, relayer.ErrNotFound) { // it is deleted already
				return nil, nil
			}
			return nil, err
		}
	}
	b.entries = append(b.entries, entry)
}

func underRevision(r *relayer.Relayer, options []relayer.WriteOption) []relayer.WriteOption {
	return append([]relayer.WriteOption{relayer.IfRevision(r.Revision)}, options...)
}

// HasChanges reports whether an entry creates, updates or deletes a relayer.
func (p *Plan) HasChanges() bool { return len(p.with(Create, Update, Delete)) > 0 }

// Err returns an error for every entry that is [Blocked], which matches [relayer.ErrInvalid],
// and one if there are more deletes than [Options.MaxDeletes]. It is nil if there are none.
func (p *Plan) Err() error {
	return errors.Join(append(p.problems(), p.deletesError())...)
}

const defaultMaxDeletes = 10

// deletesError returns an error if the plan deletes too many relayers.
func (p *Plan) deletesError() error {
	deletes := p.with(Delete)
	switch most := cmp.Or(p.maxDeletes, defaultMaxDeletes); {
	case len(deletes) > most:
		return fmt.Errorf("the plan deletes %d relayers, and the maximum of deletes is %d: nothing is changed", len(deletes), most)
	case len(deletes) > 0 && p.isEmpty && p.maxDeletes == 0:
		return fmt.Errorf("the file has no relayers, and the plan deletes all (%d): nothing is changed without a maximum of deletes", len(deletes))
	default:
		return nil
	}
}

// problems returns an error for each entry that is Blocked.
func (p *Plan) problems() (all []error) {
	for _, entry := range p.with(Blocked) {
		all = append(all, fmt.Errorf("%s: %w", entry.ID, &relayer.ValidationError{Fields: slices.Clone(entry.Problems)}))
	}
	return all
}

var marks = map[Action]string{Create: "+", Update: "~", Delete: "-", Extra: "?", Blocked: "!"}

// String returns a line for every entry that is not unchanged, with its fields, changes or
// problems below it. A line with the number of entries of each action follows. It contains no
// secret and no control character except newlines.
func (p *Plan) String() string {
	var out strings.Builder
	counts := make(map[Action]int)
	for _, entry := range p.entries {
		counts[entry.Action]++
		entry.write(&out)
	}
	fmt.Fprintf(&out, "%d to create, %d to update, %d to delete, %d unchanged", counts[Create], counts[Update], counts[Delete], counts[Unchanged])
	for _, action := range []Action{Extra, Blocked} {
		if counts[action] > 0 {
			fmt.Fprintf(&out, ", %d %s", counts[action], action)
		}
	}
	out.WriteByte('\n')
	if err := p.deletesError(); err != nil {
		fmt.Fprintf(&out, "apply would refuse this: %s\n", err)
	}
	if p.isUnchecked && p.HasChanges() {
		out.WriteString("the registry has not checked the changes, and may reject some\n")
	}
	return out.String()
}

func (e Entry) write(out *strings.Builder) {
	if e.Action == Unchanged {
		return
	}
	fmt.Fprintf(out, "%s %s %s", marks[e.Action], e.Action, wire.Printable(e.ID, unicode.ReplacementChar))
	if e.Action == Extra {
		out.WriteString(" (not in the file: kept)")
	}
	for _, change := range e.Changes {
		fmt.Fprintf(out, "\n    %s", wire.Printable(change.Path+": "+e.describe(change), unicode.ReplacementChar))
	}
	out.WriteByte('\n')
	for _, problem := range e.Problems {
		fmt.Fprintf(out, "    %s\n", wire.Printable(strings.TrimPrefix(problem.Field+": "+problem.Message, ": "), unicode.ReplacementChar))
	}
}

func (e Entry) describe(change Change) string {
	before := cmp.Or(change.Old, "(not set)")
	switch {
	case e.Action == Create:
		return change.New
	case change.Old != change.New:
		return before + " -> " + cmp.Or(change.New, "(not set)")
	default:
		return before + " (a hidden part differs)"
	}
}
