package main

import "github.com/go-relayer/relayer"

// rules holds the flags that determine which relayers are valid.
type rules struct {
	signersFile      string
	networkRules     bool
	exclusiveSigners bool
}

// managerOptions returns the options of a Manager that applies the rules.
func (r rules) managerOptions() ([]relayer.Option, error) {
	var options []relayer.Option
	if r.networkRules {
		options = append(options, relayer.WithNetworkRules())
	}
	if r.exclusiveSigners {
		options = append(options, relayer.WithExclusiveSigners())
	}
	if r.signersFile != "" {
		known, err := readSigners(r.signersFile)
		if err != nil {
			return nil, err
		}
		options = append(options, relayer.WithAddressResolver(known.address))
	}
	return options, nil
}
