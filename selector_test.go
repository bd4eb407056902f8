package relayer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/examples/mapstore"
	"github.com/go-relayer/relayer/store/memory"
)

func mustParse(t testing.TB, text string) relayer.Selector {
	t.Helper()
	s, err := relayer.ParseSelector(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return s
}

// termsIn returns the terms of a selector. A second search overwrites the first.
func termsIn(s relayer.Selector) map[string][]string { return maps.Collect(s.Terms()) }

func TestParseSelector(t *testing.T) {
	const seven = "1|2|3|4|5|6|7"
	long := strings.Repeat("é", 128)
	for text, want := range map[string]map[string][]string{
		"":                                     {},
		"network=sepolia":                      {"network": {"sepolia"}},
		"network=sepolia|mainnet":              {"network": {"mainnet", "sepolia"}},
		"network=a|a":                          {"network": {"a"}},
		"network=a|b,network=b|c":              {"network": {"b"}},
		"paused=true,network_type=evm":         {"paused": {"true"}, "network_type": {"evm"}},
		"label.team=payments|risk":             {"label.team": {"payments", "risk"}},
		"label.a.b/c-d_e=x":                    {"label.a.b/c-d_e": {"x"}},
		"label.team=":                          {"label.team": {""}},
		"label.team=|a":                        {"label.team": {"", "a"}},
		"label.q=a%2Cb%7Cc%25%20d%3De":         {"label.q": {"a,b|c% d=e"}},
		"label.q=a=b":                          {"label.q": {"a=b"}},
		"signer_id=a+b":                        {"signer_id": {"a+b"}},
		"network=日本%E3%80%80é":                 {"network": {"日本\u3000é"}},
		"search=Main net":                      {"search": {"Main net"}},
		"search=%0a":                           {"search": {"\n"}},
		"search=" + seven + "|" + long:         {"search": {"1", "2", "3", "4", "5", "6", "7", long}},
		"id=a|B-_9,system_disabled=false|true": {"id": {"B-_9", "a"}, "system_disabled": {"false", "true"}},
	} {
		s := mustParse(t, text)
		if got := termsIn(s); !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q has the terms %q, want %q", text, got, want)
		}
		if s.IsZero() != (len(want) == 0) {
			t.Errorf("%q: IsZero is %t", text, s.IsZero())
		}
	}
}

func TestParseSelector_Invalid(t *testing.T) {
	for text, field := range map[string]string{
		",":                             "",
		"network":                       "network",
		"label.team":                    "label.team",
		"network=a,":                    "",
		"none,network=a":                "none",
		"=a":                            "",
		"Network=a":                     "Network",
		" network=a":                    " network",
		"name=a":                        "name",
		"claim=a":                       "claim",
		"network=":                      "network",
		"network=a|":                    "network",
		"network=%zz":                   "network",
		"network=%00":                   "network",
		"network=%ff":                   "network",
		"signer_id=%ed%a0%80":           "signer_id",
		"notification_id=":              "notification_id",
		"network_type=foo":              "network_type",
		"paused=maybe":                  "paused",
		"id=":                           "id",
		"id=a b":                        "id",
		"id=" + strings.Repeat("x", 65): "id",
		"label.-a=a":                    "label.-a",
		"label." + strings.Repeat("x", 64) + "=a": "label." + strings.Repeat("x", 64),
		"label.a=%0a":                         "label.a",
		"label.a=" + strings.Repeat("é", 129): "label.a",
		"search=%00":                          "search",
		"search=a%1fb":                        "search",
		"search=1|2|3|4|5|6|7|8|9":            "search",
		"search=" + strings.Repeat("é", 129):  "search",
		"search=":                             "search",
		"search=|a":                           "search",
		"network=a,search=":                   "search",
	} {
		s, err := relayer.ParseSelector(text)
		problems := fieldErrors(t, err)
		if len(problems) != 1 || problems[0].Field != field {
			t.Errorf("%q: problems %+v, want one of %q", text, problems, field)
		}
		if !s.IsZero() || s.Err() != nil {
			t.Errorf("%q: selector %s with the error %v", text, s, s.Err())
		}
	}
}

