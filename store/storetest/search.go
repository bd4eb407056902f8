package storetest

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
)

// searched has texts that a store may confuse: a search compares byte by byte, and no
// character has a special meaning.
var searched = []string{
	"", " ", "a", "A", "ab", "ba", "a b", "a%b", "a_b", "%", "_", "%%", `\`, `\\`, `a\b`, `\%`, "'", "''", "a'b", `"`, "`",
	"a.b", ".", "a*", "[a]", "^a$", "(a|b)", "{a}", "NULL", "$1", "?", "\x01", "\n", "\t", "a\n",
	"é", "e\u0301", "É", "ß", "ss", "İ", "\u00a0", "\u200b", "\U0010ffff", "日本語", "本",
	strings.Repeat("x", limits.Text), strings.Repeat("x", limits.Text-1) + "y",
	"y" + strings.Repeat("x", limits.Text-1), strings.Repeat("é", limits.Text/2),
	strings.Repeat(`%_\'`, limits.Text/4),
}

func listContains(t *testing.T, store relayer.Store) {
	var all []relayer.Record
	for i, text := range searched {
		rec := sample(numbered(i))
		rec.Text = text
		all = append(all, mustCreate(t, store, rec))
	}
	for _, part := range append(searched, "xy", "yx", "éé", "B", "\u0301", strings.Repeat("x", limits.Text+1), "id-0001") {
		wantSelected(t, store, relayer.StoreQuery{Contains: []string{part}, Limit: 100}, all)
	}
	for _, query := range []relayer.StoreQuery{
		{Contains: []string{}, Limit: 100},
		{Contains: []string{"%", "_"}, Limit: 3},
		{Contains: []string{"a", "a", "ab"}, Offset: 2, Limit: math.MaxInt},
		{Contains: []string{"none", "nothing"}, Limit: 10},
		{Contains: searched[1:9], Limit: 100},
		{Contains: []string{"a", "x"}, Terms: [][]string{{"id=id-0002", "id=id-0004", "id=id-0005", "id=id-0046"}}, Limit: 10},
		{Contains: []string{"a"}, Terms: [][]string{{"common"}, {"none"}}, Limit: 10},
		{Contains: []string{"a"}, IDs: []string{numbered(2), numbered(3), numbered(6), "none"}, Limit: 10},
		{Contains: []string{"a"}, After: all[6].Sequence, Limit: 2},
		{Contains: []string{"a"}, After: all[6].Sequence, Offset: 1, Limit: 2, Terms: [][]string{{"common"}}},
	} {
		wantSelected(t, store, query, all)
	}
	// The text of an update takes the place of the old one.
	all[2].Text = "c"
	all[2] = mustUpdate(t, store, all[2])
	mustDelete(t, store, all[4])
	all = append(all[:4:4], all[5:]...)
	for _, part := range []string{"a", "c", "ab", "%"} {
		wantSelected(t, store, relayer.StoreQuery{Contains: []string{part}, Limit: 100}, all)
	}
}

// letters make short texts that often contain each other.
var letters = []string{"a", "b", "%", "_", `\`, "'", " ", "é", "É"}

func randomText(random *rand.Rand, most int) string {
	var text strings.Builder
	for range random.IntN(most + 1) {
		text.WriteString(letters[random.IntN(len(letters))])
	}
	return text.String()
}
