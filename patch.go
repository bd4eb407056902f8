package relayer

import (
	"context"
	"encoding/json"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// patchable is what of a relayer a patch can change.
type patchable struct {
	Name           string      `json:"name"`
	Paused         bool        `json:"paused"`
	NotificationID string      `json:"notification_id,omitempty" wire:"optional,nonempty"`
	CustomRPCURLs  []RPCConfig `json:"custom_rpc_urls,omitzero"`
	Policies       Policy      `json:"policies,omitempty" wire:"optional"`
}

// PatchDocument changes a relayer by a JSON Merge Patch (RFC 7396) of strict
// JSON. Its members are name, paused, policies (merged field by field; null
// clears one field or all), notification_id (null clears it) and
// custom_rpc_urls (replaced whole; null clears them). The result is checked as a
// whole. Errors are those of [Manager.Update]; an empty patch changes nothing.
func (m *Manager) PatchDocument(ctx context.Context, id string, patch []byte, conditions ...Condition) (document Document, err error) {
	defer m.observe(ctx, OperationUpdate, &id, begin(&err), &err)
	rec, err := m.update(ctx, id, conditions, func(r, stored *Relayer) error {
		found := new(problems)
		if err := r.applyPatch(patch, found); err != nil {
			return err
		}
		m.checkChanged(r, stored, found)
		return found.err()
	})
	if err != nil {
		return Document{}, err
	}
	return documentOf(rec), nil
}

// applyPatch reads the patch twice: by itself, because a merge would lose what
// it says of fields that do not exist; and merged, because only then it shows
// what is missing. It returns an error where there is nothing to merge; all
// other problems it adds to found.
func (r *Relayer) applyPatch(patch []byte, found *problems) error {
	if problem := strictjson.Check(patch); problem != "" {
		found.Add("", "the body "+problem)
		return found.err()
	}
	alone := newDecoder(found)
	alone.AllowMissing = true
	alone.decodePatchable(patch, r.NetworkType)
	current, err := strictjson.Encode(patchable{
		Name:           r.Name,
		Paused:         r.Paused,
		NotificationID: r.NotificationID,
		Policies:       r.Policies,
	})
	if err != nil {
		return err
	}
	merged, err := mergePatch(current, patch)
	if err != nil {
		return err
	}
	whole := newDecoder(found)
	whole.IgnoreUnknown = true
	result := whole.decodePatchable(merged, r.NetworkType)
	r.Name = result.Name
	r.Paused = result.Paused
	r.NotificationID = result.NotificationID
	r.Policies = result.Policies
	// The URLs, which are replaced whole or not at all, take no part in the
	// merge: encoded they would be masked.
	if changes, _ := jsonMembers(patch); changes["custom_rpc_urls"] != nil {
		r.CustomRPCURLs = result.CustomRPCURLs
	}
	return nil
}

func (d *decoder) decodePatchable(data []byte, networkType NetworkType) patchable {
	var read patchable
	d.Decode(data, &read)
	read.Policies = d.decodePolicies(networkType)
	return read
}

// mergePatch is the MergePatch function of RFC 7396 section 2.
func mergePatch(target, patch json.RawMessage) (json.RawMessage, error) {
	changes, ok := jsonMembers(patch)
	if !ok {
		return patch, nil
	}
	members, ok := jsonMembers(target)
	if !ok {
		members = make(map[string]json.RawMessage)
	}
	for name, change := range changes {
		if string(change) == "null" {
			delete(members, name)
			continue
		}
		merged, err := mergePatch(members[name], change)
		if err != nil {
			return nil, err
		}
		members[name] = merged
	}
	return strictjson.Encode(members)
}

// jsonMembers returns the members of a JSON object. It reports false where
// value is none.
func jsonMembers(value json.RawMessage) (map[string]json.RawMessage, bool) {
	var members map[string]json.RawMessage
	err := json.Unmarshal(value, &members)
	return members, err == nil && members != nil
}
