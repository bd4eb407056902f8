package postgres

import (
	"cmp"
	"maps"
)

type node struct {
	level int16
	index int64
}

func countChanges(outcomes []outcome) map[node]int32 {
	changes := make(map[node]int32)
	for _, o := range outcomes {
		sign := int32(cmp.Compare(o.count, 0))
		for sequence := o.first; sequence < o.first+max(o.count, -o.count); sequence++ {
			for level := int16(1); level <= levels; level++ {
				changes[node{level, sequence >> (nodeShift * level)}] += sign
			}
		}
	}
	maps.DeleteFunc(changes, func(_ node, by int32) bool { return by == 0 })
	return changes
}

// columnsOf returns the changes as parameters of a statement. They are not sorted,
// because only the holder of the write lock changes counts.
func columnsOf(changes map[node]int32) (depths []int16, indexes []int64, by []int32) {
	for at, change := range changes {
		depths = append(depths, at.level)
		indexes = append(indexes, at.index)
		by = append(by, change)
	}
	return depths, indexes, by
}
