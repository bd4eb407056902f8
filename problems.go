package relayer

import (
	"fmt"
	"strings"
)

// maxProblems bounds the answer to a request that is wrong in very many places.
const maxProblems = 1000

// problems collects what is wrong with one input, once per field.
type problems struct {
	list    []FieldError
	blamed  map[string]bool
	omitted int
}

// add notes a problem. The first problem of a field is the one that is told:
// what comes after it, in the field or below it, is its echo.
func (p *problems) add(field, message string) {
	if p.has(field) {
		return
	}
	if p.blamed == nil {
		p.blamed = make(map[string]bool)
	}
	p.blamed[field] = true
	if len(p.list) == maxProblems {
		p.omitted++
		return
	}
	p.list = append(p.list, FieldError{Field: field, Message: message})
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
	if p.omitted > 0 {
		fields = append(fields, FieldError{Message: fmt.Sprintf("%d more problems are not listed", p.omitted)})
	}
	return &ValidationError{Fields: fields}
}
