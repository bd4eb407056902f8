package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

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
		return nil, fmt.Errorf("--signers: %w", err)
	}
	known, err := parseSigners(data)
	if err != nil {
		return nil, fmt.Errorf("--signers: %s: %w", file, err)
	}
	return known, nil
}

func parseSigners(data []byte) (signers, error) {
	var known signers
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&known)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || err == nil && known == nil {
		return nil, errors.New("must be an object of objects of addresses")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("unexpected end")
	}
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return known, nil
}

// address is a [relayer.AddressResolver]. A signer without an address for a network
// type cannot sign for it.
func (s signers) address(_ context.Context, signerID string, networkType relayer.NetworkType, _ string) (string, error) {
	known := s[signerID]
	address := map[relayer.NetworkType]string{
		relayer.EVM:     known.EVM,
		relayer.Solana:  known.Solana,
		relayer.Stellar: known.Stellar,
	}[networkType]
	if address == "" {
		return "", relayer.ErrUnknownSigner
	}
	return address, nil
}
