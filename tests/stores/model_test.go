package stores

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/go-relayer/relayer"
)

type verb int

const (
	create verb = iota
	get
	list
	update
	remove
)

// input is one call. The content is the document, the private part and the note.
type input struct {
	verb          verb
	id            string
	claim         string
	term          string // also in the text
	content       string // differs from that of every other call
	revision      uint64
	offset, limit int
	after         uint64
	selected      string // of a list: the term, or empty for all
	searched      string // of a list: a part of the text, or empty for all
}

// output is what the call returned.
type output struct {
	err      error
	rows     []row
	total    int
	position string
	changes  int // of a list: the number of changes before its position
}

type row struct {
	id, claim, term, content string
	revision, sequence       uint64
}

// state is what a store has after some calls. It is never changed in place.
type state struct {
	rows         []row  // in creation order
	changes      int    // number of successful writes
	lastSequence uint64 // of all records that were created
}

// sentinel returns the sentinel error that an error wraps, and false if that is
// none of those that a call may return here.
func sentinel(err error) (error, bool) {
	if err == nil {
		return nil, true
	}
	for _, known := range []error{relayer.ErrExists, relayer.ErrNotFound, relayer.ErrConflict, relayer.ErrClaimed} {
		if errors.Is(err, known) {
			return known, true
		}
	}
	return err, false
}

// model is the sequential behavior of a store.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, in, out any) (bool, any) {
		after, ok := step(before.(state), in.(input), out.(output))
		return ok, after
	},
	Equal: func(a, b any) bool {
		x, y := a.(state), b.(state)
		return x.changes == y.changes && x.lastSequence == y.lastSequence && slices.Equal(x.rows, y.rows)
	},
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v -> %+v", in, out)
	},
	DescribeState: func(s any) string {
		var text strings.Builder
		for _, r := range s.(state).rows {
			fmt.Fprintf(&text, "%s@%d ", r.id, r.revision)
		}
		return text.String()
	},
}

func step(s state, in input, out output) (state, bool) {
	at := slices.IndexFunc(s.rows, func(r row) bool { return r.id == in.id })
	switch in.verb {
	case get:
		if at < 0 {
			return s, out.err == relayer.ErrNotFound
		}
		return s, out.err == nil && slices.Equal(out.rows, s.rows[at:at+1])
	case list:
		return s, isListed(s, in, out)
	}
	if want := writeError(s.rows, at, in); want != nil || out.err != nil {
		return s, out.err == want
	}
	return apply(s, at, in, out)
}

// isListed reports whether a list returned the page, the total and the position of a state.
func isListed(s state, in input, out output) bool {
	selected := slices.DeleteFunc(slices.Clone(s.rows), func(r row) bool {
		return in.selected != "" && r.term != in.selected || !strings.Contains(textOf(r.term), in.searched)
	})
	page := slices.DeleteFunc(slices.Clone(selected), func(r row) bool { return r.sequence <= in.after })
	page = page[min(in.offset, len(page)):]
	page = page[:min(in.limit, len(page))]
	return out.err == nil && out.total == len(selected) && slices.Equal(out.rows, page) && out.changes == s.changes
}

func textOf(term string) string { return "text of " + term }

// writeError returns the error that a write must return.
func writeError(rows []row, at int, in input) error {
	isOther := func(r row) bool { return r.id != in.id && r.claim == in.claim }
	switch {
	case in.verb == create && at >= 0:
		return relayer.ErrExists
	case in.verb != create && at < 0:
		return relayer.ErrNotFound
	case in.verb != create && rows[at].revision != in.revision:
		return relayer.ErrConflict
	case in.verb != remove && in.claim != "" && slices.ContainsFunc(rows, isOther):
		return relayer.ErrClaimed
	}
	return nil
}

// apply carries out a write. The store chooses the revision, which must be above the
// current one of the row, and the sequence of a new row, which must be above all.
func apply(s state, at int, in input, out output) (state, bool) {
	s.changes++
	if in.verb == remove {
		s.rows = slices.Delete(slices.Clone(s.rows), at, at+1)
		return s, true
	}
	written := row{in.id, in.claim, in.term, in.content, out.rows[0].revision, out.rows[0].sequence}
	if out.rows[0] != written {
		return s, false
	}
	if in.verb == create {
		isNext := written.sequence > s.lastSequence
		s.rows, s.lastSequence = append(slices.Clip(s.rows), written), written.sequence
		return s, isNext
	}
	isNext := written.revision > s.rows[at].revision && written.sequence == s.rows[at].sequence
	s.rows = slices.Clone(s.rows)
	s.rows[at] = written
	return s, isNext
}
