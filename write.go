package relayer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
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

// Create adds a relayer and returns it as stored. It returns a [*ValidationError] with
// the problems of an invalid request, or [ErrExists] if the ID is taken. With a nil error the
// relayer is as durable as the store makes it.
func (m *Manager) Create(ctx context.Context, req CreateRequest, options ...WriteOption) (*Relayer, error) {
	read := func(*problems) *Relayer { return newRelayer(req) }
	return write(ctx, m, ActionCreate, req.ID, options, orMasked(m.relayerOf), m.creation(read))
}

// Update reads the relayer, calls change to modify it, validates the result as a whole, and
// stores it with a compare-and-swap on the revision. If another writer was faster, Update begins
// again: change may be called several times and must have no side effects. It returns the relayer
// as stored. If change modifies nothing, nothing is stored and the revision stays, but the
// relayer is checked.
//
// A change that replaces the relayer by a copy that was read before, such as for an edit page,
// overwrites what others have changed since. [IfRevision] with the Revision of the copy prevents
// that.
//
// The relayer that change gets has its full RPC URLs. If they are damaged, or are sealed and
// cannot be opened, they are masked ([RPCURL.IsMasked]). Then change can keep the list, remove
// it, or replace every URL by a full one; without keys, sealed URLs can only be kept or removed.
// If a changed list has masked URLs, Update returns the error of [Manager.RPCURLs]. A list with
// the same content is kept as it is stored, and not sealed again under another key: see
// store/sealed.
//
// ID, Network, NetworkType, SignerID and Address must not be changed. Changes of Revision and
// LastChange are ignored. A nil Policy removes all restrictions, except that users pay the fees on
// [Solana]. Update returns [ErrNotFound], a [*ValidationError], the error of change, or
// [ErrConflict] if a condition does not hold or contention exhausts the retries. Each is wrapped in
// an error that names the operation and the ID: match it with [errors.Is].
func (m *Manager) Update(ctx context.Context, id string, change func(*Relayer) error, options ...WriteOption) (*Relayer, error) {
	return write(ctx, m, ActionUpdate, id, options, orMasked(m.relayerOf), m.decoded(change, nil, true))
}

// Patch changes a relayer by a JSON Merge Patch (RFC 7396), which must be strict JSON, and
// returns it as stored. An absent member stays as it is, and null clears an optional one. Policies,
// labels and settings are merged in the same way, and custom_rpc_urls is replaced whole. A patch
// with system_disabled, disabled_reason or a field that [Manager.Update] cannot change is a
// [*ValidationError]. The result is checked as a whole. An empty patch changes nothing, and a patch
// that only has paused is a [Manager.Pause] or a [Manager.Resume]. Errors are those of
// [Manager.Update], which is the way to change a relayer by Go types.
func (m *Manager) Patch(ctx context.Context, id string, patch []byte, options ...WriteOption) (*Relayer, error) {
	action, edit := m.patched(patch)
	return write(ctx, m, action, id, options, orMasked(m.relayerOf), edit)
}

// Pause sets Paused. If it is set already, nothing changes. Errors are those of [Manager.Update];
// after [ErrCorrupt], the pause may have taken effect.
func (m *Manager) Pause(ctx context.Context, id string, options ...WriteOption) (*Relayer, error) {
	return write(ctx, m, ActionPause, id, options, orMasked(m.relayerOf), setPaused(true))
}

// Resume resets Paused. If it is not set, nothing changes. It returns the errors of
// [Manager.Update].
func (m *Manager) Resume(ctx context.Context, id string, options ...WriteOption) (*Relayer, error) {
	return write(ctx, m, ActionResume, id, options, orMasked(m.relayerOf), setPaused(false))
}

