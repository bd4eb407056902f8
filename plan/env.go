package plan

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// hostOf returns the host and port of a URL that may have references.
func hostOf(text string) string {
	_, rest, _ := strings.Cut(text, "://")
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	return authority[strings.LastIndex(authority, "@")+1:]
}

// expand replaces the references in the RPC URLs of the relayer at path, and returns the
// names of the variables. It adds a problem for each URL with a variable that has no value.
func (c *Config) expand(data []byte, path string, found *wire.Problems) (expanded []byte, names []string) {
	expanded = strictjson.ReplaceMember(data, "custom_rpc_urls", func(list []byte) []byte {
		if list[0] != '[' {
			return list
		}
		i := -1
		return strictjson.ReplaceElements(list, func(endpoint []byte) []byte {
			i++
			url := func(literal []byte) []byte {
				return replaceText(literal, func(text string) string {
					text, used, problem := c.expandText(text)
					names = append(names, used...)
					if problem != "" {
						found.Add(fmt.Sprintf("%s.custom_rpc_urls[%d].url", path, i), problem)
					}
					return text
				})
			}
			if endpoint[0] == '{' {
				return strictjson.ReplaceMember(endpoint, "url", url)
			}
			return url(endpoint)
		})
	})
	return expanded, names
}

// expandText returns a text with the values of its variables, the names of the variables, and
// why the first one without a value has none.
func (c *Config) expandText(text string) (expanded string, names []string, problem string) {
	if c.lookup != nil && reference.MatchString(hostOf(text)) {
		return text, nil, "must have no variable in the host, which responses show"
	}
	expanded = reference.ReplaceAllStringFunc(text, func(match string) string {
		name := reference.FindStringSubmatch(match)[1]
		names = append(names, name)
		if c.lookup == nil {
			return match
		}
		value, why := c.value(name)
		if why != "" && problem == "" {
			problem = fmt.Sprintf("refers to the environment variable %s, %s", name, why)
		}
		return value
	})
	return expanded, names, problem
}

// value returns the value of a variable, or why it has none. The names of variables have no
// letter case on Windows.
func (c *Config) value(name string) (value, why string) {
	if upper := strings.ToUpper(name); upper == "API_KEY" || strings.HasPrefix(upper, "RELAYERD_") || strings.HasPrefix(upper, "PG") {
		return "", "which is a credential of this program and is never part of a relayer"
	}
	value, ok := c.lookup(name)
	switch {
	case !ok:
		return "", "which is not set"
	case !utf8.ValidString(value):
		return "", "whose value is not UTF-8"
	}
	return value, ""
}

// replaceText returns a literal without a replacement byte by byte, because decoding
// would hide problems of its text. What is not a string has no replacement.
func replaceText(literal []byte, replace func(string) string) []byte {
	var text string
	if literal[0] != '"' || json.Unmarshal(literal, &text) != nil {
		return literal
	}
	replaced := replace(text)
	if replaced == text {
		return literal
	}
	encoded, err := strictjson.Encode(replaced)
	if err != nil {
		return literal
	}
	return encoded
}
