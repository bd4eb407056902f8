package relayer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// patchable has the fields of a relayer that a patch can change.
type patchable struct {
	Name           string      `json:"name"`
	Paused         bool        `json:"paused"`
	NotificationID string      `json:"notification_id,omitempty" wire:"optional,nonempty"`
	CustomRPCURLs  []RPCConfig `json:"custom_rpc_urls,omitzero"`
	Policy         Policy      `json:"policies,omitempty" wire:"optional"`

	Labels map[string]string `json:"labels,omitempty" wire:"optional"`
}

// Patch is a partial change of a relayer, a JSON Merge Patch (RFC 7396). An absent member
// stays as it is, nil clears it, and any other value replaces it, but those of labels and
// policies are merged member by member. The value of policies is a Patch too, or a [Policy]
// of the relayer's network type, of which only the fields that are set count. That of
// custom_rpc_urls is a []RPCConfig: other types that hold an [RPCURL] are refused, because
// their encoding is masked. A type that implements [json.Marshaler] must encode the full URL.
// The members are those of [Documents.Patch].
//
//	relayer.Patch{
//		"paused":          true,
//		"notification_id": nil,
//		"policies":        relayer.Patch{"min_balance": nil, "gas_price_cap": relayer.Gwei(100)},
//	}
//
// A patch that is printed, logged or encoded as JSON shows *** in place of
// custom_rpc_urls. The encoding for a server is [Patch.MarshalUnmasked].
type Patch map[string]any

// Patch changes a relayer like [Documents.Patch], and returns it as stored. It
// returns an error if a value of the patch cannot be encoded as JSON, and a
// [*ValidationError] if its policy is a nil pointer or map, or that of another network type.
func (m *Manager) Patch(ctx context.Context, id string, patch Patch, options ...WriteOption) (*Relayer, error) {
	body, err := patch.MarshalUnmasked()
	if err != nil {
		return nil, operationError(ActionUpdate, id, err)
	}
	return observeWrite(ctx, m, patchAction(body), &id, options, func(ctx context.Context, w *write) (*Relayer, error) {
		rec, err := m.patchRecord(ctx, id, body, patch.checkPolicy, w)
		if err != nil {
			return nil, err
		}
		return m.relayerOf(rec)
	})
}

// checkPolicy returns a [*ValidationError] if the value of policies is the [Policy] of
// another network type than networkType, that of the relayer. The JSON of a patch does not
// show it: MinBalance is in wei or in lamports.
func (p Patch) checkPolicy(networkType NetworkType) error {
	policy, ok := p["policies"].(Policy)
	if !ok || isNil(policy) || policy.NetworkType() == networkType {
		return nil
	}
	return invalid("policies", otherPolicyMessage(policy))
}

func anyPolicy(NetworkType) error { return nil }

func otherPolicyMessage(policy Policy) string {
	return fmt.Sprintf("must be the policy of the network type, not that of %s", policy.NetworkType())
}

// patchAction returns the action that a patch is: a pause or a resume if paused is
// its only member.
func patchAction(body []byte) Action {
	if !bytes.Contains(body, []byte(`"paused"`)) && !bytes.Contains(body, []byte(`\`)) { // the name may have escapes
		return ActionUpdate
	}
	var read []json.Token
	for decoder := json.NewDecoder(bytes.NewReader(body)); len(read) <= 4; {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		read = append(read, token)
	}
	isPaused := func(paused bool) bool {
		return slices.Equal(read, []json.Token{json.Delim('{'), "paused", paused, json.Delim('}')})
	}
	switch {
	case strictjson.Check(body) != "":
		return ActionUpdate
	case isPaused(true):
		return ActionPause
	case isPaused(false):
		return ActionResume
	default:
		return ActionUpdate
	}
}

func (m *Manager) patchRecord(ctx context.Context, id string, body []byte, checkPolicy func(NetworkType) error, w *write) (Record, error) {
	if string(bytes.TrimSpace(body)) == "{}" {
		rec, err := m.current(ctx, id, w.WriteSettings)
		w.replaces(rec, rec)
		return rec, err
	}
	if action := w.operation.Action; action != ActionUpdate {
		return m.updateRecord(ctx, id, w, m.setPaused(action == ActionPause))
	}
	var p *patch // parsed by the first attempt, because an unknown ID comes first
	apply := func(r, stored *Relayer) error {
		if err := checkPolicy(r.NetworkType); err != nil {
			return err
		}
		if p == nil || p.networkType != r.NetworkType {
			p = parsePatch(body, r.NetworkType)
		}
		found := p.problems.clone()
		if p.isObject {
			if err := p.apply(r, found); err != nil {
				return err
			}
			m.checkChanged(r, stored, found)
		}
		return found.err()
	}
	return m.updateRecord(ctx, id, w, m.decoded(apply))
}

// patch is a parsed merge patch for relayers of one network type.
type patch struct {
	networkType NetworkType
	body        []byte
	isObject    bool
	members     map[string]json.RawMessage
	problems    *problems // of the patch, which a merge would hide
}

func parsePatch(body []byte, networkType NetworkType) *patch {
	p := &patch{networkType: networkType, body: body, problems: new(problems)}
	if problem := strictjson.Check(body); problem != "" {
		p.problems.Add("", "the body "+problem)
		return p
	}
	p.isObject = true
	d := newDecoder(p.problems)
	d.AllowMissing = true
	d.decodePatchable(body, networkType)
	p.problems.nameFixed()
	p.members, _ = strictjson.Members(body)
	if newPolicy(networkType) == nil && p.members["policies"] != nil {
		p.problems.Add("policies", unknownTypeMessage)
	}
	return p
}

// fixed are the members of a relayer that no patch can change.
var fixed = []string{"id", "network", "network_type", "signer_id", "address", "system_disabled", "disabled_reason"}

// nameFixed replaces the messages of fixed members, which are unknown to a patch.
func (p *problems) nameFixed() {
	for i, problem := range p.list {
		if slices.Contains(fixed, problem.Field) {
			p.list[i].Message = "cannot be changed"
		}
	}
}

// apply merges the patch into the relayer. The merged result shows which required
// fields are missing.
func (p *patch) apply(r *Relayer, found *problems) error {
	before := patchable{Name: r.Name, Paused: r.Paused, NotificationID: r.NotificationID}
	// The others are large, and merged only if they change.
	if p.members["policies"] != nil {
		before.Policy = r.Policy
	}
	if p.members["labels"] != nil {
		before.Labels = r.Labels
	}
	current, err := strictjson.Encode(before)
	if err != nil {
		return err
	}
	merged, err := strictjson.MergePatch(current, p.body)
	if err != nil {
		return err
	}
	d := newDecoder(found)
	d.IgnoreUnknown = true // parsePatch has reported them
	result := d.decodePatchable(merged, p.networkType)
	r.Name = result.Name
	r.Paused = result.Paused
	r.NotificationID = result.NotificationID
	if p.members["labels"] != nil {
		r.Labels = result.Labels
	}
	if p.members["policies"] != nil && newPolicy(p.networkType) != nil {
		r.Policy = result.Policy
	}
	// The URLs are replaced whole, and are not part of the merge: encoded they
	// would be masked.
	if p.members[urlsMember] != nil {
		r.CustomRPCURLs = result.CustomRPCURLs
	}
	return nil
}

func (d *decoder) decodePatchable(data []byte, networkType NetworkType) patchable {
	var decoded patchable
	d.Decode(data, &decoded)
	decoded.Policy = d.decodePolicies(networkType)
	return decoded
}
