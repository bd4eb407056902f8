package relayer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// Create adds a relayer and returns it as stored. It returns a
// [*ValidationError] with every problem of the request, and [ErrExists] if the ID
// is taken. When it returns nil, the relayer is as durable as the store makes it.
func (m *Manager) Create(ctx context.Context, req CreateRequest, options ...WriteOption) (*Relayer, error) {
	return create(ctx, m, newRelayer(req), func(*problems) bool { return true }, options, m.writtenRelayerOf)
}

// Update reads the relayer, calls change to modify it, checks the result like a
// create, and stores it with a compare-and-swap on the revision. If another writer
// was faster, Update begins again: change may be called several times and must have
// no side effects. It returns the relayer as stored. If change modifies nothing,
// nothing is stored and the revision stays.
//
// A change that replaces the relayer by a copy that was read before, such as the form of an
// edit, overwrites what others have changed since. [IfRevision] with the Revision of the
// copy prevents that.
//
// The relayer has its full RPC URLs. If they are damaged, or are sealed and cannot be opened, they
// are masked ([RPCURL.IsMasked]): change can keep the list as it is, or replace all of its URLs. If
// it keeps some of them, Update returns the error of [Manager.RPCURLs]. A list with the same content is
// kept as it is stored, sealed under whichever key: see store/sealed.
//
// ID, Network, NetworkType, SignerID and Address must not be changed. Changes of Revision and
// LastChange are ignored. A nil Policy removes all restrictions. Update returns [ErrNotFound],
// a [*ValidationError], the error of change, or [ErrConflict] if a condition does not hold or
// contention exhausts the retries. Each is wrapped in an error that names the operation and the
// ID: match it with [errors.Is].
func (m *Manager) Update(ctx context.Context, id string, change func(*Relayer) error, options ...WriteOption) (*Relayer, error) {
	apply := func(r *Relayer, _ *problems) error { return change(r) }
	return update(ctx, m, ActionUpdate, id, options, m.writtenRelayerOf, m.decoded(apply, true))
}

// Patch changes a relayer by a JSON Merge Patch (RFC 7396), which must be strict JSON, and
// returns it as stored. An absent member stays as it is. Its members are name, paused, policies
// (merged field by field; null clears one field or all), notification_id (null clears it),
// custom_rpc_urls (replaced whole; null clears them) and labels (merged key by key; null removes
// one or all). The other members of a relayer cannot be changed. The result is checked as a
// whole. An empty patch changes nothing, and one that only has paused is [Manager.Pause] or
// [Manager.Resume]. Errors are those of [Manager.Update], which is the way to change a relayer
// by Go types.
func (m *Manager) Patch(ctx context.Context, id string, patch []byte, options ...WriteOption) (*Relayer, error) {
	p := parsePatch(patch)
	return update(ctx, m, p.action, id, options, m.writtenRelayerOf, m.patched(p))
}

// Pause sets Paused. If it is set already, nothing changes. Errors are those of
// [Manager.Update].
func (m *Manager) Pause(ctx context.Context, id string, options ...WriteOption) (*Relayer, error) {
	return update(ctx, m, ActionPause, id, options, m.writtenRelayerOf, m.setPaused(true))
}

// Resume resets Paused. If it is not set, nothing changes. Errors are those of
// [Manager.Update].
func (m *Manager) Resume(ctx context.Context, id string, options ...WriteOption) (*Relayer, error) {
	return update(ctx, m, ActionResume, id, options, m.writtenRelayerOf, m.setPaused(false))
}

// Disable sets SystemDisabled and replaces DisabledReason by reason, whose Type is
// required. It accepts any Details: more than 16 KiB are cut off, and what is not UTF-8 or
// is NUL is replaced by U+FFFD. Errors are those of [Manager.Update].
func (m *Manager) Disable(ctx context.Context, id string, reason DisabledReason, options ...WriteOption) (*Relayer, error) {
	return update(ctx, m, ActionDisable, id, options, m.writtenRelayerOf, m.setDisabled(reason))
}

