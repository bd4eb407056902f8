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
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// variables replaces references to environment variables.
type variables struct {
	lookup func(name string) (value string, ok bool) // nil if references are not replaced
	names  map[string]bool                           // that are referred to
}

// expand replaces the references in RPC URLs and headers. It returns a [*relayer.ValidationError]
// with the texts that cannot be expanded.
func (v *variables) expand(list []relayer.RPCConfig) error {
	var found wire.Problems
	for i := range list {
		endpoint, path := &list[i], fmt.Sprintf("%s[%d]", urlsPath, i)
		url, problem := v.expandText(endpoint.URL.Unmasked())
		if v.lookup != nil && reference.MatchString(hostOf(endpoint.URL)) {
			problem = "must have no variable in the host, which responses show"
		}
		if endpoint.URL = relayer.RPCURL(url); problem != "" {
			found.Add(path+".url", problem)
		}
		for _, name := range slices.Sorted(maps.Keys(endpoint.Headers)) {
			value, problem := v.expandText(endpoint.Headers[name].Unmasked())
			if endpoint.Headers[name] = relayer.Secret(value); problem != "" {
				found.ReportUnknown(strictjson.Join(path+".headers", name), "", problem)
			}
		}
	}
	return found.Err()
}

// hostOf returns the host and port of a URL that may have references.
func hostOf(url relayer.RPCURL) string {
	_, afterScheme, _ := strings.Cut(url.Unmasked(), "://")
	authority, _ := mask.Authority(afterScheme)
	return authority[strings.LastIndex(authority, "@")+1:]
}

// expandText returns a text with the values of its variables, and why the first variable without
// a value has none.
func (v *variables) expandText(text string) (expanded, problem string) {
	expanded = reference.ReplaceAllStringFunc(text, func(match string) string {
		name := strings.Trim(match, "${}")
		v.names[name] = true
		if v.lookup == nil {
			return match
		}
		value, why := v.value(name)
		if why != "" && problem == "" {
			problem = fmt.Sprintf("refers to the environment variable %s, %s", name, why)
		}
		return value
	})
	return expanded, problem
}

// value returns the value of a variable, or why it has none. The names of variables have no
// letter case on Windows.
func (v *variables) value(name string) (value, why string) {
	if upper := strings.ToUpper(name); upper == "API_KEY" || strings.HasPrefix(upper, "RELAYERD_") || strings.HasPrefix(upper, "PG") {
		return "", "which is a credential of this program and is never part of a relayer"
	}
	value, ok := v.lookup(name)
	switch {
	case !ok:
		return "", "which is not set"
	case !utf8.ValidString(value):
		return "", "whose value is not UTF-8"
	}
	return value, ""
}
