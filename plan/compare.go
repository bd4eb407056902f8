package plan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// compare returns the entry of a relayer of the configuration. stored is nil if the
// registry does not have it.
func (b *builder) compare(req relayer.CreateRequest, stored *relayer.Relayer) (Entry, error) {
	if stored == nil {
		return b.compareNew(req)
	}
	entry := Entry{ID: req.ID, Action: Unchanged, Problems: immutableProblems(req, stored)}
	if b.keepPaused {
		req.Paused = stored.Paused
	}
	patch, changes, err := compareFields(req, stored)
	if err != nil {
		return Entry{}, err
	}
	urls := b.compareURLs(req.CustomRPCURLs, stored.CustomRPCURLs)
	entry.MaskedURLs = b.isMasked && len(req.CustomRPCURLs) > 0
	entry.Problems = append(entry.Problems, urls.problems...)
	entry.Changes = append(changes, urls.changes...)
	if len(entry.Problems) > 0 {
		entry.Action, entry.Changes = Blocked, nil
		return entry, nil
	}
	if len(entry.Changes) == 0 {
		return entry, nil
	}
	if len(urls.changes) > 0 {
		patch["custom_rpc_urls"] = urls.patchValue()
	}
	entry.Action = Update
	entry.apply = func(ctx context.Context) error {
		_, err := b.registry.Patch(ctx, req.ID, patch, relayer.IfRevision(stored.Revision))
		return err
	}
	return entry, nil
}

func (b *builder) compareNew(req relayer.CreateRequest) (Entry, error) {
	urls := b.compareURLs(req.CustomRPCURLs, nil)
	if len(urls.problems) > 0 {
		return Entry{ID: req.ID, Action: Blocked, Problems: urls.problems}, nil
	}
	desired, err := membersOf(fields{req.Name, req.Paused, req.NotificationID, req.Policies})
	if err != nil {
		return Entry{}, err
	}
	desired["network"], desired["network_type"], desired["signer_id"] = req.Network, req.NetworkType, req.SignerID
	var changes []Change
	compareObjects("", map[string]any{"policies": map[string]any{}}, desired, &changes)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(strings.Count(a.Path, "."), strings.Count(b.Path, ".")) })
	return Entry{ID: req.ID, Action: Create, Changes: append(changes, urls.changes...), apply: func(ctx context.Context) error {
		_, err := b.registry.Create(ctx, req)
		return b.nameHolder(err, req)
	}}, nil
}

// nameHolder adds the ID of the stored relayer with the same signer to an error on
// signer_id: if signers are exclusive, that relayer is the cause.
func (b *builder) nameHolder(err error, req relayer.CreateRequest) error {
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok || !slices.ContainsFunc(invalid.Fields, func(f relayer.FieldError) bool { return f.Field == "signer_id" }) {
		return err
	}
	for _, r := range b.listed {
		if r.SignerID == req.SignerID && r.NetworkType == req.NetworkType && r.Network == req.Network {
			return fmt.Errorf("%w (relayer %s has this signer)", err, r.ID)
		}
	}
	return err
}

func immutableProblems(req relayer.CreateRequest, stored *relayer.Relayer) []relayer.FieldError {
	var found problems
	for _, field := range []struct{ name, desired, stored string }{
		{"network", req.Network, stored.Network},
		{"network_type", string(req.NetworkType), string(stored.NetworkType)},
		{"signer_id", req.SignerID, stored.SignerID},
	} {
		if field.desired != field.stored {
			found.Add(field.name, fmt.Sprintf("must not be changed from %q to %q: delete the relayer first", field.stored, field.desired))
		}
	}
	return found
}

// fields are the fields that a patch can change, except the RPC URLs.
type fields struct {
	Name           string         `json:"name"`
	Paused         bool           `json:"paused"`
	NotificationID string         `json:"notification_id,omitempty"`
	Policies       relayer.Policy `json:"policies"`
}

// compareFields returns the merge patch that makes the stored relayer equal to the
// request, and its changes.
func compareFields(req relayer.CreateRequest, stored *relayer.Relayer) (relayer.Patch, []Change, error) {
	old, err := membersOf(fields{stored.Name, stored.Paused, stored.NotificationID, stored.Policies})
	if err != nil {
		return nil, nil, err
	}
	desired, err := membersOf(fields{req.Name, req.Paused, req.NotificationID, req.Policies})
	if err != nil {
		return nil, nil, err
	}
	var changes []Change
	patch := compareObjects("", old, desired, &changes)
	return patch, changes, nil
}

// membersOf returns the JSON form of fields, with exact numbers. A missing policy is an
// empty one.
func membersOf(f fields) (map[string]any, error) {
	encoded, err := strictjson.Encode(f)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var members map[string]any
	if err := decoder.Decode(&members); err != nil {
		return nil, err
	}
	if members["policies"] == nil {
		members["policies"] = map[string]any{}
	}
	return members, nil
}

// compareObjects returns the merge patch from one object to another, and adds its
// changes.
func compareObjects(path string, old, desired map[string]any, changes *[]Change) relayer.Patch {
	patch := make(relayer.Patch)
	names := maps.Clone(old)
	maps.Copy(names, desired)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, to := old[name], desired[name]
		if reflect.DeepEqual(from, to) {
			continue
		}
		below := join(path, name)
		fromObject, wasObject := from.(map[string]any)
		toObject, isObject := to.(map[string]any)
		if wasObject && isObject {
			patch[name] = compareObjects(below, fromObject, toObject, changes)
			continue
		}
		patch[name] = to
		*changes = append(*changes, Change{Path: below, Old: text(from), New: text(to)})
	}
	return patch
}
