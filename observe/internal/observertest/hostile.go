package observertest

import (
	"fmt"
	"strings"
)

// HostileIDs returns count distinct IDs that a client could send. No relayer has
// any of them, and most are invalid.
func HostileIDs(count int) []string {
	forms := []string{
		"absent-%d",
		"%d " + URL,
		strings.Repeat("x", 4096) + "%d",
		"\xff\xfe%d",
		"%d\n# HELP forged forged\nforged 1\n",
		`%d",outcome="ok"} 1 `,
		"%d\x00\u202e",
		"../../%d",
	}
	ids := make([]string, count)
	for i := range ids {
		ids[i] = fmt.Sprintf(forms[i%len(forms)], i)
	}
	return ids
}
