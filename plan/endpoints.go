package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

const urlsPath = "custom_rpc_urls"

// isMaskedList reports whether a list has masked endpoints, and no hidden part in full.
func isMaskedList(list []relayer.RPCConfig) bool {
	return slices.ContainsFunc(list, relayer.RPCConfig.IsMasked) && reflect.DeepEqual(list, maskedList(list))
}

// maskedList returns endpoints as a file without secrets has them.
func maskedList(list []relayer.RPCConfig) []relayer.RPCConfig {
	masked := slices.Clone(list)
	for i, endpoint := range list {
		masked[i].URL, masked[i].Headers = maskOf(endpoint.URL), maps.Clone(endpoint.Headers)
		for name := range endpoint.Headers {
			masked[i].Headers[name] = mask.Hidden
		}
	}
	return masked
}

// maskOf returns the masked form of a URL in a file. Responses remove user information,
// so its loss would not be visible in a file. A URL without a hidden part is itself.
func maskOf(full relayer.RPCURL) relayer.RPCURL {
	masked := relayer.RPCURL(full.String())
	parsed, err := url.Parse(full.Unmasked())
	switch {
	case err == nil && parsed.User != nil:
		return relayer.RPCURL(strings.Replace(string(masked), "://", "://***@", 1))
	case masked.IsMasked():
		return masked
	default:
		return full
	}
}

// variables replaces references to environment variables in the URLs and headers of endpoints.
type variables struct {
	lookup func(name string) (value string, ok bool) // nil if references are not replaced
	names  map[string]bool                           // that are referred to
}

// expand returns a [*relayer.ValidationError] with the texts that cannot be expanded.
func (v *variables) expand(list []relayer.RPCConfig) error {
	var found wire.Problems
	for i := range list {
		endpoint, path := &list[i], fmt.Sprintf("%s[%d]", urlsPath, i)
		url, problem := v.expandText(endpoint.URL.Unmasked())
		host, _ := mask.Split(endpoint.URL.Unmasked()) // may have references
		expandedHost, _ := mask.Split(url)
		switch {
		case v.lookup == nil:
		case reference.MatchString(host):
			problem = "must have no variable in the host, which responses show"
		case problem == "" && host != "" && expandedHost != host:
			problem = "has a variable before the host whose value changes the host: percent-encode / ? and # in the value"
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

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expandText returns a text with the values of its variables, and why the first variable without
// a value has none.
func (v *variables) expandText(text string) (expanded, problem string) {
	expanded = reference.ReplaceAllStringFunc(text, func(match string) string {
		name := strings.Trim(match, "${}")
		if v.names[name] = true; v.lookup == nil {
			return match
		}
		value, why := v.value(name)
		if why != "" {
			problem = cmp.Or(problem, fmt.Sprintf("refers to the environment variable %s, %s", name, why))
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
	case value == "": // as a pipeline sets a missing secret
		return "", "which is empty"
	case !utf8.ValidString(value):
		return "", "whose value is not UTF-8"
	}
	return value, ""
}
