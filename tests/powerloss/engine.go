package powerloss

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// engine is a store on bbolt without the precautions of store/bolt. It does not sync
// the directory, and does not rewrite the headers of a file that it opens.
type engine struct{ db *bbolt.DB }

var bucketName = []byte("records")

// plainRecord is a record that JSON does not mask.
type plainRecord relayer.Record

func openEngine(path string, withSync bool) (*engine, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoSync: !withSync})
	if err != nil {
		return nil, err
	}
	e := &engine{db}
	if e.hasBucket() {
		return e, nil
	}
	return e, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucketName)
		return err
	})
}

func (e *engine) hasBucket() (ok bool) {
	_ = e.db.View(func(tx *bbolt.Tx) error {
		ok = tx.Bucket(bucketName) != nil
		return nil
	})
	return ok
}

func (e *engine) Close() error { return e.db.Close() }

// Check returns the first problem that bbolt finds.
func (e *engine) Check(context.Context) error {
	return e.db.View(func(tx *bbolt.Tx) (first error) {
		for err := range tx.Check() {
			first = cmp.Or(first, err)
		}
		return first
	})
}

func (e *engine) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	created := []relayer.Record{rec}
	err := e.Import(ctx, created)
	return created[0], err
}

// Import ignores the revisions of the records.
func (e *engine) Import(_ context.Context, records []relayer.Record) error {
	return e.write(func(b *bbolt.Bucket) error {
		for i := range records {
			if b.Get([]byte(records[i].ID)) != nil {
				return relayer.ErrExists
			}
			if err := put(b, &records[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *engine) Update(_ context.Context, rec relayer.Record) (relayer.Record, error) {
	return rec, e.write(func(b *bbolt.Bucket) error {
		if err := wantRevision(b, rec.ID, rec.Revision); err != nil {
			return err
		}
		return put(b, &rec)
	})
}

func (e *engine) Delete(_ context.Context, id string, revision uint64, _ []byte) error {
	return e.write(func(b *bbolt.Bucket) error {
		if err := wantRevision(b, id, revision); err != nil {
			return err
		}
		return b.Delete([]byte(id))
	})
}

func (e *engine) Get(_ context.Context, id string) (rec relayer.Record, err error) {
	err = e.db.View(func(tx *bbolt.Tx) error {
		rec, err = get(tx.Bucket(bucketName), id)
		return err
	})
	return rec, err
}

// List lists the records by ID. Their sequence is their position in that order.
func (e *engine) List(_ context.Context, query relayer.StoreQuery) (page relayer.Listing, err error) {
	err = e.db.View(func(tx *bbolt.Tx) error {
		page, err = storeutil.Scan(func(yield func(relayer.Record, error) bool) {
			cursor := tx.Bucket(bucketName).Cursor()
			sequence := uint64(0)
			for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
				rec, err := decode(value)
				sequence++
				rec.Sequence = sequence
				if !yield(rec, err) {
					return
				}
			}
		}, query)
		return err
	})
	return page, err
}

// History is not supported.
func (e *engine) History(context.Context, relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	return nil, errors.ErrUnsupported
}

// Watch returns no changes.
func (e *engine) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return new(storeutil.Feed).Watch(ctx, after)
}

// write returns ErrOutcomeUnknown if the commit fails.
func (e *engine) write(run func(*bbolt.Bucket) error) error {
	tx, err := e.db.Begin(true)
	if err != nil {
		return err
	}
	if err := run(tx.Bucket(bucketName)); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%w: %v", relayer.ErrOutcomeUnknown, err)
	}
	return nil
}

// put gives a record its revision and stores it.
func put(b *bbolt.Bucket, rec *relayer.Record) error {
	revision, err := b.NextSequence()
	if err != nil {
		return err
	}
	rec.Revision = revision
	value, err := json.Marshal((*plainRecord)(rec))
	if err != nil {
		return err
	}
	return b.Put([]byte(rec.ID), value)
}

func get(b *bbolt.Bucket, id string) (rec relayer.Record, err error) {
	value := b.Get([]byte(id))
	if value == nil {
		return rec, relayer.ErrNotFound
	}
	return decode(value)
}

func decode(value []byte) (rec relayer.Record, err error) {
	err = json.Unmarshal(value, (*plainRecord)(&rec))
	return rec, err
}

func wantRevision(b *bbolt.Bucket, id string, revision uint64) error {
	rec, err := get(b, id)
	if err == nil && rec.Revision != revision {
		err = relayer.ErrConflict
	}
	return err
}
