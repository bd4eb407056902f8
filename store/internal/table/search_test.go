package table

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// TestSearch_Random compares searches for parts of all lengths with strings.Contains.
func TestSearch_Random(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	word := func(most int) string {
		var text strings.Builder
		for range random.IntN(most + 1) {
			text.WriteString([]string{"a", "b", "c", "é", "\xff", "\x00"}[random.IntN(2+random.IntN(5))])
		}
		return text.String()
	}
	for range 3000 {
		var parts []string
		for range random.IntN(5) {
			parts = append(parts, word(1+random.IntN(8)))
		}
		s := newSearch(parts)
		for range 20 {
			text := word(40)
			want := len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
			if got := s.finds(NewRecord(relayer.Record{ID: "id", Claim: "ab", Text: text})); got != want {
				t.Fatalf("a search for %q in %q returns %t", parts, text, got)
			}
		}
	}
}
