package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// urlComparison is the difference between two lists of RPC endpoints.
type urlComparison struct {
	list     []relayer.RPCConfig // to write if there are changes
	hidden   []int               // positions whose full URL neither the file nor the registry shows
	changes  []Change
	problems problems
}

func (b *builder) compareURLs(desired, stored []relayer.RPCConfig) *urlComparison {
	c := &urlComparison{list: slices.Clone(desired)}
	for i, endpoint := range desired {
		switch {
		case i < len(stored):
			b.compareEndpoints(c, i, stored[i])
		case looksMasked(endpoint.URL):
			c.addMasked(i)
		default:
			c.changes = append(c.changes, Change{Path: endpointPath(i), New: text(endpoint)})
		}
	}
	for i := len(desired); i < len(stored); i++ {
		c.changes = append(c.changes, Change{Path: endpointPath(i), Old: text(stored[i])})
	}
	if b.isMasked && b.sendURLs && len(c.changes) == 0 && len(c.hidden) == 0 {
		c.addHiddenChanges()
	}
	if len(c.changes) > 0 {
		for _, i := range c.hidden {
			c.problems.Add(endpointPath(i)+".url", "must be the full URL: a change of one endpoint writes all")
		}
	}
	return c
}

// compareEndpoints compares the desired endpoint at a position with the stored one.
func (b *builder) compareEndpoints(c *urlComparison, i int, stored relayer.RPCConfig) {
	desired := c.list[i]
	isSame, isMask := b.isSameURL(desired.URL, stored.URL), looksMasked(desired.URL)
	switch {
	case isSame && !b.isMasked:
		c.list[i].URL = stored.URL
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
// shows it. The masked form of the stored URL is the same URL.
func (b *builder) isSameURL(desired, stored relayer.RPCURL) bool {
	if b.isMasked {
		return desired.String() == stored.String()
	}
	return desired == stored || string(desired) == stored.String()
}

// addHiddenChanges adds a change for each URL, because the hidden parts may differ.
func (c *urlComparison) addHiddenChanges() {
	for i, endpoint := range c.list {
		c.changes = append(c.changes, urlChange(i, endpoint.URL, endpoint.URL))
	}
}

// patchValue is the value of custom_rpc_urls in a patch.
func (c *urlComparison) patchValue() any {
	if c.list == nil {
		return nil
	}
	return c.list
}

func endpointPath(i int) string { return fmt.Sprintf("custom_rpc_urls[%d]", i) }

func urlChange(i int, from, to relayer.RPCURL) Change {
	return Change{Path: endpointPath(i) + ".url", Old: text(from), New: text(to)}
}

// looksMasked reports whether a URL has the form in which responses show one with a
// hidden path.
func looksMasked(url relayer.RPCURL) bool { return strings.HasSuffix(string(url), "/***") }

func weightOf(endpoint relayer.RPCConfig) float64 {
	if endpoint.Weight == nil {
		return relayer.DefaultRPCWeight
	}
	return *endpoint.Weight
}

// text returns the JSON of a value, with RPC URLs masked, or "" for nil.
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
