package relayer

import (
	"fmt"
	"strings"
)

// maxProblems bounds the answer to a request that is wrong in very many places,
// and the work of finding them.
const maxProblems = 1000

// problems collects what is wrong with one input.
type problems struct {
	list   []FieldError
	blamed map[string]bool
	more   bool // there are more than are listed
}

// Add notes a problem of a field that exists. The first problem of a field is
// the one that is told: what comes after it, in the field or below it, is its
// echo.
func (p *problems) Add(field, message string) {
	if p.has(field) || p.Full() {
		return
	}
	if p.blamed == nil {
		p.blamed = make(map[string]bool)
	}
	p.blamed[field] = true
	p.list = append(p.list, FieldError{Field: field, Message: message})
}

// AddUnknown notes a member that is no field. Its name is the client's, and may
// be any text: it is never taken for the path of a field.
func (p *problems) AddUnknown(member, message string) {
	if !p.Full() {
		p.list = append(p.list, FieldError{Field: member, Message: message})
	}
}

// Full tells whether looking for more problems is in vain, and takes note that
// somebody was about to.
func (p *problems) Full() bool {
	p.more = len(p.list) == maxProblems
	return p.more
}

// has tells whether the field, or one that it is part of, has a problem.
func (p *problems) has(field string) bool {
	for end := len(field); end > 0; end = strings.LastIndexAny(field[:end], ".[") {
		if p.blamed[field[:end]] {
			return true
		}
	}
	return false
}

// err returns a [*ValidationError] or, where nothing was found, nil.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	fields := p.list
	if p.more {
		fields = append(fields, FieldError{Message: fmt.Sprintf("only the first %d problems are listed", maxProblems)})
	}
	return &ValidationError{Fields: fields}
}
