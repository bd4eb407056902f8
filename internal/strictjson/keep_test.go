package strictjson_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// byKey matches elements by their member k, and objects named whole by their value.
func byKey(member string, index int, value []byte) string {
	if member == "whole" {
		return string(value)
	}
	if index < 0 {
		return ""
	}
	var element struct{ K int }
	_ = json.Unmarshal(value, &element)
	return strconv.Itoa(element.K)
}

func TestKeepUnknown(t *testing.T) {
	for name, c := range map[string]struct{ stored, known, changed, want string }{
		"nothing unknown":              {`{"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":2}`},
		"nothing changed":              {`{ "a" : 1.0, "u":2}`, `{"a":1}`, `{"a":1}`, `{ "a" : 1.0, "u":2}`},
		"a member":                     {`{"u":[1, 2],"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":2,"u":[1, 2]}`},
		"spaces around":                {" {\"u\":1,\"a\":1}\n", `{"a":1}`, `{"a":2}`, `{"a":2,"u":1}`},
		"a member below":               {`{"o":{"a":1,"u":2}}`, `{"o":{"a":1}}`, `{"o":{"a":3}}`, `{"o":{"a":3,"u":2}}`},
		"beside an unchanged object":   {`{"o":{"u":2},"a":1}`, `{"o":{},"a":1}`, `{"o":{},"a":2}`, `{"o":{"u":2},"a":2}`},
		"a removed object":             {`{"o":{"a":1,"u":2},"v":1}`, `{"o":{"a":1}}`, `{}`, `{"v":1}`},
		"a value this version misread": {`{"a":{"new":1},"b":1}`, `{"a":"old","b":1}`, `{"a":"old","b":2}`, `{"a":{"new":1},"b":2}`},
		"its replacement":              {`{"a":{"new":1},"b":1}`, `{"a":"old","b":1}`, `{"a":"other","b":1}`, `{"a":"other","b":1}`},
		"a default that is not stored": {`{"u":1}`, `{"a":""}`, `{"a":"","b":1}`, `{"a":"","b":1,"u":1}`},
		"a known member stored null":   {`{"a":null,"u":1}`, `{}`, `{"a":2}`, `{"a":2,"u":1}`},
		"an object of another kind":    {`{"whole":{"a":1,"u":2}}`, `{"whole":{"a":1}}`, `{"whole":{"a":2}}`, `{"whole":{"a":2}}`},
		"the same object":              {`{"whole":{"a":1,"u":2},"b":1}`, `{"whole":{"a":1},"b":1}`, `{"whole":{"a":1}}`, `{"whole":{"a":1,"u":2}}`},
		"elements reordered":           {`{"l":[{"k":1,"u":1},{"k":2,"u":2}]}`, `{"l":[{"k":1},{"k":2}]}`, `{"l":[{"k":2},{"k":3},{"k":1,"a":1}]}`, `{"l":[{"k":2,"u":2},{"k":3},{"k":1,"a":1,"u":1}]}`},
		"equal elements":               {`{"l":[{"k":1,"u":1},{"k":1,"u":2}]}`, `{"l":[{"k":1},{"k":1}]}`, `{"l":[{"k":1},{"k":1},{"k":1}]}`, `{"l":[{"k":1,"u":1},{"k":1,"u":2},{"k":1}]}`},
		"elements that were not read":  {`{"l":[{"k":1,"u":1},{"k":2}]}`, `{"l":[{"k":2}]}`, `{"l":[{"k":1}]}`, `{"l":[{"k":1}]}`},
		"escaped names":                {`{"\u0075\"<":1,"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":2,"u\"<":1}`},
		"everything removed":           {`{"u":1}`, `{}`, `{}`, `{"u":1}`},
		"empty result":                 {`{"a":1 }`, `{"a":1}`, `{}`, `{}`},
	} {
		got := strictjson.KeepUnknown([]byte(c.stored), []byte(c.known), []byte(c.changed), byKey, byKey)
		if string(got) != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
