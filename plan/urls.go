package plan

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
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
