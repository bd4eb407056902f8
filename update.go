package relayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Condition makes a change depend on how the relayer stands. Without one, a
// change that loses a race is applied anew to what won it.
type Condition struct {
	revisions []uint64
}

// IfRevision lets a change be carried out only where the relayer stands at one
// of these revisions; otherwise the change returns [ErrConflict].
func IfRevision(revisions ...uint64) Condition { return Condition{revisions: revisions} }

func holdAll(conditions []Condition, revision uint64) bool {
	for _, condition := range conditions {
		if !slices.Contains(condition.revisions, revision) {
			return false
		}
	}
	return true
}

// maxAttempts bounds how often a change is applied anew after losing a race.
// Every race that is lost was won by another change, so that this many are lost
// only to a crowd.
const maxAttempts = 200

// Update reads the relayer, has change modify it, checks the result as a create
// is checked, and stores it, provided that nobody else has changed the relayer
// meanwhile; otherwise it begins again, so that change may be called more than
// once and must not act on anything else. It returns the relayer as stored.
// Where nothing has been changed nothing is stored, and the revision stays.
//
// What may not be changed is ID, Network, NetworkType, SignerID and Address.
// It returns [ErrNotFound], a [*ValidationError], what change returned, or
// [ErrConflict] where a condition does not hold or the race was lost too often.
func (m *Manager) Update(ctx context.Context, id string, change func(*Relayer) error, conditions ...Condition) (r *Relayer, err error) {
	defer m.observe(ctx, OperationUpdate, &id, begin(&err), &err)
	return m.updated(ctx, id, conditions, m.checkedChange(change))
}

// Pause sets the operator's switch. A relayer paused already stays as it is.
// Errors are those of [Manager.Update].
func (m *Manager) Pause(ctx context.Context, id string, conditions ...Condition) (r *Relayer, err error) {
	defer m.observe(ctx, OperationPause, &id, begin(&err), &err)
	return m.updated(ctx, id, conditions, setPaused(true))
}

// Resume resets the operator's switch. A relayer not paused stays as it is.
// Errors are those of [Manager.Update].
func (m *Manager) Resume(ctx context.Context, id string, conditions ...Condition) (r *Relayer, err error) {
	defer m.observe(ctx, OperationResume, &id, begin(&err), &err)
	return m.updated(ctx, id, conditions, setPaused(false))
}

// Disable sets the host's own switch, for the reason given, in place of any
// reason before. The reason has a type. Errors are those of [Manager.Update].
func (m *Manager) Disable(ctx context.Context, id string, reason DisabledReason, conditions ...Condition) (r *Relayer, err error) {
	defer m.observe(ctx, OperationDisable, &id, begin(&err), &err)
	return m.updated(ctx, id, conditions, func(r, _ *Relayer) error {
		r.SystemDisabled, r.DisabledReason = true, &reason
		found := new(problems)
		checkDisabled(r, found)
		return found.err()
	})
}

// Enable resets the host's own switch, and the reason goes with it. A relayer
// not disabled stays as it is. Errors are those of [Manager.Update].
func (m *Manager) Enable(ctx context.Context, id string, conditions ...Condition) (r *Relayer, err error) {
	defer m.observe(ctx, OperationEnable, &id, begin(&err), &err)
	return m.updated(ctx, id, conditions, func(r, _ *Relayer) error {
		r.SystemDisabled, r.DisabledReason = false, nil
		return nil
	})
}

// setPaused does not check the rest of the relayer: a switch for emergencies
// must work whatever rules have been turned on since the relayer was stored.
func setPaused(paused bool) func(r, stored *Relayer) error {
	return func(r, _ *Relayer) error {
		r.Paused = paused
		return nil
	}
}

// checkedChange is a host's change, and after it all that a changed relayer is
// checked for.
func (m *Manager) checkedChange(change func(*Relayer) error) func(r, stored *Relayer) error {
	return func(r, stored *Relayer) error {
		if err := change(r); err != nil {
			return err
		}
		found := new(problems)
		m.checkChanged(r, stored, found)
		return found.err()
	}
}

// checkChanged adds to found what is wrong with a relayer that has been changed
// from what is stored.
func (m *Manager) checkChanged(r, stored *Relayer, found *problems) {
	keep := func(field string, isKept bool) {
		if !isKept {
			found.Add(field, "must not be changed")
		}
	}
	keep("id", r.ID == stored.ID)
	keep("network", r.Network == stored.Network)
	keep("network_type", r.NetworkType == stored.NetworkType)
	keep("signer_id", r.SignerID == stored.SignerID)
	keep("address", r.Address == stored.Address)
	m.check(CreateRequest{
		ID:             r.ID,
		Name:           r.Name,
		Network:        r.Network,
		NetworkType:    r.NetworkType,
		Paused:         r.Paused,
		SignerID:       r.SignerID,
		NotificationID: r.NotificationID,
		CustomRPCURLs:  r.CustomRPCURLs,
		Policies:       r.Policies,
	}, found)
	checkDisabled(r, found)
	checkMasks(r, stored, found)
}

