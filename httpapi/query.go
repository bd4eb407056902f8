package httpapi

import (
	"net/url"
	"strconv"

	"github.com/go-relayer/relayer"
)

// listQuery is the query of a list request (spec section 4.3).
type listQuery struct {
	page    uint32
	perPage uint32
}

// parseListQuery reads a query. It returns a [*relayer.ValidationError] that
// names every parameter that is wrong. A parameter that it does not know is let
// pass where it is URL-encoded, as proxies and caches add their own.
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
	read := func(name string, into *uint32) {
		if problem := readWhole(values[name], into); problem != "" {
			invalid.Fields = append(invalid.Fields, relayer.FieldError{Field: name, Message: problem})
		}
	}
	read("page", &query.page)
	read("per_page", &query.perPage)
	if len(invalid.Fields) > 0 {
		return query, &invalid
	}
	return query, nil
}

// readWhole reads a parameter that may be left out, or says what it must be.
func readWhole(values []string, into *uint32) (problem string) {
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
