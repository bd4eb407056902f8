package relayer

// AddSelectorKey adds a key that selects by the first letter of the name, as a later version
// might, until the test ends.
func AddSelectorKey(name string, cleanup func(func())) {
	before := selectorKeys
	cleanup(func() { selectorKeys = before })
	selectorKeys = append(before[:len(before):len(before)], selectorKey{
		name: name, since: termsVersion() + 1,
		value: func(r *Relayer) (string, bool) { return r.Name[:1], true },
	})
}

// RemoveAddedSelectorKey makes this version one that does not have the key.
func RemoveAddedSelectorKey() { selectorKeys = selectorKeys[:len(selectorKeys)-1] }
