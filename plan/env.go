package plan

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
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
func (c *Config) expand(list []relayer.RPCConfig, path string, found *wire.Problems) (names []string) {
	for i, endpoint := range list {
		expanded, used, problem := c.expandText(endpoint.URL.Unmasked())
		list[i].URL, names = relayer.RPCURL(expanded), append(names, used...)
		if problem != "" {
			found.Add(fmt.Sprintf("%s.custom_rpc_urls[%d].url", path, i), problem)
		}
	}
	return names
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
