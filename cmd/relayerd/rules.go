package main

import "github.com/go-relayer/relayer"

// rules holds the flags that determine which relayers are valid.
type rules struct {
	signersFile      string
	networkRules     bool
	exclusiveSigners bool
}

// managerOptions reads the signers file, which may be a pipe.
func (r rules) managerOptions() (options []relayer.Option, err error) {
	if r.networkRules {
		options = append(options, relayer.WithNetworkRules())
	}
	if r.signersFile != "" {
		known, err := readSigners(r.signersFile)
		if err != nil {
			return nil, err
		}
		options = append(options, relayer.WithAddressResolver(known.address))
	}
	if r.exclusiveSigners {
		options = append(options, relayer.WithExclusiveSigners())
	}
	return options, nil
}
