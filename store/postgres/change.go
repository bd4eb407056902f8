package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
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
	sequence     int64 // of the record that it has added last
	total        int   // how many records it has added
	gained, lost entries
}

// entries are terms in the index of terms, each with the sequence number of its record.
type entries struct {
	terms []string
	of    []int64
}

func (e *entries) add(more entries) {
	e.terms, e.of = append(e.terms, more.terms...), append(e.of, more.of...)
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

// everyTerm is a term of all records, which no record has in its list.
const everyTerm = ""

// entriesOf are the entries of a record.
func entriesOf(sequence int64, terms []string) entries {
	return termsOf(sequence, append(slices.Clone(terms), everyTerm), nil)
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
	err := s.do(ctx, sizeOf(rec), change{
		ids: []string{rec.ID},
		ask: func(batch *pgx.Batch) { s.askCreate(batch, rec, nil) },
		read: func(results pgx.BatchResults) (o outcome, err error) {
			if o, err = readCreate(results, rec.Terms); o.number > 0 {
				rec.Revision, rec.Sequence = uint64(o.number), uint64(o.sequence)
			}
			return o, err
		},
	})
	if err != nil {
		return relayer.Record{}, err
	}
	return rec, nil
}

// askCreate adds the statement that creates a record. A record with a given revision is one of an
// import, and adds no row to the table changes.
func (s *Store) askCreate(batch *pgx.Batch, rec relayer.Record, given *int64) {
	batch.Queue(s.in(sqlCreate), rec.ID, claimParameter(rec.Claim), notNull(rec.Terms), rec.Text, notNull(rec.Note), notNull(rec.Document), notNull(rec.Private), given)
}

func readCreate(results pgx.BatchResults, terms []string) (outcome, error) {
	var sequence, revision *int64
	var exists, claimed bool
	if err := results.QueryRow().Scan(&sequence, &revision, &exists, &claimed); err != nil {
		return outcome{}, err
	}
	switch {
	case revision != nil:
		return outcome{number: *revision, sequence: *sequence, total: 1, gained: entriesOf(*sequence, terms)}, nil
	case exists:
		return outcome{refused: relayer.ErrExists}, nil
	case claimed:
		return outcome{refused: relayer.ErrClaimed}, nil
	}
	return outcome{}, errDropped
}

// Update replaces the record whose current revision is rec.Revision, and returns it with its new
// revision after the commit. It returns [relayer.ErrNotFound], [relayer.ErrConflict] if the
// current revision is another, and [relayer.ErrClaimed] if another record holds the claim.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := checkLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	based := signed(rec.Revision)
	err := s.do(ctx, sizeOf(rec), change{
		ids: []string{rec.ID},
		ask: func(batch *pgx.Batch) {
			batch.Queue(s.in(sqlUpdate), rec.ID, based, claimParameter(rec.Claim), notNull(rec.Terms), rec.Text, notNull(rec.Note), notNull(rec.Document), notNull(rec.Private))
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
	})
	if err != nil {
		return relayer.Record{}, err
	}
	return rec, nil
}

// Delete removes the record if revision is its current revision. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] if the current revision is another.
func (s *Store) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	if checkLimits(relayer.Record{ID: id}) != nil {
		return cmp.Or(s.stopped(ctx), relayer.ErrNotFound)
	}
	if err := checkLimits(relayer.Record{ID: id, Note: note}); err != nil {
		return err
	}
	based := signed(revision)
	return s.do(ctx, 0, change{
		ids: []string{id},
		ask: func(batch *pgx.Batch) { batch.Queue(s.in(sqlRemove), id, based, notNull(note)) },
		read: func(results pgx.BatchResults) (outcome, error) {
			var sequence, number, stored *int64
			var terms []string
			if err := results.QueryRow().Scan(&sequence, &terms, &number, &stored); err != nil {
				return outcome{}, err
			}
			if number != nil {
				return outcome{number: *number, total: -1, lost: entriesOf(*sequence, terms)}, nil
			}
			return refusal(stored, based, false)
		},
	})
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

// Import adds the records of another store with their revisions, in their order, all or none.
// Watchers receive [relayer.ErrGap] for them. It returns [relayer.ErrExists] and
// [relayer.ErrClaimed] as Create does, even if two of the records conflict with each other. It
// refuses more than 256 MiB: import some thousands at a time.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	return s.importAll(ctx, records, change{
		ask: func(batch *pgx.Batch) {
			greatest := int64(0)
			for _, rec := range records {
				greatest = max(greatest, signed(rec.Revision))
				s.askCreate(batch, rec, new(signed(rec.Revision)))
			}
			batch.Queue(s.in(sqlImportEnd), greatest)
		},
		read: func(results pgx.BatchResults) (all outcome, err error) {
			for _, rec := range records {
				o, err := readCreate(results, rec.Terms)
				if err == nil && o.refused != nil {
					err = importRefusal{o.refused}
				}
				if err != nil {
					return outcome{}, err
				}
				all.sequence, all.total = o.sequence, all.total+1
				all.gained.add(o.gained)
			}
			all.number, err = readNumber(results)
			return all, err
		},
	})
}

// importAll makes an import of records, or of changes with these records.
func (s *Store) importAll(ctx context.Context, records []relayer.Record, c change) error {
	size := 0
	for _, rec := range records {
		if err := checkLimits(rec); err != nil {
			return err
		}
		if rec.Revision < 1 || rec.Revision > transfer.MaxRevision {
			return invalid("revision", fmt.Sprintf("must be from 1 to %d", uint64(transfer.MaxRevision)))
		}
		c.ids = append(c.ids, rec.ID)
		size += sizeOf(rec)
	}
	if size > maxRecordSize {
		return invalid("", fmt.Sprintf("documents and private parts must be at most %d bytes long together", maxRecordSize))
	}
	if len(records) == 0 {
		return s.stopped(ctx)
	}
	err := s.do(ctx, size, c)
	if refused, ok := errors.AsType[importRefusal](err); ok {
		return cmp.Or(s.confirm(ctx), refused.error)
	}
	return err
}

// importRefusal is the refusal of a part of an import. Its transaction must be rolled back: it has
// stored other parts.
type importRefusal struct{ error }

// readNumber reads the number of the change that a statement has made.
func readNumber(results pgx.BatchResults) (number int64, err error) {
	if err = results.QueryRow().Scan(&number); errors.Is(err, pgx.ErrNoRows) {
		err = errDropped
	}
	return number, err
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

// notNull returns an empty slice for nil, which the driver would send as NULL.
func notNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// maxRecordSize is the limit of one write. It is far below the limit of the server
// for one message, and far above any relayer.
const maxRecordSize = 256 << 20

// checkLimits returns an error if the tables cannot hold the record.
func checkLimits(rec relayer.Record) error { return storeutil.Check(rec, maxRecordSize) }

func invalid(field, message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: field, Message: message}}}
}

// isStorable reports whether an ID or a term is text for the server. No other is ever stored.
func isStorable(text string) bool {
	return utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

func sizeOf(rec relayer.Record) int {
	return len(rec.Document) + len(rec.Private) + len(rec.Text) + len(rec.Note)
}
