//go:build unix

package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
)

// TestPositions_RefusedWrites has the store and the server refuse some writes:
// neither a position nor a revision is taken by them.
func TestPositions_RefusedWrites(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	addTrigger(t, admin, schema, `IF NEW.id LIKE 'bad%' THEN RAISE EXCEPTION 'not this one'; END IF;`)
	execute(t, admin, fmt.Sprintf(onInsert, schema))
	var want []relayer.Record
	for i := range 60 {
		if i%3 == 0 {
			if _, err := store.Create(t.Context(), record(fmt.Sprintf("bad-%d", i))); err == nil {
				t.Fatal("no error")
			}
		}
		want = append(want, create(t, store, record(numbered(i))))
		if i%5 == 0 {
			_, _ = store.Create(t.Context(), record(numbered(i)))
		}
	}
	taken := queryOne[string](t, admin, fmt.Sprintf("SELECT last_sequence || ' ' || last_revision FROM %s.state", schema))
	if taken != "60 60" {
		t.Errorf("last position and revision: %s, want 60 60", taken)
	}
	for offset := range want {
		recs, total, err := list(t.Context(), store, relayer.StoreQuery{Offset: offset, Limit: 7})
		if err != nil || total != len(want) || !slices.EqualFunc(recs, want[offset:min(offset+7, len(want))], same) {
			t.Fatalf("page at %d: %d records, total %d, error %v", offset, len(recs), total, err)
		}
	}
	wantConsistent(t, store)
}
