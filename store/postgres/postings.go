package postgres

import "slices"

// posting is a record, named by its position, that gains or loses a term.
type posting struct {
	term     string
	position int64
}

func postingsOf(position int64, terms []string) []posting {
	postings := make([]posting, len(terms))
	for i, term := range terms {
		postings[i] = posting{term, position}
	}
	return postings
}

// without returns the terms that others does not have.
func without(terms, others []string) []string {
	return slices.DeleteFunc(slices.Clone(terms), func(term string) bool { return slices.Contains(others, term) })
}

func postingColumns(postings []posting) (terms []string, positions []int64) {
	for _, p := range postings {
		terms, positions = append(terms, p.term), append(positions, p.position)
	}
	return terms, positions
}
