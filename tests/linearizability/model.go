// Package linearizability looks at what many goroutines got from a store at
// once, and asks whether one at a time could have got the same.
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

// input is one call. The content stands for document and private part.
type input struct {
	verb          verb
	id            string
	claim         string
	content       string
	revision      uint64
	offset, limit int
}

// output is what the call returned.
type output struct {
	err   error
	recs  []row
	total int
}

type row struct {
	id, claim, content string
	revision           uint64
}

// answers are the errors that a call can get and the model knows.
var answers = []error{relayer.ErrExists, relayer.ErrNotFound, relayer.ErrConflict, relayer.ErrClaimed}

func known(err error) (error, bool) {
	if err == nil {
		return nil, true
	}
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return answer, true
		}
	}
	return err, false
}

// The state is the rows in creation order. It is never changed in place.
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
		return rows, out.err == lookup(at) && (at < 0 || slices.Equal(out.recs, rows[at:at+1]))
	case list:
		start := min(in.offset, len(rows))
		page := rows[start:min(start+in.limit, len(rows))]
		return rows, out.err == nil && out.total == len(rows) && slices.Equal(out.recs, page)
	}
	if want := verdict(rows, at, in); want != nil || out.err != nil {
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

// verdict is the answer that a write must get.
func verdict(rows []row, at int, in input) error {
	switch {
	case in.verb == create && at >= 0:
		return relayer.ErrExists
	case in.verb != create && at < 0:
		return relayer.ErrNotFound
	case in.verb != create && rows[at].revision != in.revision:
		return relayer.ErrConflict
	case in.verb != remove && in.claim != "" && held(rows, at, in.claim):
		return relayer.ErrClaimed
	}
	return nil
}

func held(rows []row, except int, claim string) bool {
	for i, r := range rows {
		if i != except && r.claim == claim {
			return true
		}
	}
	return false
}

// apply changes the rows. A new revision must exceed all that stand: it is the
// store's own choice beyond that.
func apply(rows []row, at int, in input, out output) ([]row, bool) {
	if in.verb == remove {
		return slices.Delete(slices.Clone(rows), at, at+1), true
	}
	made := row{in.id, in.claim, in.content, out.recs[0].revision}
	if out.recs[0] != made || at >= 0 && made.revision <= rows[at].revision {
		return rows, false
	}
	if in.verb == create {
		return append(slices.Clip(rows), made), true
	}
	changed := slices.Clone(rows)
	changed[at] = made
	return changed, true
}