// Enable resets SystemDisabled and removes DisabledReason. If the relayer is not
// disabled, nothing changes. Errors are those of [Manager.Update].
func (m *Manager) Enable(ctx context.Context, id string, options ...WriteOption) (*Relayer, error) {
	return update(ctx, m, ActionEnable, id, options, m.writtenRelayerOf, m.setEnabled())
}

// Delete removes the relayer. It returns [ErrNotFound], the error of an admission (see
// [WithAdmission]), or [ErrConflict] if a condition does not hold or contention exhausts
// the retries.
//
// It also removes a relayer whose stored data is damaged, if the store supports that and
// there is neither a condition nor an admission nor a selector of [Manager.Within]: these
// need the stored data.
func (m *Manager) Delete(ctx context.Context, id string, options ...WriteOption) error {
	_, err := remove(ctx, m, id, options, func(context.Context, Record) (struct{}, error) { return struct{}{}, nil })
	return err
}

// BulkResult is what a [Manager.PauseAll] or a [Manager.ResumeAll] has done. Each relayer that was
// selected during the whole call is counted once, or is in Failed.
type BulkResult struct {
	// RequestID is the [ChangeInfo.RequestID] of every change, and the argument of [PausedBy]
	// with which [Manager.ResumeAll] resumes what a [Manager.PauseAll] paused.
	RequestID string

	// Changed is how many relayers have changed, also by an earlier call with this request ID:
	// a repetition after a lost response counts what the first attempt changed, if it is still
	// selected and nobody has changed it back.
	Changed int

	// Unchanged is how many selected relayers stayed as they were: those that were in that
	// state before, and with [PausedBy] those that the request has not paused.
	Unchanged int

	// Failed has the error of each relayer that could not be changed, by its ID. The ID is empty
	// for a damaged relayer whose ID is unknown, or which may be outside of the view. The errors
	// of a client have the message of the server.
	Failed map[string]error
}

// PauseAll pauses every relayer that the selector selects. Each is a change of its own, like
// [Manager.Pause], with the same request ID and reason: that of the [Actor], or a generated one.
// A relayer that is created, deleted, or moved into or out of the selection meanwhile is either
// changed or not. Other writes go on meanwhile, because each change is stored on its own.
//
// The zero Selector is a [*ValidationError] unless [AllRelayers] is given, and so is [IfRevision].
// A relayer that cannot be changed is in [BulkResult.Failed], and the others are changed. If the
// store fails, ctx ends, or more than 10,000 relayers fail, PauseAll ends with an error and with
// the result until then; it matches [ErrOutcomeUnknown] if relayers have been changed. A
// repetition completes it.
//
// Observers get a list for each page that is read, and a pause for each relayer that is to be
// changed.
func (m *Manager) PauseAll(ctx context.Context, selector Selector, options ...WriteOption) (BulkResult, error) {
	return m.setAll(ctx, ActionPause, selector, options)
}

// ResumeAll is [Manager.PauseAll] for [Manager.Resume]. With [PausedBy] it resumes only those
// that a request has paused.
func (m *Manager) ResumeAll(ctx context.Context, selector Selector, options ...WriteOption) (BulkResult, error) {
	return m.setAll(ctx, ActionResume, selector, options)
}

// bulk is the state of a [Manager.PauseAll] or a [Manager.ResumeAll].
type bulk struct {
	*Manager
	action   Action
	selector Selector
	settings WriteSettings

	mu       sync.Mutex
	result   BulkResult
	err      error // ends it
	panicked any   // by a hook
}

const (
	// bulkWrites is how many writes of a bulk are in flight at once, for the group commit of
	// the store.
	bulkWrites = 16

	maxBulkFailures = 10_000
)

