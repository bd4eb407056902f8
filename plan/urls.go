package plan

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

type urlComparison struct {
	list     []relayer.RPCConfig // to write if there are changes; nil clears
	hidden   []int               // positions whose full URL neither the file nor the registry shows
	changes  []Change
	problems wire.Problems
}

func (b *builder) compareURLs(desired, stored []relayer.RPCConfig) *urlComparison {
	c := &urlComparison{list: slices.Clone(desired)}
	if !b.isMasked {
		c.restoreURLs(stored)
		c.checkUserInfo(stored)
	}
	for i, endpoint := range c.list {
		switch {
		case i < len(stored):
			b.compareEndpoints(c, i, stored[i])
		case b.isMasked && endpoint.URL.IsMasked():
			c.addMasked(i)
		default:
			c.changes = append(c.changes, Change{Path: endpointPath(i), New: endpointText(endpoint)})
		}
	}
	for i := len(desired); i < len(stored); i++ {
		c.changes = append(c.changes, Change{Path: endpointPath(i), Old: endpointText(stored[i])})
	}
	if b.isMasked && b.SendRPCURLs && len(c.changes) == 0 && len(c.hidden) == 0 {
		for i, endpoint := range c.list { // the hidden parts may differ
			c.changes = append(c.changes, urlChange(i, endpoint.URL, endpoint.URL))
		}
	}
	if len(c.changes) > 0 {
		for _, i := range c.hidden {
			c.problems.Add(endpointPath(i)+".url", "must be the full URL: a change of one endpoint writes all")
		}
	}
	return c
}

// restoreURLs replaces the masked URLs of the list by the stored ones. Stored URLs that
// the list contains in full are not candidates.
func (c *urlComparison) restoreURLs(stored []relayer.RPCConfig) {
	full := make(map[relayer.RPCURL]int)
	for _, endpoint := range c.list {
		if !endpoint.URL.IsMasked() {
			full[endpoint.URL]++
		}
	}
	positions := positionsByMask(c.list, relayer.RPCURL.IsMasked)
	candidates := positionsByMask(stored, func(url relayer.RPCURL) bool {
		full[url]--
		return full[url] < 0 && relayer.RPCURL(maskOf(url)).IsMasked()
	})
	for i, endpoint := range c.list {
		if endpoint.URL.IsMasked() {
			mask := endpoint.URL.String()
			c.restoreURL(i, stored, candidates[mask], positions[mask])
		}
	}
}

// restoreURL replaces a masked URL by the stored one. candidates are the positions of
// the stored URLs with its mask, and positions those of the list.
func (c *urlComparison) restoreURL(i int, stored []relayer.RPCConfig, candidates, positions []int) {
	if len(candidates) == 0 {
		c.addMasked(i)
		return
	}
	if !c.isUnambiguous(stored, candidates, positions) {
		c.problems.Add(endpointPath(i)+".url", "must be the full URL: several endpoints have this mask, and the file changes their number, order or weights")
		return
	}
	url := stored[candidates[slices.Index(positions, i)]].URL
	if given := c.list[i].URL; given != url && string(given) != maskOf(url) && string(given) != url.String() {
		c.addMasked(i)
		return
	}
	c.list[i].URL = url
}

// isUnambiguous reports whether each masked URL of the list has one stored URL. If
// several endpoints have the same mask, only their number, order and weights can show
// that none was removed or moved.
func (c *urlComparison) isUnambiguous(stored []relayer.RPCConfig, candidates, positions []int) bool {
	if len(candidates) == 1 && len(positions) == 1 {
		return true
	}
	return slices.EqualFunc(candidates, positions, func(from, to int) bool {
		return weightOf(stored[from]) == weightOf(c.list[to])
	})
}

// checkUserInfo adds a problem for each stored URL that would lose its user information,
// because a Manager rejects such a URL as a mask that was written back.
func (c *urlComparison) checkUserInfo(stored []relayer.RPCConfig) {
	known, withoutUser := make(map[relayer.RPCURL]bool), make(map[string]bool)
	for _, endpoint := range stored {
		known[endpoint.URL] = true
		if hasUserInfo(endpoint.URL) {
			withoutUser[strings.TrimSuffix(endpoint.URL.String(), "/")] = true
		}
	}
	for i, endpoint := range c.list {
		if !known[endpoint.URL] && withoutUser[strings.TrimSuffix(endpoint.URL.Unmasked(), "/")] {
			c.problems.Add(endpointPath(i)+".url", "must not be the stored URL without its user information: to remove the user information, apply the file without this endpoint first")
		}
	}
}

// positionsByMask returns the positions of the URLs that match, by their visible part.
func positionsByMask(endpoints []relayer.RPCConfig, matches func(relayer.RPCURL) bool) map[string][]int {
	positions := make(map[string][]int)
	for i, endpoint := range endpoints {
		if matches(endpoint.URL) {
			mask := endpoint.URL.String()
			positions[mask] = append(positions[mask], i)
		}
	}
	return positions
}

func (b *builder) compareEndpoints(c *urlComparison, i int, stored relayer.RPCConfig) {
	desired := c.list[i]
	isSame, isMask := b.isSameURL(desired.URL, stored.URL), b.isMasked && desired.URL.IsMasked()
	switch {
	case isSame && isMask:
		c.hidden = append(c.hidden, i)
	case isMask:
		c.addMasked(i)
		return
	case !isSame:
		c.changes = append(c.changes, urlChange(i, stored.URL, desired.URL))
	}
	if from, to := weightOf(stored), weightOf(desired); from != to {
		c.changes = append(c.changes, Change{Path: endpointPath(i) + ".weight", Old: text(from), New: text(to)})
	}
}

func (c *urlComparison) addMasked(i int) {
	c.problems.Add(endpointPath(i)+".url", "must be the full URL: it is masked, and differs from the stored one")
}

// isSameURL reports whether the desired URL is the stored one, as far as the registry
// shows it.
func (b *builder) isSameURL(desired, stored relayer.RPCURL) bool {
	if b.isMasked {
		return desired.String() == stored.String()
	}
	return desired == stored
}

func endpointPath(i int) string { return fmt.Sprintf("custom_rpc_urls[%d]", i) }

func urlChange(i int, from, to relayer.RPCURL) Change {
	return Change{Path: endpointPath(i) + ".url", Old: text(maskOf(from)), New: text(maskOf(to))}
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

func weightOf(endpoint relayer.RPCConfig) float64 {
	if endpoint.Weight == nil {
		return relayer.DefaultRPCWeight
	}
	return *endpoint.Weight
}

// endpointText returns the JSON of an endpoint, with its URL masked as in a file.
func endpointText(endpoint relayer.RPCConfig) string {
	return text(struct {
		URL    string  `json:"url"`
		Weight float64 `json:"weight"`
	}{maskOf(endpoint.URL), weightOf(endpoint)})
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
