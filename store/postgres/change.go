package postgres

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

var _ relayer.ImportStore = (*Store)(nil)

// outcome is what came of a write in its transaction.
type outcome struct {
	refused error // why it changes nothing, in the words of [relayer.Store]
	changes bool

	first, count int64 // the positions that it fills, or empties if count is negative
	number       int64 // the number of its change
}

// Create adds a record and returns it with its revision once it is committed. It
// returns [relayer.ErrExists] where the id is taken and [relayer.ErrClaimed]
// where another record holds the claim.
//
// A create that follows one of the same record which had an unknown outcome
// returns the record where it is there and was made by that one.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := keepsLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	attempt := s.unsettled.take(rec)
	err := s.write(ctx, &write{
		size: sizeOf(rec),
		ask: func(batch *pgx.Batch) {
			batch.Queue(s.sql.create, rec.ID, claimParameter(rec.Claim), bytesParameter(rec.Document), bytesParameter(rec.Private), attempt.String())
		},
		read: func(results pgx.BatchResults) (outcome, error) {
			var position, made, stored *int64
			var own *bool
			if err := results.QueryRow().Scan(&position, &made, &stored, &own); err != nil {
				return outcome{}, err
			}
			switch {
			case made != nil:
				rec.Revision = uint64(*made)
				return outcome{first: *position, count: 1, number: *made, changes: true}, nil
			case own != nil && *own:
				rec.Revision = uint64(*stored)
				return outcome{}, nil
			case stored != nil:
				return outcome{refused: relayer.ErrExists}, nil
			}
			return outcome{refused: relayer.ErrClaimed}, nil
		},
	}, rec.ID)
	s.unsettled.put(rec, attempt, err)
	if err != nil {
		return relayer.Record{}, err
	}
	return rec, nil
}

// Update replaces the record that stands at rec.Revision and returns it with
// its new revision once it is committed. It returns [relayer.ErrNotFound],
// [relayer.ErrConflict] where it stands at another revision, and
// [relayer.ErrClaimed] where another record holds the claim.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := keepsLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	based := signed(rec.Revision)
	err := s.write(ctx, &write{
		size: sizeOf(rec),
		ask: func(batch *pgx.Batch) {
			batch.Queue(s.sql.update, rec.ID, based, claimParameter(rec.Claim), bytesParameter(rec.Document), bytesParameter(rec.Private))
		},
		read: func(results pgx.BatchResults) (outcome, error) {
			var made, stored *int64
			if err := results.QueryRow().Scan(&made, &stored); err != nil {
				return outcome{}, err
			}
			if made != nil {
				rec.Revision = uint64(*made)
				return outcome{number: *made, changes: true}, nil
			}
			if refused := notCurrent(stored, based); refused != nil {
				return outcome{refused: refused}, nil
			}
			return outcome{refused: relayer.ErrClaimed}, nil
		},
	}, rec.ID)
	if err != nil {
		return relayer.Record{}, err
	}
	return rec, nil
}

// Delete removes the record that stands at the revision. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] where it stands at another.
func (s *Store) Delete(ctx context.Context, id string, revision uint64) error {
	if !isStorable(id) {
		return s.absent(ctx)
	}
	based := signed(revision)
	return s.write(ctx, &write{
		ask: func(batch *pgx.Batch) { batch.Queue(s.sql.remove, id, based) },
		read: func(results pgx.BatchResults) (outcome, error) {
			var position, number, stored *int64
			if err := results.QueryRow().Scan(&position, &number, &stored); err != nil {
				return outcome{}, err
			}
			if position != nil {
				return outcome{first: *position, count: -1, number: *number, changes: true}, nil
			}
			return outcome{refused: notCurrent(stored, based)}, nil
		},
	}, id)
}

// notCurrent returns why a write is refused that is based on a revision, or nil if
// the stored record has that revision.
func notCurrent(stored *int64, based int64) error {
	if stored == nil {
		return relayer.ErrNotFound
	}
	if *stored != based {
		return relayer.ErrConflict
	}
	return nil
}

// Import adds records as they stand in another store, their revisions included,
// in their order and all or none. Whoever watches is given [relayer.ErrMissed]
// for them. It returns [relayer.ErrExists] and [relayer.ErrClaimed] as Create
// does, also where two of the records contend. Some thousands at a time are
// enough: more than 256 MiB are refused.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	given, err := newImportColumns(records)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return s.nothing(ctx)
	}
	return s.write(ctx, &write{
		size: given.size,
		ask: func(batch *pgx.Batch) {
			batch.Queue(s.sql.importAll, given.ids, given.revisions, given.claims, given.documents, given.privates)
		},
		read: func(results pgx.BatchResults) (outcome, error) {
			var before, number *int64
			var exists *bool
			if err := results.QueryRow().Scan(&before, &number, &exists); err != nil {
				return outcome{}, err
			}
			switch {
			case before != nil:
				return outcome{first: *before + 1, count: int64(len(records)), number: *number, changes: true}, nil
			case exists != nil && *exists:
				return outcome{refused: relayer.ErrExists}, nil
			}
			return outcome{refused: relayer.ErrClaimed}, nil
		},
	}, given.ids...)
}

// nothing is the answer to whoever asks for nothing.
func (s *Store) nothing(ctx context.Context) error {
	if err := s.absent(ctx); !errors.Is(err, relayer.ErrNotFound) {
		return err
	}
	return nil
}

// importColumns are the records of an Import, column by column.
type importColumns struct {
	ids                         []string
	revisions                   []int64
	claims, documents, privates [][]byte
	size                        int
}

func newImportColumns(records []relayer.Record) (importColumns, error) {
	var given importColumns
	for _, rec := range records {
		if err := keepsImportLimits(rec); err != nil {
			return importColumns{}, err
		}
		given.ids = append(given.ids, rec.ID)
		given.revisions = append(given.revisions, int64(rec.Revision))
		given.claims = append(given.claims, claimParameter(rec.Claim))
		given.documents = append(given.documents, bytesParameter(rec.Document))
		given.privates = append(given.privates, bytesParameter(rec.Private))
		given.size += sizeOf(rec)
	}
	if given.size > maxRecordSize {
		return importColumns{}, outOfLimits("", 0, maxRecordSize)
	}
	return given, nil
}

// signed is a revision as the database keeps it. One that is beyond it stands
// nowhere.
func signed(revision uint64) int64 {
	if revision > math.MaxInt64 {
		return -1
	}
	return int64(revision)
}

// claimParameter is null for the empty claim, which many may hold.
func claimParameter(claim string) []byte {
	if claim == "" {
		return nil
	}
	return []byte(claim)
}

// bytesParameter keeps the driver from taking no bytes for a null.
func bytesParameter(bytes []byte) []byte {
	if bytes == nil {
		return []byte{}
	}
	return bytes
}
