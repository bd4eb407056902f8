package strictjson_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// list returns problems as "path message".
func list(found *strictjson.Problems) (texts []string) {
	for _, problem := range found.All() {
		texts = append(texts, problem.Field+" "+problem.Message)
	}
	return texts
}

type inner struct {
	Text string `json:"text"`
	Next *inner `json:"next"`
}

type outer struct {
	Name    string    `json:"name"`
	Note    string    `json:"note" wire:"optional,nonempty"`
	Flag    bool      `json:"flag" wire:"optional"`
	Count   *uint8    `json:"count"`
	Signed  *int32    `json:"signed"`
	Share   *float64  `json:"share"`
	Wei     *upper    `json:"wei"`
	Numbers []uint64  `json:"numbers"`
	Inner   *inner    `json:"inner"`
	Inners  []inner   `json:"inners"`
	Deep    [][]inner `json:"deep"`

	Texts map[string]string `json:"texts" wire:"optional"`
}

// upper is read by a hook.
type upper string

func decode(t *testing.T, text string, configure func(*strictjson.Decoder)) (outer, []string) {
	t.Helper()
	if problem := strictjson.Check([]byte(text)); problem != "" {
		t.Fatalf("Check: %s\n%s", problem, text)
	}
	found := new(strictjson.Problems)
	d := strictjson.Decoder{Problems: found, Hook: readUpper}
	if configure != nil {
		configure(&d)
	}
	var into outer
	d.Decode([]byte(text), &into)
	return into, list(found)
}

func readUpper(v strictjson.Value, target any) bool {
	into, isUpper := target.(*upper)
	if !isUpper {
		return false
	}
	text, problem := v.Text()
	if problem != "" {
		v.Report("", problem)
	}
	*into = upper(strings.ToUpper(text))
	return true
}

