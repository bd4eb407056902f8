package httpapi

import (
	"strconv"
	"strings"
)

// entityTag is the ETag of a revision. A revision is never used again for its
// id, so the tag is a strong one.
func entityTag(revision uint64) string {
	return `"` + strconv.FormatUint(revision, 10) + `"`
}

// matchesAny tells whether a list of entity tags, as If-None-Match carries it,
// names tag. The comparison is the weak one, as RFC 9110 section 13.1.2 has it.
func matchesAny(values []string, tag string) bool {
	for _, value := range values {
		for candidate := range strings.SplitSeq(value, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == tag {
				return true
			}
		}
	}
	return false
}
