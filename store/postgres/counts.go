package postgres

import "maps"

// node is one of the counts.
type node struct {
	level int16
	index int64
}

// shiftsOf is by how much each count changes.
func shiftsOf(outcomes []outcome) map[node]int32 {
	shifts := make(map[node]int32)
	for _, o := range outcomes {
		sign := int32(1)
		if o.count < 0 {
			sign = -1
		}
		for position := o.first; position < o.first+max(o.count, -o.count); position++ {
			for level := int16(1); level <= levels; level++ {
				shifts[node{level, position >> (nodeShift * level)}] += sign
			}
		}
	}
	maps.DeleteFunc(shifts, func(_ node, by int32) bool { return by == 0 })
	return shifts
}

// columnsOf puts them as the server takes them, in whatever order: nobody else
// changes a count meanwhile.
func columnsOf(shifts map[node]int32) (depths []int16, nodes []int64, by []int32) {
	for at, shift := range shifts {
		depths = append(depths, at.level)
		nodes = append(nodes, at.index)
		by = append(by, shift)
	}
	return depths, nodes, by
}
