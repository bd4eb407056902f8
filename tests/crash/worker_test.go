package crash

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/go-relayer/relayer"
)

// The verbs of events.
const (
	opening   = "opening" // a child opens its store
	ready     = "ready"   // a child has opened its store
	creating  = "create"
	updating  = "update"
	deleting  = "delete"
	committed = "committed" // the write of the worker is acknowledged
	refused   = "refused"   // the write of the worker was not carried out
)

// event reports the beginning or the end of a write.
type event struct {
	Worker   int
	Round    int
	Verb     string
	ID       string
	Revision uint64 // unknown after a delete
	Version  int
	Old      int // the version before an update or a delete
}

// change returns the change that the write makes. No other write has its note.
func (e event) change() relayer.RecordChange {
	c := relayer.RecordChange{Kind: relayer.ChangeCreated, Record: content(e.ID, e.Version)}
	if e.Verb == updating {
		c.Kind = relayer.ChangeUpdated
	}
	if e.Verb == deleting {
		c.Kind, c.Record = relayer.ChangeDeleted, content(e.ID, e.Old)
	}
	if e.Verb != creating {
		c.OldTerms = content(e.ID, e.Old).Terms
	}
	c.Record.Note = fmt.Appendf(nil, "%s %d by worker %d of round %d", e.Verb, e.Version, e.Worker, e.Round)
	return c
}

func (e event) note() string { return string(e.change().Record.Note) }

// workers is the number of concurrent writes.
const workers = 16

// worker writes to records that no other worker writes to. Its last write therefore
// determines the current revision of each.
type worker struct {
	number     int
	round      int
	store      relayer.Store
	minRecords int // with fewer records the worker creates another
	note       func(event)
	own        []relayer.Record
	created    int
	version    int
}

func (w *worker) prefix() string { return fmt.Sprintf("w%d-", w.number) }

// write makes a random write and notes its beginning and its end. It notes no end
// if it returns an error.
func (w *worker) write(ctx context.Context) error {
	w.version++
	e := event{Worker: w.number, Round: w.round, Version: w.version}
	choice := rand.IntN(10)
	switch {
	case len(w.own) < w.minRecords || choice < 4 && len(w.own) < 40:
		return w.create(ctx, e)
	case choice < 8:
		return w.update(ctx, e, rand.IntN(len(w.own)))
	}
	return w.delete(ctx, e, rand.IntN(len(w.own)))
}

func (w *worker) create(ctx context.Context, e event) error {
	w.created++
	e.Verb, e.ID = creating, fmt.Sprintf("%sr%d-%d", w.prefix(), w.round, w.created)
	w.note(e)
	rec, err := w.store.Create(ctx, e.change().Record)
	if err != nil {
		return err
	}
	w.own = append(w.own, rec)
	w.noteCommit(e, rec.Revision)
	return nil
}

func (w *worker) update(ctx context.Context, e event, at int) error {
	e.Verb, e.ID, e.Old = updating, w.own[at].ID, versionOf(w.own[at])
	w.note(e)
	rec := e.change().Record
	rec.Revision = w.own[at].Revision
	rec, err := w.store.Update(ctx, rec)
	if err != nil {
		return err
	}
	w.own[at] = rec
	w.noteCommit(e, rec.Revision)
	return nil
}

func (w *worker) delete(ctx context.Context, e event, at int) error {
	e.Verb, e.ID, e.Old = deleting, w.own[at].ID, versionOf(w.own[at])
	w.note(e)
	if err := w.store.Delete(ctx, e.ID, w.own[at].Revision, e.change().Record.Note); err != nil {
		return err
	}
	w.own = append(w.own[:at], w.own[at+1:]...)
	w.noteCommit(e, 0)
	return nil
}

func (w *worker) noteCommit(e event, revision uint64) {
	e.Verb, e.Revision = committed, revision
	w.note(e)
}

// content returns a version of a record. Some versions span several pages, so that
// a partial write would show.
func content(id string, version int) relayer.Record {
	size := 1 + version%7*300
	return relayer.Record{
		ID:       id,
		Claim:    fmt.Sprintf("%s/%d", id, version),
		Terms:    []string{"all", fmt.Sprint("version=", version)},
		Document: bytes.Repeat(fmt.Appendf(nil, "%s is at %d;", id, version), 1+size/20),
		Private:  bytes.Repeat(fmt.Appendf(nil, "private %d;", version), 1+size/40),
	}
}
