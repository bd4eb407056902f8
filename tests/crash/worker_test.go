//go:build unix

package crash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// The steps of a child before its writes.
const (
	opening ledger.Step = "opening" // it opens its store
	ready   ledger.Step = "ready"   // it has opened its store
)

// event is a step of the write of a record. Its value is the version of the record.
type event struct {
	ledger.Event[int]
	Kind     relayer.ChangeKind
	Old      int    // the version before an update or a delete
	Revision uint64 // after the write, unless it is a delete
}

// change returns the change that the write makes. Its note describes the write.
func (e event) change() relayer.RecordChange {
	c := relayer.RecordChange{Kind: e.Kind, Record: content(e.Keys[0], e.Value)}
	if e.Kind == relayer.ChangeDeleted {
		c.Record = content(e.Keys[0], e.Old)
	}
	if e.Kind != relayer.ChangeCreated {
		c.OldTerms = content(e.Keys[0], e.Old).Terms
	}
	c.Record.Note = fmt.Appendf(nil, "%s %d %d %s", e.Kind, e.Value, e.Old, e.Keys[0])
	return c
}

// madeBy returns the write that made a change. It fails if one byte of the change differs from
// what the write makes.
func madeBy(change relayer.RecordChange) (e event, err error) {
	e.Keys = make([]string, 1)
	if _, err := fmt.Sscanf(string(change.Record.Note), "%s %d %d %s", &e.Kind, &e.Value, &e.Old, &e.Keys[0]); err != nil {
		return e, fmt.Errorf("the note %q: %w", change.Record.Note, err)
	}
	want := e.change()
	want.Record.Private = nil
	want.Record.Revision, want.Record.Sequence = change.Record.Revision, change.Record.Sequence
	if digest(change) != digest(want) {
		return e, fmt.Errorf("the change %q is another one", change.Record.Note)
	}
	return e, nil
}

func digest(change relayer.RecordChange) [sha256.Size]byte {
	change.Position, change.Time = "", time.Time{}
	return sha256.Sum256(fmt.Appendf(nil, "%q", change))
}

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
	e := event{Event: ledger.Event[int]{Step: ledger.Begin, Writer: w.number, Value: w.round*1_000_000 + w.version}}
	choice := rand.IntN(10)
	importer, imports := w.store.(transfer.Importer)
	switch isFew, isMany := len(w.own) < w.minRecords, len(w.own) >= 40; {
	case !isFew && !isMany && choice == 3 && imports:
		return w.importSome(ctx, e, importer)
	case isFew || !isMany && choice < 4:
		return w.create(ctx, e)
	}
	at := rand.IntN(len(w.own))
	e.Keys, e.Old = []string{w.own[at].ID}, versionOf(w.own[at])
	if choice < 8 {
		return w.update(ctx, e, at)
	}
	return w.delete(ctx, e, at)
}

func (w *worker) create(ctx context.Context, e event) error {
	e.Kind, e.Keys = relayer.ChangeCreated, []string{w.newID()}
	w.note(e)
	rec, err := w.store.Create(ctx, e.change().Record)
	if err != nil {
		return err
	}
	w.own = append(w.own, rec)
	w.noteDone(e, rec.Revision)
	return nil
}

func (w *worker) newID() string {
	w.created++
	return fmt.Sprintf("%s%d", w.prefix(), w.round*1_000_000+w.created)
}

// importSome adds some records, which is one write.
func (w *worker) importSome(ctx context.Context, e event, importer transfer.Importer) error {
	e.IsImport = true
	records := make([]relayer.Record, 2+rand.IntN(11))
	for i := range records {
		records[i] = content(w.newID(), e.Value)
		records[i].Revision = 1
		e.Keys = append(e.Keys, records[i].ID)
	}
	w.note(e)
	if err := importer.Import(ctx, records); err != nil {
		return err
	}
	w.own = append(w.own, records...)
	w.note(event{Event: ledger.Event[int]{Step: ledger.Done, Writer: w.number}}) // of an unknown revision
	return nil
}

func (w *worker) update(ctx context.Context, e event, at int) error {
	e.Kind = relayer.ChangeUpdated
	w.note(e)
	rec := e.change().Record
	rec.Revision = w.own[at].Revision
	rec, err := w.store.Update(ctx, rec)
	if err != nil {
		return w.failed(err, at)
	}
	w.own[at] = rec
	w.noteDone(e, rec.Revision)
	return nil
}

func (w *worker) delete(ctx context.Context, e event, at int) error {
	e.Kind, e.Value = relayer.ChangeDeleted, 0
	w.note(e)
	if err := w.store.Delete(ctx, e.Keys[0], w.own[at].Revision, e.change().Record.Note); err != nil {
		return w.failed(err, at)
	}
	w.own = append(w.own[:at], w.own[at+1:]...)
	w.noteDone(e, 0)
	return nil
}

// failed drops a record whose version is not known any more. It returns err.
func (w *worker) failed(err error, at int) error {
	if errors.Is(err, relayer.ErrOutcomeUnknown) {
		w.own = slices.Delete(w.own, at, at+1)
	}
	return err
}

func (w *worker) noteDone(e event, revision uint64) {
	e.Step, e.Revision = ledger.Done, revision
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

// versionOf reads the version from the claim.
func versionOf(rec relayer.Record) int {
	var version int
	_, _ = fmt.Sscanf(strings.TrimPrefix(rec.Claim, rec.ID), "/%d", &version)
	return version
}