func (m *Manager) setAll(ctx context.Context, action Action, selector Selector, options []WriteOption) (BulkResult, error) {
	settings, err := NewWriteSettings(options...)
	switch {
	case err != nil:
	case settings.Revisions != nil:
		err = invalid("", "a change of several relayers cannot have the condition of a revision")
	case action == ActionPause && settings.PausedBy != "":
		err = settings.checkPausedBy()
	case selector.IsZero() && !settings.All:
		err = invalid("", "at least one filter, or all=true, is required")
	}
	if err != nil {
		return BulkResult{}, operationError(action, "", err)
	}
	actor, _ := ActorFrom(ctx)
	actor.RequestID = cmp.Or(requestIDOf(actor), rand.Text())
	b := &bulk{Manager: m, action: action, selector: selector, settings: settings, result: BulkResult{RequestID: actor.RequestID}}
	b.run(WithActor(ctx, actor))
	if b.panicked != nil {
		panic(b.panicked)
	}
	if b.err != nil && b.result.Changed > 0 && !settings.DryRun {
		b.err = fmt.Errorf("%w: %d relayers were changed, and then: %w", ErrOutcomeUnknown, b.result.Changed, b.err)
	}
	return b.result, operationError(action, "", b.err)
}

// run changes the selected relayers, except those that are created meanwhile: others may create
// relayers faster than it changes them.
func (b *bulk) run(ctx context.Context) {
	newest, err := b.newest(ctx)
	if err != nil {
		b.err = err
		return
	}
	var writes sync.WaitGroup
	defer writes.Wait()
	slots := make(chan struct{}, bulkWrites)
	for rec, err := range b.allRecords(ctx, b.selector) {
		if rec.Sequence > newest || b.isOver() {
			return
		}
		if err != nil || !b.isToChange(rec) {
			b.add(rec, err)
			continue
		}
		slots <- struct{}{}
		writes.Go(func() {
			defer func() { <-slots }()
			defer func() {
				if cause := recover(); cause != nil {
					b.mu.Lock()
					defer b.mu.Unlock()
					b.err, b.panicked = errPanicked, cause
				}
			}()
			b.add(b.change(ctx, rec.ID))
		})
	}
}

// isToChange reports whether the relayer of a selected record has to be changed.
func (b *bulk) isToChange(rec Record) bool {
	if b.action == ActionPause {
		return !isPaused(rec)
	}
	return isPaused(rec) && (b.settings.PausedBy == "" || changeInfoOf(rec).isPausedBy(b.settings.PausedBy))
}

// isChanged reports whether an earlier attempt of the request has changed the relayer.
func (b *bulk) isChanged(rec Record) bool {
	last := changeInfoOf(rec)
	if b.action == ActionPause {
		return last.isPausedBy(b.result.RequestID)
	}
	return last.Action == ActionResume && last.RequestID == b.result.RequestID
}

// change changes a relayer, unless another writer has made that unnecessary. It returns the record
// on which the last attempt was based.
func (b *bulk) change(ctx context.Context, id string) (before Record, err error) {
	before.ID = id
	settings := WriteOption{func(s *WriteSettings) error {
		s.DryRun, s.Reason = b.settings.DryRun, b.settings.Reason
		return nil
	}}
	set := b.setPaused(b.action == ActionPause)
	edit := func(ctx context.Context, current Record) (Record, error) {
		if before = current; !b.selector.selects(current) || !b.isToChange(current) {
			return current, nil
		}
		return set(ctx, current)
	}
	asStored := func(_ context.Context, rec Record) (Record, error) { return rec, nil }
	_, err = update(ctx, b.Manager, b.action, id, []WriteOption{settings}, asStored, edit)
	return before, err
}

