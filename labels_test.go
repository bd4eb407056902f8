package relayer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

func labelsOf(count int) string {
	members := make([]string, count)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Labels are the last member of a document, in the order of their keys.
func TestLabels_Create(t *testing.T) {
	for text, want := range map[string]string{
		`null`:                "",
		`{}`:                  "",
		`{"team":"payments"}`: `{"team":"payments"}`,
		`{"b":"2","B":"1","a/b.c_d-e":"","0":"x"}`:                               `{"0":"x","B":"1","a/b.c_d-e":"","b":"2"}`,
		`{"A":"","Z":"","z":"","9":""}`:                                          `{"9":"","A":"","Z":"","z":""}`,
		`{"a":"<é&\u2713> %,|="}`:                                                `{"a":"<é&✓> %,|="}`,
		`{"` + strings.Repeat("k", 63) + `":"` + strings.Repeat("é", 128) + `"}`: `{"` + strings.Repeat("k", 63) + `":"` + strings.Repeat("é", 128) + `"}`,
	} {
		m := newManager(t)
		document := mustCreateDocument(t, m, evmBody(`"id":"a"`, `"labels":`+text))
		if got := member(t, document.JSON, "labels"); got != want {
			t.Errorf("%s is stored as %s, want %s", text, got, want)
		}
		if want != "" && !strings.HasSuffix(string(document.JSON), `,"labels":`+want+`}`) {
			t.Errorf("labels are not last: %s", document.JSON)
		}
		r := mustGet(t, m, "a")
		other := newManager(t)
		mustCreate(t, other, requestFor(r))
		if got := storedDocument(t, other, "a"); got != string(document.JSON) {
			t.Errorf("through Go %s, want %s", got, document.JSON)
		}
		body, err := requestFor(r).MarshalUnmasked()
		if err != nil {
			t.Fatal(err)
		}
		if again := mustCreateDocument(t, newManager(t), string(body)); string(again.JSON) != string(document.JSON) {
			t.Errorf("through MarshalUnmasked %s, want %s", again.JSON, document.JSON)
		}
	}
	mustCreateDocument(t, newManager(t), evmBody(`"labels":`+labelsOf(32)))
}

func TestLabels_Invalid(t *testing.T) {
	key := strings.Repeat("k", 64)
	for text, want := range map[string][]string{
		`[]`:                      {"labels"},
		`"a"`:                     {"labels"},
		labelsOf(33):              {"labels"},
		`{"":"x"}`:                {"labels"},
		`{"-a":"x"}`:              {"labels.-a"},
		`{"a.":"x"}`:              {"labels.a."},
		`{"a b":"x"}`:             {"labels.a b"},
		`{"é":"x"}`:               {"labels.é"},
		`{"` + key + `":"x"}`:     {"labels." + key},
		`{"a":1,"b":null,"c":{}}`: {"labels.a", "labels.b", "labels.c"},
		`{"a":"x","a":"y"}`:       {"labels.a"},
		`{"a":1,"a":"y"}`:         {"labels.a", "labels.a"},
		`{"a":1,"a.b":2}`:         {"labels.a", "labels.a.b"},
		`{"a":"\n","a.b":"\t"}`:   {"labels.a", "labels.a.b"},
		`{"a":"\u0000"}`:          {"labels.a"},
		`{"a":"\ud800"}`:          {"labels.a"},
		`{"a":"` + strings.Repeat("é", 129) + `"}`: {"labels.a"},
	} {
		t.Run(text[:min(len(text), 30)], func(t *testing.T) {
			wantFields(t, problemsOf(t, evmBody(`"labels":`+text)), want...)
			m := registry(t)
			_, err := m.Documents().Patch(t.Context(), "evm", []byte(`{"labels":`+text+`}`))
			if text == `{"a":1,"b":null,"c":{}}` { // null removes a label
				want = []string{"labels.a", "labels.c"}
			}
			wantFields(t, fieldErrors(t, err), want...)
			if labels := mustGet(t, m, "evm").Labels; labels != nil {
				t.Errorf("stored %v", labels)
			}
		})
	}
	req := minimal("a")
	req.Labels = map[string]string{"a": "\xff", "\xfe": "x", "": "x"}
	wantFields(t, fieldErrors(t, second(newManager(t).Create(t.Context(), req))), "labels.a", "labels.\xfe", "labels")
}

// A patch merges labels key by key.
func TestLabels_Patch(t *testing.T) {
	for _, test := range []struct{ patch, want string }{
		{`{}`, `{"a":"1","b":"2"}`},
		{`{"labels":{}}`, `{"a":"1","b":"2"}`},
		{`{"labels":{"c":"3"}}`, `{"a":"1","b":"2","c":"3"}`},
		{`{"labels":{"a":"x"}}`, `{"a":"x","b":"2"}`},
		{`{"labels":{"a":""}}`, `{"a":"","b":"2"}`},
		{`{"labels":{"a":null}}`, `{"b":"2"}`},
		{`{"labels":{"none":null}}`, `{"a":"1","b":"2"}`},
		{`{"labels":{"a":null,"b":null}}`, ""},
		{`{"labels":{"a":null,"b":null,"c":"3"}}`, `{"c":"3"}`},
		{`{"labels":null}`, ""},
		{`{"name":"new"}`, `{"a":"1","b":"2"}`},
	} {
		m := newManager(t)
		before := mustCreateDocument(t, m, evmBody(`"id":"a"`, `"labels":{"b":"2","a":"1"}`))
		after, err := m.Documents().Patch(t.Context(), "a", []byte(test.patch))
		if err != nil {
			t.Fatal(err)
		}
		if got := member(t, after.JSON, "labels"); got != test.want {
			t.Errorf("%s: %s, want %s", test.patch, got, test.want)
		}
		if isSame := string(after.JSON) == string(before.JSON); isSame != (after.Revision == before.Revision) {
			t.Errorf("%s: revision %d after %d", test.patch, after.Revision, before.Revision)
		}
	}
	m := newManager(t)
	mustCreateDocument(t, m, evmBody(`"id":"a"`, `"labels":`+labelsOf(32)))
	_, err := m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"labels": map[string]any{"k0": nil, "new": "x"}}))
	if err != nil {
		t.Errorf("one of 32 labels replaced by another: %v", err)
	}
	_, err = m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"labels": map[string]string{"more": "x"}}))
	wantFields(t, fieldErrors(t, err), "labels")
}

