package plan

import (
	"errors"
	"fmt"

	"github.com/go-relayer/relayer"
)

// maxProblems bounds the problems of an error, as for a request.
const maxProblems = 1000

// problems are those of a configuration, one more than maxProblems if there are more. It
// is a [strictjson.Reporter].
type problems []relayer.FieldError

func (p *problems) Add(field, message string) {
	if !p.Full() {
		*p = append(*p, relayer.FieldError{Field: field, Message: message})
	}
}

func (p *problems) AddUnknown(field, message string) { p.Add(field, message) }

// Full reports whether further problems are dropped.
func (p *problems) Full() bool { return len(*p) > maxProblems }

func (p *problems) addBelow(path string, err error) {
	if err == nil {
		return
	}
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		p.Add(path, err.Error())
		return
	}
	for _, problem := range invalid.Fields {
		p.Add(join(path, problem.Field), problem.Message)
	}
}

// err returns a [*relayer.ValidationError], or nil if there are no problems.
func (p *problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	fields := *p
	if p.Full() {
		fields = append(fields[:maxProblems:maxProblems], relayer.FieldError{Message: fmt.Sprintf("only the first %d problems are listed", maxProblems)})
	}
	return &relayer.ValidationError{Fields: fields}
}

// join returns the path of a member of the value at path.
func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
