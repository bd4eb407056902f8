package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
)

// entityTag returns the ETag of a revision. It is a strong one, because a store never
// reuses a revision.
func entityTag(revision uint64) string {
	tag := make([]byte, 0, len(`"18446744073709551615"`))
	tag = strconv.AppendUint(append(tag, '"'), revision, 10)
	return string(append(tag, '"'))
}

// conditions returns the condition of If-Match: one of the listed revisions, or none
// for *. A tag that is weak or not created by this package matches no revision (RFC
// 9110 section 13.1.1).
func conditions(header http.Header) []relayer.WriteOption {
	values := header["If-Match"]
	if len(values) == 0 || isWildcard(values) {
		return nil
	}
	var revisions []uint64
	for _, tag := range entityTags(values) {
		revision, err := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64)
		if err == nil && revision != 0 && entityTag(revision) == tag {
			revisions = append(revisions, revision)
		}
	}
	return []relayer.WriteOption{relayer.IfRevision(revisions...)}
}

// matchesAny reports whether the values of If-None-Match match the tag. The
// comparison is the weak one (RFC 9110 section 13.1.2).
func matchesAny(values []string, tag string) bool {
	if isWildcard(values) {
		return true
	}
	return slices.ContainsFunc(entityTags(values), func(candidate string) bool {
		return strings.TrimPrefix(candidate, "W/") == tag
	})
}

// isWildcard reports whether the only value is *. A * in a list has no meaning.
func isWildcard(values []string) bool { return len(values) == 1 && strings.TrimSpace(values[0]) == "*" }

// entityTags returns the tags of a header's lists, weak ones with their W/. A comma
// inside the quotes is part of a tag. Parsing of a list stops at a syntax error.
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
