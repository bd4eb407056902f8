package relayer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Validate returns a [*ValidationError] with every problem for which a [Manager] with these
// options would reject the request, or nil. Limits of pages and hooks other than that of
// [WithAddressResolver] have no effect. It does not detect what depends on the stored
// relayers: a taken ID, an exclusive signer, and masked RPC URLs, which a program may
// replace by the stored ones.
func (r CreateRequest) Validate(ctx context.Context, options ...Option) error {
	s, err := newSettings(options)
	if err != nil {
		return err
	}
	return s.validate(ctx, newRelayer(r), new(problems))
}

func (s *settings) validate(ctx context.Context, r *Relayer, found *problems) error {
	rec, err := s.prepare(ctx, r, found)
	if err != nil {
		return err
	}
	return s.checkSize(rec, Record{})
}

// prepare returns the record to store for a new relayer, and sets its ID and address.
func (s *settings) prepare(ctx context.Context, r *Relayer, found *problems) (Record, error) {
	s.check(r, found)
	if s.networkRules {
		checkOuterSpaces(found, "network", r.Network)
		checkOuterSpaces(found, "signer_id", r.SignerID)
	}
	address, err := s.addressOf(ctx, r, found)
	if problem := found.err(); problem != nil {
		return Record{}, problem
	}
	if err != nil {
		return Record{}, err
	}
	r.Address = address
	if r.ID == "" {
		generated, err := uuid.NewV7()
		if err != nil {
			return Record{}, fmt.Errorf("relayer: generating an ID: %w", err)
		}
		r.ID = generated.String()
	}
	return s.newRecord(r)
}

// addressOf resolves the address of a relayer, unless its signer or network is
// invalid.
func (s *settings) addressOf(ctx context.Context, r *Relayer, found *problems) (string, error) {
	if s.resolveAddress == nil || found.Has("signer_id") || found.Has("network") || found.Has("network_type") {
		return "", nil
	}
	address, err := s.resolveAddress(ctx, requestOf(r))
	if errors.Is(err, ErrUnknownSigner) {
		found.Add("signer_id", "must be a signer that exists for this network")
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("relayer: resolving the address of a signer: %w", faultError{err})
	}
	if problem := s.addressProblem(address, r.NetworkType); problem != "" {
		// It is not a ValidationError, because the client cannot correct it, and
		// does not quote the address, because a wrong one may be a secret.
		return "", errors.New("relayer: the address from the address resolver " + problem)
	}
	return address, nil
}

// maxAddressLength is the length in bytes of the longest address that a resolver
// may return. It is more than any network needs.
const maxAddressLength = 256

// addressProblem returns why an address from the resolver cannot be stored, or "".
func (s *settings) addressProblem(address string, networkType NetworkType) string {
	if problem := strictjson.TextProblem(address); problem != "" {
		return problem
	}
	if len(address) > maxAddressLength {
		return fmt.Sprintf("must be at most %d bytes", maxAddressLength)
	}
	if strings.ContainsFunc(address, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r)
	}) {
		return "must not contain spaces or control characters"
	}
	if strings.Contains(address, "://") {
		return "must not be a URL"
	}
	if strings.Contains(address, "@") {
		return "must not contain @, which could follow credentials"
	}
	if s.networkRules {
		return networkAddressProblem(address, networkType)
	}
	return ""
}

// MarshalUnmasked returns the JSON body of the HTTP request that creates the relayer, as
// [Documents.Create] reads it. Unlike every other encoding of the request it
// has the RPC URLs and their headers in full: it is for a server, not for a log. It returns a
// [*ValidationError] if a text is not UTF-8, or the settings are not JSON.
func (r CreateRequest) MarshalUnmasked() ([]byte, error) {
	if isNil(r.Policy) {
		r.Policy = nil
	}
	if r.Settings != nil && !(json.Valid(r.Settings) && utf8.Valid(r.Settings)) {
		return nil, invalid(settingsMember, strictjson.Check(r.Settings))
	}
	masked, err := strictjson.Encode(r)
	if err != nil {
		// The error of the encoder may quote a URL.
		return nil, errors.New("relayer: the request has a value that cannot be encoded as JSON")
	}
	full := make([]fullRPC, 0, len(r.CustomRPCURLs))
	for _, endpoint := range r.CustomRPCURLs {
		full = append(full, endpoint.full())
	}
	urls, err := strictjson.Encode(full)
	if err != nil {
		return nil, errors.New("relayer: the request has a weight that cannot be encoded as JSON")
	}
	encoded := strictjson.ReplaceMember(masked, urlsMember, func([]byte) []byte { return urls })
	if err := r.checkUTF8(); err != nil {
		return nil, err
	}
	return encoded, nil
}

// checkUTF8 returns a [*ValidationError] with the texts that are not UTF-8: the encoder replaces
// their bytes without an error.
func (r CreateRequest) checkUTF8() error {
	all, found := new(problems), new(problems)
	checkRules(structRules(), newRelayer(r), "", all)
	checkLabels(r.Labels, all)
	for _, problem := range all.All() {
		if problem.Message == strictjson.NotUTF8Message {
			found.Report(problem.Field, problem.Code, problem.Message)
		}
	}
	return found.err()
}

// UnmarshalJSON reads a request, which must be strict JSON like that of
// [Documents.Create]. An element of custom_rpc_urls may also be a string, the URL, as
// in configuration files. The error is a [*ValidationError] with all problems of the JSON,
// and those that [CreateRequest.Validate] finds besides.
func (r *CreateRequest) UnmarshalJSON(data []byte) error {
	found := new(problems)
	if problem := strictjson.Check(data); problem != "" {
		found.Add("", problem)
		return found.err()
	}
	d := newDecoder(found)
	d.Hook = func(v strictjson.Value, target any) bool {
		if endpoint, ok := target.(*RPCConfig); ok {
			decodeEndpoint(v, endpoint)
			return true
		}
		return d.hook(v, target)
	}
	var decoded Relayer
	d.decodeRelayer(data, &decoded)
	if found.err() == nil {
		*r = requestOf(&decoded)
		return nil
	}
	defaults, err := newSettings(nil)
	if err != nil {
		return err
	}
	return defaults.validate(context.Background(), &decoded, found)
}

func decodeEndpoint(v strictjson.Value, endpoint *RPCConfig) {
	if v.First() != '"' {
		v.Object(endpoint)
		return
	}
	url, problem := v.Text()
	if problem != "" {
		v.Report(problem)
	}
	endpoint.URL = RPCURL(url)
}
