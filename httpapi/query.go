package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

const (
	// maxFilters bounds the cost of a selector.
	maxFilters = 1000

	// maxUnknown bounds how many unknown parameters a response names.
	maxUnknown = 10
)

type query struct {
	// options are the known parameters that may be given once. Unused elements have no
	// name. An array costs no allocation.
	options [3]parameter

	// hasFilters makes the keys of a selector known parameters.
	hasFilters bool
	filters    []filter
	values     int // of filters

	unknown []string // names, without duplicates
}

type filter struct {
	key    string
	values []string
}

// parse parses the text of a query and returns the selector of its filters. The error is a
// [*relayer.ValidationError] that names every invalid parameter.
func (q *query) parse(raw string) (selected relayer.Selector, err error) {
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, ok := unescapePair(pair)
		if !ok {
			return selected, invalid("the query must be URL-encoded")
		}
		q.add(name, value)
	}
	if q.values > maxFilters {
		return selected, invalid(fmt.Sprintf("the query must have at most %d filters", maxFilters))
	}
	var problems []relayer.FieldError
	for i := range q.options {
		p := &q.options[i]
		if problem := p.parse(); problem != "" {
			problems = append(problems, relayer.FieldError{Field: p.name, Message: problem})
		}
	}
	for _, f := range q.filters {
		next := selected.Where(f.key, f.values...)
		if invalid, ok := errors.AsType[*relayer.ValidationError](next.Err()); ok {
			problems = append(problems, invalid.Fields...)
			continue
		}
		selected = next
	}
	if len(problems) > 0 {
		return selected, &relayer.ValidationError{Fields: problems}
	}
	return selected, nil
}

func invalid(message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Message: message}}}
}

func (q *query) add(name, value string) {
	for i := range q.options {
		if p := &q.options[i]; p.name == name && name != "" {
			p.value = value
			p.count++
			return
		}
	}
	if q.hasFilters && isFilter(name) {
		q.addFilter(name, value)
		return
	}
	if len(q.unknown) <= maxUnknown && !slices.Contains(q.unknown, name) {
		q.unknown = append(q.unknown, name)
	}
}

func (q *query) addFilter(key, value string) {
	if q.values++; q.values > maxFilters {
		return
	}
	i := slices.IndexFunc(q.filters, func(f filter) bool { return f.key == key })
	if i < 0 {
		i, q.filters = len(q.filters), append(q.filters, filter{key: key})
	}
	q.filters[i].values = append(q.filters[i].values, value)
}

func isFilter(name string) bool {
	switch name {
	case "id", "network", "network_type", "signer_id", "notification_id", "paused", "system_disabled", "search":
		return true
	default:
		return strings.HasPrefix(name, "label.")
	}
}

// unknownMessages returns the messages about unknown parameters, each one line of text.
func unknownMessages(names []string) (messages []string) {
	for _, name := range names[:min(len(names), maxUnknown)] {
		messages = append(messages, wire.IgnoredParameter(name))
	}
	if len(names) > maxUnknown {
		messages = append(messages, "more query parameters are unknown and were ignored")
	}
	return messages
}

type listQuery struct {
	page      uint32
	perPage   uint32
	revisions bool
	selector  relayer.Selector
	unknown   []string
}

func parseListQuery(raw string) (listQuery, error) {
	q := query{hasFilters: true, options: [...]parameter{
		{name: "page", number: 1},
		{name: "per_page", number: relayer.DefaultPerPage},
		{name: "revisions", isFlag: true},
	}}
	selector, err := q.parse(raw)
	return listQuery{q.options[0].number, q.options[1].number, q.options[2].isTrue(), selector, q.unknown}, err
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

type parameter struct {
	name   string
	value  string
	count  int
	number uint32 // the default until parse sets it
	isFlag bool   // true or false instead of a number
}

func (p *parameter) isTrue() bool { return p.value == "true" }

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
