package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/wire"
)

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// hostOf returns the host and port of a URL that may have references.
func hostOf(text string) string {
	_, afterScheme, _ := strings.Cut(text, "://")
	authority, _ := mask.Authority(afterScheme)
	return authority[strings.LastIndex(authority, "@")+1:]
}

// expand replaces the references in the RPC URLs and headers of the relayer at path, and returns
// the names of the variables. It adds a problem for each text with a variable that has no value.
func (c *Config) expand(list []relayer.RPCConfig, path string, found *wire.Problems) (names []string) {
	for i := range list {
		endpoint := &list[i]
		expand := func(field, text, host string) string {
			expanded, used, problem := c.expandText(text, host)
			names = append(names, used...)
			if problem != "" {
				found.Add(fmt.Sprintf("%s.custom_rpc_urls[%d].%s", path, i, field), problem)
			}
			return expanded
		}
		url := endpoint.URL.Unmasked()
		endpoint.URL = relayer.RPCURL(expand("url", url, hostOf(url)))
		for _, name := range slices.Sorted(maps.Keys(endpoint.Headers)) {
			endpoint.Headers[name] = relayer.Secret(expand("headers."+name, endpoint.Headers[name].Unmasked(), ""))
		}
	}
	return names
}

// expandText returns a text, which has a host if it is a URL, with the values of its variables, the
// names of the variables, and why the first one without a value has none.
func (c *Config) expandText(text, host string) (expanded string, names []string, problem string) {
	if c.lookup != nil && reference.MatchString(host) {
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
