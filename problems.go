package relayer

import (
	"fmt"
	"strings"
)

// maxProblems bounds the size of a [ValidationError] and the work of filling it.
const maxProblems = 1000

// problems collects what is wrong with one input.
type problems struct {
	list   []FieldError // one more than maxProblems if there are more
	blamed map[string]bool
}

// Add is Report without a code.
func (p *problems) Add(field, message string) { p.Report(field, "", message) }

// Report adds a problem of an existing field. A later problem of the same field, or
// of a field below it, is a consequence of the first and is dropped.
func (p *problems) Report(field, code, message string) {
	if p.has(field) || p.Full() {
		return
	}
	if p.blamed == nil {
		p.blamed = make(map[string]bool)
	}
	p.blamed[field] = true
	p.list = append(p.list, FieldError{Field: field, Code: code, Message: message})
}

// ReportUnknown adds a problem of a member whose name is chosen by the client, so that it must
// not be mistaken for the path of a field.
func (p *problems) ReportUnknown(member, code, message string) {
	if !p.Full() {
		p.list = append(p.list, FieldError{Field: member, Code: code, Message: message})
	}
}

// Full reports whether further problems are dropped.
func (p *problems) Full() bool { return len(p.list) > maxProblems }

// has reports whether the field, or one that contains it, has a problem.
func (p *problems) has(field string) bool {
	for end := len(field); end > 0; end = strings.LastIndexAny(field[:end], ".[") {
		if p.blamed[field[:end]] {
			return true
		}
	}
	return false
}

// err returns a [*ValidationError], or nil if there are no problems.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	fields := p.list
	if p.Full() {
		fields = append(fields[:maxProblems:maxProblems], FieldError{Message: fmt.Sprintf("only the first %d problems are listed", maxProblems)})
	}
	return &ValidationError{Fields: fields}
}