// add counts a relayer by its record before the change, or keeps its error. One that was deleted,
// or has left the selection, does not count.
func (b *bulk) add(before Record, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	corrupt, isDamaged := errors.AsType[*CorruptError](err)
	if _, isView := b.store.(view); isDamaged && !isView { // it may be outside of the view
		before.ID = corrupt.ID
	}
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !b.selector.selects(before):
	case err == nil && (b.isToChange(before) || b.isChanged(before)):
		b.result.Changed++
	case err == nil:
		b.result.Unchanged++
	case !isDamaged && errors.Is(err, ErrOutcomeUnknown) && !errors.Is(b.err, ErrOutcomeUnknown):
		b.err = err // other errors promise that nothing was stored
	case !isDamaged && (before.ID == "" || isOfStore(err)):
		b.err = cmp.Or(b.err, err)
	case len(b.result.Failed) == maxBulkFailures:
		b.err = cmp.Or(b.err, fmt.Errorf("relayer: more than %d relayers failed, one of them with: %v", maxBulkFailures, err))
	default:
		if b.result.Failed == nil {
			b.result.Failed = make(map[string]error)
		}
		b.result.Failed[before.ID] = err
	}
}

// isOfStore reports whether the changes of other relayers are likely to return the error too.
func isOfStore(err error) bool {
	return slices.ContainsFunc([]error{ErrUnavailable, ErrOutcomeUnknown, context.Canceled, context.DeadlineExceeded}, func(target error) bool {
		return errors.Is(err, target)
	})
}

func (b *bulk) isOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil
}

// create stores a new relayer. Decode completes it, and reports false if its fields are unknown.
func create[T any](ctx context.Context, m *Manager, r *Relayer, decode func(*problems) bool, options []WriteOption, form form[T]) (T, error) {
	return observeWrite(ctx, m, ActionCreate, &r.ID, options, func(ctx context.Context, w *write) (created T, _ error) {
		found := new(problems)
		if !decode(found) {
			return created, found.err()
		}
		rec, err := m.create(ctx, r, found, w)
		if err != nil {
			return created, err
		}
		return form(ctx, rec)
	})
}

// create stores a new relayer and sets its ID and address. Its problems are
// returned together with those found before.
func (m *Manager) create(ctx context.Context, r *Relayer, found *problems, w *write) (Record, error) {
	checkMasks(r, new(Relayer), found)
	rec, err := m.prepare(ctx, r, found)
	if err != nil {
		return Record{}, err
	}
	if err := m.checkSize(rec, Record{}); err != nil {
		return Record{}, err
	}
	if err := m.admit(ctx, w, Record{}, rec); err != nil {
		return Record{}, err
	}
	rec.Note = w.note(ctx, Record{}, rec)
	created, err := w.store.Create(ctx, rec)
	if errors.Is(err, ErrClaimed) {
		return Record{}, invalid("signer_id", "is used by another relayer on this network: choose another signer")
	}
	if err != nil {
		return Record{}, err
	}
	return w.result(created.Revision, Record{}, created), nil
}

func update[T any](ctx context.Context, m *Manager, action Action, id string, options []WriteOption, form form[T], e edit) (T, error) {
	return observeWrite(ctx, m, action, &id, options, func(ctx context.Context, w *write) (T, error) {
		rec, err := retry(ctx, func() (Record, error) { return m.attemptUpdate(ctx, id, w, e) })
		if err != nil {
			return *new(T), err
		}
		return form(ctx, rec)
	})
}

func (m *Manager) attemptUpdate(ctx context.Context, id string, w *write, e edit) (Record, error) {
	current, err := m.current(ctx, id, w)
	if err != nil {
		return Record{}, err
	}
	rec, err := e(ctx, current)
	if err != nil {
		return Record{}, err
	}
	if bytes.Equal(rec.Document, current.Document) && bytes.Equal(rec.Private, current.Private) {
		return w.result(current.Revision, current, current), nil
	}
	if err := m.admit(ctx, w, current, rec); err != nil {
		return Record{}, err
	}
	rec.Note = w.note(ctx, current, rec)
	updated, err := w.swap(ctx, rec)
	if errors.Is(err, ErrClaimed) {
		// Signers became exclusive while two relayers shared one. A change does not
		// make that worse, and pausing one of them must be possible.
		updated, err = w.swap(ctx, withClaim(rec, current.Claim))
	}
	if err != nil {
		return Record{}, err
	}
	if !w.DryRun {
		w.operation.Changed = w.changed
		if isPaused(updated) != isPaused(current) {
			w.operation.Paused = new(isPaused(updated))
		}
	}
	return w.result(updated.Revision, current, updated), nil
}

