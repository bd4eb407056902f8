package wire

import (
	"errors"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// Problems collects what is wrong with an input.
type Problems struct{ strictjson.Problems }

// AddBelow adds the problems of the value at a path.
func (p *Problems) AddBelow(path string, err error) {
	if err == nil {
		return
	}
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		p.Add(path, err.Error())
		return
	}
	for _, problem := range invalid.Fields {
		p.Report(strictjson.Join(path, problem.Field), problem.Code, problem.Message)
	}
}

// Fields returns the problems as those of an error.
func (p *Problems) Fields() []relayer.FieldError {
	var fields []relayer.FieldError
	for _, problem := range p.All() {
		fields = append(fields, relayer.FieldError(problem))
	}
	return fields
}

// Err returns a [*relayer.ValidationError], or nil if there are no problems.
func (p *Problems) Err() error {
	if fields := p.Fields(); fields != nil {
		return &relayer.ValidationError{Fields: fields}
	}
	return nil
}
