package stores

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-relayer/relayer"
)

// feed has the changes of one history.
type feed struct {
	store   relayer.Store
	next    func() (relayer.RecordChange, error, bool)
	begun   time.Time
	changes []relayer.RecordChange // without the marker
}

// follow begins to watch a store.
func follow(t *testing.T, store relayer.Store) *feed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	next, stop := iter.Pull2(store.Watch(ctx, ""))
	t.Cleanup(func() { stop(); cancel() })
	return &feed{store: store, next: func() (relayer.RecordChange, error, bool) {
		change, err, ok := next()
		if change.Record.ID == marker {
			stop()
			cancel()
		}
		return change, err, ok
	}}
}

// marker is the ID of the record whose create is the last change.
const marker = "marker"

// end reads the changes of a history, and resolves the positions of its lists.
func (f *feed) end(t *testing.T, begun time.Time, history []porcupine.Operation) {
	t.Helper()
	f.begun = begun
	_, err := f.store.Create(t.Context(), relayer.Record{ID: marker})
	must(t, err)
	for {
		change, err, ok := f.next()
		if err != nil || !ok {
			t.Fatalf("Watch: error %v, ended is %t", err, !ok)
		}
		if change.Record.ID == marker {
			break
		}
		f.changes = append(f.changes, change)
	}
	for i, call := range history {
		out := call.Output.(output)
		if out.position != "" {
			out.changes = f.before(t, out.position)
			history[i].Output = out
		}
	}
}

// before returns how many changes are before a position.
func (f *feed) before(t *testing.T, position string) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	after, all := 0, 0
	for _, change := range f.changes {
		if change.Kind != relayer.ChangeHeartbeat {
			all++
		}
	}
	for change, err := range f.store.Watch(ctx, position) {
		if err != nil {
			t.Fatalf("Watch from the position of a list: %v", err)
		}
		if change.Record.ID == marker {
			return all - after
		}
		if change.Kind != relayer.ChangeHeartbeat {
			after++
		}
	}
	t.Fatal("Watch ended")
	return 0
}

// check returns an error unless the changes, in their order, are the successful writes, and
// no element has a later time than the end of a write that follows.
func (f *feed) check(history []porcupine.Operation) error {
	writes := make(map[string]porcupine.Operation) // by content, which is the note
	for _, call := range history {
		if in, out := call.Input.(input), call.Output.(output); out.err == nil && in.verb != get && in.verb != list {
			writes[in.content] = call
		}
	}
	var s state
	var reached time.Time
	for _, change := range f.changes {
		if change.Time.Before(reached) {
			return fmt.Errorf("the time of %s %s goes back", change.Kind, change.Record.ID)
		}
		if change.Kind == relayer.ChangeHeartbeat {
			reached = change.Time
			continue
		}
		call, isWrite := writes[string(change.Record.Note)]
		if !isWrite {
			return fmt.Errorf("no write made the change %s %s at %d", change.Kind, change.Record.ID, change.Record.Revision)
		}
		delete(writes, string(change.Record.Note))
		if returned := f.begun.Add(time.Duration(call.Return)); returned.Before(reached) {
			return fmt.Errorf("%s %s returned %s before the time of a change before it", change.Kind, change.Record.ID, reached.Sub(returned))
		}
		reached = change.Time
		after, ok := step(s, call.Input.(input), call.Output.(output))
		if !ok || !isChange(s, after, change) {
			return fmt.Errorf("the change %s %s at %d does not follow those before it", change.Kind, change.Record.ID, change.Record.Revision)
		}
		s = after
	}
	if len(writes) > 0 {
		return fmt.Errorf("the feed does not have %d of the writes", len(writes))
	}
	return nil
}

// isChange reports whether a change has the kind, the old text and the old terms of a step.
func isChange(before, after state, change relayer.RecordChange) bool {
	kind, text, terms := relayer.ChangeCreated, "", []string(nil)
	for _, r := range before.rows {
		if r.id == change.Record.ID {
			kind, text, terms = relayer.ChangeUpdated, textOf(r.term), []string{r.term}
		}
	}
	if len(after.rows) < len(before.rows) {
		kind = relayer.ChangeDeleted
	}
	return change.Kind == kind && change.OldText == text && slices.Equal(change.OldTerms, terms)
}
