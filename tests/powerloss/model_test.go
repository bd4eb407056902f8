package powerloss

import (
	"maps"
	"slices"
	"testing"
)

func TestModel_Compare(t *testing.T) {
	create := event{Worker: 1, IDs: []string{"a"}, Version: 1}
	update := event{Worker: 1, IDs: []string{"a"}, Version: 2}
	remove := event{Worker: 1, IDs: []string{"a"}}
	importTwo := event{Worker: 1, IDs: []string{"a", "b"}, Version: 1}
	at := func(step string, e event) event { e.Step = step; return e }
	type held = map[string]int

	tests := map[string]struct {
		events  []event
		allowed []held
		refused []held
	}{
		"created": {
			[]event{at(begin, create), at(done, create)},
			[]held{{"a": 1}},
			[]held{{}, {"a": 2}, {"a": damagedVersion}, {"a": 1, "b": 1}},
		},
		"create in flight": {
			[]event{at(begin, create)},
			[]held{{}, {"a": 1}},
			[]held{{"a": damagedVersion}},
		},
		"create refused": {
			[]event{at(begin, create), at(refused, create)},
			[]held{{}},
			[]held{{"a": 1}},
		},
		"updated": {
			[]event{at(begin, create), at(done, create), at(begin, update), at(done, update)},
			[]held{{"a": 2}},
			[]held{{}, {"a": 1}},
		},
		"update of unknown outcome": {
			[]event{at(begin, create), at(done, create), at(begin, update), at(unknown, update)},
			[]held{{"a": 1}, {"a": 2}},
			[]held{{}, {"a": 3}},
		},
		"deleted": {
			[]event{at(begin, create), at(done, create), at(begin, remove), at(done, remove)},
			[]held{{}},
			[]held{{"a": 1}},
		},
		"delete in flight": {
			[]event{at(begin, create), at(done, create), at(begin, remove)},
			[]held{{}, {"a": 1}},
			[]held{{"a": 2}},
		},
		"import in flight": {
			[]event{at(begin, importTwo)},
			[]held{{}, {"a": 1, "b": 1}},
			[]held{{"a": 1}, {"b": 1}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			for _, e := range test.events {
				m.note(e)
			}
			m.processDied()
			for _, h := range test.allowed {
				if found := m.compare(h); !found.isEmpty() {
					t.Errorf("%v is refused: %v", h, found)
				}
			}
			for _, h := range test.refused {
				if m.compare(h).isEmpty() {
					t.Errorf("%v is allowed", h)
				}
			}
		})
	}
}

func TestModel_CompareHistory(t *testing.T) {
	m := newModel()
	for i, verb := range []string{"create", "update", "delete", "import", "create"} {
		for _, step := range []string{begin, []string{done, refused, unknown, done, begin}[i]} {
			m.note(event{Step: step, Worker: i, Verb: verb, IDs: []string{verb}, Version: i})
		}
	}
	created, refusedUpdate, unknownDelete := change{"create", 0}, change{"update", 1}, change{"delete", 2}
	for want, histories := range map[int][][]change{
		0: {{created}, {created, unknownDelete}, {created, {"create", 4}}, {created, {"older", 3}}},
		1: {{}, {unknownDelete}, {created, refusedUpdate}, {created, created}},
	} {
		for _, history := range histories {
			if wrong := m.compareHistory(history); len(wrong) != want {
				t.Errorf("%v: %v is wrong, want %d", history, wrong, want)
			}
		}
	}
	m.adopt(nil)
	if wrong := m.compareHistory(nil); len(wrong) > 0 {
		t.Errorf("after adoption: %v is wrong", wrong)
	}
}

func TestModel_Adopt(t *testing.T) {
	m := newModel()
	m.note(event{Step: begin, IDs: []string{"a"}, Version: 1})
	m.processDied()
	if ids := m.unsettledIDs(); !slices.Equal(ids, []string{"a"}) {
		t.Errorf("unsettled %v", ids)
	}
	held := map[string]int{"a": 1}
	m.adopt(maps.Clone(held))
	if found := m.compare(held); !found.isEmpty() || len(m.unsettledIDs()) != 0 {
		t.Errorf("after adoption: %v, unsettled %v", found, m.unsettledIDs())
	}
	if m.compare(nil).isEmpty() {
		t.Error("an adopted relayer may be absent")
	}
}
