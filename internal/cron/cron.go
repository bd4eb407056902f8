package cron

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/adhocore/gronx"
)

// maxCronLength is far above any schedule written by hand, and bounds the work
// a hostile one can make.
const maxCronLength = 256

// cronNicknames are those that every cron library with nicknames agrees on. A
// longer list is not taken from gronx: it is open to additions at run time.
var cronNicknames = []string{"@yearly", "@monthly", "@weekly", "@daily", "@hourly"}

// The ways to write one number of a field.
const (
	cronNumber  = `[0-9]{1,2}`
	cronMonth   = cronNumber + `|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC`
	cronWeekday = cronNumber + `|SUN|MON|TUE|WED|THU|FRI|SAT`
	cronYear    = `19[7-9][0-9]|20[0-9]{2}|2100`
)

// cronItems holds, for each of the seven fields, what an item of its list looks
// like. gronx alone is too lenient here: it takes 1-2-3, +5, names in any field
// and any text after an L. Cron libraries differ over L, W and #, which are
// left out.
var cronItems = [7]*regexp.Regexp{
	wholeMatch(cronItem(cronNumber)),
	wholeMatch(cronItem(cronNumber)),
	wholeMatch(cronItem(cronNumber)),
	wholeMatch(cronItem(cronNumber) + `|\?`),
	wholeMatch(cronItem(cronMonth)),
	wholeMatch(cronItem(cronWeekday) + `|\?`),
	wholeMatch(cronItem(cronYear)),
}

func cronItem(number string) string {
	return fmt.Sprintf(`(?:\*|(?:%[1]s)(?:-(?:%[1]s))?)(?:/[1-9][0-9]{0,3})?`, number)
}

func wholeMatch(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + pattern + `)$`)
}

// Problem says what is wrong with a schedule, or "".
func Problem(schedule string) string {
	if len(schedule) > maxCronLength {
		return fmt.Sprintf("must be at most %d characters long", maxCronLength)
	}
	if slices.Contains(cronNicknames, strings.Trim(schedule, " \t")) || isCronExpression(schedule) {
		return ""
	}
	return "must be a cron expression of 5, 6 or 7 fields, such as */5 * * * *"
}

func isCronExpression(schedule string) bool {
	// Outside ASCII there are letters whose capital is inside it: ſun is no day.
	if strings.ContainsFunc(schedule, func(r rune) bool { return r > unicode.MaxASCII }) {
		return false
	}
	fields := cronFields(schedule)
	if len(fields) != len(cronItems) || !isCronGrammar(fields) {
		return false
	}
	// With all seven fields there, none is guessed to be the year.
	segments, err := gronx.Segments(strings.Join(fields, " "))
	if err != nil {
		return false
	}
	return isCronInRange(segments)
}

// cronFields gives all seven fields, or another number where the schedule has
// too few or too many. Six fields always begin with the seconds: a year in the
// sixth place would mean one thing to one library and another to the next.
func cronFields(schedule string) []string {
	fields := strings.FieldsFunc(strings.ToUpper(schedule), func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) == 5 {
		fields = slices.Insert(fields, 0, "0")
	}
	if len(fields) == 6 {
		fields = append(fields, "*")
	}
	return fields
}

func isCronGrammar(fields []string) bool {
	for position, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			if !cronItems[position].MatchString(item) {
				return false
			}
		}
	}
	return true
}

// isCronInRange asks gronx about one item after the other. Asked about a list,
// it stops at the first item that is due, so that 7,99 would be right in
// the seventh minute of the hour and wrong in all others. A step must be a
// number of its field as well: a longer one never takes a second step.
func isCronInRange(segments []string) bool {
	for position, segment := range segments {
		for item := range strings.SplitSeq(segment, ",") {
			numbers, step, stepped := strings.Cut(item, "/")
			if !isCronSegment(numbers, position) || stepped && !isCronSegment(step, position) {
				return false
			}
		}
	}
	return true
}

// isCronSegment asks at a fixed time, not now, for the answer must not depend
// on the clock.
func isCronSegment(segment string, position int) bool {
	_, err := new(gronx.SegmentChecker).CheckDue(segment, position)
	return err == nil
}
