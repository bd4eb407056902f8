package httpapi

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
)

// listQuery holds the query parameters of a list request.
type listQuery struct {
	page      uint32
	perPage   uint32
	revisions bool
}

// parseListQuery parses the query of a list request. It returns a
// [*relayer.ValidationError] that names every invalid parameter. Unknown parameters
// are ignored, because proxies and caches add their own.
func parseListQuery(raw string) (listQuery, error) {
	page := parameter{name: "page", number: 1}
	perPage := parameter{name: "per_page", number: relayer.DefaultPerPage}
	revisions := parameter{name: "revisions", isFlag: true}
	if raw == "" {
		return listQuery{page: page.number, perPage: perPage.number}, nil
	}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, ok := unescapePair(pair)
		if !ok {
			return listQuery{}, &relayer.ValidationError{Fields: []relayer.FieldError{{Message: "the query must be URL-encoded"}}}
		}
		page.match(name, value)
		perPage.match(name, value)
		revisions.match(name, value)
	}
	var problems []relayer.FieldError
	for _, p := range [...]*parameter{&page, &perPage, &revisions} {
		if problem := p.parse(); problem != "" {
			problems = append(problems, relayer.FieldError{Field: p.name, Message: problem})
		}
	}
	if len(problems) > 0 {
		return listQuery{}, &relayer.ValidationError{Fields: problems}
	}
	return listQuery{page.number, perPage.number, revisions.value == "true"}, nil
}

// unescapePair parses a name and its value as [url.ParseQuery] does, without a map.
func unescapePair(pair string) (name, value string, ok bool) {
	name, value, _ = strings.Cut(pair, "=")
	name, err := url.QueryUnescape(name)
	if err != nil {
		return "", "", false
	}
	value, err = url.QueryUnescape(value)
	return name, value, err == nil && !strings.Contains(pair, ";")
}

// parameter is an optional parameter of a query.
type parameter struct {
	name   string
	value  string
	count  int
	number uint32 // the default until parse sets it
	isFlag bool   // true or false instead of a number
}

func (p *parameter) match(name, value string) {
	if name == p.name {
		p.value = value
		p.count++
	}
}

// parse parses the value, or returns what is wrong with it.
func (p *parameter) parse() (problem string) {
	if p.count == 0 {
		return ""
	}
	if p.count > 1 {
		return "must not be given more than once"
	}
	if p.isFlag {
		if p.value != "true" && p.value != "false" {
			return "must be true or false"
		}
		return ""
	}
	number, err := strconv.ParseUint(p.value, 10, 32)
	if err != nil {
		return "must be a whole number from 0 to 4294967295"
	}
	p.number = uint32(number)
	return ""
}
