package strictjson_test

import (
	"testing"

	"github.com/go-relayer/relayer/internal/strictjson"
)

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
		"a replaced object":            {`{"whole":{"a":1,"u":2}}`, `{"whole":{"a":1}}`, `{"whole":{"a":2}}`, `{"whole":{"a":2}}`},
		"a changed list":               {`{"l":[{"k":1,"u":1}],"u":2}`, `{"l":[{"k":1}]}`, `{"l":[{"k":1},{"k":2}]}`, `{"l":[{"k":1},{"k":2}],"u":2}`},
		"next to an unchanged list":    {`{"l":[{"k":1,"u":1}],"a":2}`, `{"l":[{"k":1}],"a":2}`, `{"l":[{"k":1}],"a":3}`, `{"l":[{"k":1,"u":1}],"a":3}`},
		"escaped names":                {`{"\u0075\"<":1,"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":2,"u\"<":1}`},
		"everything removed":           {`{"u":1}`, `{}`, `{}`, `{"u":1}`},
		"empty result":                 {`{"a":1 }`, `{"a":1}`, `{}`, `{}`},
	} {
		var replaced []string
		if name == "a replaced object" {
			replaced = []string{"whole"}
		}
		got := strictjson.KeepUnknown([]byte(c.stored), []byte(c.known), []byte(c.changed), replaced...)
		if string(got) != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
