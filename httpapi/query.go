package httpapi

import (
	"net/url"
	"strconv"

	"github.com/go-relayer/relayer"
)

// listQuery holds the query parameters of a list request.
type listQuery struct {
	page    uint32
	perPage uint32
}

// parseListQuery parses the query of a list request. It returns a
// [*relayer.ValidationError] that names every invalid parameter. Unknown parameters
// are ignored, because proxies and caches add their own.
func parseListQuery(raw string) (listQuery, error) {
	query := listQuery{page: 1, perPage: relayer.DefaultPerPage}
	if raw == "" {
		return query, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query, &relayer.ValidationError{Fields: []relayer.FieldError{{Message: "the query must be URL-encoded"}}}
	}
	var invalid relayer.ValidationError
	parse := func(name string, into *uint32) {
		if problem := parseUint32(values[name], into); problem != "" {
			invalid.Fields = append(invalid.Fields, relayer.FieldError{Field: name, Message: problem})
		}
	}
	parse("page", &query.page)
	parse("per_page", &query.perPage)
	if len(invalid.Fields) > 0 {
		return query, &invalid
	}
	return query, nil
}

// parseUint32 parses the values of an optional parameter, or returns what is wrong
// with them.
func parseUint32(values []string, into *uint32) (problem string) {
	if len(values) == 0 {
		return ""
	}
	if len(values) > 1 {
		return "must not be given more than once"
	}
	number, err := strconv.ParseUint(values[0], 10, 32)
	if err != nil {
		return "must be a whole number from 0 to 4294967295"
	}
	*into = uint32(number)
	return ""
}
