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
	desired, err := encodeFields(req)
	if err != nil {
		return Entry{}, err
	}
	if stored == nil {
		return b.compareNew(req, desired), nil
	}
	old, err := encodeFields(wire.RequestOf(stored))
	if err != nil {
		return Entry{}, err
	}
	patch := strictjson.Diff(old, desired)
	changes := changesOf("", old, patch)
	_, hasOtherURLs := patch[urlsPath]
	problems := append(fixedProblems(changes), maskProblems(req.CustomRPCURLs, hasOtherURLs)...)
	if len(problems) > 0 {
		return Entry{ID: req.ID, Action: Blocked, Problems: problems}, nil
	}
	entry := Entry{ID: req.ID, Action: Update, Changes: changes}
	if len(req.CustomRPCURLs) > 0 && !slices.ContainsFunc(req.CustomRPCURLs, isMasked) {
		full, err := req.MarshalUnmasked()
		if err != nil {
			return Entry{}, err
		}
		members, _ := strictjson.Members(full)
		patch[urlsPath], entry.urls = members[urlsPath], text(req.CustomRPCURLs)
	}
	if len(patch) == 0 {
		return Entry{ID: req.ID, Action: Unchanged}, nil
	}
	body, err := strictjson.Encode(patch)
	if err != nil {
		return Entry{}, err
	}
	entry.apply = func(ctx context.Context, options ...relayer.WriteOption) ([]string, error) {
		return changedBy(b.registry.Patch(ctx, req.ID, body, underRevision(stored, options)...))
	}
	return entry, nil
}

// changedBy returns what the dry run of a write would change.
func changedBy(r *relayer.Relayer, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return r.LastChange.Changed, nil
}

func (b *builder) compareNew(req relayer.CreateRequest, desired json.RawMessage) Entry {
	if problems := maskProblems(req.CustomRPCURLs, true); len(problems) > 0 {
		return Entry{ID: req.ID, Action: Blocked, Problems: problems}
	}
	changes := changesOf("", json.RawMessage(noFields), strictjson.Diff(json.RawMessage(noFields), desired))
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.depth(), b.depth()) })
	return Entry{ID: req.ID, Action: Create, Changes: changes, apply: func(ctx context.Context, options ...relayer.WriteOption) ([]string, error) {
		changed, err := changedBy(b.registry.Create(ctx, req, options...))
		return changed, b.nameHolder(err, req)
	}}
}

// depth sorts the fields of a create, of which the top ones are on one line.
func (c Change) depth() int {
	if c.Path == urlsPath {
		return 1
	}
	return strings.Count(c.Path, ".")
}

// nameHolder adds the ID of the stored relayer with the same signer to an error on
// signer_id: if signers are exclusive, that relayer is the cause.
func (b *builder) nameHolder(err error, req relayer.CreateRequest) error {
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		return err
	}
	i := slices.IndexFunc(invalid.Fields, func(field relayer.FieldError) bool { return field.Field == "signer_id" })
	holder := slices.IndexFunc(b.listed, func(r *relayer.Relayer) bool {
		return r.SignerID == req.SignerID && r.NetworkType == req.NetworkType && r.Network == req.Network
	})
	if i < 0 || holder < 0 {
		return err
	}
	named := slices.Clone(invalid.Fields)
	named[i].Message += fmt.Sprintf(" (relayer %s has this signer)", b.listed[holder].ID)
	return &relayer.ValidationError{Fields: named}
}

// fixedProblems returns a problem for each change of a field that cannot be changed.
func fixedProblems(changes []Change) []relayer.FieldError {
	var found wire.Problems
	for _, change := range changes {
		if slices.Contains([]string{"network", "network_type", "signer_id"}, change.Path) {
			found.Report(change.Path, strictjson.Immutable, fmt.Sprintf("must not be changed from %s to %s: delete the relayer first", change.Old, change.New))
		}
	}
	return found.Fields()
}

// noFields has the objects that are merged member by member.
const noFields = `{"policies":{},"labels":{}}`

// encodeFields returns the JSON of the fields that a file determines, with the RPC URLs and their
// headers in the form of responses.
func encodeFields(req relayer.CreateRequest) (json.RawMessage, error) {
	req.ID, req.CustomRPCURLs = "", slices.Clone(req.CustomRPCURLs)
	for i, endpoint := range req.CustomRPCURLs {
		req.CustomRPCURLs[i].URL = relayer.RPCURL(endpoint.URL.String())
		req.CustomRPCURLs[i].Headers = maskedHeaders(endpoint.Headers)
	}
	encoded, err := req.MarshalUnmasked()
	if err != nil {
		return nil, err
	}
	return strictjson.MergePatch(json.RawMessage(noFields), encoded)
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
