package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

const (
	// maxFilters bounds the cost of a selector.
	maxFilters = 1000

	// maxUnknown bounds how many unknown parameters a response names.
	maxUnknown = 10
)

// parameters are the parameters of queries, besides filters. Each may be given once.
var parameters = map[string]struct {
	isValid func(value string) bool // nil: any value
	problem string
}{
	"page":     {isNumber, "must be a whole number from 0 to 4294967295"},
	"per_page": {isNumber, "must be a whole number from 0 to 4294967295"},
	"after":    {},
	"changes":  {oneOf("true", "false"), "must be true or false"},
	"rpc_urls": {oneOf("full"), "must be full"},

	"before": {isRevision, "must be a revision: a whole number from 1"},
	"actor":  {isActor, "must be 1 to 256 bytes of UTF-8 without control characters"},
	"action": {
		oneOf("create", "update", "pause", "resume", "disable", "enable", "delete"),
		"must be create, update, pause, resume, disable, enable or delete",
	},
	"since": {isTime, "must be a time such as 2026-01-02T15:04:05Z"},
	"until": {isTime, "must be a time such as 2026-01-02T15:04:05Z"},

	"dry_run":   {oneOf("true", "false"), "must be true or false"},
	"all":       {oneOf("true", "false"), "must be true or false"},
	"paused_by": {},
}

func oneOf(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

func isNumber(value string) bool {
	_, err := strconv.ParseUint(value, 10, 32)
	return err == nil
}

func isRevision(value string) bool {
	revision, err := strconv.ParseUint(value, 10, 64)
	return err == nil && revision > 0
}

// isActor reports whether the value can be the actor of a change, as it is stored.
func isActor(value string) bool {
	return value != "" && len(value) <= 256 && utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
}

func isTime(value string) bool {
	at, err := time.Parse(time.RFC3339, value)
	return err == nil && !at.IsZero() // the zero time means not given
}

// input is what a request asks for.
type input struct {
	values   url.Values            // of the parameters of the route
	selector relayer.Selector      // of the filters
	unknown  []string              // names of parameters, at most one more than a response names
	options  []relayer.WriteOption // of a write
	body     []byte                // if the route has one
}

// parseQuery parses the query of a request to the route. It returns the values even with an
// error, which is a [*relayer.ValidationError].
func (route route) parseQuery(raw string) (q input, err error) {
	if raw == "" { // as in most reads
		return q, nil
	}
	values, malformed := url.ParseQuery(raw)
	q.values = make(url.Values)
	var problems []relayer.FieldError
	filters := 0
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := values[name]
		switch {
		case slices.Contains(route.parameters, name):
			q.values[name] = given
			if len(given) > 1 {
				problems = append(problems, relayer.FieldError{Field: name, Message: "must not be given more than once"})
			} else if known := parameters[name]; known.isValid != nil && !known.isValid(given[0]) {
				problems = append(problems, relayer.FieldError{Field: name, Message: known.problem})
			}
		case route.hasFilters && isSelectorKey(name):
			if filters += len(given); filters > maxFilters {
				continue
			}
			selector := q.selector.Where(name, given...)
			if invalid, ok := errors.AsType[*relayer.ValidationError](selector.Err()); ok {
				problems = append(problems, invalid.Fields...)
				continue
			}
			q.selector = selector
		case len(q.unknown) <= maxUnknown:
			q.unknown = append(q.unknown, name)
		}
	}
	switch {
	case malformed != nil:
		return q, invalid("the query must be URL-encoded")
	case filters > maxFilters:
		return q, invalid(fmt.Sprintf("the query must have at most %d filters", maxFilters))
	case len(problems) > 0:
		return q, &relayer.ValidationError{Fields: problems}
	default:
		return q, nil
	}
}

// is reports whether the parameter has the value.
func (q input) is(name, value string) bool { return q.values.Get(name) == value }

// number returns the value of a numeric parameter, or the default if it is not given.
func (q input) number(name string, absent uint64) uint64 {
	if !q.values.Has(name) {
		return absent
	}
	number, _ := strconv.ParseUint(q.values.Get(name), 10, 64)
	return number
}

// time returns the value of a parameter of [isTime], or the zero time if it is not given.
func (q input) time(name string) time.Time {
	value, _ := time.Parse(time.RFC3339, q.values.Get(name))
	return value
}

// warnings returns the metadata of a response to unknown parameters, or nil.
func (q input) warnings() *relayer.Metadata {
	if len(q.unknown) == 0 {
		return nil
	}
	m := new(relayer.Metadata)
	for _, name := range q.unknown[:min(len(q.unknown), maxUnknown)] {
		m.Logs = append(m.Logs, relayer.LogEntry{Level: "warn", Message: wire.IgnoredParameter(name)})
	}
	if len(q.unknown) > maxUnknown {
		m.Logs = append(m.Logs, relayer.LogEntry{Level: "warn", Message: "more query parameters are unknown and were ignored"})
	}
	return m
}

func invalid(message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Message: message}}}
}

// isSelectorKey reports whether a [relayer.Selector] knows the key. Any label may be given: a
// wrong one is a problem of the request.
func isSelectorKey(name string) bool {
	return strings.HasPrefix(name, "label.") || relayer.Selector{}.Where(name).Err() == nil
}