func TestSelector_String(t *testing.T) {
	for _, test := range []struct {
		selector relayer.Selector
		want     string
	}{
		{relayer.Selector{}, ""},
		{relayer.Selector{}.Where("signer_id", "b", "a").Where("network", "c"), "network=c,signer_id=a|b"},
		{relayer.Selector{}.Where("label.team", ""), "label.team="},
		{relayer.Selector{}.Where("label.team", "", "x"), "label.team=|x"},
		{relayer.Selector{}.Where("network", "a\x01b"), "network=a%01b"},
		{relayer.Selector{}.Where("label.team", "a,b|c% d=e+f&g#é\u3000"), "label.team=a%2Cb%7Cc%25%20d=e+f&g%23%C3%A9%E3%80%80"},
		{relayer.Selector{}.Where("search", "b", "a").Where("paused", "true"), "paused=true,search=a|b"},
		{relayer.Selector{}.Where("search", "b").Where("search", "a"), "none"},
		{relayer.Selector{}.Where("search", "", "a"), ""}, // everything has the empty text
		{relayer.Selector{}.Where("network"), "none"},
		{relayer.Selector{}.Where("search"), "none"},
		{relayer.Selector{}.Where("network", "a").Where("network", "b").Where("paused", "true"), "none"},
		{relayer.Selector{}.Where("name", "a"), "none"},
	} {
		if got := test.selector.String(); got != test.want {
			t.Errorf("notation %q, want %q", got, test.want)
		}
	}
}

// Selectors are immutable: a selector that several others were made from stays as it is.
func TestSelector_Immutable(t *testing.T) {
	values := []string{"b", "a"}
	base := relayer.Selector{}.Where("network", values...).Where("signer_id", "s")
	values[0] = "changed"
	const want = "network=a|b,signer_id=s"
	for range 3 {
		one, other := base.Where("label.a", "1"), base.Where("label.a", "2")
		if one.String() != "label.a=1,"+want || other.String() != "label.a=2,"+want {
			t.Errorf("made %s and %s", one, other)
		}
		base.Where("network", "a")
		base.And(mustParse(t, "network=b,id=x"))
		for _, values := range base.Terms() {
			values[0] = "changed"
			break
		}
	}
	if base.String() != want {
		t.Errorf("the selector changed to %s", base)
	}
}

func TestSelector_And(t *testing.T) {
	for _, test := range []struct{ one, other, want string }{
		{"", "", ""},
		{"", "network=a", "network=a"},
		{"network=a", "paused=true", "network=a,paused=true"},
		{"network=a|b|c", "network=b|c|d", "network=b|c"},
		{"network=a", "network=b", "none"},
		{"none", "network=b", "none"},
		{"search=a", "search=b", "none"},
		{"search=a|b", "search=b|a", "search=a|b"},
		{"search=a", "paused=true", "paused=true,search=a"},
	} {
		one, other := mustParse(t, test.one), mustParse(t, test.other)
		if got := one.And(other).String(); got != test.want {
			t.Errorf("%q and %q is %q, want %q", test.one, test.other, got, test.want)
		}
		if got := other.And(one).String(); got != test.want {
			t.Errorf("%q and %q is %q, want %q", test.other, test.one, got, test.want)
		}
	}
}

// An invalid selector stays invalid, and keeps its first error.
func TestSelector_Invalid(t *testing.T) {
	invalid := relayer.Selector{}.Where("name", "a")
	valid := mustParse(t, "network=sepolia")
	for name, s := range map[string]relayer.Selector{
		"itself":     invalid,
		"and valid":  invalid.And(valid),
		"valid and":  valid.And(invalid),
		"zero and":   relayer.Selector{}.And(invalid),
		"where":      invalid.Where("network", "sepolia"),
		"where name": valid.Where("name"),
		"two":        invalid.And(relayer.Selector{}.Where("paused", "maybe")),
	} {
		wantFields(t, fieldErrors(t, s.Err()), "name")
		if s.IsZero() || s.Matches(&relayer.Relayer{ID: "r1", Name: "a", Network: "sepolia", NetworkType: relayer.EVM}) {
			t.Errorf("%s: is zero, or matches", name)
		}
	}
}

