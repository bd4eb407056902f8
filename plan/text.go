package plan

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/go-relayer/relayer/internal/wire"
)

var marks = map[Action]string{Create: "+", Update: "~", Delete: "-", Extra: "?", Blocked: "!"}

// String returns a line for every entry that is not unchanged, with its fields, changes or
// problems below it. A line with the number of entries of each action follows. It contains no
// secret and no control character except newlines.
func (p *Plan) String() string {
	var out strings.Builder
	counts := make(map[Action]int)
	for _, entry := range p.entries {
		counts[entry.Action]++
		entry.write(&out)
	}
	fmt.Fprintf(&out, "%d to create, %d to update, %d to delete, %d unchanged", counts[Create], counts[Update], counts[Delete], counts[Unchanged])
	for _, action := range []Action{Extra, Blocked} {
		if counts[action] > 0 {
			fmt.Fprintf(&out, ", %d %s", counts[action], action)
		}
	}
	out.WriteByte('\n')
	if err := p.deletesError(); err != nil {
		fmt.Fprintf(&out, "apply would refuse this: %s\n", err)
	}
	if p.isUnchecked && p.HasChanges() {
		out.WriteString("the registry has not checked the changes, and may reject some\n")
	}
	return out.String()
}

// count returns the number and the noun, which has a regular plural.
func count(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}

func (e Entry) write(out *strings.Builder) {
	if e.Action == Unchanged {
		return
	}
	fmt.Fprintf(out, "%s %s %s", marks[e.Action], e.Action, wire.Printable(e.ID, unicode.ReplacementChar))
	if e.Action == Extra {
		out.WriteString(" (not in the file: kept)")
	}
	for i, change := range e.Changes {
		separator := "\n    "
		if i > 0 && e.Action == Create && change.depth() == 0 {
			separator = ", "
		}
		out.WriteString(separator + wire.Printable(change.Path+": "+e.describe(change), unicode.ReplacementChar))
	}
	out.WriteByte('\n')
	for _, problem := range e.Problems {
		fmt.Fprintf(out, "    %s\n", wire.Printable(strings.TrimPrefix(problem.Field+": "+problem.Message, ": "), unicode.ReplacementChar))
	}
}

func (e Entry) describe(change Change) string {
	before := cmp.Or(change.Old, "(not set)")
	switch {
	case e.Action == Create:
		return change.New
	case change.Old != change.New:
		return before + " -> " + cmp.Or(change.New, "(not set)")
	default:
		return before + " (a hidden part differs)"
	}
}
