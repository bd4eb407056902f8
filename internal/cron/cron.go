// Package cron checks the syntax of cron schedules. It rejects L, W and #, on which common cron
// libraries differ.
package cron

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxLength exceeds any useful schedule and bounds the work of checking one.
const maxLength = 256

var nicknames = []string{"@yearly", "@monthly", "@weekly", "@daily", "@hourly"}

type field struct {
	least, most int
	names       []string // of the numbers from least on
	optional    bool     // may be ?
}

// fields are the 7 fields from seconds to years.
var fields = []field{
	{most: 59},
	{most: 59},
	{most: 23},
	{least: 1, most: 31, optional: true},
	{least: 1, most: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{most: sunday, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}, optional: true},
	{least: 1970, most: 2100},
}

// sunday is the second number of Sunday, which is also 0.
const sunday = 7

// Problem returns a message if schedule is not a nickname such as @daily or a cron expression of
// 5, 6 or 7 fields, and "" otherwise. An expression of 6 fields begins with the seconds.
func Problem(schedule string) string {
	if len(schedule) > maxLength {
		return fmt.Sprintf("must be at most %d characters long", maxLength)
	}
	if slices.Contains(nicknames, strings.Trim(schedule, " \t")) || isExpression(schedule) {
		return ""
	}
	return "must be a cron expression of 5, 6 or 7 fields, such as */5 * * * *"
}

func isExpression(schedule string) bool {
	texts := strings.FieldsFunc(schedule, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(texts) == len(fields)-2 {
		texts = slices.Insert(texts, 0, "0")
	}
	if len(texts) == len(fields)-1 {
		texts = append(texts, "*")
	}
	return slices.EqualFunc(fields, texts, field.accepts)
}

// accepts reports whether the field can have a list of items.
func (f field) accepts(list string) bool {
	return !slices.ContainsFunc(strings.Split(list, ","), func(item string) bool { return !f.acceptsItem(item) })
}

// items matches ?, *, a number or a range of numbers, the last three also with a step. Numbers may
// have names. Letters outside of ASCII have no match, although some have an ASCII capital: ſun is
// not a day.
var items = regexp.MustCompile(`^(?:\?|(\*|(\w+)(?:-(\w+))?)(?:/([1-9][0-9]*))?)$`)

func (f field) acceptsItem(item string) bool {
	parts := items.FindStringSubmatch(item)
	if parts == nil || item == "?" {
		return parts != nil && f.optional
	}
	// A step above every number of the field would leave only the first.
	if step, err := strconv.Atoi(cmp.Or(parts[4], "1")); err != nil || step > f.most {
		return false
	}
	if parts[1] == "*" {
		return true
	}
	first, last := f.number(parts[2]), f.number(cmp.Or(parts[3], parts[2]))
	if f.most == sunday && first == sunday {
		first = 0
	}
	return 0 <= first && first <= last
}

// number returns the value of a number or a name of the field, or -1.
func (f field) number(text string) int {
	if i := slices.Index(f.names, strings.ToUpper(text)); i >= 0 {
		return f.least + i
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < f.least || number > f.most || len(text) > max(2, len(strconv.Itoa(f.most))) {
		return -1
	}
	return number
}
