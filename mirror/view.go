package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// view has relayers in order, by ID, and by the values of their fields. It has no lock.
type view struct {
	ordered []*entry // by number
	byID    map[string]*entry
	byField map[field]map[*entry]struct{}
}

// entry is one state of a relayer. It is immutable once it is in a view.
type entry struct {
	*relayer.Relayer

	// number is the position in the order of the view. It stays the same until the relayer
	// is deleted.
	number uint64

	// life is the first known revision of the relayer since it was created, or 0 if it was
	// updated before it was read. It differs if the relayer was deleted and created again.
	life uint64
}

// field is a value by which relayers are found.
type field struct{ key, value string }

func newView() *view {
	return &view{byID: make(map[string]*entry), byField: make(map[field]map[*entry]struct{})}
}

const labelPrefix = "label."

func fieldsOf(r *relayer.Relayer) []field {
	fields := []field{{"network", r.Network}, {"signer_id", r.SignerID}, {"notification_id", r.NotificationID}}
	for key, value := range r.Labels {
		fields = append(fields, field{labelPrefix + key, value})
	}
	return fields
}

func isIndexed(key string) bool {
	return key == "network" || key == "signer_id" || key == "notification_id" || strings.HasPrefix(key, labelPrefix)
}

// add adds a relayer after all others. Its ID must not be in the view.
func (v *view) add(r *relayer.Relayer, life uint64) {
	e := &entry{Relayer: r, life: life}
	if len(v.ordered) > 0 {
		e.number = v.ordered[len(v.ordered)-1].number + 1
	}
	v.ordered = append(v.ordered, e)
	v.index(e)
}

func (v *view) replace(old *entry, r *relayer.Relayer) {
	e := &entry{r, old.number, old.life}
	v.unindex(old)
	v.ordered[v.position(old)] = e
	v.index(e)
}

func (v *view) remove(e *entry) {
	v.unindex(e)
	position := v.position(e)
	v.ordered = slices.Delete(v.ordered, position, position+1)
}

func (v *view) position(e *entry) int {
	position, _ := slices.BinarySearchFunc(v.ordered, e.number, func(other *entry, number uint64) int {
		return cmp.Compare(other.number, number)
	})
	return position
}

func (v *view) index(e *entry) {
	v.byID[e.ID] = e
	for _, f := range fieldsOf(e.Relayer) {
		if v.byField[f] == nil {
			v.byField[f] = make(map[*entry]struct{})
		}
		v.byField[f][e] = struct{}{}
	}
}

func (v *view) unindex(e *entry) {
	delete(v.byID, e.ID)
	for _, f := range fieldsOf(e.Relayer) {
		delete(v.byField[f], e)
		if len(v.byField[f]) == 0 {
			delete(v.byField, f)
		}
	}
}

// apply applies a change unless the view has a later state, and reports whether it did.
func (v *view) apply(change relayer.Change) bool {
	r, known := change.Relayer, v.byID[change.Relayer.ID]
	switch {
	case change.Kind == relayer.ChangeDeleted:
		if known == nil || known.Revision > r.Revision {
			return false
		}
		v.remove(known)
	case known != nil && known.Revision >= r.Revision:
		return false
	case change.Kind == relayer.ChangeCreated:
		if known != nil { // its deletion was missed
			v.remove(known)
		}
		v.add(r, r.Revision)
	case known == nil:
		v.add(r, 0)
	default:
		v.replace(known, r)
	}
	return true
}

// merge returns the view of what was read, with the states of v that are not older. Changed
// has the revisions of the last changes since before the read, which v has. It also returns
// the IDs of the relayers that differ from v, those that are missing first. It returns an
// error if v has had a later state of a relayer since before the read.
func (v *view) merge(read []*relayer.Relayer, changed map[string]uint64) (merged *view, differing []string, err error) {
	merged = newView()
	for _, r := range read {
		known := v.byID[r.ID]
		switch {
		case known != nil && known.Revision > r.Revision && changed[r.ID] == 0:
			return nil, nil, fmt.Errorf("the source has relayer %q at revision %d, and the view at %d: if the registry was restored, open the view again",
				r.ID, r.Revision, known.Revision)
		case merged.byID[r.ID] != nil: // a duplicate
		case changed[r.ID] >= r.Revision && (known == nil || known.life > r.Revision): // deleted since, or created again
		case known != nil && known.Revision >= r.Revision:
			merged.add(known.Relayer, known.life)
		case known != nil && isSameRelayer(known.Relayer, r):
			merged.add(r, known.life)
			differing = append(differing, r.ID)
		default:
			merged.add(r, r.Revision)
			differing = append(differing, r.ID)
		}
	}
	var missing []string
	for _, e := range v.ordered {
		switch {
		case merged.byID[e.ID] != nil:
		case changed[e.ID] != 0:
			merged.add(e.Relayer, e.life)
		default:
			missing = append(missing, e.ID)
		}
	}
	return merged, append(missing, differing...), nil
}

// isSameRelayer reports whether two states can be of one relayer that was not deleted
// between them: some fields never change.
func isSameRelayer(a, b *relayer.Relayer) bool {
	return a.Network == b.Network && a.NetworkType == b.NetworkType && a.SignerID == b.SignerID && a.Address == b.Address
}

// minIndexed is how many times as many relayers as candidates a view must have for the
// candidates to be read from the index. A copy of all entries takes less time otherwise.
const minIndexed = 8

// candidates returns entries in any order, among them those that the selector selects: those
// with the rarest value that it permits, or all. The caller may modify the slice. A writer
// waits until candidates returns, and then other readers wait for the writer.
func (v *view) candidates(selector relayer.Selector) []*entry {
	key, values, fewest := "", []string(nil), len(v.ordered)/minIndexed
	for term, permitted := range selector.Terms() {
		if term == "id" {
			return v.withIDs(permitted)
		}
		if !isIndexed(term) {
			continue
		}
		count := 0
		for _, value := range permitted {
			count += len(v.byField[field{term, value}])
		}
		if count < fewest {
			key, values, fewest = term, permitted, count
		}
	}
	if key == "" {
		return slices.Clone(v.ordered)
	}
	found := make([]*entry, 0, fewest)
	for _, value := range values {
		for e := range v.byField[field{key, value}] {
			found = append(found, e)
		}
	}
	return found
}

func (v *view) withIDs(ids []string) []*entry {
	var found []*entry
	for _, id := range ids {
		if e := v.byID[id]; e != nil {
			found = append(found, e)
		}
	}
	return found
}

func sortByNumber(entries []*entry) {
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
}
