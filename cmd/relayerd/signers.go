package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"github.com/go-relayer/relayer"
)

// signersForm describes the content of --signers.
const signersForm = `a JSON object, such as {"treasury":{"evm":"0x…"}}`

// signers maps the ID of each signer to its addresses.
type signers map[string]map[relayer.NetworkType]string

func readSigners(file string) (known signers, err error) {
	if err := checkFile("--signers", file); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, inputError("--signers", file, "create it as "+signersForm, err)
	}
	if err := json.Unmarshal(data, &known); err != nil || known == nil {
		return nil, fmt.Errorf("--signers: %s: must be %s: %w", file, signersForm, err)
	}
	if err := known.check(); err != nil {
		return nil, fmt.Errorf("--signers: %s: %w", file, err)
	}
	return known, nil
}

// check applies the network rules to the addresses.
func (s signers) check() error {
	for _, id := range slices.Sorted(maps.Keys(s)) {
		for networkType, address := range s[id] {
			if types := relayer.NetworkTypes(); !slices.Contains(types, networkType) {
				return fmt.Errorf("signer %q: unknown network type %q: the network types are %q", id, networkType, types)
			}
			if address != "" && !isAddressOf(networkType, address) {
				return fmt.Errorf("signer %q: %s is not an address of the network type %s", id, address, networkType)
			}
		}
	}
	return nil
}

func isAddressOf(networkType relayer.NetworkType, address string) bool {
	request := relayer.CreateRequest{Name: "any", Network: "any", NetworkType: networkType, SignerID: "any"}
	resolve := func(context.Context, relayer.CreateRequest) (string, error) { return address, nil }
	return request.Validate(context.Background(), relayer.WithNetworkRules(), relayer.WithAddressResolver(resolve)) == nil
}

// openSigners returns the resolver of [relayer.WithAddressResolver]. A signer without an address
// for a network type cannot sign for it.
func (s *server) openSigners(ctx context.Context) (relayer.Option, error) {
	var current atomic.Pointer[signers]
	err := s.reloading(ctx, "--signers", func(context.Context) error {
		known, err := readSigners(s.signersFile)
		if err == nil {
			current.Store(&known)
		}
		return err
	}, s.signersFile)
	return relayer.WithAddressResolver(func(_ context.Context, req relayer.CreateRequest) (string, error) {
		address := (*current.Load())[req.SignerID][req.NetworkType]
		if address == "" {
			return "", relayer.ErrUnknownSigner
		}
		return address, nil
	}), err
}
