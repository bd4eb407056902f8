package plan

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

const urlsPath = "custom_rpc_urls"

func isMasked(endpoint relayer.RPCConfig) bool {
	return endpoint.URL.IsMasked() || slices.ContainsFunc(slices.Collect(maps.Values(endpoint.Headers)), relayer.Secret.IsMasked)
}

// maskedHeaders returns headers in the form of responses.
func maskedHeaders(headers map[string]relayer.Secret) map[string]relayer.Secret {
	masked := maps.Clone(headers)
	for name, value := range masked {
		masked[name] = relayer.Secret(value.String())
	}
	return masked
}

// maskProblems returns a problem for each masked URL and header of a list, unless the list is the
// one that the registry shows: then the stored ones are kept. A registry takes only whole lists, so
// a list must not mix full and masked values.
func maskProblems(list []relayer.RPCConfig, isOther bool) []relayer.FieldError {
	const reason = ": masked URLs are kept only if the file has all RPC URLs of the relayer as the registry shows them"
	var found wire.Problems
	for _, endpoint := range list {
		isOther = isOther || maskOf(endpoint.URL) != string(endpoint.URL) || !maps.Equal(endpoint.Headers, maskedHeaders(endpoint.Headers))
	}
	for i, endpoint := range list {
		if isOther && endpoint.URL.IsMasked() {
			found.Add(fmt.Sprintf("%s[%d].url", urlsPath, i), "must be the full URL"+reason)
		}
		for _, name := range slices.Sorted(maps.Keys(endpoint.Headers)) {
			if isOther && endpoint.Headers[name].IsMasked() {
				found.ReportUnknown(fmt.Sprintf("%s[%d].headers.%s", urlsPath, i, name), "", "must be the full value"+reason)
			}
		}
	}
	return found.Fields()
}

// maskedUser replaces hidden user information.
const maskedUser = "***@"

// maskOf returns the masked form of a URL in a file. Responses remove user information,
// so that its loss would not be visible in a file. A URL without a hidden part is itself.
func maskOf(full relayer.RPCURL) string {
	masked := full.String()
	switch {
	case hasUserInfo(full):
		scheme, rest, _ := strings.Cut(masked, "://")
		return scheme + "://" + maskedUser + rest
	case relayer.RPCURL(masked).IsMasked():
		return masked
	default:
		return string(full)
	}
}

func hasUserInfo(full relayer.RPCURL) bool {
	parsed, err := url.Parse(string(full))
	return err == nil && parsed.User != nil
}

// text returns the JSON of a value, or "" for nil.
func text(value any) string {
	if value == nil {
		return ""
	}
	encoded, err := strictjson.Encode(value)
	if err != nil {
		return "?" // a number that JSON does not have, which no valid relayer has
	}
	return string(encoded)
}
