package relayer

import (
	"context"

	"github.com/go-relayer/relayer/internal/strictjson"
)

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
	return update(ctx, m, p.action, id, options, m.relayerOf, m.patched(p))
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
