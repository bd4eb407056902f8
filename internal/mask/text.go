package mask

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns text in which every URL is masked like [URL], for texts that quote the
// errors of clients of these URLs. It recognizes
//
//   - URLs of any scheme, also with escaped slashes (https:\/\/, https%3A%2F%2F);
//   - host and path without a scheme (rpc.example/v2/KEY, localhost:8545/KEY);
//   - credentials before a host without a scheme (user:password@rpc.example);
//   - hosts with a label that looks like a key, see [Host];
//   - paths and queries alone with a part that looks like a key (/v2/KEY, ?key=KEY);
//   - parts of URLs and credentials by name (query: Some("key=KEY"), Bearer KEY).
//
// It masks too much rather than too little: up to the closing double quote or the next space.
// Most masked text stays as it is if it is masked again.
func Text(text string) string {
	text = invalidPort.ReplaceAllString(text, "${1}${2}"+Hidden)
	var out strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, isSeparator)
		if end < 0 {
			end = len(text)
		}
		_, size := utf8.DecodeRuneInString(text[end:]) // of the separator
		out.WriteString(maskToken(text[:end]) + text[end:end+size])
		text = text[end+size:]
	}
	return replaceAll(hostName, maskKeys(named, maskKeys(pathKey, out.String())), Host)
}

// maskKeys hides what follows the first group of each match if it may be a key: it has a long run of
// letters and digits, unlike the words and dates of other names. What follows a quoted password or an
// Authorization is a secret, whatever it looks like.
func maskKeys(pattern *regexp.Regexp, text string) string {
	return replaceAll(pattern, text, func(part string) string {
		start := pattern.FindStringSubmatch(part)[1]
		runs := strings.FieldsFunc(part[len(start):], func(r rune) bool { return strings.ContainsRune("-_.%+=", r) })
		isKey := slices.ContainsFunc(runs, func(run string) bool {
			return len(run) >= 10 && hasDigitAndLetter(run) && !timestamp.MatchString(run)
		})
		name, isLong := strings.ToLower(start), len(part)-len(start) >= 8
		isPassword := strings.Contains(name, "password") && strings.ContainsAny(start[len(start)-1:], `"'`)
		if isKey || isPassword || strings.Contains(name, "authorization") && isLong {
			return start + Hidden
		}
		return part
	})
}

// replaceAll does not copy a text without a match, as most are.
func replaceAll(pattern *regexp.Regexp, text string, replace func(string) string) string {
	if !pattern.MatchString(text) {
		return text
	}
	return pattern.ReplaceAllStringFunc(text, replace)
}

// pathKey matches a part of a path or a query, also escaped, that may be a key: clients quote it
// without the host.
var pathKey = regexp.MustCompile(`(?i)(/|%2f|(?:[?&;]|%3f|%26|\\+u0026)(?:[\pL\pN_.-]+(?:=|%3d|\\+u003d))?)[a-z0-9_.%+=-]{20,}`)

// named matches a part of a URL or of a header as debuggers print it.
var named = regexp.MustCompile(`(?i)(\b(?:(?:raw)?(?:query|fragment)|username|password|auth)["']?\s?(?:=>|[:=])\s?(?:Some\()?["']` +
	`|\b(?:rawquery|fragment):|\b(?:(?:[a-z]+-)?(?:api|access)[-_]?key|password)["']?\s?(?:=>|[:=])\s?["'\[]*` +
	`|(?:\bauthorization["']?\s?[:=]\s?["'\[]*)?\b(?:bearer|basic)\s+)[^\s"'\\,)}\]]+`)

// timestamp matches a time in the name of a file.
var timestamp = regexp.MustCompile(`^[0-9]+T[0-9]+Z?$`)

// Field returns the path of a field with its URLs masked. A label key such as
// app.kubernetes.io/name is not a URL.
func Field(path string) string {
	if strings.Contains(path, "://") || strings.ContainsRune(path, ' ') || scheme.MatchString(path) || at.MatchString(path) {
		return Text(path)
	}
	return path
}

func isSeparator(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// hostName matches a name of at least three labels.
var hostName = regexp.MustCompile(`[\pL\pN_-]+(?:[.。．｡][\pL\pN_-]+){2,}`)

// Details returns the details of a disabled reason as they are stored: masked, at most
// maxDetails bytes, and with U+FFFD in place of what is not UTF-8 or is NUL.
func Details(text string) string {
	text = strings.ToValidUTF8(Bounded(text), string(utf8.RuneError))
	text = strings.ReplaceAll(text, "\x00", string(utf8.RuneError))
	return Shortened(Text(text), maxDetails)
}

// maxDetails permits to disable a relayer of any size, with the text of any error.
const maxDetails = 16 << 10

// Bounded returns the start of a text of others, at most 64 KiB, which bounds the time to mask it. A
// word that is cut becomes [Hidden]: a part of a URL can look like another text.
func Bounded(text string) string {
	start := Shortened(text, 4*maxDetails)
	if start == text {
		return text
	}
	return strings.TrimRightFunc(start, func(r rune) bool { return !isSeparator(r) }) + Hidden
}

// Shortened returns at most limit bytes of a text, without a part of a character.
func Shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) && limit > 0 {
		limit--
	}
	return text[:limit]
}