func remove[T any](ctx context.Context, m *Manager, id string, options []WriteOption, form form[T]) (T, error) {
	return observeWrite(ctx, m, ActionDelete, &id, options, func(ctx context.Context, w *write) (T, error) {
		rec, err := retry(ctx, func() (Record, error) { return m.attemptDelete(ctx, id, w) })
		if err != nil {
			return *new(T), err
		}
		return form(ctx, rec)
	})
}

func (m *Manager) attemptDelete(ctx context.Context, id string, w *write) (Record, error) {
	rec, err := m.current(ctx, id, w)
	if errors.Is(err, ErrCorrupt) && w.Revisions == nil && len(m.admissions) == 0 {
		return Record{}, m.deleteDamaged(ctx, id, err, w)
	}
	if err != nil {
		return Record{}, err
	}
	if err := m.admit(ctx, w, rec, Record{}); err != nil {
		return Record{}, err
	}
	if err := w.store.Delete(ctx, id, rec.Revision, w.note(ctx, rec, Record{})); err != nil {
		return Record{}, asLostRace(err)
	}
	return w.result(0, Record{}, rec), nil
}

// deleteDamaged deletes a record that the store cannot read. Its revision is not known. If
// the store does not delete it, it returns the error of the read, which has the cause.
func (m *Manager) deleteDamaged(ctx context.Context, id string, readErr error, w *write) error {
	err := w.store.Delete(ctx, id, 0, w.note(ctx, Record{}, Record{}))
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrCorrupt) {
		return readErr
	}
	return err
}

// edit returns the changed record of a relayer.
type edit func(ctx context.Context, current Record) (Record, error)

// applyFunc modifies a relayer.
type applyFunc func(r *Relayer, found *problems) error

// decoded is an edit that decodes the relayer, with its full RPC URLs if it opens them, and
// limits its size.
func (m *Manager) decoded(apply applyFunc, opens bool) edit {
	return func(ctx context.Context, current Record) (Record, error) {
		return m.changed(ctx, current, apply, opens)
	}
}

// setPaused returns an edit that sets Paused.
func (m *Manager) setPaused(paused bool) edit {
	return m.setSwitches(func(s *switches) error {
		s.isPaused = paused
		return nil
	})
}

// setDisabled returns an edit that sets SystemDisabled with a reason.
func (m *Manager) setDisabled(reason DisabledReason) edit {
	reason.Details = mask.Details(reason.Details)
	return m.setSwitches(func(s *switches) error {
		found := new(problems)
		checkDisabled(&Relayer{SystemDisabled: true, DisabledReason: &reason}, found)
		if err := found.err(); err != nil {
			return err
		}
		encoded, err := strictjson.Encode(maskedReason(&reason))
		s.isDisabled, s.reason = true, encoded
		return err
	})
}

// setEnabled returns an edit that resets SystemDisabled.
func (m *Manager) setEnabled() edit {
	return m.setSwitches(func(s *switches) error {
		s.isDisabled, s.reason = false, nil
		return nil
	})
}

// setSwitches returns an edit that changes only the switches. It neither decodes nor checks
// the rest of the relayer, so that it is fast, and a pause in an emergency works even if
// stricter rules apply since the relayer was stored. It has no limit of the size.
func (m *Manager) setSwitches(set func(*switches) error) edit {
	return func(_ context.Context, current Record) (Record, error) {
		if !isObject(current.Document) {
			return Record{}, fmt.Errorf("relayer: stored document of %s is not a JSON object", current.ID)
		}
		before := readSwitches(current.Document)
		after := before
		if err := set(&after); err != nil {
			return Record{}, err
		}
		if after.equals(before) {
			return current, nil
		}
		rec := current
		rec.Document = after.writeTo(current.Document)
		rec.Terms = after.terms(current.Terms)
		if !m.exclusiveSigners {
			return rec, nil
		}
		claim, err := claimOfDocument(rec.Document)
		return withClaim(rec, claim), err
	}
}

