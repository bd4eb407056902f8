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

// parameter is a parameter of a query that may be given once.
type parameter struct {
	name  string
	check func(value string) (problem string)
}

// query is what the query of a request asks for.
type query struct {
	values   url.Values       // of the parameters of the route
	selector relayer.Selector // of the filters
	unknown  []string         // names, at most one more than a response names
}

// parseQuery parses the query of a request to the route. It returns the values even with an
// error, which is a [*relayer.ValidationError] that names every invalid parameter.
func (route route) parseQuery(raw string) (q query, err error) {
	values, malformed := url.ParseQuery(raw)
	q.values = make(url.Values)
	var problems []relayer.FieldError
	filters := 0
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := values[name]
		known := slices.IndexFunc(route.parameters, func(p parameter) bool { return p.name == name })
		switch {
		case known >= 0:
			q.values[name] = given
			problem := route.parameters[known].check(given[0])
			if len(given) > 1 {
				problem = "must not be given more than once"
			}
			if problem != "" {
				problems = append(problems, relayer.FieldError{Field: name, Message: problem})
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
	case malformed != nil && !route.ignoresMalformed:
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
func (q query) is(name, value string) bool { return q.values.Get(name) == value }

// number returns the value of a parameter of [isNumber], or the default if it is not given.
func (q query) number(name string, absent uint64) uint64 {
	number, err := strconv.ParseUint(q.values.Get(name), 10, 64)
	if err != nil {
		return absent
	}
	return number
}

// time returns the value of a parameter of [isTime], or the zero time if it is not given.
func (q query) time(name string) time.Time {
	value, _ := time.Parse(time.RFC3339, q.values.Get(name))
	return value
}

// unknownMessages returns the messages about unknown parameters, each one line of text.
func (q query) unknownMessages() (messages []string) {
	for _, name := range q.unknown[:min(len(q.unknown), maxUnknown)] {
		messages = append(messages, wire.IgnoredParameter(name))
	}
	if len(q.unknown) > maxUnknown {
		messages = append(messages, "more query parameters are unknown and were ignored")
	}
	return messages
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
	if revision, err := strconv.ParseUint(value, 10, 64); err != nil || revision == 0 {
		return "must be a revision: a whole number from 1"
	}
	return ""
}

// isChange checks the action of a change.
func isChange(value string) (problem string) {
	actions := []relayer.Action{
		relayer.ActionCreate, relayer.ActionUpdate, relayer.ActionPause, relayer.ActionResume, relayer.ActionDisable, relayer.ActionEnable, relayer.ActionDelete,
	}
	if !slices.Contains(actions, relayer.Action(value)) {
		return "must be create, update, pause, resume, disable, enable or delete"
	}
	return ""
}

// isActor checks the actor of a change, as it is stored.
func isActor(value string) (problem string) {
	const maxBytes = 1024
	if value == "" || len(value) > maxBytes || !utf8.ValidString(value) || strings.Contains(value, "\t") {
		return "must be 1 to 1024 bytes of UTF-8 without tabs"
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

// resumeOnly rejects paused_by for a pause, which would otherwise pause every selected relayer.
func resumeOnly(string) (problem string) { return "is only possible for a resume" }

func isText(value string) (problem string) {
	if value == "" {
		return "must not be empty"
	}
	return ""
}

func isAny(string) (problem string) { return "" }
