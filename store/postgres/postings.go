package postgres

import "slices"

// posting is a record, named by its sequence number, that gains or loses a term.
type posting struct {
	term     string
	sequence int64
}

func postingsOf(sequence int64, terms []string) []posting {
	postings := make([]posting, len(terms))
	for i, term := range terms {
		postings[i] = posting{term, sequence}
	}
	return postings
}

// without returns the terms that others does not have.
func without(terms, others []string) []string {
	return slices.DeleteFunc(slices.Clone(terms), func(term string) bool { return slices.Contains(others, term) })
}

func postingColumns(postings []posting) (terms []string, sequences []int64) {
	for _, p := range postings {
		terms, sequences = append(terms, p.term), append(sequences, p.sequence)
	}
	return terms, sequences
}
