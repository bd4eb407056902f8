// Package mask removes secrets from URLs: user information, path, query and fragment,
// each of which may be an API key.
package mask

import (
	"net/url"
	"strings"
)

const (
	// Hidden replaces text that is not a URL with a host.
	Hidden = "***"

	// Path replaces path, query and fragment.
	Path = "/" + Hidden
)

// URL returns the masked form of a URL: scheme, host and port are kept, user information
// is removed, and any path, query or fragment other than a single / becomes [Path]. Text
// that is not a URL with a host becomes [Hidden].
func URL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme == "" {
		return Hidden
	}
	authority, rest := split(text)
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	if rest != "" && rest != "/" {
		rest = Path
	}
	return parsed.Scheme + "://" + host + rest
}

// Marked adds the mark of hidden user information to a masked URL that has no mark: the full
// URL may have some.
func Marked(masked string) string {
	scheme, rest, isURL := strings.Cut(masked, "://")
	if !isURL || strings.HasSuffix(masked, Path) || strings.HasPrefix(rest, Hidden+"@") {
		return masked
	}
	return scheme + "://" + Hidden + "@" + rest
}

// split returns user information, host and port, and the rest after them.
func split(text string) (authority, rest string) {
	_, afterScheme, _ := strings.Cut(text, "://")
	end := strings.IndexAny(afterScheme, "/?#")
	if end < 0 {
		return afterScheme, ""
	}
	return afterScheme[:end], afterScheme[end:]
}
