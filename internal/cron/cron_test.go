package cron_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/internal/cron"
)

const (
	syntaxProblem = "must be a cron expression of 5, 6 or 7 fields, such as */5 * * * *"
	lengthProblem = "must be at most 256 characters long"
)

var valid = []string{
	"* * * * *",
	"0 0 1 1 0",
	"59 23 31 12 7",
	"*/5 * * * *",
	"0/15 * * * *",
	"5-10/2,30,*/59 * * * *",
	"0 */6 * * *",
	"0 12 * * MON-FRI",
	"0 12 * jan,Jul-dec sun",
	"0 12 ? * MON",
	"0 0 12 * * ?",
	"0 0 0 1 1 *",
	"59 59 23 31 12 6",
	"0 0 12 1 1 * 2026",
	"0 0 12 1 1 ? 1970-2100",
	"0 0 12 1 1 ? 2026,2028/4",
	"0 30 9,12,15 1,15 MAY-AUG MON,WED,FRI 2018/2",
	"0 0 */31 */12 */7",
	"0 0 * * 7-2",
	"  0\t0  * * *  ",
	"@yearly",
	"@monthly",
	"@weekly",
	"@daily",
	"@hourly",
	"\t@hourly ",
}

var invalid = []string{
	// Number of fields.
	"", " ", "*", "* * * *", "* * * * * * * *",

	// One past each bound, for each field.
	"60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8",
	"60 * * * * *", "0 60 * * * *", "* * * * * * 1969", "* * * * * * 2101", "* * * * * * 9999", "* * * * * * 26",

	// Ranges.
	"5-1 * * * *", "0-60 * * * *", "1-2-3 * * * *", "-5 * * * *", "5- * * * *", "- * * * *", "* * 0-5 * *", "*-5 * * * *",
	"* * * DEC-JAN *", "* * * * SAT-SUN", "0-99999999999999999999 * * * *",

	// Steps.
	"*/0 * * * *", "*/60 * * * *", "* */24 * * *", "* * */32 * *", "* * 0/5 * *", "*/ * * * *", "/5 * * * *", "*/5/5 * * * *",
	"*/-5 * * * *", "*/05 * * * *", "*/99999999999999999999 * * * *", "60/5 * * * *", "0-59/60 * * * *", "* * * * * * */2101",

	// Lists.
	",* * * * *", "*, * * * *", "1,,2 * * * *", "*,60 * * * *", "60,* * * * *", "0-59,60 * * * *", "* * * * *,8", "* *,24 * * *",

	// Names and signs out of place.
	"* MON * * *", "MON * * * *", "* * * MON *", "* * * * JAN", "* * * MONJAN *", "* * * * SUNDAY", "* * * * MOO",
	"? * * * *", "* ? * * *", "* * * ? *", "* * * * * * ?", "* * ?/2 * *", "+5 * * * *", "5.0 * * * *", "0x5 * * * *", "a * * * *",
	"* * L * *", "* * LW * *", "* * 15W * *", "* * * * 5L", "* * * * 1#1", "* * * * 5LFOO", "H * * * *",

	// Six fields begin with the seconds, so that 2026 is a day of the week.
	"0 0 12 1 1 2026",

	// Time zones, other nicknames, other characters.
	"TZ=UTC * * * * *", "TZ=UTC * * * *", "CRON_TZ=UTC 0 0 * * *", "TZ=", "TZ= 0 0 * * *", "TZ=0", "CRON_TZ=",
	"@", "@reboot", "@every 1h", "@always", "@5minutes", "@everysecond", "@Daily", "@ daily", "@dailyx", "@yearly @daily",
	"ſUN * * * *", "* * * * ſUN", "* * * * ſun", "٥ * * * *", "* * * *\u00a0*", "*\n* * * *", "* * * * *\x00", "\xff * * * *",
}

func TestProblem(t *testing.T) {
	for _, schedule := range valid {
		if message := cron.Problem(schedule); message != "" {
			t.Errorf("%q: %s", schedule, message)
		}
	}
	for _, schedule := range invalid {
		if message := cron.Problem(schedule); message != syntaxProblem {
			t.Errorf("%q: %q", schedule, message)
		}
	}
}

func TestProblem_Length(t *testing.T) {
	padded := func(length int) string { return strings.Repeat(" ", length-len("* * * * *")) + "* * * * *" }
	if message := cron.Problem(padded(256)); message != "" {
		t.Errorf("256 characters: %s", message)
	}
	if message := cron.Problem(padded(257)); message != lengthProblem {
		t.Errorf("257 characters: %q", message)
	}
}

// bounds are the least and the greatest number of each of the 7 fields.
var bounds = [7][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}, {1970, 2100}}

// isAccepted reports whether a schedule with item as the field at position is
// accepted.
func isAccepted(position int, item string) bool {
	fields := strings.Fields("* * * * * * *")
	fields[position] = item
	return cron.Problem(strings.Join(fields, " ")) == ""
}

func TestProblem_Numbers(t *testing.T) {
	for position, bound := range bounds {
		for number := range 3000 {
			item := strconv.Itoa(number)
			if want := bound[0] <= number && number <= bound[1]; isAccepted(position, item) != want {
				t.Errorf("field %d: %s is accepted: %t, want %t", position, item, !want, want)
			}
			if want := 1 <= number && number <= bound[1]; isAccepted(position, "*/"+item) != want {
				t.Errorf("field %d: step %s is accepted: %t, want %t", position, item, !want, want)
			}
		}
	}
}

func TestProblem_Ranges(t *testing.T) {
	for position, bound := range bounds {
		for first := bound[0] - 1; first <= bound[1]+1; first++ {
			for last := bound[0] - 1; last <= bound[1]+1; last++ {
				item := fmt.Sprintf("%d-%d", first, last)
				want := bound[0] <= first && first <= last && last <= bound[1]
				if isSundayFirst := position == 5 && first == 7 && 0 <= last && last < 7; isSundayFirst {
					want = true
				}
				if isAccepted(position, item) != want {
					t.Errorf("field %d: %s is accepted: %t, want %t", position, item, !want, want)
				}
			}
		}
	}
}
