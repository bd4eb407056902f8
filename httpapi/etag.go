package httpapi

import (
	"net/http"
	"slices"
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
	if len(values) == 0 || isAny(values) {
		return nil
	}
	var revisions []uint64
	for _, tag := range entityTags(values) {
		revision, err := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64)
		if err == nil && entityTag(revision) == tag {
			revisions = append(revisions, revision)
		}
	}
	return []relayer.Condition{relayer.IfRevision(revisions...)}
}

// matchesAny tells whether a list of entity tags, as If-None-Match carries it,
// names tag. The comparison is the weak one, as RFC 9110 section 13.1.2 has it.
func matchesAny(values []string, tag string) bool {
	if isAny(values) {
		return true
	}
	return slices.ContainsFunc(entityTags(values), func(candidate string) bool {
		return strings.TrimPrefix(candidate, "W/") == tag
	})
}

// isAny tells whether a header is the *, which stands alone or for nothing.
func isAny(values []string) bool { return len(values) == 1 && strings.TrimSpace(values[0]) == "*" }

// entityTags returns the tags of a header's lists, weak ones with their W/. A
// comma inside the quotes is part of a tag. What is no tag ends a list.
func entityTags(values []string) []string {
	var tags []string
	for _, rest := range values {
		for {
			rest = strings.TrimLeft(rest, " \t,")
			opaque := strings.TrimPrefix(rest, "W/")
			if !strings.HasPrefix(opaque, `"`) {
				break
			}
			end := strings.IndexByte(opaque[1:], '"')
			if end < 0 {
				break
			}
			length := len(rest) - len(opaque) + end + 2
			tags = append(tags, rest[:length])
			rest = rest[length:]
		}
	}
	return tags
}