// A selector in JSON is its notation. A stored scope never becomes one of all relayers.
func TestSelector_JSON(t *testing.T) {
	type token struct {
		Scope relayer.Selector `json:"scope,omitzero"`
	}
	for _, text := range []string{"network=sepolia", "none", "label.team=a%2Cb|é,paused=true", "search=x"} {
		given := token{mustParse(t, text)}
		encoded := must(json.Marshal(given))(t)
		var decoded token
		if err := json.Unmarshal(encoded, &decoded); err != nil || !reflect.DeepEqual(decoded, given) {
			t.Errorf("%s is decoded as %s, error %v", encoded, decoded.Scope, err)
		}
	}
	if encoded, err := json.Marshal(token{}); err != nil || string(encoded) != `{}` {
		t.Errorf("no scope is %s, error %v", encoded, err)
	}
	if encoded, err := json.Marshal(relayer.Selector{}.Where("name", "a")); err == nil {
		t.Errorf("an invalid selector is encoded as %s", encoded)
	}
	for _, text := range []string{`{"scope":""}`, `{"scope":"name=a"}`, `{"scope":"search="}`, `{"scope":{}}`, `{"scope":"network"}`} {
		decoded := token{mustParse(t, "id=before")}
		if err := json.Unmarshal([]byte(text), &decoded); err == nil || decoded.Scope.IsZero() {
			t.Errorf("%s is decoded as %q, error %v", text, decoded.Scope, err)
		}
	}
}

func TestSelector_Matches(t *testing.T) {
	long := strings.Repeat("é", 300)
	r := &relayer.Relayer{
		ID: "Main-1", Name: "Größe ΣΊΣΥΦΟΣ payments", Network: "net, work|%=é\u3000", NetworkType: relayer.Stellar, SignerID: long,
		Paused: true, Labels: map[string]string{"team": "payments", "empty": "", "a.b/c": "x=y,z|%"},
	}
	for text, want := range map[string]bool{
		"":              true,
		"none":          false,
		"id=Main-1":     true,
		"id=main-1":     false,
		"id=a|Main-1|z": true,
		"network=net%2C%20work%7C%25=é%E3%80%80": true,
		"network=net":                                false,
		"network_type=stellar":                       true,
		"network_type=evm|solana":                    false,
		"signer_id=" + long:                          true,
		"signer_id=" + long + "x":                    false,
		"signer_id=" + long[:256]:                    false,
		"notification_id=x":                          false,
		"paused=true":                                true,
		"paused=false":                               false,
		"system_disabled=false":                      true,
		"system_disabled=true":                       false,
		"label.team=payments":                        true,
		"label.team=Payments":                        false,
		"label.team=risk|payments":                   true,
		"label.empty=":                               true,
		"label.team=":                                false,
		"label.other=":                               false,
		"label.a.b/c=x=y%2Cz%7C%25":                  true,
		"search=MAIN":                                true,
		"search=in-1":                                true,
		"search=σίσυφος":                             true,
		"search=sepolia":                             false,
		"search=x|main":                              true,
		"paused=true,label.team=payments,search=pay": true,
		"paused=false,label.team=payments":           false,
	} {
		if got := mustParse(t, text).Matches(r); got != want {
			t.Errorf("%q matches: %t, want %t", text, got, want)
		}
		m := newManager(t) // its store selects by the terms of the record
		mustCreate(t, m, requestFor(r))
		if listed := allOf(t, m, mustParse(t, text)); (len(listed) == 1) != want {
			t.Errorf("%q lists %+v, want one: %t", text, listed, want)
		}
	}
}

// errorsOfLists returns the errors of all lists of a selection.
func errorsOfLists(t *testing.T, m *relayer.Manager, s relayer.Selector) map[string]error {
	t.Helper()
	return map[string]error{
		"list":      second(m.List(t.Context(), relayer.ListQuery{Selector: s})),
		"documents": second(m.Documents().List(t.Context(), relayer.ListQuery{Selector: s})),
		"all":       firstError(m.All(t.Context(), s)),
	}
}

// errorsOfReads returns the errors of all lists and watches of a selection.
func errorsOfReads(t *testing.T, m *relayer.Manager, s relayer.Selector) map[string]error {
	t.Helper()
	errs := errorsOfLists(t, m, s)
	errs["watch"] = firstError(m.Watch(t.Context(), relayer.WatchQuery{Selector: s}))
	errs["watch documents"] = firstError(m.Documents().Watch(t.Context(), relayer.WatchQuery{Selector: s}))
	return errs
}

// firstError returns the error of the first element of a sequence. It fails for none, and
// for elements after an error.
func firstError[T any](sequence func(func(T, error) bool)) (first error) {
	count := 0
	sequence(func(_ T, err error) bool {
		count++
		first = err
		return err != nil
	})
	if count != 1 {
		return errors.New("not one element")
	}
	return first
}

