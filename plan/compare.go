package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

// noFields has the objects for which absent means empty.
const noFields = `{"policies":{},"labels":{}}`

// compare returns the entry of a relayer of the configuration. stored is nil if the
// registry does not have it.
func (b *builder) compare(desired, stored *relayer.Relayer) (Entry, error) {
	req, old := wire.RequestOf(desired), json.RawMessage(noFields)
	fields, err := fieldsOf(req)
	if err == nil && stored != nil {
		old, err = fieldsOf(wire.RequestOf(stored))
	}
	if err != nil {
		return Entry{}, err
	}
	patch := strictjson.Diff(old, fields)
	changes := changesOf("", old, patch)
	if stored == nil {
		return Entry{ID: req.ID, Action: Create, Changes: changes, apply: func(ctx context.Context, options ...relayer.WriteOption) ([]string, error) {
			return changedBy(b.registry.Create(ctx, req, options...))
		}}, nil
	}
	entry := Entry{ID: req.ID, Action: Update, Changes: changes}
	if _, hasOtherURLs := patch[urlsPath]; len(req.CustomRPCURLs) > 0 && (hasOtherURLs || !isMaskedList(req.CustomRPCURLs)) {
		full, err := req.MarshalUnmasked()
		if err != nil {
			return Entry{}, err
		}
		patch[urlsPath], entry.urls = member(full, urlsPath), string(member(fields, urlsPath))
	}
	if len(patch) == 0 {
		return Entry{ID: req.ID, Action: Unchanged}, nil
	}
	body, err := strictjson.Encode(patch)
	entry.apply = func(ctx context.Context, options ...relayer.WriteOption) ([]string, error) {
		return changedBy(b.registry.Patch(ctx, req.ID, body, underRevision(stored, options)...))
	}
	return entry, err
}

// changedBy returns what the dry run of a write would change.
func changedBy(r *relayer.Relayer, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return r.LastChange.Changed, nil
}

// relayerOf returns the relayer that a Manager stores for a valid request, with its full RPC URLs.
// They share no memory.
func relayerOf(req relayer.CreateRequest) (*relayer.Relayer, error) {
	r := new(relayer.Relayer)
	body, err := req.MarshalUnmasked()
	if err == nil {
		err = r.UnmarshalJSON(body)
	}
	for i := range r.CustomRPCURLs {
		r.CustomRPCURLs[i].Weight = cmp.Or(r.CustomRPCURLs[i].Weight, new(relayer.DefaultRPCWeight))
	}
	if solana, ok := r.Policy.(*relayer.SolanaPolicy); ok {
		solana.FeePaymentStrategy = cmp.Or(solana.FeePaymentStrategy, new(relayer.FeePaidByUser))
	}
	return r, err
}

// fieldsOf returns the JSON of the fields that a file determines, with the RPC URLs and their
// headers in the form of responses.
func fieldsOf(req relayer.CreateRequest) (json.RawMessage, error) {
	req.ID = ""
	encoded, err := strictjson.Encode(req)
	return strictjson.MergePatch(json.RawMessage(noFields), encoded), err
}

func member(object json.RawMessage, name string) json.RawMessage {
	members, _ := strictjson.Members(object)
	return members[name]
}

// changesOf returns the changes of a patch of the object at path.
func changesOf(path string, object json.RawMessage, patch map[string]any) (changes []Change) {
	for _, name := range slices.Sorted(maps.Keys(patch)) {
		below, old := strictjson.Join(path, name), member(object, name)
		switch value := patch[name].(type) {
		case map[string]any:
			changes = append(changes, changesOf(below, old, value)...)
		case json.RawMessage:
			changes = append(changes, Change{Path: below, Old: string(old), New: string(value)})
		default:
			changes = append(changes, Change{Path: below, Old: string(old)})
		}
	}
	return changes
}
