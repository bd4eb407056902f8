package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

// event identifies a write of a record that is written at most once in each way.
type event struct {
	kind relayer.ChangeKind
	id   string
}

// acknowledged has the times after the writes have returned.
type acknowledged struct {
	mu    sync.Mutex
	times map[event]time.Time
}

func (a *acknowledged) add(kind relayer.ChangeKind, id string) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times[event{kind, id}] = now
}

// writeOnce creates, updates and deletes a record.
func (a *acknowledged) writeOnce(t *testing.T, store relayer.Store, id string) error {
	rec, err := store.Create(t.Context(), sample(id))
	if err != nil {
		return err
	}
	a.add(relayer.ChangeCreated, id)
	if rec, err = store.Update(t.Context(), rec); err != nil {
		return err
	}
	a.add(relayer.ChangeUpdated, id)
	err = store.Delete(t.Context(), id, rec.Revision, nil)
	a.add(relayer.ChangeDeleted, id)
	return err
}

// wantTimes reads a watch until the create of the last record. No element may have a later
// time than that at which a change behind it was acknowledged.
func (a *acknowledged) wantTimes(t *testing.T, w watcher, last string) {
	t.Helper()
	timer := time.AfterFunc(patience, w.end)
	defer timer.Stop()
	reached := relayer.RecordChange{}
	for {
		change, err, ok := w.pull()
		if change.Kind != relayer.ChangeHeartbeat {
			timer.Reset(patience)
		}
		if err != nil || !ok {
			t.Fatalf("Watch: error %v, ended is %t", err, !ok)
		}
		a.mu.Lock()
		at, isKnown := a.times[event{change.Kind, change.Record.ID}]
		a.mu.Unlock()
		if isKnown && at.Before(reached.Time) {
			t.Fatalf("%s %q was acknowledged %s before the time of an earlier element, which is %s %q",
				change.Kind, change.Record.ID, reached.Time.Sub(at), reached.Kind, reached.Record.ID)
		}
		must(t, timeError(change, reached.Time))
		if change.Record.ID == last {
			if change.Time.IsZero() {
				t.Fatal("the last change has no time")
			}
			return
		}
		reached = change
	}
}

// timeError checks the time of an element that was received now. There may be none if there
// was none earlier: a feed that is read in parts does not know yet how far it is complete.
func timeError(change relayer.RecordChange, earlier time.Time) error {
	switch at, now := change.Time, time.Now(); {
	case at.IsZero() && earlier.IsZero():
		return nil
	case at == at.Round(0):
		return fmt.Errorf("the time %s of %s %q has no monotonic clock reading", at, change.Kind, change.Record.ID)
	case at.Before(earlier):
		return fmt.Errorf("the time of %s %q is %s before that of an earlier element", change.Kind, change.Record.ID, earlier.Sub(at))
	case at.After(now):
		return fmt.Errorf("the time of %s %q is in %s", change.Kind, change.Record.ID, at.Sub(now))
	}
	return nil
}

// watchTimes has consumers that are behind, and one that follows concurrent writers.
func watchTimes(t *testing.T, store relayer.Store) {
	a := &acknowledged{times: make(map[event]time.Time)}
	begin, err := store.List(t.Context(), relayer.StoreQuery{})
	must(t, err)
	behind := watch(t, store)
	for i := range 10 {
		must(t, a.writeOnce(t, store, numbered(i)))
	}
	mustCreate(t, store, sample("middle"))
	a.wantTimes(t, behind, "middle")
	a.wantTimes(t, watchAfter(t, store, begin.Position), "middle")

	const writers, each = 8, 10
	current := watch(t, store)
	written := startWriters(t, store, writers, func(writer int) error {
		for i := range each {
			if err := a.writeOnce(t, store, fmt.Sprintf("%d-%d", writer, i)); err != nil {
				return err
			}
		}
		return nil
	})
	a.wantTimes(t, current, "end")
	must(t, <-written)
}

// watchHeartbeats waits for heartbeats of an idle store, and resumes behind them.
func watchHeartbeats(t *testing.T, store relayer.Store) {
	fresh := watch(t, store)
	first := mustCreate(t, store, sample("one"))
	page, err := store.List(t.Context(), relayer.StoreQuery{})
	must(t, err)
	acknowledged := time.Now()
	fresh.want(t, relayer.ChangeCreated, first, relayer.Record{})
	watchers := []watcher{fresh, watchAfter(t, store, page.Position)}
	positions := make([]string, len(watchers))
	errs := race(len(watchers), func(i int) (err error) {
		positions[i], err = watchers[i].heartbeat(acknowledged)
		return err
	})
	must(t, errors.Join(errs...))
	second := mustCreate(t, store, sample("two"))
	for _, position := range positions {
		wantPositionForm(t, position)
		watchers = append(watchers, watchAfter(t, store, position))
	}
	for _, w := range watchers {
		w.want(t, relayer.ChangeCreated, second, relayer.Record{})
	}
}

// heartbeatPatience is how long a case waits for a heartbeat after the element before it: 9
// seconds, although there must be one at least every 5.
func heartbeatPatience() time.Duration { return patience * 9 / 10 }

// heartbeat waits for a heartbeat with a time after a write that was acknowledged, and returns
// its position. It may follow a few that were made before.
func (w watcher) heartbeat(acknowledged time.Time) (position string, err error) {
	timer := time.AfterFunc(heartbeatPatience(), w.end)
	defer timer.Stop()
	var beat relayer.RecordChange
	for range 4 {
		earlier, ok := beat.Time, true
		if beat, err, ok = w.pull(); err != nil || !ok {
			return "", fmt.Errorf("the watch: error %v, ended is %t, want a heartbeat within %s", err, !ok, heartbeatPatience())
		}
		timer.Reset(heartbeatPatience())
		want := relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: beat.Position, Time: beat.Time}
		if !reflect.DeepEqual(beat, want) {
			return "", fmt.Errorf("the watch: %+v, want a heartbeat that has only a position and a time", beat)
		}
		if err := timeError(beat, earlier); err != nil || beat.Time.After(acknowledged) {
			return beat.Position, err
		}
	}
	return "", fmt.Errorf("the heartbeats have times %s before a write that the consumer has", acknowledged.Sub(beat.Time))
}