func (m *Manager) checkChanged(r, stored *Relayer, found *problems) {
	keep := func(field string, isKept bool) {
		if !isKept {
			found.Report(field, strictjson.Immutable, "cannot be changed")
		}
	}
	keep("id", r.ID == stored.ID)
	keep("network", r.Network == stored.Network)
	keep("network_type", r.NetworkType == stored.NetworkType)
	keep("signer_id", r.SignerID == stored.SignerID)
	keep("address", r.Address == stored.Address)
	if _, isUnknown := stored.Policy.(*UnknownPolicy); isUnknown {
		if !reflect.DeepEqual(r.Policy, stored.Policy) {
			found.Add("policies", unknownTypeMessage)
		}
		known := *r // the other rules do not depend on the network type
		known.NetworkType, known.Policy = EVM, nil
		r = &known
	}
	m.check(r, found)
	checkDisabled(r, found)
	checkMasks(r, stored, found)
}

const unknownTypeMessage = "cannot be changed: this version does not support the network type"

// changed returns the record of the relayer as apply changes it, with a changed private part in
// clear.
func (m *Manager) changed(ctx context.Context, current Record, apply applyFunc, opens bool) (Record, error) {
	// URLs that cannot be opened or are damaged stay as they are stored, unless all are replaced.
	base, decode, stored, opening := current, unmaskedRelayerOf, (*Relayer)(nil), error(nil)
	if opens || !m.masks(current) {
		if base, opening = m.opened(ctx, current); opening == nil {
			stored, opening = unmaskedRelayerOf(base)
		}
	}
	if stored == nil {
		base, decode = current, maskedRelayerOf
		base.Private = nil
		var err error
		if stored, err = maskedRelayerOf(base); err != nil {
			return Record{}, err
		}
	}
	r, err := decode(base) // another copy, for the caller
	if err != nil {
		return Record{}, err
	}
	found := new(problems)
	if err := apply(r, found); err != nil {
		return Record{}, err
	}
	keepsURLs := slices.EqualFunc(r.CustomRPCURLs, stored.CustomRPCURLs, RPCConfig.equals)
	before := *stored
	if opening != nil && !keepsURLs {
		if ctx.Err() != nil || !canReplace(r.CustomRPCURLs, opening) {
			return Record{}, opening
		}
		before.CustomRPCURLs = nil
	}
	m.checkChanged(r, &before, found)
	if err := found.err(); err != nil {
		return Record{}, err
	}
	rec, err := m.newRecord(r)
	if err != nil {
		return Record{}, err
	}
	rec.Revision = current.Revision
	if err := keepUnknown(&rec, r, base, stored); err != nil {
		return Record{}, err
	}
	if keepsURLs || opening == nil && bytes.Equal(rec.Private, base.Private) {
		rec.Private = current.Private // what is sealed would differ if it were sealed again
	}
	return rec, m.checkSize(rec, current)
}

// canReplace reports whether a list can replace stored RPC URLs that cannot be opened: the key
// may be lost. Without keys the new URLs could not be sealed.
func canReplace(urls []RPCConfig, opening error) bool {
	keeps := slices.ContainsFunc(urls, RPCConfig.isMasked)
	return !keeps && (len(urls) == 0 || !errors.Is(opening, errors.ErrUnsupported))
}

// mergePatch is a JSON Merge Patch (RFC 7396).
type mergePatch struct {
	body    []byte
	problem string // of its JSON
	isEmpty bool
	hasURLs bool

	// action is a pause or a resume if paused is the only member.
	action Action
}

