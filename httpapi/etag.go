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
	tags := entityTags(header["If-Match"])
	if len(tags) == 0 || isWildcard(tags) {
		return nil
	}
	var revisions []uint64
	for _, tag := range tags {
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
	tags := entityTags(values)
	return isWildcard(tags) || slices.ContainsFunc(tags, func(candidate string) bool {
		return strings.TrimPrefix(candidate, "W/") == tag
	})
}

// isWildcard reports whether the only element is *. A * among tags has no meaning.
func isWildcard(tags []string) bool { return len(tags) == 1 && tags[0] == "*" }

// entityTags returns the elements of a header's lists. A tag that contains a comma is not of this
// package, and neither are its parts.
func entityTags(values []string) (tags []string) {
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			tags = append(tags, strings.TrimSpace(tag))
		}
	}
	return tags
}
