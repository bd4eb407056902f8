package relayer

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/go-relayer/relayer/internal/strictjson"
)

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

// MarshalUnmasked returns the JSON body of the HTTP request that applies the patch, as
// [Documents.Patch] reads it. Unlike every other encoding of the patch it has
// the RPC URLs in full: it is for a server, not for a log. It returns a
// [*ValidationError] if a text is not UTF-8 or the policy is a nil pointer or map, and
// another error if a value cannot be encoded.
func (p Patch) MarshalUnmasked() ([]byte, error) {
	body := maps.Clone(p)
	if body == nil {
		body = Patch{}
	}
	if err := policyPointerError(body["policies"]); err != nil {
		return nil, err
	}
	if endpoints, ok := body["custom_rpc_urls"].([]RPCConfig); ok {
		body["custom_rpc_urls"] = fullRPCs(endpoints)
	}
	return encodeRequest(map[string]any(body))
}

// policyPointerError rejects what would clear a policy or change it by mistake.
func policyPointerError(policies any) error {
	if isPolicyValue(policies) {
		return invalid("policies", "must be the address of a policy (&policy), a patch of one, or null")
	}
	if isNilValue(policies) {
		return invalid("policies", "must not be empty: only null clears the policy")
	}
	return nil
}

// isPolicyValue reports whether a value is a policy and not a pointer to one.
func isPolicyValue(value any) bool {
	return value != nil && reflect.PointerTo(reflect.TypeOf(value)).Implements(reflect.TypeFor[Policy]()) && reflect.TypeOf(value).Kind() == reflect.Struct
}

// masked returns the patch without the RPC URLs.
func (p Patch) masked() map[string]any {
	masked := maps.Clone(map[string]any(p))
	if masked["custom_rpc_urls"] != nil {
		masked["custom_rpc_urls"] = "***"
	}
	return masked
}

// Format prints the JSON form of the patch without the RPC URLs, for every verb.
func (p Patch) Format(state fmt.State, _ rune) { strictjson.Print(state, p.masked()) }

// MarshalJSON encodes the patch without the RPC URLs, for logs.
func (p Patch) MarshalJSON() ([]byte, error) { return strictjson.Encode(p.masked()) }

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

// patchAction returns the action that a patch is: a pause or a resume if paused is
// its only member.
func patchAction(body []byte) Action {
	if !bytes.Contains(body, []byte(`"paused"`)) && !bytes.Contains(body, []byte(`\`)) { // the name may have escapes
		return ActionUpdate
	}
	if strictjson.Check(body) != "" {
		return ActionUpdate
	}
	action, members := ActionUpdate, 0
	for name, value := range strictjson.InOrder(body) {
		members++
		switch isPaused := name == "paused"; {
		case isPaused && string(value) == "true":
			action = ActionPause
		case isPaused && string(value) == "false":
			action = ActionResume
		}
	}
	if members > 1 {
		return ActionUpdate
	}
	return action
}

func (m *Manager) patchRecord(ctx context.Context, id string, body []byte, checkPolicy func(NetworkType) error, w *write) (Record, error) {
	if string(bytes.TrimSpace(body)) == "{}" {
		rec, err := m.current(ctx, id, w.WriteSettings)
		if err != nil {
			return Record{}, err
		}
		w.begins(rec)
		return w.unchanged(rec), nil
	}
	if action := w.operation.Action; action != ActionUpdate {
		return m.updateRecord(ctx, id, w, m.setPaused(action == ActionPause))
	}
	// The first attempt checks the body, because an unknown ID comes first.
	problem := sync.OnceValue(func() string { return strictjson.Check(body) })
	apply := func(r, stored *Relayer) error {
		if err := checkPolicy(r.NetworkType); err != nil {
			return err
		}
		found := new(problems)
		if problem := problem(); problem != "" {
			found.Add("", "the body "+problem)
			return found.err()
		}
		applyPatch(r, body, found)
		m.checkChanged(r, stored, found)
		return found.err()
	}
	return m.updateRecord(ctx, id, w, m.decoded(apply))
}

// fixed are the members of a relayer that no patch can change.
var fixed = []string{"id", "network", "network_type", "signer_id", "address", "system_disabled", "disabled_reason"}

// nameFixed replaces the messages of fixed members, which are unknown to a patch.
func (p *problems) nameFixed() {
	for i, problem := range p.list {
		if slices.Contains(fixed, problem.Field) {
			p.list[i].Code, p.list[i].Message = strictjson.Immutable, "cannot be changed"
		}
	}
}

// patchable has the fields of a relayer that a patch can change.
type patchable struct {
	Name           string      `json:"name"`
	Paused         bool        `json:"paused"`
	NotificationID string      `json:"notification_id,omitempty" wire:"optional,nonempty"`
	CustomRPCURLs  []RPCConfig `json:"custom_rpc_urls,omitzero"`
	Policy         Policy      `json:"policies,omitempty" wire:"optional"`

	Labels map[string]string `json:"labels,omitempty" wire:"optional"`
}

// applyPatch merges a patch, checked JSON, into a relayer.
func applyPatch(r *Relayer, body []byte, found *problems) {
	d := newDecoder(found)
	d.IsPatch = true
	changed := patchable{r.Name, r.Paused, r.NotificationID, r.CustomRPCURLs, r.Policy, r.Labels}
	d.Decode(body, &changed)
	found.nameFixed()
	r.Name, r.Paused, r.NotificationID = changed.Name, changed.Paused, changed.NotificationID
	r.CustomRPCURLs, r.Policy, r.Labels = changed.CustomRPCURLs, changed.Policy, changed.Labels
	if _, isUnknown := r.Policy.(*UnknownPolicy); !isUnknown {
		d.decodePolicies(r.Policy)
	} else if d.policies != nil {
		found.Add("policies", unknownTypeMessage)
	}
}
