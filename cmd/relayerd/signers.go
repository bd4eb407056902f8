package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
)

// signers maps the ID of each signer to its addresses.
type signers map[string]struct {
	EVM     string `json:"evm"`
	Solana  string `json:"solana"`
	Stellar string `json:"stellar"`
}

func readSigners(file string) (signers, error) {
	if err := checkFile("--signers", file); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, inputError("--signers", file, "create it as "+signersForm, err)
	}
	known, err := parseSigners(data)
	if err != nil {
		return nil, fmt.Errorf("--signers: %s: %w", file, err)
	}
	return known, nil
}

const signersForm = `a JSON object, such as {"treasury":{"evm":"0x…"}}`

func parseSigners(data []byte) (signers, error) {
	if hasByteOrderMark(string(data)) {
		return nil, errors.New("the file begins with a byte order mark: save it as UTF-8 without one")
	}
	const form = "must be " + signersForm
	var known signers
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&known)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || err == nil && known == nil {
		return nil, errors.New(form)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("%s: the error is at or before %s", form, position(data, syntax.Offset))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s: it ends too early", form)
	}
	if err != nil {
		// An unknown field.
		return nil, fmt.Errorf("%s: %s: the network types are evm, solana and stellar", form, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return known, known.check()
}

// check applies the network rules to the addresses.
func (s signers) check() error {
	for _, id := range slices.Sorted(maps.Keys(s)) {
		for _, account := range []struct {
			networkType relayer.NetworkType
			address     string
			policy      relayer.Policy // has the address
		}{
			{relayer.EVM, s[id].EVM, &relayer.EVMPolicy{WhitelistReceivers: []string{s[id].EVM}}},
			{relayer.Solana, s[id].Solana, &relayer.SolanaPolicy{AllowedAccounts: []string{s[id].Solana}}},
			{relayer.Stellar, s[id].Stellar, &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "XLM:" + s[id].Stellar}}}},
		} {
			if account.address == "" {
				continue
			}
			request := relayer.CreateRequest{Name: id, Network: "any", NetworkType: account.networkType, SignerID: "any", Policy: account.policy}
			if err := request.Validate(context.Background(), relayer.WithNetworkRules()); err != nil {
				return fmt.Errorf("signer %q: %s is not an address of %s", id, account.address, networkNames[account.networkType])
			}
		}
	}
	return nil
}

var networkNames = map[relayer.NetworkType]string{relayer.EVM: "an EVM network", relayer.Solana: "Solana", relayer.Stellar: "Stellar"}

// position returns the line and the column of the last of the first bytes of a text.
func position(text []byte, bytesRead int64) string {
	before := text[:max(0, bytesRead-1)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[start:]))
}

// address is the resolver of [relayer.WithAddressResolver]. A signer without an address for a
// network type cannot sign for it.
func (s signers) address(_ context.Context, req relayer.CreateRequest) (string, error) {
	known := s[req.SignerID]
	address := map[relayer.NetworkType]string{
		relayer.EVM:     known.EVM,
		relayer.Solana:  known.Solana,
		relayer.Stellar: known.Stellar,
	}[req.NetworkType]
	if address == "" {
		return "", relayer.ErrUnknownSigner
	}
	return address, nil
}
