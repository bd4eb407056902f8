package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-relayer/relayer"
)

// maxProblems bounds the problems of an error, as for a request.
const maxProblems = 1000

// problems collects what is wrong with a configuration. It is a
// [strictjson.Reporter].
type problems struct {
	list   []relayer.FieldError // one more than maxProblems if there are more
	blamed map[string]bool      // the first parts of their paths, such as relayers[3]
}

func (p *problems) Add(field, message string) {
	if p.Full() {
		return
	}
	if p.blamed == nil {
		p.blamed = make(map[string]bool)
	}
	first, _, _ := strings.Cut(field, ".")
	p.blamed[first] = true
	p.list = append(p.list, relayer.FieldError{Field: field, Message: message})
}

func (p *problems) AddUnknown(field, message string) { p.Add(field, message) }

// Full reports whether further problems are dropped.
func (p *problems) Full() bool { return len(p.list) > maxProblems }

// addBelow adds the problems of a value, which is at path.
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

// has reports whether a section or a relayer, such as relayers[3], has a problem.
func (p *problems) has(path string) bool { return p.blamed[path] }

// err returns a [*relayer.ValidationError], or nil if there are no problems.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	fields := p.list
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
