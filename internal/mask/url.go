// Package mask removes secrets from URLs: user information, path, query, fragment, and labels of
// the host that look like API keys.
package mask

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	// Hidden replaces everything that is masked and does not become [Path].
	Hidden = "***"

	// Path replaces path, query and fragment.
	Path = "/" + Hidden
)

// URL returns the masked form of a URL: scheme, port and [Host] are kept, user information is
// removed, and any path, query or fragment other than a single / becomes [Path]. Text that is not
// a URL with a host or a port becomes [Hidden].
func URL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme == "" {
		return Hidden
	}
	host, rest := Split(text)
	if strings.ContainsAny(host, "&;=!$'()+,") { // a misspelled query
		return Hidden
	}
	if rest != "" && rest != "/" {
		rest = Path
	}
	return parsed.Scheme + "://" + Host(host) + rest
}

// Host returns a host, with or without a port, in which every label that looks like a key is
// [Hidden]: 20 or more letters and digits of ASCII, with at least one of each. The last two
// labels are kept. A host of 20 bytes or more that hides a key by characters that clients fold is
// returned folded.
func Host(host string) string {
	if len(host) < 20 {
		return host // as most hosts, without an allocation
	}
	masked := hideKeys(host)
	if !strings.ContainsFunc(masked, func(r rune) bool { return r == '%' || r > unicode.MaxASCII }) {
		return masked
	}
	if unescaped, err := url.PathUnescape(masked); err == nil {
		if folded := FoldHost(unescaped); hideKeys(folded) != folded {
			return hideKeys(folded)
		}
	}
	return masked
}

func hideKeys(host string) string {
	name, _, _ := strings.Cut(host, ":")
	name = strings.TrimRight(name, ".")
	labels := strings.Split(name, ".")
	for i := range len(labels) - 2 {
		if key.MatchString(labels[i]) && hasDigitAndLetter(labels[i]) {
			labels[i] = Hidden
		}
	}
	return strings.Join(labels, ".") + host[len(name):]
}

// key matches a label that may be a key, if it has a digit and a letter.
var key = regexp.MustCompile(`^[A-Za-z0-9]{20,}$`)

const digits = "0123456789"

func hasDigitAndLetter(text string) bool {
	return strings.ContainsAny(text, digits) && strings.Trim(text, digits) != ""
}

// FoldHost folds a host as clients with support for international names do before a lookup.
// Full-width digits and ① become digits, ideographic full stops become dots, and invisible
// characters are removed.
func FoldHost(host string) string {
	folded := norm.NFKC.String(strings.ToLower(host))
	folded = strings.Map(func(r rune) rune {
		switch {
		case r == '。':
			return '.'
		case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			return -1 // clients drop it from a name
		}
		return unicode.ToLower(r)
	}, folded)
	return strings.TrimRight(folded, ".")
}

// Marked adds the mark of hidden user information to a masked URL that has no mark: the full
// URL may have some.
func Marked(masked string) string {
	scheme, rest, isURL := strings.Cut(masked, "://")
	if !isURL || strings.HasSuffix(masked, Path) || strings.HasPrefix(rest, Hidden+"@") || strings.Contains("."+rest, "."+Hidden+".") {
		return masked
	}
	return scheme + "://" + Hidden + "@" + rest
}

// Split returns the host of a URL, with its port, and what follows the host.
func Split(text string) (host, rest string) {
	_, host, _ = strings.Cut(text, "://")
	if end := strings.IndexAny(host, "/?#"); end >= 0 {
		host, rest = host[:end], host[end:]
	}
	return host[strings.LastIndexByte(host, '@')+1:], rest
}