// drawSelector returns a random selector over few values, so that many relayers match.
func drawSelector(random *rand.Rand) relayer.Selector {
	var s relayer.Selector
	for range random.IntN(4) {
		key := selectorKeys[random.IntN(len(selectorKeys))]
		values := []string{}
		for range random.IntN(4) {
			values = append(values, selectorValues[key][random.IntN(len(selectorValues[key]))])
		}
		if len(values) == 0 && random.IntN(4) > 0 {
			continue
		}
		if more := s.Where(key, values...); more.Err() == nil { // not a second search
			s = more
		}
	}
	return s
}

var selectorValues = map[string][]string{
	"id":              {"r0", "r1", "r2", "r3", "r4", "r5", "r99"},
	"network":         {"sepolia", "main net", "a,b|c%=d", strings.Repeat("é", 200), "日本"},
	"network_type":    {"evm", "solana", "stellar"},
	"signer_id":       {"s", "S", strings.Repeat("s", 300), strings.Repeat("s", 301)},
	"notification_id": {"alerts", "é"},
	"paused":          {"true", "false"},
	"system_disabled": {"true", "false"},
	"label.team":      {"payments", "risk", "", strings.Repeat("é", 128)},
	"label.a/b.c":     {"x=y", "p|q,r"},
	"search":          {"R", "1", "ÉTÉ", "", "zz"},
}

var selectorKeys = slices.Sorted(maps.Keys(selectorValues))

// FuzzParseSelector requires a selector with a stable notation or a list of problems for
// any text. A value of the selector matches a relayer that has it.
func FuzzParseSelector(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		f.Add(drawSelector(random).String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := relayer.ParseSelector(text)
		if err != nil {
			fieldErrors(t, err)
			return
		}
		again, err := relayer.ParseSelector(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q has the notation %q, which parses as %q, error %v", text, s, again, err)
		}
		if s.String() == "none" {
			return
		}
		r, searches := relayerOf(t, s)
		if searches < 2 && (!s.Matches(r) || !again.Matches(r)) {
			t.Fatalf("%q does not match %v", s, r)
		}
	})
}

// relayerOf returns a relayer with the last value of each term, and the number of searches.
func relayerOf(t *testing.T, s relayer.Selector) (r *relayer.Relayer, searches int) {
	t.Helper()
	labels := make(map[string]any)
	members := map[string]any{"network_type": "evm", "labels": labels}
	for key, values := range s.Terms() {
		value := values[len(values)-1]
		switch label, isLabel := strings.CutPrefix(key, "label."); {
		case isLabel:
			labels[label] = value
		case key == "paused", key == "system_disabled":
			members[key] = value == "true"
		case key == "search":
			members["name"] = value
			searches++
		default:
			members[key] = value
		}
	}
	r = new(relayer.Relayer)
	mustSucceed(t, json.Unmarshal(must(json.Marshal(members))(t), r))
	return r, searches
}

// naive has the relayers of a registry in creation order.
type naive []*relayer.Relayer

// selected returns those that a selector selects.
func (n naive) selected(s relayer.Selector) []*relayer.Relayer {
	return slices.DeleteFunc(slices.Clone(n), func(r *relayer.Relayer) bool { return !s.Matches(r) })
}

