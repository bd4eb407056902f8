package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
)

// entityTag is the ETag of a revision. A revision is never used again for its
// id, so the tag is a strong one.
func entityTag(revision uint64) string {
	return `"` + strconv.FormatUint(revision, 10) + `"`
}

// conditions is what If-Match demands of the relayer to be changed: one of the
// revisions that it lists, or with * any. A tag that is weak or that is none of
// ours matches no revision (RFC 9110 section 13.1.1).
func conditions(header http.Header) []relayer.Condition {
	values := header["If-Match"]
	if len(values) == 0 {
		return nil
	}
	var revisions []uint64
	for _, value := range values {
		for candidate := range strings.SplitSeq(value, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" {
				return nil
			}
			revision, err := strconv.ParseUint(strings.Trim(candidate, `"`), 10, 64)
			if err == nil && entityTag(revision) == candidate {
				revisions = append(revisions, revision)
			}
		}
	}
	return []relayer.Condition{relayer.IfRevision(revisions...)}
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
