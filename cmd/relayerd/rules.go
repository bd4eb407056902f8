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

// ruleOptions holds the options of a Manager by what their rules need.
type ruleOptions struct {
	relayer  []relayer.Option // a relayer alone
	create   []relayer.Option // a relayer alone, at its creation
	registry []relayer.Option // the other relayers
}

func (o ruleOptions) all() []relayer.Option { return slices.Concat(o.relayer, o.create, o.registry) }

// managerOptions reads the signers file, which may be a pipe.
func (r rules) managerOptions() (o ruleOptions, err error) {
	if r.networkRules {
		o.relayer = append(o.relayer, relayer.WithNetworkRules())
	}
	if r.signersFile != "" {
		known, err := readSigners(r.signersFile)
		if err != nil {
			return ruleOptions{}, err
		}
		o.create = append(o.create, relayer.WithAddressResolver(known.address))
	}
	if r.exclusiveSigners {
		o.registry = append(o.registry, relayer.WithExclusiveSigners())
	}
	return o, nil
}
