package strictjson

import (
	"bytes"
	"encoding/json"
)

// MergePatch applies a JSON Merge Patch to target: the function of that name in RFC
// 7396 section 2.
func MergePatch(target, patch json.RawMessage) (json.RawMessage, error) {
	changes, ok := Members(patch)
	if !ok {
		return patch, nil
	}
	merged, ok := Members(target)
	if !ok {
		merged = make(map[string]json.RawMessage)
	}
	for name, change := range changes {
		if string(change) == "null" {
			delete(merged, name)
			continue
		}
		value, err := MergePatch(merged[name], change)
		if err != nil {
			return nil, err
		}
		merged[name] = value
	}
	return Encode(merged)
}

// Members returns the members of a JSON object, and false if value is not one.
func Members(value json.RawMessage) (map[string]json.RawMessage, bool) {
	var members map[string]json.RawMessage
	err := json.Unmarshal(value, &members)
	return members, err == nil && members != nil
}

// Diff returns the merge patch that changes one object into another: null for a member that
// is missing in changed. Members of both are compared byte by byte. The patch is empty if
// the objects do not differ.
func Diff(object, changed json.RawMessage) map[string]any {
	before, _ := Members(object)
	after, _ := Members(changed)
	patch := make(map[string]any)
	for name := range before {
		if _, ok := after[name]; !ok {
			patch[name] = nil
		}
	}
	for name, value := range after {
		if bytes.Equal(before[name], value) {
			continue
		}
		_, wasObject := Members(before[name])
		if _, isObject := Members(value); wasObject && isObject {
			patch[name] = Diff(before[name], value)
			continue
		}
		patch[name] = value
	}
	return patch
}