func TestDecode_Values(t *testing.T) {
	got, problems := decode(t, ` { "name" : "a\u0041\ud83d\ude00\n" , "note":null,"flag":true, "count":255.0,"signed":2147483647,
		"share":-0.0,"wei":"ab","numbers":[0,5e-0,50e-1,18446744073709551615],"inner":{"text":"t","next":{"text":""}},"inners":[],"deep":[[],[{"text":"\\"}]]}`, nil)
	want := outer{
		Name: "aA😀\n", Flag: true, Count: new(uint8(255)), Signed: new(int32(1<<31 - 1)), Share: new(0.0), Wei: new(upper("AB")),
		Numbers: []uint64{0, 5, 5, 1<<64 - 1}, Inner: &inner{Text: "t", Next: &inner{}}, Inners: []inner{}, Deep: [][]inner{{}, {{Text: `\`}}},
	}
	if len(problems) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v, problems %q, want %+v", got, problems, want)
	}
}

func TestDecode_Problems(t *testing.T) {
	tests := map[string][]string{
		`{}`:                                {"name is required"},
		`{"name":null}`:                     {"name is required and must not be null"},
		`{"name":5}`:                        {"name must be a string"},
		`{"name":"\u0000","note":"\ud800"}`: {"name must not contain NUL", "note must not contain half a surrogate pair"},
		`{"name":"a","name":"b"}`:           {"name must not be given more than once"},
		`{"name":"a","n\u0061me":"b"}`:      {"name must not be given more than once"},
		`{"name":"","Name":1,"":2}`: {
			`Name is not a known field, did you mean "name"?`, " must not have a member with an empty name",
		},
		`{"name":"","note":"","flag":0,"count":256,"signed":-1,"share":1e999,"wei":7}`: {
			"note must not be empty", "flag must be true or false", "count must be at most 255", "signed must be 0 or more",
			"share must be a number that a 64-bit float can hold", "wei must be a string",
		},
		`{"name":"","count":"5","share":[],"signed":0.5,"numbers":{},"inner":[]}`: {
			"count must be a number", "share must be a number", "signed must be a whole number", "numbers must be an array", "inner must be an object",
		},
		`{"name":"","numbers":[1,null,-1,1e99]}`: {
			"numbers[1] must be a number", "numbers[2] must be 0 or more", "numbers[3] must be at most 18446744073709551615",
		},
		`{"name":"","inner":{"next":{"x":[{"x":1}]}},"inners":[{"text":"a"},{"next":{"text":1}}],"deep":[[],[{"text":""},{}]]}`: {
			"inner.next.x is not a known field", "inner.next.text is required", "inner.text is required",
			"inners[1].next.text must be a string", "inners[1].text is required", "deep[1][1].text is required",
		},
	}
	for text, want := range tests {
		if _, problems := decode(t, text, nil); !slices.Equal(problems, want) {
			t.Errorf("%s\nproblems %q\nwant     %q", text, problems, want)
		}
	}
}

func TestDecode_Patch(t *testing.T) {
	full := func() outer {
		return outer{
			Name: "n", Note: "o", Count: new(uint8(1)), Share: new(0.5), Wei: new(upper("W")), Numbers: []uint64{1, 2},
			Inner: &inner{Text: "t", Next: &inner{Text: "u"}}, Inners: []inner{{Text: "v"}}, Texts: map[string]string{"a": "1", "b": "2"},
		}
	}
	for text, c := range map[string]struct {
		change   func(*outer)
		problems []string
	}{
		`{}`: {change: func(*outer) {}},
		`{"name":"m","note":null,"count":null,"wei":"x","numbers":[3]}`: {change: func(o *outer) {
			o.Name, o.Note, o.Count, o.Wei, o.Numbers = "m", "", nil, new(upper("X")), []uint64{3}
		}},
		`{"inner":{"next":{"next":{"text":"w"}}},"numbers":null}`: {change: func(o *outer) {
			o.Inner.Next.Next, o.Numbers = &inner{Text: "w"}, nil
		}},
		`{"inner":null,"inners":[{"text":"a"}],"texts":{"a":null,"b":"3","c":"","d":null}}`: {change: func(o *outer) {
			o.Inner, o.Inners, o.Texts = nil, []inner{{Text: "a"}}, map[string]string{"b": "3", "c": ""}
		}},
		`{"texts":null}`: {change: func(o *outer) { o.Texts = nil }},
		`{"name":null,"inner":{"text":null}}`: {problems: []string{
			"name is required and must not be null", "inner.text is required and must not be null",
		}},
		`{"inner":{"next":{"next":{}}},"inners":[{}],"deep":[[{"next":{}}]]}`: {problems: []string{
			"inner.next.next.text is required", "inners[0].text is required", "deep[0][0].next.text is required", "deep[0][0].text is required",
		}},
		`{"texts":{"a":"1","a":null,"b":5}}`: {problems: []string{
			"texts.a must not be given more than once", "texts.b must be a string",
		}},
		`{"x":null,"inner":{"x":null}}`: {problems: []string{"x is not a known field", "inner.x is not a known field"}},
	} {
		found, got, want := new(strictjson.Problems), full(), full()
		before := got // shares all memory with it
		d := strictjson.Decoder{Problems: found, Hook: readUpper, IsPatch: true}
		d.Decode([]byte(text), &got)
		if !reflect.DeepEqual(before, full()) {
			t.Errorf("%s\nmodified what the value referred to: %+v", text, before)
		}
		if !slices.Equal(list(found), c.problems) {
			t.Errorf("%s\nproblems %q\nwant     %q", text, list(found), c.problems)
		}
		if c.change == nil {
			continue
		}
		c.change(&want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ndecoded %+v\nwant    %+v", text, got, want)
		}
	}
}

// FuzzDecode compares accepted documents with encoding/json, and requires a
// problem for every document that encoding/json rejects.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"name":"a"}`, `{"name":"\ud83d\ude00","count":5.0,"numbers":[1e3],"inner":{"text":""}}`, `[]`, `{"name":"\ud800"}`, ``, "{\"name\":\"\xff\"}",
		`{"name":"a","inners":[{"text":"b","next":null}],"deep":[[{"text":"\\u0041"}]]} `,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strictjson.Check(data) != "" {
			return
		}
		found := new(strictjson.Problems)
		d := strictjson.Decoder{Problems: found}
		var got, want outer
		d.Decode(data, &got)
		if len(list(found)) > 0 {
			return
		}
		// encoding/json accepts integers only without exponent and point.
		if strings.ContainsAny(string(data), ".eE-") {
			return
		}
		if err := json.Unmarshal(data, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ndecoded %+v\nwant    %+v, %v", data, got, want, err)
		}
	})
}

func TestWhole_Limits(t *testing.T) {
	const tooLarge = "must be a number of at most 400 characters, with an exponent from -400 to 400"
	zeros := strings.Repeat("0", 397)
	for text, want := range map[string]string{
		"0e400": "0", "0e-400": "0", "1." + zeros + "0": "1", "-1e400": strictjson.NegativeMessage, "1e-400": strictjson.NotWholeMessage,
		"0e401": tooLarge, "0e-401": tooLarge, "1." + zeros + "00": tooLarge, "1e999999999": tooLarge, "1e-99999999999999999999": tooLarge,
	} {
		value, problem := strictjson.Whole(text)
		if got := problem; problem == "" && value.String() != want || problem != "" && got != want {
			t.Errorf("%s: %v, %q, want %q", text, value, problem, want)
		}
	}
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

// The cases are those of RFC 7396 appendix A.
func TestMergePatch_RFC7396(t *testing.T) {
	for _, c := range []struct{ original, patch, result string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		got := strictjson.MergePatch(json.RawMessage(c.original), json.RawMessage(c.patch))
		if !reflect.DeepEqual(parsed(t, got), parsed(t, []byte(c.result))) {
			t.Errorf("%s with %s is %s, want %s", c.original, c.patch, got, c.result)
		}
	}
}

func parsed(t *testing.T, data []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return value
}
