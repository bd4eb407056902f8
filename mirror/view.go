package mirror

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// view has relayers by ID. It has no lock. Its relayers are immutable.
type view struct {
	byID    map[string]*relayer.Relayer
	ordered []*relayer.Relayer // by ID; valid from sort on
}

func newView() *view { return &view{byID: make(map[string]*relayer.Relayer)} }

// sort orders the relayers that were added to byID.
func (v *view) sort() {
	v.ordered = slices.SortedFunc(maps.Values(v.byID), func(a, b *relayer.Relayer) int { return strings.Compare(a.ID, b.ID) })
}

// search returns the index of the relayer with an ID, or of the first one behind it.
func search(ordered []*relayer.Relayer, id string) (index int, isFound bool) {
	return slices.BinarySearchFunc(ordered, id, func(r *relayer.Relayer, id string) int { return strings.Compare(r.ID, id) })
}

// apply applies a change.
func (v *view) apply(change relayer.Change) {
	if change.Kind == relayer.ChangeHeartbeat {
		return
	}
	r := change.Relayer
	at, isFound := search(v.ordered, r.ID)
	if !isFound {
		v.ordered = slices.Insert(v.ordered, at, r)
	}
	if v.ordered[at], v.byID[r.ID] = r, r; change.Kind == relayer.ChangeDeleted {
		delete(v.byID, r.ID)
		v.ordered = slices.Delete(v.ordered, at, at+1)
	}
}

// adopt takes the relayers of an old view that are equal. It returns the IDs of the others,
// those that are missing first.
func (v *view) adopt(old *view) (differing []string) {
	for _, r := range old.ordered {
		if v.byID[r.ID] == nil {
			differing = append(differing, r.ID)
		}
	}
	for i, r := range v.ordered {
		if known := old.byID[r.ID]; known != nil && reflect.DeepEqual(known, r) {
			v.byID[r.ID], v.ordered[i] = known, known
		} else {
			differing = append(differing, r.ID)
		}
	}
	return differing
}
