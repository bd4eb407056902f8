package plan

import (
	"errors"
	"strings"

	"github.com/go-relayer/relayer"
)

// problems collects what is wrong with a configuration. It is a
// [strictjson.Reporter].
type problems struct {
	list []relayer.FieldError
}

func (p *problems) Add(field, message string) {
	p.list = append(p.list, relayer.FieldError{Field: field, Message: message})
}

func (p *problems) AddUnknown(field, message string) { p.Add(field, message) }

func (p *problems) Full() bool { return false }

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

// has reports whether the value at path, or one below it, has a problem.
func (p *problems) has(path string) bool {
	for _, problem := range p.list {
		if problem.Field == path || strings.HasPrefix(problem.Field, path+".") {
			return true
		}
	}
	return false
}

// err returns a [*relayer.ValidationError], or nil if there are no problems.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &relayer.ValidationError{Fields: p.list}
}

// join returns the path of a member of the value at path.
func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
