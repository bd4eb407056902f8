// Package recent retains the latest changes of a store in bounded memory.
package recent

import "github.com/go-relayer/relayer"

const (
	maxChanges = 1024
	maxBytes   = 16 << 20
)

// Changes are the last changes, oldest first: at most 1,024, and at most 16 MiB. The zero value
// is empty.
type Changes struct {
	All   []relayer.RecordChange
	bytes int
}

// Add adds the newest change, and removes the oldest ones above the limits.
func (c *Changes) Add(change relayer.RecordChange) {
	c.All = append(c.All, change)
	for c.bytes += size(change); len(c.All) > maxChanges || c.bytes > maxBytes; c.All = c.All[1:] {
		c.bytes -= size(c.All[0])
		c.All[0] = relayer.RecordChange{} // frees its memory
	}
}

func size(change relayer.RecordChange) int {
	rec := change.Record
	size := len(rec.ID) + len(rec.Claim) + len(rec.Document) + len(rec.Private) + len(rec.Note) + len(rec.Text) + len(change.OldText)
	for _, terms := range [...][]string{rec.Terms, change.OldTerms} {
		for _, term := range terms {
			size += len(term)
		}
	}
	return size
}