func parsePatch(body []byte) mergePatch {
	p := mergePatch{body: body, problem: strictjson.Check(body), action: ActionUpdate}
	if p.problem != "" {
		return p
	}
	count := 0
	for name, value := range strictjson.InOrder(body) {
		count++
		p.hasURLs = p.hasURLs || name == urlsMember
		switch isPaused := name == "paused"; {
		case count > 1:
			p.action = ActionUpdate
		case isPaused && string(value) == "true":
			p.action = ActionPause
		case isPaused && string(value) == "false":
			p.action = ActionResume
		}
	}
	p.isEmpty = count == 0
	return p
}

// patched returns the edit of a patch.
func (m *Manager) patched(p mergePatch) edit {
	switch {
	case p.isEmpty:
		return func(_ context.Context, current Record) (Record, error) { return current, nil }
	case p.action != ActionUpdate:
		return m.setPaused(p.action == ActionPause)
	}
	return m.decoded(func(r *Relayer, found *problems) error {
		if p.problem != "" {
			return invalid("", "the body "+p.problem)
		}
		p.applyTo(r, found)
		return nil
	}, p.hasURLs)
}

func (p mergePatch) applyTo(r *Relayer, found *problems) {
	d := newDecoder(found)
	d.IsPatch = true
	d.Decode(p.body, r)
	if _, isUnknown := r.Policy.(*UnknownPolicy); !isUnknown {
		d.decodePolicies(r.Policy)
	} else if d.policies != nil {
		found.Add("policies", unknownTypeMessage)
	}
}

// switches are the members of a document that a pause or a disable changes.
type switches struct {
	isPaused, isDisabled bool
	reason               json.RawMessage // nil if there is none
}

func readSwitches(document []byte) (s switches) {
	for name, value := range strictjson.InOrder(document) {
		switch name {
		case "paused":
			s.isPaused = string(value) == "true"
		case "system_disabled":
			s.isDisabled = string(value) == "true"
		case "disabled_reason":
			s.reason = value
		}
	}
	return s
}

func (s switches) equals(other switches) bool {
	return s.isPaused == other.isPaused && s.isDisabled == other.isDisabled && bytes.Equal(s.reason, other.reason)
}

// writeTo returns the document with these switches. The reason follows
// system_disabled.
func (s switches) writeTo(document []byte) []byte {
	var changed strictjson.Object
	for name, value := range strictjson.InOrder(document) {
		switch name {
		case "disabled_reason":
			continue
		case "paused":
			value = strconv.AppendBool(nil, s.isPaused)
		case "system_disabled":
			value = strconv.AppendBool(nil, s.isDisabled)
		}
		changed.Add(name, value)
		if name == "system_disabled" && s.reason != nil {
			changed.Add("disabled_reason", s.reason)
		}
	}
	return changed.Bytes()
}

// terms returns the terms with those of these switches.
func (s switches) terms(stored []string) []string {
	r := &Relayer{Paused: s.isPaused, SystemDisabled: s.isDisabled}
	terms := slices.Clone(stored)
	for i, term := range terms {
		if name := termKey(term); name == "paused" || name == "system_disabled" {
			key, _ := selectorKeyNamed(name)
			value, _ := key.value(r)
			terms[i] = recordTerm(name, value)
		}
	}
	return terms // in order: a flag has one term
}

// write is an observed write.
type write struct {
	WriteSettings
	store     Store // stores nothing in a dry run
	operation Operation
	changed   []string // the paths in the note of the last attempt
}

// observeWrite runs a write between the calls of the observers. It reads id after the
// write, because a create may generate it.
func observeWrite[T any](ctx context.Context, m *Manager, action Action, id *string, options []WriteOption, run func(context.Context, *write) (T, error)) (T, error) {
	w := &write{store: m.store}
	settings, err := NewWriteSettings(options...)
	err = cmp.Or(err, settings.checkPausedBy())
	if w.WriteSettings = settings; settings.DryRun {
		w.store = withoutWrites(m.store)
	}
	w.operation = Operation{Action: action, ID: *id, DryRun: settings.DryRun, Reason: settings.Reason}
	return observed(ctx, m.observers, &w.operation, func(ctx context.Context) (result T, _ error) {
		if err == nil {
			result, err = run(ctx, w)
		}
		w.operation.ID = *id
		return result, err
	})
}

