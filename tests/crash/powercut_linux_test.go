package crash

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// powerCut decides which unsynced changes a power cut leaves on the disk.
type powerCut struct {
	random *rand.Rand
	share  float64 // of the unsynced changes that are kept

	// Counted for the log, in sectors.
	kept, dropped, torn int

	// tornHeader reports that a header page of the database is torn.
	tornHeader bool
}

// newPowerCut varies the share from cut to cut. Some cuts keep nothing or all.
func newPowerCut(random *rand.Rand) *powerCut {
	c := &powerCut{random: random}
	switch random.IntN(10) {
	case 0:
		c.share = 0
	case 1:
		c.share = 1
	default:
		c.share = random.Float64()
	}
	return c
}

func (c *powerCut) keeps() bool { return c.random.Float64() < c.share }

// afterCut returns the content of the disk after the cut.
func (d *disk) afterCut(cut *powerCut) image {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isOff = true
	names := maps.Clone(d.syncedNames)
	for _, c := range d.nameChanges {
		if cut.keeps() {
			c.apply(names)
		}
	}
	left := make(image)
	contents := make(map[inode][]byte) // two names of a file show the same content
	for _, name := range slices.Sorted(maps.Keys(names)) {
		number := names[name]
		if contents[number] == nil {
			contents[number] = d.files[number].afterCut(cut)
		}
		left[name] = contents[number]
	}
	return left
}