func checkDisabled(r *Relayer, found *problems) {
	switch reason := r.DisabledReason; {
	case r.SystemDisabled && reason == nil:
		found.Add("disabled_reason", "must be set while system_disabled is true")
	case !r.SystemDisabled && reason != nil:
		found.Add("disabled_reason", "must not be set while system_disabled is false")
	case reason == nil:
	case reason.Type == "":
		found.Add("disabled_reason.type", "must not be empty")
	default:
		if problem := strictjson.TextProblem(string(reason.Type)); problem != "" {
			found.Add("disabled_reason.type", problem)
		}
		if problem := strictjson.TextProblem(reason.Details); problem != "" {
			found.Add("disabled_reason.details", problem)
		}
	}
}

// checkMasks refuses the masked form of a URL that was read and is now written
// back: it would put an end to the URL that it stands for. A URL that looks like
// a mask may stay as often as it is stored, and no more often.
func checkMasks(r, stored *Relayer, found *problems) {
	kept, masks := make(map[RPCURL]int), make(map[string]bool)
	for _, endpoint := range stored.CustomRPCURLs {
		kept[endpoint.URL]++
		if mask := endpoint.URL.String(); mask != string(endpoint.URL) {
			masks[plainForm(mask)] = true
		}
	}
	for i, endpoint := range r.CustomRPCURLs {
		if kept[endpoint.URL] > 0 {
			kept[endpoint.URL]--
			continue
		}
		if form := plainForm(string(endpoint.URL)); masks[form] || strings.HasSuffix(form, maskedRest) {
			found.Add(fmt.Sprintf("custom_rpc_urls[%d].url", i), "must be the full URL, not the masked one that responses show")
		}
	}
}

// updated stores the relayer as apply changes it, and returns it.
func (m *Manager) updated(ctx context.Context, id string, conditions []Condition, apply func(r, stored *Relayer) error) (*Relayer, error) {
	rec, err := m.update(ctx, id, conditions, apply)
	if err != nil {
		return nil, err
	}
	return relayerOf(rec)
}

// update carries a change through, again where it loses a race.
func (m *Manager) update(ctx context.Context, id string, conditions []Condition, apply func(r, stored *Relayer) error) (Record, error) {
	var rec Record
	err := untilWon(ctx, func() (err error) {
		rec, err = m.attempt(ctx, id, conditions, apply)
		return err
	})
	return rec, err
}

// raceLost is the error of a store whose record was changed between the read
// and the write. A host's own error can match [ErrConflict] too, and is not to
// be answered by asking the host again.
type raceLost struct{ error }

func (e raceLost) Unwrap() error { return e.error }

func lostRace(err error) error {
	if errors.Is(err, ErrConflict) {
		return raceLost{err}
	}
	return err
}

// untilWon attempts a change until it is carried out, fails for another reason
// than a lost race, or has lost too many.
func untilWon(ctx context.Context, attempt func() error) error {
	for lost := range maxAttempts {
		err := attempt()
		if _, ok := errors.AsType[raceLost](err); !ok {
			return err
		}
		if err := backOff(ctx, lost); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: lost %d races", ErrConflict, maxAttempts)
}

func (m *Manager) attempt(ctx context.Context, id string, conditions []Condition, apply func(r, stored *Relayer) error) (Record, error) {
	stands, err := m.standing(ctx, id, conditions)
	if err != nil {
		return Record{}, err
	}
	r, err := relayerOf(stands)
	if err != nil {
		return Record{}, err
	}
	stored, err := relayerOf(stands)
	if err != nil {
		return Record{}, err
	}
	if err := apply(r, stored); err != nil {
		return Record{}, err
	}
	r.CustomRPCURLs = withDefaultWeights(r.CustomRPCURLs)
	r.Policies = withPolicyDefaults(r.Policies, r.NetworkType)
	rec, err := m.newRecord(r)
	if err != nil {
		return Record{}, err
	}
	if bytes.Equal(rec.Document, stands.Document) && bytes.Equal(rec.Private, stands.Private) {
		return stands, nil
	}
	rec.Revision = stands.Revision
	updated, err := m.write(ctx, id, Updated, func() (Record, error) { return m.store.Update(ctx, rec) })
	if errors.Is(err, ErrClaimed) {
		// Signers became exclusive after this relayer and another had come to share
		// one. No change makes that worse, and pausing one is how it gets better.
		rec.Claim = stands.Claim
		updated, err = m.write(ctx, id, Updated, func() (Record, error) { return m.store.Update(ctx, rec) })
	}
	return updated, lostRace(err)
}

// standing returns the record that a change is based on.
func (m *Manager) standing(ctx context.Context, id string, conditions []Condition) (Record, error) {
	if !isID(id) {
		return Record{}, ErrNotFound
	}
	rec, err := m.store.Get(ctx, id)
	if err != nil {
		return Record{}, err
	}
	if !holdAll(conditions, rec.Revision) {
		return Record{}, ErrConflict
	}
	return rec, nil
}

// backOff waits a little, and longer and less evenly the more races were lost,
// so that a crowd thins out.
func backOff(ctx context.Context, lost int) error {
	const longest = 10 * time.Millisecond
	limit := min(longest, 50*time.Microsecond<<min(lost, 10))
	timer := time.NewTimer(rand.N(limit))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