// note returns the note of a change from old to rec, which is made now. A create has no old
// record, and a delete no new one.
func (w *write) note(ctx context.Context, old, rec Record) []byte {
	w.changed = nil
	if old.ID != "" && rec.ID != "" {
		w.changed = shortPaths(changedPaths(old, rec))
	}
	info := newInfo(ctx, w.operation.Action, w.Reason, w.changed)
	if isPaused(rec) {
		info.PausedBy = pausedBy(info, old)
	}
	return noteOf(info)
}

// result records the revision after the write, and returns the record as the caller gets it. In
// a dry run the revision stays, and the note has only what changes from old to rec.
func (w *write) result(revision uint64, old, rec Record) Record {
	if w.DryRun {
		rec.Note = noteOf(ChangeInfo{Changed: append([]string{}, shortPaths(changedPaths(old, rec))...)})
	} else {
		w.operation.Revision = revision
	}
	return rec
}

// admit calls the admissions. A zero record has no relayer.
func (m *Manager) admit(ctx context.Context, w *write, old, changed Record) error {
	if w.operation.Action == ActionPause || w.operation.Action == ActionDisable {
		return nil
	}
	for _, admit := range m.admissions {
		before, err := m.optionalRelayerOf(ctx, old)
		if err != nil {
			return err
		}
		after, err := m.optionalRelayerOf(ctx, changed)
		if err != nil {
			return err
		}
		if err := admit(ctx, w.operation, before, after); err != nil {
			return admissionError(err)
		}
	}
	return nil
}

func (m *Manager) optionalRelayerOf(ctx context.Context, rec Record) (*Relayer, error) {
	if rec.ID == "" {
		return nil, nil
	}
	return m.writtenRelayerOf(ctx, rec)
}

// current returns the stored record, on which an attempt of the write is based, and records its
// revision: 0 if there is none, even after an attempt that lost a race.
func (m *Manager) current(ctx context.Context, id string, w *write) (Record, error) {
	rec, err := m.get(ctx, id)
	if err == nil {
		err = w.check(rec.Revision)
	}
	if err != nil {
		rec = Record{}
	}
	w.operation.OldRevision, w.operation.Revision = rec.Revision, rec.Revision
	return rec, err
}

func (w *write) swap(ctx context.Context, rec Record) (Record, error) {
	updated, err := w.store.Update(ctx, rec)
	return updated, asLostRace(err)
}

// lostRace marks the [ErrConflict] of a store, the only error that is retried: a hook
// of the host may return an error that matches ErrConflict too.
type lostRace struct{ error }

func (e lostRace) Unwrap() error { return e.error }

func asLostRace(err error) error {
	if errors.Is(err, ErrConflict) && !errors.Is(err, ErrOutcomeUnknown) {
		return lostRace{err}
	}
	return err
}

// maxAttempts bounds the retries of a change. Each retry means that another writer
// succeeded, so that only heavy contention exhausts this limit.
const maxAttempts = 200

// retry calls attempt until it succeeds, fails with another error than a lost race,
// or the attempts are exhausted.
func retry(ctx context.Context, attempt func() (Record, error)) (Record, error) {
	for lost := range maxAttempts {
		rec, err := attempt()
		if _, isLost := errors.AsType[lostRace](err); !isLost {
			return rec, err
		}
		if err := backOff(ctx, lost); err != nil {
			return Record{}, err
		}
	}
	return Record{}, fmt.Errorf("%w: gave up after %d attempts: try again", ErrConflict, maxAttempts)
}

// backOff sleeps with exponential backoff and full jitter.
func backOff(ctx context.Context, lost int) error {
	const longest = 10 * time.Millisecond
	limit := min(longest, 50*time.Microsecond<<min(lost, 10))
	select {
	case <-time.After(mathrand.N(limit)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