// Disable sets SystemDisabled and replaces DisabledReason by reason, whose Type is
// required. It accepts any Details: what exceeds 16 KiB is cut off, and what is not UTF-8 or is NUL
// is replaced by U+FFFD. Errors are those of [Manager.Update].
func (m *Manager) Disable(ctx context.Context, id string, reason DisabledReason, options ...WriteOption) (*Relayer, error) {
	return write(ctx, m, ActionDisable, id, options, orMasked(m.relayerOf), setDisabled(reason, new(problems)))
}

// Enable resets SystemDisabled and removes DisabledReason. If the relayer is not
// disabled, nothing changes. Errors are those of [Manager.Update].
func (m *Manager) Enable(ctx context.Context, id string, options ...WriteOption) (*Relayer, error) {
	return write(ctx, m, ActionEnable, id, options, orMasked(m.relayerOf), setEnabled())
}

// Delete removes the relayer. It returns [ErrNotFound], the error of an admission (see
// [WithAdmission]), or [ErrConflict] if a condition does not hold or contention exhausts
// the retries.
//
// It also removes a record that the store cannot read, if the store supports that and there is no
// condition, admission or selector of [Manager.Within]: these need the record.
func (m *Manager) Delete(ctx context.Context, id string, options ...WriteOption) error {
	_, err := write(ctx, m, ActionDelete, id, options, asStored, noRecord)
	return err
}

// BulkResult is what a [Manager.PauseAll] or a [Manager.ResumeAll] has done. Without an error,
// each relayer that was selected during the whole call is counted once, or is in Failed.
type BulkResult struct {
	// RequestID is the [ChangeInfo.RequestID] of every change, and the argument of [PausedBy]
	// with which [Manager.ResumeAll] resumes what a [Manager.PauseAll] paused.
	RequestID string

	// Changed counts the changed relayers, and the selected ones that an earlier call with this
	// request ID changed. What an earlier PauseAll paused counts while it is still paused, and
	// what an earlier ResumeAll resumed counts until its next change.
	Changed int

	// Unchanged is the number of the other selected relayers: they needed no pause (or resume), or
	// [PausedBy] excludes them.
	Unchanged int

	// Failed has the error of each relayer that could not be changed, by its ID. The empty ID has
	// one error for all damaged relayers whose ID is unknown, or which may be outside of the
	// view. Package client returns only the message of the server.
	Failed map[string]error
}

// PauseAll pauses every relayer that the selector selects. [Manager.ResumeAll] with [PausedBy]
// resumes exactly those that PauseAll paused. Each pause is a change of its own, like
// [Manager.Pause], with the same [Reason] and request ID: [Actor.RequestID], or a generated one. A
// relayer that is created, deleted, or moved into or out of the selection meanwhile may be paused
// or not. Other writes go on meanwhile.
//
// The zero Selector is a [*ValidationError] unless [AllRelayers] is given. [IfRevision] is always
// an error. A relayer that cannot be changed is in [BulkResult.Failed]: PauseAll changes the others
// and returns no error. If the store fails, ctx ends, or more than 10,000 relayers fail, PauseAll
// returns the result until then and an error, which matches [ErrOutcomeUnknown] if relayers have
// been changed. To complete it, repeat it with [BulkResult.RequestID] as the [Actor.RequestID].
//
// Observers see an [ActionList] for each page that is read, and an [ActionPause] for each relayer
// that is to be changed.
func (m *Manager) PauseAll(ctx context.Context, selector Selector, options ...WriteOption) (BulkResult, error) {
	return m.setAll(ctx, ActionPause, selector, options)
}

// ResumeAll is [Manager.PauseAll] for [Manager.Resume]. With [PausedBy] it resumes only relayers
// that the named request paused; the zero Selector still needs [AllRelayers].
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
		err = invalid("paused_by", "is only possible for a resume of several relayers")
	case selector.IsZero() && !settings.All:
		err = invalid("", "at least one filter is required, or all=true")
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
	if b.err == nil && len(b.result.Failed) > 0 {
		b.err = ctx.Err() // hooks can have failed because of it
	}
	if b.err != nil && b.result.Changed > 0 && !settings.DryRun {
		b.err = fmt.Errorf("%w: %d relayers were changed, and then: %w", ErrOutcomeUnknown, b.result.Changed, b.err)
	}
	return b.result, operationError(action, "", b.err)
}

