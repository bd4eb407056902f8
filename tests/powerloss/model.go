package powerloss

import (
	"fmt"
	"slices"
)

// model tracks which versions of each relayer the store may hold. An
// acknowledged operation leaves one version, and an operation whose outcome is
// not known adds one.
type model struct {
	versions  map[string][]int  // 0 if the relayer may be absent
	inFlight  map[int]event     // by worker
	unsettled []event           // of unknown outcome
	changes   map[change]string // since the last power cut: begin, done or refused

	acknowledged, uncertain int
}

func newModel() *model {
	return &model{versions: make(map[string][]int), inFlight: make(map[int]event), changes: make(map[change]string)}
}

// note takes an event of a child.
func (m *model) note(e event) {
	for _, id := range e.IDs {
		if e.Verb != "import" { // the history has no imports
			m.changes[change{id, e.Version}] = e.Step
		}
	}
	switch e.Step {
	case begin:
		m.inFlight[e.Worker] = e
		for _, id := range e.IDs {
			m.versions[id] = append(m.before(id), e.Version)
		}
		return
	case done:
		m.acknowledged++
		for _, id := range e.IDs {
			m.versions[id] = []int{e.Version}
		}
	case refused:
		for _, id := range e.IDs {
			m.versions[id] = m.versions[id][:len(m.versions[id])-1]
		}
	case unknown:
		m.leave(e)
	}
	delete(m.inFlight, e.Worker)
}

// before returns the possible versions of a relayer.
func (m *model) before(id string) []int {
	if versions, ok := m.versions[id]; ok {
		return versions
	}
	return []int{0}
}

// leave records an operation of unknown outcome.
func (m *model) leave(e event) {
	m.uncertain++
	m.unsettled = append(m.unsettled, e)
}

// processDied gives the operations in flight an unknown outcome.
func (m *model) processDied() {
	for _, e := range m.inFlight {
		m.leave(e)
	}
	clear(m.inFlight)
}

// unsettledIDs returns the relayers with more than one possible version.
func (m *model) unsettledIDs() []string {
	var ids []string
	for _, e := range m.unsettled {
		ids = append(ids, e.IDs...)
	}
	return ids
}

// difference is a difference between a store and the model, as IDs.
type difference struct {
	lost       []string // an acknowledged operation is not in the store
	halves     []string // neither as before an operation nor as after it
	unexpected []string // never written
	history    []string // a change is not in the history, or should not be
}

func (d difference) isEmpty() bool {
	return len(d.lost)+len(d.halves)+len(d.unexpected)+len(d.history) == 0
}

func (d difference) Error() string {
	return fmt.Sprintf("lost %v, half written %v, never written %v, wrong history of %v", d.lost, d.halves, d.unexpected, d.history)
}

// damagedVersion is the version of a record that matches no version.
const damagedVersion = -1

// compare compares the versions that the store holds, by ID, with the model.
func (m *model) compare(held map[string]int) difference {
	var found difference
	for id, version := range held {
		switch versions, ok := m.versions[id]; {
		case !ok:
			found.unexpected = append(found.unexpected, id)
		case version == damagedVersion:
			found.halves = append(found.halves, id)
		case !slices.Contains(versions, version):
			found.lost = append(found.lost, id)
		}
	}
	for id, versions := range m.versions {
		if _, ok := held[id]; !ok && !slices.Contains(versions, 0) {
			found.lost = append(found.lost, id)
		}
	}
	for _, e := range m.unsettled {
		if isHalf(e, held) {
			found.halves = append(found.halves, e.IDs...)
		}
	}
	return found
}

// compareHistory returns the relayers of which an acknowledged change is not in the history, or
// one that was refused is, or one twice.
func (m *model) compareHistory(history []change) (wrong []string) {
	counts := make(map[change]int)
	for _, c := range history {
		if counts[c]++; counts[c] > 1 {
			wrong = append(wrong, c.ID)
		}
	}
	for c, step := range m.changes {
		if step == done && counts[c] == 0 || step == refused && counts[c] > 0 {
			wrong = append(wrong, c.ID)
		}
	}
	return wrong
}

// isHalf reports whether an operation was carried out in part.
func isHalf(e event, held map[string]int) bool {
	carriedOut := 0
	for _, id := range e.IDs {
		if held[id] == e.Version {
			carriedOut++
		}
	}
	return carriedOut != 0 && carriedOut != len(e.IDs)
}

// adopt sets the model to the versions that the store holds.
func (m *model) adopt(held map[string]int) {
	clear(m.versions)
	for id, version := range held {
		m.versions[id] = []int{version}
	}
	m.unsettled = nil
	clear(m.changes)
}
