package relayer

import (
	"bytes"
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

func appendChanged(paths []string, path string, old, changed []byte) []string {
	if bytes.Equal(old, changed) {
		return paths
	}
	before, after := strictjson.MemberList(old), strictjson.MemberList(changed)
	isObject := old == nil || before != nil
	if !isObject || changed != nil && after == nil || len(before)+len(after) == 0 {
		return append(paths, path)
	}
	for _, member := range before {
		if value := valueOf(after, member.Name); !bytes.Equal(value, member.Value) {
			paths = appendChanged(paths, strictjson.Join(path, string(member.Name)), member.Value, value)
		}
	}
	for _, member := range after {
		if valueOf(before, member.Name) == nil {
			paths = appendChanged(paths, strictjson.Join(path, string(member.Name)), nil, member.Value)
		}
	}
	return paths
}

func valueOf(members []strictjson.Member, name []byte) []byte {
	i := slices.IndexFunc(members, func(m strictjson.Member) bool { return bytes.Equal(m.Name, name) })
	if i < 0 {
		return nil
	}
	return members[i].Value
}
