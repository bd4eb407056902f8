package relayer

import (
	"encoding/json"
	"fmt"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// keepUnknown adds to rec, the record of changed, the members of the stored record that
// this version does not have: instances of a host are upgraded one after the other, and
// the older ones must not remove what the newer ones store.
func keepUnknown(rec *Record, changed *Relayer, current Record, stored *Relayer) error {
	known, err := strictjson.Encode(stored)
	if err != nil {
		return fmt.Errorf("relayer: encoding %s: %w", stored.ID, err)
	}
	rec.Document = strictjson.KeepUnknown(current.Document, known, rec.Document, identityOf(stored), identityOf(changed))
	if len(current.Private) == 0 {
		return nil
	}
	knownPrivate, err := encodePrivate(stored)
	if err != nil {
		return err
	}
	private := strictjson.KeepUnknown(current.Private, orEmptyObject(knownPrivate), orEmptyObject(rec.Private), identityOf(stored), identityOf(changed))
	if string(private) != "{}" {
		rec.Private = private
	}
	return nil
}

func orEmptyObject(encoded []byte) []byte {
	if encoded == nil {
		return []byte("{}")
	}
	return encoded
}

// identityOf determines which objects of a changed relayer keep unknown members: an
// endpoint with the same URL, a token of the same mint or asset, a policy that was not
// cleared, and a reason that was not replaced.
func identityOf(r *Relayer) strictjson.Identity {
	return func(member string, index int, value []byte) string {
		isElement := index >= 0
		switch {
		case member == "custom_rpc_urls" && isElement && index < len(r.CustomRPCURLs):
			return r.CustomRPCURLs[index].URL.Unmasked() // value has the masked URL
		case member == "allowed_tokens" && isElement:
			return tokenIdentity(value)
		case member == "policies" && isNil(r.Policy):
			return "cleared"
		case member == "disabled_reason":
			return string(value)
		}
		return ""
	}
}

func tokenIdentity(value []byte) string {
	var token struct{ Mint, Asset string }
	// A token without either has the empty identity.
	_ = json.Unmarshal(value, &token)
	return token.Mint + token.Asset
}
