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
	changes  []Change
	problems problems
}

func (b *builder) compareURLs(desired, stored []relayer.RPCConfig) *urlComparison {
	c := &urlComparison{list: slices.Clone(desired)}
	var hidden []int // positions whose full URL neither the file nor the registry shows
	for i := range max(len(desired), len(stored)) {
		path := fmt.Sprintf("custom_rpc_urls[%d]", i)
		switch {
		case i >= len(desired):
			c.changes = append(c.changes, Change{Path: path, Old: text(stored[i])})
			continue
		case i < len(stored) && b.isSameURL(desired[i].URL, stored[i].URL):
			if !b.isMasked {
				c.list[i].URL = stored[i].URL
			} else if looksMasked(desired[i].URL) {
				hidden = append(hidden, i)
			}
		case looksMasked(desired[i].URL):
			c.problems.Add(path+".url", "must be the full URL: it is masked, and differs from the stored one")
			continue
		case i >= len(stored):
			c.changes = append(c.changes, Change{Path: path, New: text(desired[i])})
			continue
		default:
			c.changes = append(c.changes, urlChange(path, stored[i].URL, desired[i].URL))
		}
		if from, to := weightOf(stored[i]), weightOf(desired[i]); from != to {
			c.changes = append(c.changes, Change{Path: path + ".weight", Old: text(from), New: text(to)})
		}
	}
	if b.isMasked && b.sendURLs && len(hidden) == 0 && len(c.changes) == 0 {
		c.addHiddenChanges()
	}
	if len(c.changes) > 0 {
		for _, i := range hidden {
			c.problems.Add(fmt.Sprintf("custom_rpc_urls[%d].url", i), "must be the full URL: a change of one endpoint writes all")
		}
	}
	return c
}

// isSameURL reports whether the desired URL is the stored one, as far as the registry
// shows it. The mask of the stored URL stands for it.
func (b *builder) isSameURL(desired, stored relayer.RPCURL) bool {
	if b.isMasked {
		return desired.String() == stored.String()
	}
	return desired == stored || string(desired) == stored.String()
}

// addHiddenChanges adds a change for each URL, because the hidden parts may differ.
func (c *urlComparison) addHiddenChanges() {
	for i, endpoint := range c.list {
		c.changes = append(c.changes, urlChange(fmt.Sprintf("custom_rpc_urls[%d]", i), endpoint.URL, endpoint.URL))
	}
}

// patchValue is the value of custom_rpc_urls in a patch.
func (c *urlComparison) patchValue() any {
	if len(c.list) == 0 {
		return nil
	}
	return c.list
}

func urlChange(path string, from, to relayer.RPCURL) Change {
	return Change{Path: path + ".url", Old: text(from), New: text(to)}
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
