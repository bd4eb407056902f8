package relayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

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
// The relayer has its full RPC URLs. If they are sealed and cannot be opened, they are masked
// ([RPCURL.IsMasked]): change can keep the list as it is, or replace all of its URLs. If it keeps
// some of them, Update returns the error of [Manager.RPCURLs]. A list with the same content is
// kept as it is stored, sealed under whichever key: see store/sealed.
//
// ID, Network, NetworkType, SignerID and Address must not be changed. Changes of Revision and
// LastChange are ignored. A nil Policy removes all restrictions. Update returns [ErrNotFound],
// a [*ValidationError], the error of change, or [ErrConflict] if a condition does not hold or
// contention exhausts the retries. Each is wrapped in an error that names the operation and the
// ID: match it with [errors.Is].
func (m *Manager) Update(ctx context.Context, id string, change func(*Relayer) error, options ...WriteOption) (*Relayer, error) {
	apply := func(r *Relayer, _ *problems) error { return change(r) }
	return update(ctx, m, ActionUpdate, id, options, m.relayerOf, m.decoded(apply, true))
}

// Pause sets Paused. If it is set already, nothing changes. Errors are those of
// [Manager.Update].
func (m *Manager) Pause(ctx context.Context, id string, options ...WriteOption) (*Relayer, error) {
	return update(ctx, m, ActionPause, id, options, m.relayerOf, m.setPaused(true))
}

// Resume resets Paused. If it is not set, nothing changes. Errors are those of
// [Manager.Update].
func (m *Manager) Resume(ctx context.Context, id string, options ...WriteOption) (*Relayer, error) {
	return update(ctx, m, ActionResume, id, options, m.relayerOf, m.setPaused(false))
}

// Disable sets SystemDisabled and replaces DisabledReason by reason, whose Type is
// required. It accepts any Details: more than 16 KiB are cut off, and what is not UTF-8 or
// is NUL is replaced by U+FFFD. Errors are those of [Manager.Update].
func (m *Manager) Disable(ctx context.Context, id string, reason DisabledReason, options ...WriteOption) (*Relayer, error) {
	return update(ctx, m, ActionDisable, id, options, m.relayerOf, m.setDisabled(reason))
}

// Enable resets SystemDisabled and removes DisabledReason. If the relayer is not
// disabled, nothing changes. Errors are those of [Manager.Update].
func (m *Manager) Enable(ctx context.Context, id string, options ...WriteOption) (*Relayer, error) {
	return update(ctx, m, ActionEnable, id, options, m.relayerOf, m.setEnabled())
}

// edit returns the changed record of a relayer.
type edit func(ctx context.Context, current Record) (Record, error)

// applyFunc modifies a relayer.
type applyFunc func(r *Relayer, found *problems) error

// decoded is an edit that decodes the relayer, with its full RPC URLs if it opens them, and
// limits its size.
func (m *Manager) decoded(apply applyFunc, opens bool) edit {
	return func(ctx context.Context, current Record) (Record, error) {
		rec, err := m.changed(ctx, current, apply, opens)
		if err != nil {
			return Record{}, err
		}
		return rec, m.checkSize(rec, current)
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
		r = withKnownType(r)
	}
	m.check(r, found)
	checkDisabled(r, found)
	checkMasks(r, stored, found)
}

const unknownTypeMessage = "cannot be changed: this version does not support the network type"

// withKnownType returns a relayer to which the rules of the fields apply that do not
// depend on the network type.
func withKnownType(r *Relayer) *Relayer {
	known := *r
	known.NetworkType, known.Policy = EVM, nil
	return &known
}

func update[T any](ctx context.Context, m *Manager, action Action, id string, options []WriteOption, form form[T], e edit) (T, error) {
	return observeWrite(ctx, m, action, &id, options, func(ctx context.Context, w *write) (T, error) {
		rec, err := m.updateRecord(ctx, id, w, e)
		if err != nil {
			return *new(T), err
		}
		return form(ctx, rec)
	})
}

func (m *Manager) updateRecord(ctx context.Context, id string, w *write, e edit) (Record, error) {
	return retry(ctx, func() (Record, error) { return m.attemptUpdate(ctx, id, w, e) })
}

func (m *Manager) attemptUpdate(ctx context.Context, id string, w *write, e edit) (Record, error) {
	current, err := m.current(ctx, id, w.WriteSettings)
	if err != nil {
		w.begins(Record{}) // an earlier attempt has lost a race
		return Record{}, err
	}
	w.begins(current)
	rec, err := e(ctx, current)
	if err != nil {
		return Record{}, err
	}
	if bytes.Equal(rec.Document, current.Document) && bytes.Equal(rec.Private, current.Private) {
		return w.unchanged(current), nil
	}
	if err := m.admit(ctx, w, current, rec); err != nil {
		return Record{}, err
	}
	rec.Note = w.updateNote(ctx, current, rec)
	updated, err := w.swap(ctx, rec)
	if errors.Is(err, ErrClaimed) {
		// Signers became exclusive while two relayers shared one. A change does not
		// make that worse, and pausing one of them must be possible.
		updated, err = w.swap(ctx, withClaim(rec, current.Claim))
	}
	if err != nil {
		return Record{}, err
	}
	return w.updated(current, updated), nil
}

// changed returns the record of the relayer as apply changes it, with a changed private part in
// clear.
func (m *Manager) changed(ctx context.Context, current Record, apply applyFunc, opens bool) (Record, error) {
	base, decode, opening := current, unmaskedRelayerOf, error(nil)
	if m.masks(current) {
		if opens {
			base, opening = m.opened(ctx, current)
		}
		if !opens || opening != nil {
			base, decode = current, maskedRelayerOf
			base.Private = nil
		}
	}
	stored, err := decode(base)
	if err != nil {
		return Record{}, err
	}
	r, err := decode(base) // another copy, for the caller
	if err != nil {
		return Record{}, err
	}
	found := new(problems)
	if err := apply(r, found); err != nil {
		return Record{}, err
	}
	keepsURLs := equalEndpoints(r.CustomRPCURLs, stored.CustomRPCURLs)
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
	return rec, nil
}

// canReplace reports whether a list can replace stored RPC URLs that cannot be opened: the key
// may be lost. Without keys the new URLs could not be sealed.
func canReplace(urls []RPCConfig, opening error) bool {
	keeps := slices.ContainsFunc(urls, func(endpoint RPCConfig) bool { return endpoint.URL.IsMasked() })
	return !keeps && (len(urls) == 0 || !errors.Is(opening, errors.ErrUnsupported))
}

func equalEndpoints(a, b []RPCConfig) bool {
	return slices.EqualFunc(a, b, func(x, y RPCConfig) bool {
		return x.URL == y.URL && (x.Weight == nil) == (y.Weight == nil) && (x.Weight == nil || *x.Weight == *y.Weight)
	})
}
