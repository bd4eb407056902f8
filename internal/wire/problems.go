package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// maxProblems bounds the problems of an error, as for a request.
const maxProblems = 1000

// Problems are those of an input, one more than maxProblems if there are more. The pointer
// is a [strictjson.Reporter].
type Problems []relayer.FieldError

func (p *Problems) Add(field, message string) { p.Report(field, "", message) }

func (p *Problems) Report(field, code, message string) {
	if !p.Full() {
		*p = append(*p, relayer.FieldError{Field: field, Code: code, Message: message})
	}
}

func (p *Problems) ReportUnknown(field, code, message string) { p.Report(field, code, message) }

// Full reports whether further problems are dropped.
func (p *Problems) Full() bool { return len(*p) > maxProblems }

// AddBelow adds the problems of the value at a path, except of fields that have one already, or
// are part of one that has.
func (p *Problems) AddBelow(path string, err error) {
	if err == nil {
		return
	}
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		p.Add(path, err.Error())
		return
	}
	before := *p
	for _, problem := range invalid.Fields {
		field := strictjson.Join(path, problem.Field)
		if !slices.ContainsFunc(before, func(known relayer.FieldError) bool { return contains(known.Field, field) }) {
			p.Report(field, problem.Code, problem.Message)
		}
	}
}

// contains reports whether a field is another one or contains it.
func contains(field, other string) bool {
	rest, found := strings.CutPrefix(other, field)
	return found && field != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Err returns a [*relayer.ValidationError], or nil if there are no problems.
func (p *Problems) Err() error {
	if len(*p) == 0 {
		return nil
	}
	fields := *p
	if p.Full() {
		fields = append(fields[:maxProblems:maxProblems], relayer.FieldError{Message: fmt.Sprintf("only the first %d problems are listed", maxProblems)})
	}
	return &relayer.ValidationError{Fields: fields}
}