func TestLabels_Update(t *testing.T) {
	m := newManager(t)
	ctx := t.Context()
	mustCreateDocument(t, m, evmBody(`"id":"a"`, `"labels":{"team":"risk"}`))
	set := func(change func(labels map[string]string)) (*relayer.Relayer, error) {
		return m.Update(ctx, "a", func(r *relayer.Relayer) error {
			if r.Labels == nil {
				r.Labels = make(map[string]string)
			}
			change(r.Labels)
			return nil
		})
	}
	want := map[string]string{"team": "risk", "tier": "1"}
	if r, err := set(func(labels map[string]string) { labels["tier"] = "1" }); err != nil || !maps.Equal(r.Labels, want) {
		t.Errorf("added: %v, %v", r, err)
	}
	_, err := set(func(labels map[string]string) { labels["tier"] = "\x7f" })
	wantFields(t, fieldErrors(t, err), "labels.tier")
	if r := mustGet(t, m, "a"); !maps.Equal(r.Labels, want) {
		t.Errorf("after an invalid update: %v", r.Labels)
	}
	if r, err := set(func(labels map[string]string) { clear(labels) }); err != nil || r.Labels != nil {
		t.Errorf("cleared: %v, %v", r, err)
	}
	if document := storedDocument(t, m, "a"); strings.Contains(document, "labels") {
		t.Errorf("stored %s", document)
	}
}

// Labels survive the changes of a relayer that has members of a newer version.
func TestLabels_UnknownMembersKept(t *testing.T) {
	store := memory.New()
	rec := relayer.Record{ID: "a", Document: []byte(`{"id":"a","name":"n","network":"x","network_type":"evm","address":"","paused":false,` +
		`"system_disabled":false,"signer_id":"s","policies":{},"labels":{"b":"2","a":"1"},"new":{"x":1}}`)}
	if _, err := store.Create(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	m := managerOf(t, store)
	for _, test := range []struct{ patch, want string }{
		{`{"paused":true}`, `{"b":"2","a":"1"}`},
		{`{"labels":{"c":"3"}}`, `{"a":"1","b":"2","c":"3"}`},
		{`{"labels":null}`, ""},
	} {
		document, err := m.Documents().Patch(t.Context(), "a", []byte(test.patch))
		if err != nil {
			t.Fatal(err)
		}
		if member(t, document.JSON, "labels") != test.want || member(t, document.JSON, "new") != `{"x":1}` {
			t.Errorf("%s: stored %s, want the labels %s", test.patch, document.JSON, test.want)
		}
	}
}

func TestLabels_PrintedForms(t *testing.T) {
	req := minimal("a")
	req.Labels = map[string]string{"b": "2", "a": "1"}
	r := mustCreate(t, newManager(t), req)
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `"labels":{"a":"1","b":"2"}`
	for name, text := range map[string]string{
		"JSON": string(encoded), "printed": fmt.Sprint(r), "request": fmt.Sprint(req),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	var decoded relayer.Relayer
	if err := json.Unmarshal(encoded, &decoded); err != nil || !maps.Equal(decoded.Labels, req.Labels) {
		t.Errorf("decoded %v, error %v", decoded.Labels, err)
	}
	var request relayer.CreateRequest
	if err := json.Unmarshal([]byte(evmBody(want)), &request); err != nil || !maps.Equal(request.Labels, req.Labels) {
		t.Errorf("decoded %v, error %v", request.Labels, err)
	}
}

func BenchmarkWrite_Labels(b *testing.B) {
	for name, labels := range map[string]string{"none": `{}`, "five": `{"chain":"main","owner":"desk-7","region":"eu","stage":"prod","team":"payments"}`} {
		b.Run(name, func(b *testing.B) {
			m, body := newManager(b), evmBody(`"labels":`+labels, `"policies":{"gas_price_cap":100000000000}`)
			b.Run("create", func(b *testing.B) {
				for b.Loop() {
					mustCreateDocument(b, m, body)
				}
			})
			changed := mustCreateDocument(b, m, body)
			b.Run("patch", func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					if _, err := m.Documents().Patch(b.Context(), changed.ID, fmt.Appendf(nil, `{"paused":%t}`, i%2 == 0)); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
