package relayer

import (
	"encoding/json"
	"fmt"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// privatePart is what of a relayer no response shows.
type privatePart struct {
	// CustomRPCURLs are the full URLs, in the order of the document's masked
	// ones.
	CustomRPCURLs []string `json:"custom_rpc_urls"`
}

// newRecord returns the relayer as a store keeps it: the response form, what the
// response form hides, and what the relayer claims.
func (m *Manager) newRecord(r *Relayer) (Record, error) {
	document, err := strictjson.Encode(r)
	if err != nil {
		return Record{}, fmt.Errorf("relayer: encoding %s: %w", r.ID, err)
	}
	rec := Record{ID: r.ID, Claim: m.claimOf(r), Document: document}
	if len(r.CustomRPCURLs) == 0 {
		return rec, nil
	}
	var private privatePart
	for _, endpoint := range r.CustomRPCURLs {
		private.CustomRPCURLs = append(private.CustomRPCURLs, string(endpoint.URL))
	}
	rec.Private, err = strictjson.Encode(private)
	if err != nil {
		return Record{}, fmt.Errorf("relayer: encoding the private part of %s: %w", r.ID, err)
	}
	return rec, nil
}

// relayerOf returns the relayer that a record holds, with its full URLs.
func relayerOf(rec Record) (*Relayer, error) {
	r := new(Relayer)
	if err := json.Unmarshal(rec.Document, r); err != nil {
		return nil, fmt.Errorf("relayer: stored document of %s: %w", rec.ID, err)
	}
	r.Revision = rec.Revision
	if len(rec.Private) == 0 && len(r.CustomRPCURLs) == 0 {
		return r, nil
	}
	var private privatePart
	if err := json.Unmarshal(rec.Private, &private); err != nil {
		// The cause is left out: it may quote what is private.
		return nil, fmt.Errorf("relayer: stored private part of %s is not readable", rec.ID)
	}
	if len(private.CustomRPCURLs) != len(r.CustomRPCURLs) {
		return nil, fmt.Errorf("relayer: stored private part of %s does not fit its document", rec.ID)
	}
	for i, full := range private.CustomRPCURLs {
		r.CustomRPCURLs[i].URL = RPCURL(full)
	}
	return r, nil
}

// UnmarshalJSON reads the response form of a relayer (spec section 2.1), as a
// client of the HTTP API gets it. The shape of policies is chosen by
// network_type; RPC URLs are masked there and stay so.
func (r *Relayer) UnmarshalJSON(data []byte) error {
	type plain Relayer // without this method
	var response struct {
		plain
		Policies json.RawMessage `json:"policies"`
	}
	if err := json.Unmarshal(data, &response); err != nil {
		return err
	}
	policies := newPolicy(response.NetworkType)
	if policies == nil {
		return fmt.Errorf("relayer: unknown network type %q", response.NetworkType)
	}
	if len(response.Policies) > 0 {
		if err := json.Unmarshal(response.Policies, policies); err != nil {
			return err
		}
	}
	*r = Relayer(response.plain)
	r.Policies = policies
	return nil
}

// nativeKind is the JSON form of a [StellarTokenKind] with neither field set.
const nativeKind = "native"

// MarshalJSON returns "native" or an object of one member.
func (k StellarTokenKind) MarshalJSON() ([]byte, error) {
	if k.Classic == nil && k.Contract == nil {
		return strictjson.Encode(nativeKind)
	}
	type plain StellarTokenKind // without this method
	return strictjson.Encode(plain(k))
}

// UnmarshalJSON reads what MarshalJSON returns.
func (k *StellarTokenKind) UnmarshalJSON(data []byte) error {
	if string(data) == `"`+nativeKind+`"` {
		*k = StellarTokenKind{}
		return nil
	}
	type plain StellarTokenKind // without this method
	return json.Unmarshal(data, (*plain)(k))
}
