package mirror

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
)

// view has relayers in order, by ID, and by the values of their fields. It has no lock.
type view struct {
	ordered     []*entry // by number
	byID        map[string]*entry
	byField     map[field]map[*entry]struct{}
	first, last uint64 // numbers: of the first entry, and of the last one so far
}

// entry is one state of a relayer. It is immutable once it is in a view.
type entry struct {
	*relayer.Relayer

	// number is the position in the order of the view. It stays the same until the relayer
	// is deleted. Later views have larger numbers.
	number uint64
}

// field is a value by which relayers are found.
type field struct{ key, value string }

func newView(first uint64) *view {
	return &view{byID: make(map[string]*entry), byField: make(map[field]map[*entry]struct{}), first: first, last: first - 1}
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
func (v *view) add(r *relayer.Relayer) {
	v.last++
	e := &entry{r, v.last}
	v.ordered = append(v.ordered, e)
	v.index(e)
}

// put adds a relayer after all others. It replaces one with its ID.
func (v *view) put(r *relayer.Relayer) {
	if known := v.byID[r.ID]; known != nil {
		v.remove(known)
	}
	v.add(r)
}

func (v *view) replace(old *entry, r *relayer.Relayer) {
	e := &entry{r, old.number}
	v.unindex(old)
	v.ordered[position(v.ordered, old.number)] = e
	v.index(e)
}

func (v *view) remove(e *entry) {
	v.unindex(e)
	at := position(v.ordered, e.number)
	v.ordered = slices.Delete(v.ordered, at, at+1)
}

// position returns the index of the first entry with a number, or a larger one.
func position(entries []*entry, number uint64) int {
	index, _ := slices.BinarySearchFunc(entries, number, func(e *entry, number uint64) int {
		return cmp.Compare(e.number, number)
	})
	return index
}

func cursorOf(e *entry) relayer.Cursor { return relayer.Cursor(strconv.FormatUint(e.number, 10)) }

// numberOf returns the number of the entry before a cursor of a view.
func numberOf(cursor relayer.Cursor, first uint64) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	number, err := strconv.ParseUint(string(cursor), 10, 63)
	switch {
	case err != nil:
		return 0, &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "after", Message: "must be empty, or the cursor of an earlier page"}}}
	case number < first:
		return 0, fmt.Errorf("the view was read again since the cursor: %w", relayer.ErrGap)
	}
	return number, nil
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

// apply applies a change.
func (v *view) apply(change relayer.Change) {
	if change.Kind == relayer.ChangeHeartbeat {
		return
	}
	known := v.byID[change.Relayer.ID]
	switch {
	case change.Kind == relayer.ChangeCreated:
		v.put(change.Relayer)
	case change.Kind == relayer.ChangeDeleted && known != nil:
		v.remove(known)
	case change.Kind == relayer.ChangeUpdated && known != nil:
		v.replace(known, change.Relayer)
	case change.Kind == relayer.ChangeUpdated:
		v.add(change.Relayer)
	}
}

// adopt takes the relayers of an old view that are equal. It returns the IDs of the others,
// those that are missing first.
func (v *view) adopt(old *view) (differing []string) {
	for _, e := range old.ordered {
		if v.byID[e.ID] == nil {
			differing = append(differing, e.ID)
		}
	}
	for _, e := range v.ordered {
		if known := old.byID[e.ID]; known != nil && reflect.DeepEqual(known.Relayer, e.Relayer) {
			e.Relayer = known.Relayer
		} else {
			differing = append(differing, e.ID)
		}
	}
	return differing
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