// run changes the selected relayers.
func (b *bulk) run(ctx context.Context) {
	var writes sync.WaitGroup
	defer writes.Wait()
	slots := make(chan struct{}, bulkWrites)
	for rec, err := range b.allRecords(ctx, b.selector) {
		b.mu.Lock()
		isOver := b.err != nil
		b.mu.Unlock()
		if isOver {
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
	settings := WriteOption{set: func(s *WriteSettings) { s.DryRun, s.Reason = b.settings.DryRun, b.settings.Reason }}
	set := setPaused(b.action == ActionPause)
	edit := func(ctx context.Context, current Record) (Record, error) {
		if before = current; !b.selector.selects(current) || !b.isToChange(current) {
			return current, nil
		}
		return set(ctx, current)
	}
	_, err = write(ctx, b.Manager, b.action, id, []WriteOption{settings}, asStored, edit)
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
	_, isOfHook := errors.AsType[faultError](err) // of this relayer alone
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !b.selector.selects(before):
	case err == nil && (b.isToChange(before) || b.isChanged(before)):
		b.result.Changed++
	case err == nil:
		b.result.Unchanged++
	case !isDamaged && errors.Is(err, ErrOutcomeUnknown) && !errors.Is(b.err, ErrOutcomeUnknown):
		b.err = err // other errors promise that nothing was stored
	case !isDamaged && !isOfHook && (before.ID == "" || slices.ContainsFunc(storeErrors, func(target error) bool { return errors.Is(err, target) })):
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

// storeErrors are errors that the changes of other relayers are likely to return too.
var storeErrors = []error{ErrUnavailable, ErrOutcomeUnknown, context.Canceled, context.DeadlineExceeded}

// writeCall is a write in progress.
type writeCall struct {
	WriteSettings
	store     Store // stores nothing in a dry run
	operation Operation
}

// edit returns the record to store in place of the current one. A create has no current record: its
// edit returns one with an error too, whose ID names the relayer. A delete returns none.
type edit func(ctx context.Context, current Record) (Record, error)

// write is the core of every write.
func write[T any](ctx context.Context, m *Manager, action Action, id string, options []WriteOption, form form[T], e edit) (T, error) {
	settings, err := NewWriteSettings(options...)
	w := &writeCall{WriteSettings: settings, store: m.store}
	if w.DryRun {
		w.store = withoutWrites(m.store)
	}
	w.operation = Operation{Action: action, ID: id, DryRun: w.DryRun, Reason: w.Reason}
	return observe(ctx, m.observers, action, id, &w.operation, func(ctx context.Context) (result T, _ error) {
		if err != nil {
			return result, err
		}
		rec, err := m.retry(ctx, w, e)
		if err != nil {
			return result, err
		}
		return form(ctx, rec)
	})
}

// maxAttempts bounds the retries of a change. Each retry means that another writer
// succeeded, so that only heavy contention exhausts this limit.
const maxAttempts = 200

// retry attempts the change until it loses no race, or the attempts are exhausted. Between them it
// sleeps with exponential backoff and full jitter.
func (m *Manager) retry(ctx context.Context, w *writeCall, e edit) (Record, error) {
	for lost := range maxAttempts {
		rec, isLost, err := m.attempt(ctx, w, e)
		if !isLost {
			return rec, err
		}
		const longest = 10 * time.Millisecond
		select {
		case <-time.After(mathrand.N(min(longest, 50*time.Microsecond<<min(lost, 10)))):
		case <-ctx.Done():
			return Record{}, ctx.Err()
		}
	}
	return Record{}, fmt.Errorf("%w: gave up after %d attempts: try again", ErrConflict, maxAttempts)
}

// attempt makes the change once, and reports whether it lost a race: the store returned
// [ErrConflict], and not a hook of the host, whose error may match it too.
func (m *Manager) attempt(ctx context.Context, w *writeCall, e edit) (_ Record, isLost bool, _ error) {
	old, damage := m.current(ctx, w)
	if damage != nil && old.ID == "" {
		return Record{}, false, damage
	}
	rec, err := e(ctx, old)
	if w.operation.Action == ActionCreate {
		w.operation.ID = rec.ID
	}
	if err != nil {
		return Record{}, false, err
	}
	isUpdate := old.ID != "" && rec.ID != ""
	var paths []string
	if w.DryRun && rec.ID == "" && !isObject(old.Document) {
		old.Document = nil // a damaged one has no members to delete
	}
	if isUpdate || w.DryRun {
		paths = shortPaths(changedPaths(old, rec))
	}
	if isUpdate && len(paths) == 0 {
		if w.DryRun {
			old.Note = w.note(ctx, old, rec, paths)
		}
		return old, false, nil
	}
	if err := m.admit(ctx, w, old, rec); err != nil {
		return Record{}, false, err
	}
	rec.Note = w.note(ctx, old, rec, paths)
	stored, err := w.put(ctx, old, rec)
	switch {
	case damage != nil && (errors.Is(err, ErrConflict) || errors.Is(err, ErrCorrupt)):
		return Record{}, false, damage // it has the cause
	case err != nil:
		return Record{}, errors.Is(err, ErrConflict) && !errors.Is(err, ErrOutcomeUnknown), err
	case w.DryRun:
		stored.Note = rec.Note
	case rec.ID == "":
		w.operation.Revision = 0
	default:
		w.operation.Revision, w.operation.Changed = stored.Revision, paths
		if isUpdate && isPaused(stored) != isPaused(old) {
			w.operation.Paused = new(isPaused(stored))
		}
	}
	return stored, false, nil
}

// current returns the stored record, on which an attempt of the write is based, and records its
// revision: 0 if there is none, even after an attempt that lost a race. It returns an ID and an
// error for a damaged relayer that a delete may remove, whose revision is not known.
func (m *Manager) current(ctx context.Context, w *writeCall) (rec Record, err error) {
	if w.operation.Action == ActionCreate {
		return Record{}, nil
	}
	rec, err = m.get(ctx, w.operation.ID)
	switch {
	case errors.Is(err, ErrCorrupt) && w.operation.Action == ActionDelete && w.Revisions == nil && len(m.admissions) == 0:
		rec = Record{ID: w.operation.ID}
	case err == nil && w.Revisions != nil && !slices.Contains(w.Revisions, rec.Revision):
		rec, err = Record{}, ErrConflict
	case err != nil:
		rec = Record{}
	}
	w.operation.OldRevision, w.operation.Revision = rec.Revision, rec.Revision
	return rec, err
}

// put stores the record in place of the old one. A delete returns the old one.
func (w *writeCall) put(ctx context.Context, old, rec Record) (stored Record, err error) {
	switch {
	case rec.ID == "":
		return old, w.store.Delete(ctx, old.ID, old.Revision, rec.Note)
	case old.ID == "":
		stored, err = w.store.Create(ctx, rec)
		if errors.Is(err, ErrClaimed) {
			err = invalid("signer_id", "is used by another relayer on this network: choose another signer")
		}
		return stored, err
	}
	stored, err = w.store.Update(ctx, rec)
	if errors.Is(err, ErrClaimed) {
		// Signers became exclusive while two relayers shared one. A change does not
		// make that worse, and pausing one of them must be possible.
		stored, err = w.store.Update(ctx, withClaim(rec, old.Claim))
	}
	return stored, err
}

// note returns the note of a change from old to rec, which is made now. That of a dry run has only
// the paths, and is never without.
func (w *writeCall) note(ctx context.Context, old, rec Record, paths []string) []byte {
	if w.DryRun {
		return noteOf(ChangeInfo{Changed: append([]string{}, paths...)})
	}
	actor, _ := ActorFrom(ctx)
	info := ChangeInfo{
		Time: time.Now().UTC().Truncate(time.Millisecond), Action: w.operation.Action, Reason: w.Reason, Changed: paths,
		Actor: shortened(actor.ID, maxActorLength), RequestID: requestIDOf(actor),
	}
	switch {
	case isPaused(rec) && isPaused(old):
		info.PausedBy = noteInfo(old.Note).PausedBy
	case isPaused(rec):
		info.PausedBy = &ChangeInfo{Time: info.Time, Actor: info.Actor, Reason: info.Reason, RequestID: info.RequestID}
	}
	return noteOf(info)
}

// admit calls the admissions. A record without an ID has no relayer.
func (m *Manager) admit(ctx context.Context, w *writeCall, old, changed Record) error {
	if w.operation.Action == ActionPause || w.operation.Action == ActionDisable {
		return nil
	}
	for _, admit := range m.admissions {
		var relayers [2]*Relayer
		for i, rec := range [...]Record{old, changed} {
			if rec.ID == "" {
				continue
			}
			var err error
			if relayers[i], err = orMasked(m.relayerOf)(ctx, rec); err != nil {
				return err
			}
		}
		if err := admit(ctx, w.operation, relayers[0], relayers[1]); err != nil {
			return admissionError(err)
		}
	}
	return nil
}

// creation returns the edit that creates a relayer. Read returns it, or nil if its fields are
// unknown.
func (m *Manager) creation(read func(found *problems) *Relayer) edit {
	return func(ctx context.Context, _ Record) (Record, error) {
		found := new(problems)
		r := read(found)
		if r == nil {
			return Record{}, found.err()
		}
		checkMasks(r, new(Relayer), found)
		rec, err := m.prepare(ctx, r, found)
		rec.ID = r.ID
		return rec, err
	}
}

// asStored is the form of a record for callers that need no relayer.
func asStored(_ context.Context, rec Record) (Record, error) { return rec, nil }

func noRecord(context.Context, Record) (Record, error) { return Record{}, nil }

// setPaused returns an edit that sets Paused.
func setPaused(paused bool) edit {
	return setMembers(map[string][]byte{"paused": strconv.AppendBool(nil, paused)})
}

// setDisabled returns an edit that sets SystemDisabled with a reason, in which problems may have been
// found.
func setDisabled(reason DisabledReason, found *problems) edit {
	reason.Details = mask.Details(reason.Details)
	if found.err() == nil {
		checkRules(structRules(), &reason, "", ruleMessage, found)
	}
	reason.Type = DisabledReasonType(maskedText(string(reason.Type)))
	encoded, err := strictjson.Encode(reason)
	if err := cmp.Or(found.err(), err); err != nil {
		return func(context.Context, Record) (Record, error) { return Record{}, err }
	}
	return setMembers(map[string][]byte{"system_disabled": []byte("true"), reasonMember: encoded})
}

// setEnabled returns an edit that resets SystemDisabled.
func setEnabled() edit {
	return setMembers(map[string][]byte{"system_disabled": []byte("false"), reasonMember: nil})
}

const reasonMember = "disabled_reason"

// setMembers returns an edit that replaces members of the document, and the terms of these names. It
// neither decodes nor checks the rest of the relayer, so that it is fast, and a pause in an emergency
// works even if stricter rules apply since the relayer was stored. It has no limit of the size.
func setMembers(members map[string][]byte) edit {
	return func(_ context.Context, current Record) (Record, error) {
		if !isObject(current.Document) {
			return Record{}, corruptDocument(current, errNoObject)
		}
		rec, document, hasFlag := current, new(strictjson.Object), false
		for name, value := range strictjson.InOrder(current.Document) {
			switch replacement, isSet := members[name]; {
			case isSet && name == reasonMember: // it follows system_disabled
				continue
			case isSet:
				value, hasFlag = replacement, true
			}
			document.Add(name, value)
			if reason := members[reasonMember]; name == "system_disabled" && reason != nil {
				document.Add(reasonMember, reason)
			}
		}
		if !hasFlag {
			return Record{}, corruptDocument(current, errors.New("it has no such member: restore a backup, or delete the relayer"))
		}
		rec.Document, rec.Terms = document.Bytes(), slices.Clone(current.Terms)
		for i, term := range rec.Terms { // in order: a flag has one term
			if value, isSet := members[termKey(term)]; isSet {
				rec.Terms[i] = recordTerm(termKey(term), string(value))
			}
		}
		return rec, nil
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
			found.Add("policies", "cannot be changed: this version does not support the network type")
		}
		known := *r // the other rules do not depend on the network type
		known.NetworkType, known.Policy = EVM, nil
		r = &known
	}
	m.check(r, found)
	checkDisabled(r, found)
	checkMasks(r, stored, found)
}

// decoded returns an edit that decodes the relayer, with its full RPC URLs if it opens them, and
// changes it by a function or, if that is nil, by a merge patch. A changed private part is in clear.
func (m *Manager) decoded(change func(*Relayer) error, patch []byte, opens bool) edit {
	return func(ctx context.Context, current Record) (Record, error) {
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
		found, r := new(problems), new(*stored)
		if patch != nil {
			applyPatch(r, patch, found)
		} else {
			var err error
			if r, err = decode(base); err == nil { // it shares no memory with stored
				err = change(r)
			}
			if err != nil {
				return Record{}, err
			}
		}
		keepsURLs := slices.EqualFunc(r.CustomRPCURLs, stored.CustomRPCURLs, RPCConfig.equals)
		before := *stored
		isPatchOfURLs := patch != nil && opens
		if opening != nil && (!keepsURLs || isPatchOfURLs) {
			// A list in full can replace them: the key may be lost. A function gets masked URLs that it did not choose.
			if ctx.Err() != nil || patch == nil && slices.ContainsFunc(r.CustomRPCURLs, RPCConfig.IsMasked) {
				return Record{}, opening
			}
			before.CustomRPCURLs = nil
		}
		m.checkChanged(r, &before, found)
		if err := found.err(); err != nil {
			return Record{}, err
		}
		if !keepsURLs && len(r.CustomRPCURLs) > 0 && errors.Is(opening, errors.ErrUnsupported) {
			return Record{}, opening // without keys they could not be sealed
		}
		rec, err := m.newRecord(r)
		if err != nil {
			return Record{}, err
		}
		rec.ID, rec.Revision = current.ID, current.Revision // the document may be damaged
		if err := keepUnknown(&rec, r, base, stored); err != nil {
			return Record{}, err
		}
		if keepsURLs || opening == nil && bytes.Equal(rec.Private, base.Private) {
			rec.Private = current.Private // what is sealed would differ if it were sealed again
		}
		return rec, m.checkSize(rec, current)
	}
}

// patched returns the action of a JSON Merge Patch (RFC 7396), and its edit. With only a boolean
// paused it is a pause or a resume.
func (m *Manager) patched(patch []byte) (Action, edit) {
	problem := strictjson.Check(patch)
	if problem != "" {
		return ActionUpdate, func(context.Context, Record) (Record, error) { return Record{}, invalid("", "the body "+problem) }
	}
	var buffer [16]strictjson.Member // so that most lists need no memory
	members := strictjson.MemberList(buffer[:0], bytes.TrimSpace(patch))
	switch isPaused := string(strictjson.ValueOf(members, []byte("paused"))); {
	case len(members) == 0:
		return ActionUpdate, func(_ context.Context, current Record) (Record, error) { return current, nil }
	case len(members) == 1 && isPaused == "true":
		return ActionPause, setPaused(true)
	case len(members) == 1 && isPaused == "false":
		return ActionResume, setPaused(false)
	}
	return ActionUpdate, m.decoded(nil, patch, strictjson.ValueOf(members, []byte(urlsMember)) != nil)
}
