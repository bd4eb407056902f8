package wire

import (
	"errors"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// Problems collects what is wrong with an input.
type Problems struct{ strictjson.Problems }

// AddBelow adds the problems of an error, which is not nil, of the value at a path.
func (p *Problems) AddBelow(path string, err error) {
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		p.Add(path, err.Error())
		return
	}
	for _, problem := range invalid.Fields {
		p.Report(strictjson.Join(path, problem.Field), problem.Code, problem.Message)
	}
}

// Err returns a [*relayer.ValidationError], or nil if there are no problems.
func (p *Problems) Err() error {
	var fields []relayer.FieldError
	for _, problem := range p.All() {
		fields = append(fields, relayer.FieldError(problem))
	}
	if fields == nil {
		return nil
	}
	return &relayer.ValidationError{Fields: fields}
}

// RequestOf returns the request that creates a relayer.
func RequestOf(r *relayer.Relayer) (req relayer.CreateRequest) {
	strictjson.CopyFields(&req, r)
	return req
}
