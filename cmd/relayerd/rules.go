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

// ruleOptions holds the options of a Manager, grouped by the data that their rules check.
type ruleOptions struct {
	relayer  []relayer.Option // one relayer
	create   []relayer.Option // one relayer, only when it is created
	registry []relayer.Option // one relayer and all others
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
