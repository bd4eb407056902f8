package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/transfer"
)

var (
	_ transfer.Importer        = (*Store)(nil)
	_ transfer.HistoryImporter = (*Store)(nil)
)

// outcome is the result of a write within its transaction.
type outcome struct {
	refused      error // why it changes nothing, as [relayer.Store] defines it
	number       int64 // of its change; 0 if it changes nothing
	gained, lost entries
}

// entries are records and terms in the counts and in the index of terms, by sequence number.
type entries struct {
	records []int64
	terms   []string
	of      []int64 // the record of each term
}

func (e *entries) add(more entries) {
	e.records, e.terms, e.of = append(e.records, more.records...), append(e.terms, more.terms...), append(e.of, more.of...)
}

// termsOf are the entries of the terms of a record that others does not have.
func termsOf(sequence int64, terms, others []string) (e entries) {
	for _, term := range terms {
		if !slices.Contains(others, term) {
			e.terms, e.of = append(e.terms, term), append(e.of, sequence)
		}
	}
	return e
}

// recordOf are the entries of a record.
func recordOf(sequence int64, terms []string) entries {
	e := termsOf(sequence, terms, nil)
	e.records = []int64{sequence}
	return e
}

// Create adds a record and returns it with its revision after the commit. It returns
// [relayer.ErrExists] if the ID is taken, and [relayer.ErrClaimed] if another record
// holds the claim.
//
// If a create of unknown outcome was carried out, its repetition returns ErrExists: a caller
// compares the stored record with its own.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := checkLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	err := s.write(ctx, sizeOf(rec), change{
		ask: func(batch *pgx.Batch) {
			batch.Queue(s.sql.create, rec.ID, claimParameter(rec.Claim), notNull(rec.Terms), rec.Text, notNull(rec.Note), notNull(rec.Document), notNull(rec.Private))
		},
		read: func(results pgx.BatchResults) (outcome, error) {
			var sequence, created *int64
			var exists, claimed bool
			if err := results.QueryRow().Scan(&sequence, &created, &exists, &claimed); err != nil {
				return outcome{}, err
			}
			switch {
			case created != nil:
				rec.Revision, rec.Sequence = uint64(*created), uint64(*sequence)
				return outcome{number: *created, gained: recordOf(*sequence, rec.Terms)}, nil
			case exists:
				return outcome{refused: relayer.ErrExists}, nil
			case claimed:
				return outcome{refused: relayer.ErrClaimed}, nil
			}
			return outcome{}, errDropped
		},
	}, rec.ID)
	if err != nil {
		return relayer.Record{}, err
	}
	return rec, nil
}

// Update replaces the record whose current revision is rec.Revision, and returns it
// with its new revision after the commit. It returns [relayer.ErrNotFound],
// [relayer.ErrConflict] if the current revision is another, and [relayer.ErrClaimed]
// if another record holds the claim.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := checkLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	based := signed(rec.Revision)
	err := s.write(ctx, sizeOf(rec), change{
		ask: func(batch *pgx.Batch) {
			batch.Queue(s.sql.update, rec.ID, based, claimParameter(rec.Claim), notNull(rec.Terms), rec.Text, notNull(rec.Note), notNull(rec.Document), notNull(rec.Private))
		},
		read: func(results pgx.BatchResults) (outcome, error) {
			var updated, stored, sequence *int64
			var terms []string
			var claimed bool
			if err := results.QueryRow().Scan(&updated, &stored, &sequence, &terms, &claimed); err != nil {
				return outcome{}, err
			}
			if updated != nil {
				rec.Revision, rec.Sequence = uint64(*updated), uint64(*sequence)
				return outcome{number: *updated, gained: termsOf(*sequence, rec.Terms, terms), lost: termsOf(*sequence, terms, rec.Terms)}, nil
			}
			return refusal(stored, based, claimed)
		},
	}, rec.ID)
	if err != nil {
		return relayer.Record{}, err
	}
	return rec, nil
}

// Delete removes the record if revision is its current revision. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] if the current revision is another.
func (s *Store) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	if checkLimits(relayer.Record{ID: id}) != nil {
		return s.notFound(ctx)
	}
	if err := checkLimits(relayer.Record{ID: id, Note: note}); err != nil {
		return err
	}
	based := signed(revision)
	return s.write(ctx, 0, change{
		ask: func(batch *pgx.Batch) { batch.Queue(s.sql.remove, id, based, notNull(note)) },
		read: func(results pgx.BatchResults) (outcome, error) {
			var sequence, number, stored *int64
			var terms []string
			if err := results.QueryRow().Scan(&sequence, &terms, &number, &stored); err != nil {
				return outcome{}, err
			}
			if number != nil {
				return outcome{number: *number, lost: recordOf(*sequence, terms)}, nil
			}
			return refusal(stored, based, false)
		},
	}, id)
}

