// Package linearizability records concurrent calls of a store and checks that the
// results are linearizable: some sequential order of the calls gives the same.
package linearizability

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

// input is one call. The content is both the document and the private part.
type input struct {
	verb          verb
	id            string
	claim         string
	term          string
	content       string
	revision      uint64
	offset, limit int
	selected      string // of a list: the term, or empty for all
}

// output is what the call returned.
type output struct {
	err   error
	rows  []row
	total int
}

type row struct {
	id, claim, term, content string
	revision                 uint64
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

// model is the sequential behavior of a store. Its state is the rows in creation
// order, and is never changed in place.
var model = porcupine.Model{
	Init: func() any { return []row(nil) },
	Step: func(state, in, out any) (bool, any) {
		rows, ok := step(state.([]row), in.(input), out.(output))
		return ok, rows
	},
	Equal: func(a, b any) bool { return slices.Equal(a.([]row), b.([]row)) },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v -> %+v", in, out)
	},
	DescribeState: func(state any) string {
		var text strings.Builder
		for _, r := range state.([]row) {
			fmt.Fprintf(&text, "%s@%d ", r.id, r.revision)
		}
		return text.String()
	},
}

func step(rows []row, in input, out output) ([]row, bool) {
	at := slices.IndexFunc(rows, func(r row) bool { return r.id == in.id })
	switch in.verb {
	case get:
		return rows, out.err == lookup(at) && (at < 0 || slices.Equal(out.rows, rows[at:at+1]))
	case list:
		selected := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return in.selected != "" && r.term != in.selected })
		start := min(in.offset, len(selected))
		page := selected[start:min(start+in.limit, len(selected))]
		return rows, out.err == nil && out.total == len(selected) && slices.Equal(out.rows, page)
	}
	if want := writeError(rows, at, in); want != nil || out.err != nil {
		return rows, out.err == want
	}
	return apply(rows, at, in, out)
}

func lookup(at int) error {
	if at < 0 {
		return relayer.ErrNotFound
	}
	return nil
}

// writeError returns the error that a write must return.
func writeError(rows []row, at int, in input) error {
	switch {
	case in.verb == create && at >= 0:
		return relayer.ErrExists
	case in.verb != create && at < 0:
		return relayer.ErrNotFound
	case in.verb != create && rows[at].revision != in.revision:
		return relayer.ErrConflict
	case in.verb != remove && in.claim != "" && isHeld(rows, at, in.claim):
		return relayer.ErrClaimed
	}
	return nil
}

func isHeld(rows []row, except int, claim string) bool {
	for i, r := range rows {
		if i != except && r.claim == claim {
			return true
		}
	}
	return false
}

// apply carries out a write. The store chooses the revision, which must be above the
// current one of the row.
func apply(rows []row, at int, in input, out output) ([]row, bool) {
	if in.verb == remove {
		return slices.Delete(slices.Clone(rows), at, at+1), true
	}
	written := row{in.id, in.claim, in.term, in.content, out.rows[0].revision}
	if out.rows[0] != written || at >= 0 && written.revision <= rows[at].revision {
		return rows, false
	}
	if in.verb == create {
		return append(slices.Clip(rows), written), true
	}
	changed := slices.Clone(rows)
	changed[at] = written
	return changed, true
}
