package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

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
	options [6]parameter

	// hasFilters makes the keys of a selector known parameters.
	hasFilters bool
	filters    []filter
	values     int // of filters

	unknown []string // names, without duplicates

	// ignoresMalformed ignores what is not URL-encoded, for endpoints to which a query is
	// not essential.
	ignoresMalformed bool
}

type filter struct {
	key    string
	values []string
}

// parseQuery parses the query of a request and returns the selector of its filters.
func (x *exchange) parseQuery(r *http.Request, q *query) (relayer.Selector, error) {
	selected, err := q.parse(r.URL.RawQuery)
	x.unknown, x.hasChanges, x.isDryRun = q.unknown, q.is("changes", "true"), q.is("dry_run", "true")
	return selected, err
}

// parse parses the text of a query and returns the selector of its filters. The error is a
// [*relayer.ValidationError] that names every invalid parameter.
func (q *query) parse(raw string) (selected relayer.Selector, err error) {
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, ok := unescapePair(pair)
		if ok {
			q.add(name, value)
		} else if !q.ignoresMalformed {
			return selected, invalid("the query must be URL-encoded")
		}
	}
	if q.values > maxFilters {
		return selected, invalid(fmt.Sprintf("the query must have at most %d filters", maxFilters))
	}
	var problems []relayer.FieldError
	for i := range q.options {
		p := &q.options[i]
		if problem := p.problem(); problem != "" {
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

func invalid(message string) error { return invalidField("", message) }

func invalidField(field, message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: field, Message: message}}}
}

// isSelectorKey reports whether a [relayer.Selector] knows the key. Any label may be given: a
// wrong one is a problem of the request.
func isSelectorKey(name string) bool {
	return strings.HasPrefix(name, "label.") || relayer.Selector{}.Where(name).Err() == nil
}

func (q *query) add(name, value string) {
	if p := q.option(name); p != nil {
		p.value = value
		p.count++
		return
	}
	if q.hasFilters && isSelectorKey(name) {
		q.addFilter(name, value)
		return
	}
	if len(q.unknown) <= maxUnknown && !slices.Contains(q.unknown, name) {
		q.unknown = append(q.unknown, name)
	}
}

// option returns the parameter of the name, or nil if there is none.
func (q *query) option(name string) *parameter {
	for i := range q.options {
		if p := &q.options[i]; p.name == name && name != "" {
			return p
		}
	}
	return nil
}

// is reports whether the parameter has the value.
func (q *query) is(name, value string) bool {
	p := q.option(name)
	return p != nil && p.count > 0 && p.value == value
}

// number returns the value of a parameter of [isNumber], or the default if it is not given.
func (q *query) number(name string, absent uint64) uint64 {
	p := q.option(name)
	if p.count == 0 {
		return absent
	}
	number, _ := strconv.ParseUint(p.value, 10, 64)
	return number
}

// time returns the value of a parameter of [isTime], or the zero time if it is not given.
func (q *query) time(name string) time.Time {
	value, _ := time.Parse(time.RFC3339, q.option(name).value)
	return value
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
	name  string
	check func(value string) (problem string)
	value string
	count int
}

func (p *parameter) problem() string {
	switch p.count {
	case 0:
		return ""
	case 1:
		return p.check(p.value)
	default:
		return "must not be given more than once"
	}
}

func isFlag(value string) (problem string) {
	if value != "true" && value != "false" {
		return "must be true or false"
	}
	return ""
}

func isNumber(value string) (problem string) {
	if _, err := strconv.ParseUint(value, 10, 32); err != nil {
		return "must be a whole number from 0 to 4294967295"
	}
	return ""
}

func isRevision(value string) (problem string) {
	if _, err := strconv.ParseUint(value, 10, 64); err != nil {
		return "must be a revision: a whole number"
	}
	return ""
}

func isTime(value string) (problem string) {
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return "must be a time such as 2026-01-02T15:04:05Z"
	}
	return ""
}

func isFull(value string) (problem string) {
	if value != "full" {
		return "must be full"
	}
	return ""
}

func isAny(string) (problem string) { return "" }

var changesParameter = parameter{name: "changes", check: isFlag}

// rpcURLsParameter returns the parameter, which is unknown without [WithEngineOperations].
func (a *API) rpcURLsParameter() parameter {
	if !a.engineOperations {
		return parameter{}
	}
	return parameter{name: "rpc_urls", check: isFull}
}

// asksForFullURLs reports whether a query asks for the RPC URLs in full.
func asksForFullURLs(raw string) bool {
	for pair := range strings.SplitSeq(raw, "&") {
		if name, value, ok := unescapePair(pair); ok && name == "rpc_urls" && value == "full" {
			return true
		}
	}
	return false
}
