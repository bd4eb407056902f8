package relayer_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

// Every write says who made it, when, why and what it was, in every result.
func TestNote_OfEveryWrite(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		m := managerOf(t, store)
		ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "alice", RequestID: "req-1"})
		because := relayer.Reason("incident 42")
		disabled := []string{"disabled_reason.details", "disabled_reason.type", "system_disabled"}
		for _, c := range []struct {
			action  relayer.Action
			changed []string
			write   func() (*relayer.Relayer, error)
		}{
			{relayer.ActionCreate, nil, func() (*relayer.Relayer, error) { return m.Create(ctx, minimal("r"), because) }},
			{relayer.ActionPause, []string{"paused"}, func() (*relayer.Relayer, error) { return m.Pause(ctx, "r", because) }},
			{relayer.ActionResume, []string{"paused"}, func() (*relayer.Relayer, error) {
				return m.Patch(ctx, "r", patchtest.JSON(map[string]any{"paused": false}), because)
			}},
			{relayer.ActionDisable, disabled, func() (*relayer.Relayer, error) {
				return m.Disable(ctx, "r", relayer.DisabledReason{Type: "x"}, because)
			}},
			{relayer.ActionEnable, disabled, func() (*relayer.Relayer, error) { return m.Enable(ctx, "r", because) }},
			{relayer.ActionUpdate, []string{"name"}, func() (*relayer.Relayer, error) {
				return m.Update(ctx, "r", func(r *relayer.Relayer) error { r.Name = "new"; return nil }, because)
			}},
		} {
			began := time.Now().Truncate(time.Millisecond)
			written, err := c.write()
			if err != nil {
				t.Fatal(err)
			}
			note := written.LastChange
			if note.Time.Before(began) || note.Time.After(time.Now()) || note.Time.Location() != time.UTC {
				t.Errorf("%s at %v, want between %v and now, in UTC", c.action, note.Time, began)
			}
			if note.Time = (time.Time{}); !reflect.DeepEqual(note, relayer.ChangeInfo{Revision: written.Revision, Actor: "alice", Action: c.action, Reason: "incident 42", RequestID: "req-1", Changed: c.changed}) {
				t.Errorf("%s: %+v", c.action, note)
			}
			page, err := m.List(ctx, relayer.ListQuery{})
			if err != nil {
				t.Fatal(err)
			}
			document, err := m.Documents().Get(ctx, "r")
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []relayer.ChangeInfo{mustGet(t, m, "r").LastChange, page.Relayers[0].LastChange, document.LastChange()} {
				if !reflect.DeepEqual(got, written.LastChange) {
					t.Errorf("%s read as %+v, want %+v", c.action, got, written.LastChange)
				}
			}
		}
	})
}

// A write that changes nothing leaves the note of the last change.
func TestNote_WriteWithoutChange(t *testing.T) {
	m := newManager(t)
	created := mustCreate(t, m, minimal("r"))
	resumed, err := m.Resume(t.Context(), "r", relayer.Reason("no effect"))
	if err != nil || !reflect.DeepEqual(resumed.LastChange, created.LastChange) {
		t.Errorf("%+v, %v, want %+v", resumed.LastChange, err, created.LastChange)
	}
}

// A watch has the notes too, that of a delete with its own revision.
func TestNote_InWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		f := follow(t, m.Watch(t.Context(), relayer.WatchQuery{}))
		mustCreate(t, m, minimal("r"))
		time.Sleep(time.Hour)
		bob := relayer.WithActor(t.Context(), relayer.Actor{ID: "bob"})
		if err := m.Delete(bob, "r", relayer.Reason("gone")); err != nil {
			t.Fatal(err)
		}
		created, deleted := f.expect(relayer.ChangeCreated, "r"), f.expect(relayer.ChangeDeleted, "r")
		want := relayer.ChangeInfo{Revision: deleted.Revision, Time: created.LastChange.Time.Add(time.Hour), Actor: "bob", Action: relayer.ActionDelete, Reason: "gone"}
		if !reflect.DeepEqual(deleted.LastChange, want) || deleted.Revision <= created.Revision {
			t.Errorf("deleted by %+v at %d, want %+v after %d", deleted.LastChange, deleted.Revision, want, created.Revision)
		}
	})
}

