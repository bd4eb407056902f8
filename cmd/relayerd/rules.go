package main

import (
	"slices"

	"github.com/go-relayer/relayer"
)

// rules holds the flags that determine which relayers are valid.
type rules struct {
	signersFile      string
	networkRules     bool
	exclusiveSigners bool
}

// managerOptions returns the options of a Manager that applies all rules, and those of
// the rules that apply to one relayer alone. It reads the signers file, which may be a
// pipe, only once.
func (r rules) managerOptions() (all, perRelayer []relayer.Option, err error) {
	if r.networkRules {
		perRelayer = append(perRelayer, relayer.WithNetworkRules())
	}
	if r.signersFile != "" {
		known, err := readSigners(r.signersFile)
		if err != nil {
			return nil, nil, err
		}
		perRelayer = append(perRelayer, relayer.WithAddressResolver(known.address))
	}
	all = slices.Clone(perRelayer)
	if r.exclusiveSigners {
		all = append(all, relayer.WithExclusiveSigners())
	}
	return all, perRelayer, nil
}
