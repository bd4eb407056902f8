package strictjson

import (
	"fmt"
	"strings"
)

// maxProblems bounds the size of an error and the work of filling it.
const maxProblems = 1000

// Problem is one problem of a field.
type Problem struct{ Field, Message, Code string }

// Problems collects what is wrong with one input, as a rule one problem for each field. The zero
// value is empty.
type Problems struct {
	list   []Problem // one more than maxProblems if there are more
	blamed map[string]bool
}

// Add is Report without a code.
func (p *Problems) Add(field, message string) { p.Report(field, "", message) }

// Report adds a problem of a field. A later problem of the same field, or of one below it, is a
// consequence of the first and is dropped.
func (p *Problems) Report(field, code, message string) {
	if p.Has(field) || p.Full() {
		return
	}
	if p.blamed == nil {
		p.blamed = make(map[string]bool)
	}
	p.blamed[field] = true
	p.list = append(p.list, Problem{field, message, code})
}

// ReportUnknown adds a problem of a member whose name is chosen by the client, so that it must
// not be mistaken for the path of a field.
func (p *Problems) ReportUnknown(member, code, message string) {
	if !p.Full() {
		p.list = append(p.list, Problem{member, message, code})
	}
}

// Full reports whether further problems are dropped. A [Decoder] then stops reading typed lists.
func (p *Problems) Full() bool { return len(p.list) > maxProblems }

// Has reports whether Report had the field, or one that contains it.
func (p *Problems) Has(field string) bool {
	for end := len(field); end > 0; end = strings.LastIndexAny(field[:end], ".[") {
		if p.blamed[field[:end]] {
			return true
		}
	}
	return false
}

// All returns the problems. After the first 1,000 there is a notice in place of the others.
func (p *Problems) All() []Problem {
	if !p.Full() {
		return p.list
	}
	return append(p.list[:maxProblems:maxProblems], Problem{Message: fmt.Sprintf("only the first %d problems are listed", maxProblems)})
}