// change makes a random change of a registry and of the model.
func (n *naive) change(t *testing.T, random *rand.Rand, m *relayer.Manager) {
	t.Helper()
	ctx := t.Context()
	value := func(key string) string {
		return selectorValues[key][random.IntN(len(selectorValues[key]))]
	}
	id := fmt.Sprintf("r%d", random.IntN(12))
	position := slices.IndexFunc(*n, func(r *relayer.Relayer) bool { return r.ID == id })
	if position < 0 {
		req := relayer.CreateRequest{
			ID: id, Name: []string{"Été", "main 1", "x"}[random.IntN(3)], Network: value("network"), SignerID: value("signer_id"),
			NetworkType: relayer.NetworkType(value("network_type")), Paused: random.IntN(2) == 0,
		}
		if random.IntN(2) == 0 {
			req.NotificationID = value("notification_id")
		}
		if random.IntN(2) == 0 {
			req.Labels = map[string]string{"team": value("label.team")}
		}
		*n = append(*n, mustCreate(t, m, req))
		return
	}
	var changed *relayer.Relayer
	var err error
	switch random.IntN(8) {
	case 0:
		mustSucceed(t, m.Delete(ctx, id))
		*n = slices.Delete(*n, position, position+1)
		return
	case 1:
		changed, err = m.Pause(ctx, id)
	case 2:
		changed, err = m.Resume(ctx, id)
	case 3:
		changed, err = m.Disable(ctx, id, relayer.DisabledReason{Type: "x"})
	case 4:
		changed, err = m.Enable(ctx, id)
	case 5:
		changed, err = m.Patch(ctx, id, fmt.Appendf(nil, `{"name":"R%d été"}`, random.IntN(30)))
	case 6:
		changed, err = m.Patch(ctx, id, fmt.Appendf(nil, `{"labels":{"team":%q,"a/b.c":%q}}`, value("label.team"), value("label.a/b.c")))
	default:
		changed, err = m.Patch(ctx, id, []byte(`{"labels":null,"notification_id":null}`))
	}
	mustSucceed(t, err)
	(*n)[position] = changed
}

// compare compares all reads of a selection with the model.
func (n naive) compare(t *testing.T, m *relayer.Manager, s relayer.Selector, page, perPage int) {
	t.Helper()
	selected := n.selected(s)
	from := min((max(page, 1)-1)*perPage, len(selected))
	want := selected[from:min(from+perPage, len(selected))]
	query := relayer.ListQuery{Selector: s, Page: page, PerPage: perPage}
	listed := must(m.List(t.Context(), query))(t)
	pagination := relayer.Pagination{CurrentPage: max(page, 1), PerPage: perPage, TotalItems: len(selected)}
	if listed.Pagination != pagination || !slices.EqualFunc(listed.Relayers, want, isEqual) {
		t.Fatalf("%s, page %d of %d: %q of %+v, want %q of %+v", s, page, perPage, idsOf(listed.Relayers), listed.Pagination, idsOf(want), pagination)
	}
	read := must(m.Documents().List(t.Context(), query))(t)
	if read.Pagination != pagination || len(read.Documents) != len(want) {
		t.Fatalf("%s: documents %+v", s, read)
	}
	for i, document := range read.Documents {
		if document.ID != want[i].ID || document.Revision != want[i].Revision || string(document.JSON) != storedDocument(t, m, want[i].ID) {
			t.Fatalf("%s: document %d is %s", s, i, document.JSON)
		}
	}
	if all := allOf(t, m, s); !slices.EqualFunc(all, selected, isEqual) {
		t.Fatalf("%s: All returned %q, want %q", s, idsOf(all), idsOf(selected))
	}
}

// isEqual leaves out what changed, and who paused it, which a follower of a selection learns of some
// changes only.
func isEqual(a, b *relayer.Relayer) bool {
	one, other := *a, *b
	one.LastChange.Changed, other.LastChange.Changed = nil, nil
	one.LastChange.PausedBy, other.LastChange.PausedBy = nil, nil
	return reflect.DeepEqual(one, other)
}

// Pages, totals and All are those of a naive filter, for random selectors and changes, in
// views too.
func TestSelection_Lists(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		random := rand.New(rand.NewPCG(5, 6))
		m := managerOf(t, store)
		var model naive
		nonEmpty := 0
		for range 300 {
			model.change(t, random, m)
			s := drawSelector(random)
			page, perPage := random.IntN(4), 1+random.IntN(5)
			model.compare(t, m, s, page, perPage)
			if len(model.selected(s)) > 0 {
				nonEmpty++
			}
			scope, inner := drawScope(random), drawScope(random)
			naive(model.selected(scope)).compare(t, m.Within(scope), s, page, perPage)
			naive(model.selected(scope.And(inner))).compare(t, m.Within(scope).Within(inner), s, page, perPage)
		}
		if nonEmpty < 50 {
			t.Errorf("only %d selections had relayers", nonEmpty)
		}
	})
}

// drawScope returns a random selector without a search.
func drawScope(random *rand.Rand) (scope relayer.Selector) {
	for key, values := range drawSelector(random).Terms() {
		if key != "search" {
			scope = scope.Where(key, values...)
		}
	}
	return scope
}

// followed is the state of a consumer of a watch.
type followed struct {
	selector relayer.Selector
	relayers map[string]*relayer.Relayer
	problem  string
}

