package relayer

import "github.com/go-relayer/relayer/internal/strictjson"

// problems collects what is wrong with one input.
type problems struct{ strictjson.Problems }

// err returns a [*ValidationError], or nil if there are no problems.
func (p *problems) err() error {
	all := p.All()
	if len(all) == 0 {
		return nil
	}
	fields := make([]FieldError, len(all))
	for i, problem := range all {
		fields[i] = FieldError{Field: problem.Field, Message: problem.Message, Code: problem.Code}
	}
	return &ValidationError{Fields: fields}
}
