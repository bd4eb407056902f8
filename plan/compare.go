package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
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
		patch["custom_rpc_urls"] = urls.list
	}
	entry.Action = Update
	entry.apply = func(ctx context.Context, options ...relayer.WriteOption) error {
		_, err := b.registry.Patch(ctx, req.ID, patch, append(options, relayer.IfRevision(stored.Revision))...)
		return err
	}
	return entry, nil
}

func (b *builder) compareNew(req relayer.CreateRequest) (Entry, error) {
	urls := b.compareURLs(req.CustomRPCURLs, nil)
	if len(urls.problems) > 0 {
		return Entry{ID: req.ID, Action: Blocked, Problems: urls.problems}, nil
	}
	desired, err := encodeFields(req)
	if err != nil {
		return Entry{}, err
	}
	changes := changesOf("", json.RawMessage(noFields), strictjson.Diff(json.RawMessage(noFields), desired))
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(strings.Count(a.Path, "."), strings.Count(b.Path, ".")) })
	return Entry{ID: req.ID, Action: Create, Changes: append(changes, urls.changes...), apply: func(ctx context.Context, options ...relayer.WriteOption) error {
		_, err := b.registry.Create(ctx, req, options...)
		return b.nameHolder(err, req)
	}}, nil
}

// nameHolder adds the ID of the stored relayer with the same signer to an error on
// signer_id: if signers are exclusive, that relayer is the cause.
func (b *builder) nameHolder(err error, req relayer.CreateRequest) error {
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		return err
	}
	named := slices.Clone(invalid.Fields)
	for _, r := range b.listed {
		if r.SignerID != req.SignerID || r.NetworkType != req.NetworkType || r.Network != req.Network {
			continue
		}
		for i, field := range named {
			if field.Field == "signer_id" {
				named[i].Message += fmt.Sprintf(" (relayer %s has this signer)", r.ID)
				return &relayer.ValidationError{Fields: named}
			}
		}
	}
	return err
}

func immutableProblems(req relayer.CreateRequest, stored *relayer.Relayer) []relayer.FieldError {
	var found wire.Problems
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

// noFields has the objects that are merged member by member.
const noFields = `{"policies":{},"labels":{}}`

// encodeFields returns the JSON of the fields that a file determines, except the RPC URLs.
// Missing policies and labels are empty.
func encodeFields(req relayer.CreateRequest) (json.RawMessage, error) {
	req.ID, req.CustomRPCURLs = "", nil
	encoded, err := req.MarshalUnmasked()
	if err != nil {
		return nil, err
	}
	return strictjson.MergePatch(json.RawMessage(noFields), encoded)
}

// compareFields returns the merge patch that makes the stored relayer equal to the
// request, and its changes. The fields that cannot be changed are not compared.
func compareFields(req relayer.CreateRequest, stored *relayer.Relayer) (relayer.Patch, []Change, error) {
	was := wire.RequestOf(stored)
	was.Network, was.NetworkType, was.SignerID = req.Network, req.NetworkType, req.SignerID
	old, err := encodeFields(was)
	if err != nil {
		return nil, nil, err
	}
	desired, err := encodeFields(req)
	if err != nil {
		return nil, nil, err
	}
	patch := strictjson.Diff(old, desired)
	return patch, changesOf("", old, patch), nil
}

// changesOf returns the changes of a patch of the object at path.
func changesOf(path string, object json.RawMessage, patch map[string]any) (changes []Change) {
	old, _ := strictjson.Members(object)
	for _, name := range slices.Sorted(maps.Keys(patch)) {
		below := strictjson.Join(path, name)
		if nested, ok := patch[name].(map[string]any); ok {
			changes = append(changes, changesOf(below, old[name], nested)...)
			continue
		}
		changes = append(changes, Change{Path: below, Old: string(old[name]), New: text(patch[name])})
	}
	return changes
}