// apply applies a change as the documentation of Watch says, and checks its kind.
func (f *followed) apply(change relayer.Change, err error, isSearch bool) {
	if err != nil {
		f.problem = err.Error()
		return
	}
	id := change.Relayer.ID
	_, isKnown := f.relayers[id]
	if wasKnown := change.Kind != relayer.ChangeCreated; isKnown != wasKnown && !isSearch {
		f.problem = fmt.Sprintf("%s of %s, known: %t", change.Kind, id, isKnown)
	}
	delete(f.relayers, id)
	if change.Kind != relayer.ChangeDeleted {
		f.relayers[id] = change.Relayer
	}
}

// A follower of a selection has that selection after every change, for random selectors
// and changes, in views too.
func TestSelection_Watch(t *testing.T) {
	// The goroutines of a file would not belong to the bubble.
	for name, store := range map[string]relayer.Store{"memory": memory.New(), "map": new(mapstore.Store)} {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 8))
			m := managerOf(t, store)
			var model naive
			var followers []*followed
			for i := range 30 {
				scope, s := drawScope(random), drawSelector(random)
				if i == 0 {
					scope, s = relayer.Selector{}, relayer.Selector{}
				}
				f := &followed{selector: scope.And(s), relayers: make(map[string]*relayer.Relayer)}
				changes := m.Within(scope).Watch(t.Context(), relayer.WatchQuery{Selector: s})
				_, isSearch := termsIn(s)["search"]
				go func() {
					for change, err := range changes {
						f.apply(change, err, isSearch)
					}
				}()
				followers = append(followers, f)
			}
			for range 250 {
				model.change(t, random, m)
				synctest.Wait()
				for _, f := range followers {
					want := make(map[string]*relayer.Relayer)
					for _, r := range model.selected(f.selector) {
						want[r.ID] = r
					}
					if f.problem != "" || !maps.EqualFunc(f.relayers, want, isEqual) {
						t.Fatalf("%s, %s: follower has %v, want %v, problem %s", name, f.selector, f.relayers, want, f.problem)
					}
				}
			}
		})
	}
}

// A search finds parts of IDs and of the first 900 bytes of names, in lists and streams.
func TestSearch_Meaning(t *testing.T) {
	long := strings.Repeat("x", 899) + "Ä-end"
	for _, c := range []struct {
		name, search string
		want         bool
	}{
		{"Größe", "GRÖSSE", true},
		{"Größe", "größe", true},
		{"100%_\\'\"", `%_\'`, true},
		{"100%", "1_0", false},
		{"n", "the-id", true},
		{"n", "idn", false}, // not across the ID and the name
		{long, strings.Repeat("X", 128), true},
		{long, "ä", false},
		{long, "end", false},
		{strings.Repeat("ΐ", 450), "ΐ", true}, // longer when it is folded
	} {
		m := newManager(t)
		mustCreate(t, m, named("the-id", "before"))
		selector := relayer.Selector{}.Where("search", c.search)
		mustSucceed(t, selector.Err())
		f := follow(t, m.Watch(t.Context(), relayer.WatchQuery{Selector: selector}))
		r := must(m.Patch(t.Context(), "the-id", fmt.Appendf(nil, `{"name":%q}`, c.name)))(t)
		if listed := allOf(t, m, selector); (len(listed) == 1) != c.want || selector.Matches(r) != c.want {
			t.Errorf("%.20q in %.20q: listed %+v, matches %t, want %t", c.search, c.name, listed, selector.Matches(r), c.want)
		}
		if !c.want {
			continue
		}
		if change, err, _ := f.next(); err != nil || change.Relayer.Revision != r.Revision {
			t.Errorf("%.20q in %.20q: watched %v, %v", c.search, c.name, change, err)
		}
	}
}

// A relayer whose new name a search no longer finds leaves the selection.
func TestWatch_RenamedOutOfSearch(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, named("r", "payments"))
	f := follow(t, m.Watch(t.Context(), relayer.WatchQuery{Selector: mustParse(t, "search=pay")}))
	for _, name := range []string{"risk", "Payday", "PAYMENTS"} {
		must(m.Patch(t.Context(), "r", fmt.Appendf(nil, `{"name":%q}`, name)))(t)
	}
	f.expect(relayer.ChangeDeleted, "r")
	f.expect(relayer.ChangeCreated, "r")
	f.expect(relayer.ChangeUpdated, "r")
}
