package plan

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

const urlsPath = "custom_rpc_urls"

func isMasked(endpoint relayer.RPCConfig) bool { return endpoint.URL.IsMasked() }

// maskProblems returns a problem for each masked URL of a list, unless the list is the one that
// the registry shows: then the stored URLs are kept. A URL with a hidden part in full cannot be
// compared next to a masked one, because a registry takes only whole lists.
func maskProblems(list []relayer.RPCConfig, isOther bool) []relayer.FieldError {
	var found wire.Problems
	for _, endpoint := range list {
		isOther = isOther || maskOf(endpoint.URL) != string(endpoint.URL)
	}
	for i, endpoint := range list {
		if isOther && isMasked(endpoint) {
			found.Add(fmt.Sprintf("%s[%d].url", urlsPath, i), "must be the full URL: masked URLs are kept only if the file has all RPC URLs of the relayer as the registry shows them")
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
