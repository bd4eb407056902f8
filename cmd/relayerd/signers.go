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
	"sync/atomic"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
)

// signers maps the ID of each signer to its addresses.
type signers map[string]map[relayer.NetworkType]string

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
		return nil, fmt.Errorf("%s: %w", form, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return known, known.check()
}

// check applies the network rules to the addresses.
func (s signers) check() error {
	for _, id := range slices.Sorted(maps.Keys(s)) {
		for _, networkType := range slices.Sorted(maps.Keys(s[id])) {
			if types := relayer.NetworkTypes(); !slices.Contains(types, networkType) {
				return fmt.Errorf("signer %q: unknown network type %q: the network types are %q", id, networkType, types)
			}
			if address := s[id][networkType]; address != "" && !isAddressOf(networkType, address) {
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

// position returns the line and the column of the last of the first bytes of a text.
func position(text []byte, bytesRead int64) string {
	before := text[:max(0, bytesRead-1)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[start:]))
}

// signersInUse are the signers of the file as it was read last without an error.
type signersInUse struct{ atomic.Pointer[signers] }

// openSigners reads the file, which may be a pipe, and again when it has changed.
func (s *server) openSigners(ctx context.Context) (*signersInUse, error) {
	version := versionOf(s.signersFile)
	known, err := readSigners(s.signersFile)
	if err != nil {
		return nil, err
	}
	inUse := new(signersInUse)
	inUse.Store(&known)
	if info, err := os.Stat(s.signersFile); err != nil || !info.Mode().IsRegular() {
		return inUse, nil
	}
	s.onChange(ctx, s.signersFile, version, func() {
		known, err := readSigners(s.signersFile)
		if err != nil {
			s.logger.Error("signers not reloaded: the earlier signers stay valid", "error", err.Error())
			return
		}
		inUse.Store(&known)
		s.logger.Info("signers reloaded", "signers", len(known))
	})
	return inUse, nil
}

// address is the resolver of [relayer.WithAddressResolver]. A signer without an address for a
// network type cannot sign for it.
func (s *signersInUse) address(_ context.Context, req relayer.CreateRequest) (string, error) {
	address := (*s.Load())[req.SignerID][req.NetworkType]
	if address == "" {
		return "", relayer.ErrUnknownSigner
	}
	return address, nil
}