// A note that this package did not write, and an actor with separators, are no error.
func TestNote_OtherBytes(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "a\tb\xff\t"})
	r, err := m.Create(ctx, minimal("r"), relayer.Reason("why"))
	want := relayer.ChangeInfo{Revision: r.Revision, Time: r.LastChange.Time, Actor: "a\uFFFDb\uFFFD\uFFFD", Action: relayer.ActionCreate, Reason: "why"}
	if err != nil || !reflect.DeepEqual(r.LastChange, want) {
		t.Errorf("%+v, error %v, want %+v", r.LastChange, err, want)
	}
	for note, want := range map[string]relayer.ChangeInfo{
		"":          {},
		"{}":        {},
		"text":      {},
		"x\tcreate": {},
		"1000":      {Time: time.Unix(1, 0).UTC()},
		"1000\tpause\talice\twhy\tid\ta\x1fb\t\t\t\t\tlater": {Time: time.Unix(1, 0).UTC(), Actor: "alice", Action: relayer.ActionPause, Reason: "why", RequestID: "id", Changed: []string{"a", "b"}},
	} {
		rec, err := store.Get(t.Context(), "r")
		if rec.Note = []byte(note); err == nil {
			rec, err = store.Update(t.Context(), rec)
		}
		want.Revision = rec.Revision
		if got := mustGet(t, m, "r").LastChange; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the note %q is %+v, want %+v; error %v", note, got, want, err)
		}
	}
}

func TestReason_Limits(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("r"))
	for reason, isValid := range map[string]bool{
		"":                        true,
		strings.Repeat("é", 256):  true,
		strings.Repeat("e", 257):  false,
		"two\nlines":              false,
		"tab\t":                   false,
		"\xff":                    false,
		"\"quotes\" & <angles> ✓": true,
	} {
		changed, err := m.Patch(t.Context(), "r", patchtest.JSON(map[string]any{"labels": map[string]any{"n": fmt.Sprint(len(reason))}}), relayer.Reason(reason))
		if !isValid {
			if err == nil {
				t.Errorf("%q was accepted", reason)
				continue
			}
			wantFields(t, fieldErrors(t, err), "change_reason")
			continue
		}
		if err != nil || changed.LastChange.Reason != reason {
			t.Errorf("%q: stored %v, error %v", reason, changed, err)
		}
	}
}

// TestReason_MaskedURLs: a reason quotes what a person pasted. The longest one that grows when it
// is masked can be stored too.
func TestReason_MaskedURLs(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("r"))
	for reason, want := range map[string]string{
		"401 of https://user:pw@rpc.example/v2/KEY, see #7": "401 of https://rpc.example/***, see #7",
		"wss://rpc.example/?key=KEY":                        "wss://rpc.example/***",
		"user:pw@rpc.example":                               "rpc.example",
		strings.Repeat("a.b/é ", 42):                        strings.Repeat("a.b/*** ", 42)[:256],
	} {
		changed, err := m.Patch(t.Context(), "r", patchtest.JSON(map[string]any{"labels": map[string]any{"n": fmt.Sprint(len(reason))}}), relayer.Reason(reason))
		if err != nil || changed.LastChange.Reason != want || mustGet(t, m, "r").LastChange.Reason != want {
			t.Errorf("%q: stored %v, error %v", reason, changed, err)
		}
	}
}

// An actor may have any ID; the longest that is stored has 256 bytes.
func TestNote_ActorOfAnyID(t *testing.T) {
	for id, want := range map[string]string{"\xff": "\uFFFD", strings.Repeat("é", 600): strings.Repeat("é", 128)} {
		m := newManager(t)
		r, err := m.Create(relayer.WithActor(t.Context(), relayer.Actor{ID: id}), minimal("r"))
		if err != nil || r.LastChange.Actor != want {
			t.Errorf("actor %.10q: %+v, %v", id, r, err)
		}
	}
}

// A note that this package did not write is no error.