// refusal returns why a write that is based on a revision has stored nothing.
func refusal(stored *int64, based int64, claimed bool) (outcome, error) {
	switch {
	case stored == nil:
		return outcome{refused: relayer.ErrNotFound}, nil
	case *stored != based:
		return outcome{refused: relayer.ErrConflict}, nil
	case claimed:
		return outcome{refused: relayer.ErrClaimed}, nil
	}
	return outcome{}, errDropped
}

// Import adds the records of another store with their revisions, in their order, all
// or none. Watchers receive [relayer.ErrGap] for them. It returns
// [relayer.ErrExists] and [relayer.ErrClaimed] as Create does, even if two of the
// records conflict with each other. It refuses more than 256 MiB: import some
// thousands at a time.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	columns, err := importColumnsOf(records)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return s.stopped(ctx)
	}
	return s.write(ctx, columns.size, change{
		ask: func(batch *pgx.Batch) {
			batch.Queue(s.sql.importAll, columns.ids, columns.revisions, columns.claims, columns.terms, columns.texts, columns.notes, columns.documents, columns.privates)
		},
		read: func(results pgx.BatchResults) (outcome, error) {
			var before, number *int64
			var exists *bool
			var isDropped bool
			if err := results.QueryRow().Scan(&before, &number, &exists, &isDropped, nil, nil); err != nil {
				return outcome{}, err
			}
			switch {
			case isDropped:
				return outcome{}, errDropped
			case before != nil:
				o := outcome{number: *number}
				for i, rec := range records {
					o.gained.add(recordOf(*before+1+int64(i), rec.Terms))
				}
				return o, nil
			case exists != nil && *exists:
				return outcome{refused: relayer.ErrExists}, nil
			}
			return outcome{refused: relayer.ErrClaimed}, nil
		},
	}, columns.ids...)
}

// importColumns are the records of an import, column by column.
type importColumns struct {
	ids, texts                         []string
	revisions                          []int64
	claims, notes, documents, privates [][]byte
	terms                              []string // each the text of an array
	size                               int
}

func importColumnsOf(records []relayer.Record) (importColumns, error) {
	var columns importColumns
	for _, rec := range records {
		if err := checkLimits(rec); err != nil {
			return importColumns{}, err
		}
		if rec.Revision < 1 || rec.Revision > transfer.MaxRevision {
			return importColumns{}, invalid("revision", fmt.Sprintf("must be from 1 to %d", uint64(transfer.MaxRevision)))
		}
		columns.ids = append(columns.ids, rec.ID)
		columns.revisions = append(columns.revisions, int64(rec.Revision))
		columns.claims = append(columns.claims, claimParameter(rec.Claim))
		columns.terms = append(columns.terms, arrayOf(rec.Terms))
		columns.texts = append(columns.texts, rec.Text)
		columns.notes = append(columns.notes, notNull(rec.Note))
		columns.documents = append(columns.documents, notNull(rec.Document))
		columns.privates = append(columns.privates, notNull(rec.Private))
		columns.size += sizeOf(rec)
	}
	if columns.size > maxRecordSize {
		return importColumns{}, invalid("", fmt.Sprintf("documents and private parts must be at most %d bytes long together", maxRecordSize))
	}
	return columns, nil
}

// signed returns a revision as a bigint. No record has one above its range.
func signed(revision uint64) int64 {
	if revision > math.MaxInt64 {
		return -1
	}
	return int64(revision)
}

// claimParameter returns NULL for the empty claim, which is not unique.
func claimParameter(claim string) []byte {
	if claim == "" {
		return nil
	}
	return []byte(claim)
}

var arrayEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// arrayOf returns the text of an array. An array of arrays must be rectangular, so records
// with different numbers of terms send texts.
func arrayOf(terms []string) string {
	quoted := make([]string, len(terms))
	for i, term := range terms {
		quoted[i] = `"` + arrayEscaper.Replace(term) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

// notNull returns an empty slice for nil, which the driver would send as NULL.
func notNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
