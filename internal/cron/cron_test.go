package cron

import (
	"slices"
	"strings"
	"testing"

	"github.com/adhocore/gronx"
)

var rightCron = []string{
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
	"  0\t0  * * *  ",
	"@yearly",
	"@monthly",
	"@weekly",
	"@daily",
	"@hourly",
	"\t@hourly ",
}

var wrongCron = []string{
	// Numbers of fields.
	"", " ", "*", "* * * *", "* * * * * * * *",

	// One past each bound, for each field.
	"60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8",
	"60 * * * * *", "0 60 * * * *", "* * * * * * 1969", "* * * * * * 2101", "* * * * * * 9999", "* * * * * * 26",

	// Ranges.
	"5-1 * * * *", "0-60 * * * *", "1-2-3 * * * *", "-5 * * * *", "5- * * * *", "- * * * *", "* * 0-5 * *", "*-5 * * * *",
	"* * * DEC-JAN *", "* * * * SAT-SUN", "0-99999999999999999999 * * * *",

	// Steps.
	"*/0 * * * *", "*/60 * * * *", "* */24 * * *", "* * */32 * *", "* * 0/5 * *", "*/ * * * *", "/5 * * * *", "*/5/5 * * * *",
	"*/-5 * * * *", "*/05 * * * *", "*/99999999999999999999 * * * *", "60/5 * * * *", "0-59/60 * * * *",

	// Lists: a wrong item is wrong wherever it stands.
	",* * * * *", "*, * * * *", "1,,2 * * * *", "*,60 * * * *", "60,* * * * *", "0-59,60 * * * *", "* * * * *,8", "* *,24 * * *",

	// Names and signs out of place.
	"* MON * * *", "MON * * * *", "* * * MON *", "* * * * JAN", "* * * MONJAN *", "* * * * SUNDAY", "* * * * MOO",
	"? * * * *", "* ? * * *", "* * * ? *", "* * * * * * ?", "* * ?/2 * *", "+5 * * * *", "5.0 * * * *", "0x5 * * * *", "a * * * *",
	"* * L * *", "* * LW * *", "* * 15W * *", "* * * * 5L", "* * * * 1#1", "* * * * 5LFOO", "H * * * *",

	// Six fields begin with the seconds: there is no day 2026 of the week.
	"0 0 12 1 1 2026",

	// Time zones, other nicknames, other characters.
	"TZ=UTC * * * * *", "TZ=UTC * * * *", "CRON_TZ=UTC 0 0 * * *", "TZ=", "TZ= 0 0 * * *", "TZ=0", "CRON_TZ=",
	"@", "@reboot", "@every 1h", "@always", "@5minutes", "@everysecond", "@Daily", "@ daily", "@dailyx", "@yearly @daily",
	"ſUN * * * *", "* * * * ſUN", "* * * * ſun", "٥ * * * *", "* * * *\u00a0*", "*\n* * * *", "* * * * *\x00", "\xff * * * *",
}

func TestCronProblem(t *testing.T) {
	for _, schedule := range rightCron {
		if message := Problem(schedule); message != "" {
			t.Errorf("%q: %s", schedule, message)
		}
	}
	for _, schedule := range wrongCron {
		if message := Problem(schedule); message != "must be a cron expression of 5, 6 or 7 fields, such as */5 * * * *" {
			t.Errorf("%q: %q", schedule, message)
		}
	}
}

func TestCronLength(t *testing.T) {
	padded := func(length int) string { return strings.Repeat(" ", length-len("* * * * *")) + "* * * * *" }
	if message := Problem(padded(256)); message != "" {
		t.Errorf("256 characters: %s", message)
	}
	if message := Problem(padded(257)); message != "must be at most 256 characters long" {
		t.Errorf("257 characters: %q", message)
	}
}

// Whatever is due at the moment of the question, one number past the end of a
// list of all that are in range is found.
func TestCronDoesNotDependOnTheClock(t *testing.T) {
	everyMinute := "0-29,30-59"
	if message := Problem(everyMinute + " * * * *"); message != "" {
		t.Fatal(message)
	}
	if Problem(everyMinute+",60 * * * *") == "" {
		t.Error("a list is not read to its end")
	}
}

// FuzzProblem compares with gronx, which a host may run a schedule with: it must
// accept every schedule that Problem accepts.
func FuzzProblem(f *testing.F) {
	for _, schedule := range slices.Concat(rightCron, wrongCron) {
		f.Add(schedule)
	}
	f.Fuzz(func(t *testing.T, schedule string) {
		if Problem(schedule) == "" && !gronx.IsValid(schedule) {
			t.Errorf("schedule %q is accepted here only", schedule)
		}
	})
}
