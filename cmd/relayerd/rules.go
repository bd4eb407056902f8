package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/rpcguard"
)

// rules holds the flags that determine which relayers are valid.
type rules struct {
	signersFile      string
	networkRules     bool
	exclusiveSigners bool
	rpcHosts         string
	rpcPublicOnly    bool
	settingsSchema   string
}

func (r *rules) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&r.signersFile, "signers", "", "JSON `file` of the signers that exist, with addresses")
	flags.BoolVar(&r.networkRules, "network-rules", false, "check addresses, assets and schedules of networks")
	flags.BoolVar(&r.exclusiveSigners, "exclusive-signers", false, "allow each signer one relayer per network")
	flags.StringVar(&r.settingsSchema, "settings-schema", "", "`file` with the JSON Schema of settings of relayers")
	flags.StringVar(&r.rpcHosts, "rpc-hosts", "", "`hosts` of RPC URLs, such as *.example.org,10.0.0.0/8")
	flags.BoolVar(&r.rpcPublicOnly, "rpc-public-only", false, "refuse private hosts that --rpc-hosts does not list")
}

// managerOptions returns the options except that of the signers.
func (r rules) managerOptions() (options []relayer.Option, err error) {
	if r.networkRules {
		options = append(options, relayer.WithNetworkRules())
	}
	if r.rpcHosts != "" || r.rpcPublicOnly {
		policy, err := r.rpcPolicy()
		if err != nil {
			return nil, err
		}
		options = append(options, relayer.WithRPCPolicy(policy))
	}
	if r.exclusiveSigners {
		options = append(options, relayer.WithExclusiveSigners())
	}
	if r.settingsSchema != "" {
		rule, err := settingsRule(r.settingsSchema)
		if err != nil {
			return nil, err
		}
		options = append(options, rule)
	}
	return options, nil
}

// rpcPolicy returns the policy of --rpc-hosts and --rpc-public-only.
func (r rules) rpcPolicy() (rpcguard.Policy, error) {
	policy := rpcguard.Policy{PublicOnly: r.rpcPublicOnly}
	if r.rpcHosts == "" {
		return policy, nil
	}
	policy.AllowedHosts = []string{}
	for text := range strings.SplitSeq(r.rpcHosts, ",") {
		text = strings.TrimSpace(text)
		if network, err := parseNetwork(text); err == nil {
			policy.AllowedAddresses = append(policy.AllowedAddresses, network)
			continue
		}
		if text == "" || strings.ContainsAny(text, "@:/=") { // it may be a URL with a secret
			return policy, errors.New("--rpc-hosts must be a comma-separated list of host names and networks, such as rpc.example.com,*.example.org,10.0.0.0/8")
		}
		policy.AllowedHosts = append(policy.AllowedHosts, text)
	}
	return policy, nil
}