// invalidPort matches a part of a password as errors of URL parsers quote it: in
// https://user:pass/word@rpc.example, the port would be pass.
var invalidPort = regexp.MustCompile(`(invalid port ":)(?:[^"\\]|\\.)*|(nonnumeric port: ')(?:[^'\\]|\\.)*`)

// scheme matches a scheme with :// in the notations of URLs, of JSON and of queries.
var scheme = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*(?::|\\+u003a|%(?:25)*3a)(?:\\*/|\\+u002f|%(?:25)*2f){2}`)

// maskToken masks the URLs in a text without spaces.
func maskToken(token string) string {
	var out strings.Builder
	for found := scheme.FindStringIndex(token); found != nil; found = scheme.FindStringIndex(token) {
		before, rest := token[:found[0]], token[found[1]:]
		url := trimPunctuation(rest)
		if strings.HasSuffix(before, `"`) {
			url = quoted.FindString(rest)
		}
		out.WriteString(maskWithoutScheme(before) + token[found[0]:found[1]] + maskRest(url))
		token = rest[len(url):]
	}
	return out.String() + maskWithoutScheme(token)
}

// quoted matches a text up to the closing quote.
var quoted = regexp.MustCompile(`^(?:[^"\\]|\\.)*`)

// trimPunctuation removes the punctuation after a URL, except ].
func trimPunctuation(text string) string { return strings.TrimRight(text, ".,;:!?\"'`>)}\\") }

// pathStart matches what ends the authority of a URL.
var pathStart = regexp.MustCompile(`(?i)[/?#\\]|%(?:25)*(?:2f|3f|23)`)

// at matches the end of user information.
var at = regexp.MustCompile(`(?i)@|\\u0040|%(?:25)*40`)

func maskRest(rest string) string {
	authority, path := rest, ""
	if start := pathStart.FindStringIndex(rest); start != nil {
		authority, path = rest[:start[0]], rest[start[0]:]
	}
	if ends := at.FindAllStringIndex(authority, -1); ends != nil {
		authority = authority[ends[len(ends)-1][1]:]
	}
	if !host.MatchString(authority) {
		return Hidden
	}
	if path != "" && path != "/" {
		path = Path
	}
	return Host(authority) + path
}

// host matches a host with an optional port. A port that is not a number below 70000 is the start
// of a password.
var host = regexp.MustCompile(`^(?:\[[0-9A-Fa-f:.%a-z]+\]|[\pL\pN._~*。．｡-]+)(?::[0-6]?[0-9]{0,4})?$`)

var (
	// credentials matches user information with a password, and the rest of the token.
	credentials = regexp.MustCompile("[^\\s\"'`<>(\\[{,;=]*:[^\\s]*@([^\\s@]*)$")

	// hostAndPath matches a dotted name, a host with a port, or an IPv6 address, and then a path or query.
	hostAndPath = regexp.MustCompile(`(?i)((?:[\pL\pN-]+[.。．｡])+[\pL\pN-]+[.。．｡]?(?::[0-9]+)?|[\pL\pN-]+:[0-9]+|\[[0-9a-f:.]+\](?::[0-9]+)?)([/?#].*)$`)
)

// maskWithoutScheme masks credentials, and the path after a host. In JSON it does so in each text.
func maskWithoutScheme(token string) string {
	var out strings.Builder
	if token != "" && strings.Contains(`{["`, token[:1]) {
		for end := textEnd.FindStringSubmatchIndex(token); end != nil; end = textEnd.FindStringSubmatchIndex(token) {
			out.WriteString(maskUnquoted(token[:end[2]]) + token[end[2]:end[3]])
			token = token[end[3]:]
		}
	}
	return out.String() + maskUnquoted(token)
}

// textEnd matches the end of a text in JSON.
var textEnd = regexp.MustCompile(`(?:^|[^\\])("[,:}\]])`)

func maskUnquoted(token string) string {
	found := credentials.FindStringSubmatchIndex(token)
	if found != nil && !hostAndPath.MatchString(token[:found[0]]) {
		rest := token[found[2]:]
		url := trimPunctuation(rest)
		return token[:found[0]] + maskRest(url) + rest[len(url):]
	}
	if found = hostAndPath.FindStringSubmatchIndex(token); found == nil {
		return token
	}
	rest := token[found[4]:]
	length := len(trimPunctuation(rest))
	if length < 2 || noPath.MatchString(token[found[2]:found[4]+length]) {
		return token
	}
	return token[:found[4]] + Path + rest[length:]
}

// noPath matches numbers with a slash, such as 0.05/0.1, 10.0.0.0/8 and retry:3/5.
var noPath = regexp.MustCompile(`^(?:[0-9.]+|\pL+:[0-9]{1,2})/[0-9.]{1,8}$`)

// Error returns an error with the masked text of err, which wraps err.
func Error(err error) error { return masked{err} }

type masked struct{ error }

func (m masked) Error() string { return Text(m.error.Error()) }

func (m masked) Unwrap() error { return m.error }
