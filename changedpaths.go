package relayer

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-relayer/relayer/internal/strictjson"
)

const urlsMember = "custom_rpc_urls"

// changedPaths returns the paths of the members in which the documents of two records
// differ, in order. Lists are compared as a whole. An object that is added or removed is
// the members in it.
func changedPaths(old, rec Record) []string {
	paths := appendChanged(nil, "", old.Document, rec.Document)
	if !bytes.Equal(old.Private, rec.Private) && !slices.Contains(paths, urlsMember) {
		paths = append(paths, urlsMember) // the masked URLs are equal
	}
	slices.Sort(paths)
	return paths
}

func appendChanged(paths []string, path string, old, changed json.RawMessage) []string {
	if bytes.Equal(old, changed) {
		return paths
	}
	before, wasObject := strictjson.Members(old)
	after, isObject := strictjson.Members(changed)
	names := make(map[string]json.RawMessage)
	maps.Copy(names, before)
	maps.Copy(names, after)
	if old != nil && !wasObject || changed != nil && !isObject || len(names) == 0 {
		return append(paths, path)
	}
	for name := range names {
		paths = appendChanged(paths, strictjson.Join(path, name), before[name], after[name])
	}
	return paths
}
