package relayer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// newRecord returns the record of a relayer. Its private part is in clear.
func (s *settings) newRecord(r *Relayer) (Record, error) {
	document, private, err := encodeRelayer(r)
	if err != nil {
		return Record{}, err
	}
	claim := ""
	if s.exclusiveSigners {
		claim = signerClaim(r)
	}
	return Record{
		ID: r.ID, Claim: claim, Terms: termsOf(r, claim), Text: searchText(r), Document: document, Private: private,
	}, nil
}

// encodeRelayer returns the document of a relayer, with defaults for what is not set and a
// policy, and the private part: an object with the endpoints in full, or nil if there are none.
func encodeRelayer(r *Relayer) (document, private []byte, err error) {
	complete := *r
	complete.CustomRPCURLs = slices.Clone(r.CustomRPCURLs)
	for i := range complete.CustomRPCURLs {
		if endpoint := &complete.CustomRPCURLs[i]; endpoint.Weight == nil {
			endpoint.Weight = new(DefaultRPCWeight)
		}
	}
	if isNil(r.Policy) {
		complete.Policy = newPolicy(r.NetworkType)
	}
	if solana, ok := complete.Policy.(*SolanaPolicy); ok && solana.FeePaymentStrategy == nil {
		completed := *solana
		completed.FeePaymentStrategy = new(FeePaidByUser)
		complete.Policy = &completed
	}
	complete.DisabledReason = maskedReason(r.DisabledReason)
	complete.Settings = canonicalSettings(r.Settings)
	if document, err = strictjson.Encode(complete); err == nil && len(complete.CustomRPCURLs) > 0 {
		private, err = strictjson.Encode(struct {
			CustomRPCURLs []fullRPC `json:"custom_rpc_urls"`
		}{fullOf(complete.CustomRPCURLs)})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("relayer: encoding %s: %w", r.ID, err)
	}
	return document, private, nil
}

// maskedReason returns the reason to store. Health checks quote the errors of RPC clients,
// and those quote the URL.
func maskedReason(reason *DisabledReason) *DisabledReason {
	if reason == nil {
		return nil
	}
	return &DisabledReason{Type: DisabledReasonType(maskedText(string(reason.Type))), Details: mask.Text(reason.Details)}
}

// maskedText masks the URLs in a text, and cuts the result off at maxReasonLength characters.
func maskedText(text string) string {
	masked := []rune(mask.Text(text))
	return string(masked[:min(len(masked), maxReasonLength)])
}

// signerClaim returns the claim of the signer: a digest, because names can be long.
func signerClaim(r *Relayer) string {
	digest := sha256.New()
	for _, part := range []string{string(r.NetworkType), fold(strings.TrimSpace(r.Network)), strings.TrimSpace(r.SignerID)} {
		// The length distinguishes "ab"+"c" from "a"+"bc".
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	return "signer-" + hex.EncodeToString(digest.Sum(nil))
}

// isObject reports whether a stored document is a JSON object.
func isObject(document []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(document), []byte("{")) && json.Valid(document)
}

// documentRelayer returns a [*CorruptError] if the document is not one of a relayer.
func documentRelayer(rec Record) (*Relayer, error) {
	r := new(Relayer)
	if err := r.UnmarshalJSON(rec.Document); err != nil {
		return nil, corruptDocument(rec, err)
	}
	r.Revision, r.LastChange = rec.Revision, changeInfoOf(rec)
	return r, nil
}

// unmaskedRelayerOf decodes a record, whose private part is in clear, into a relayer with its
// full URLs and headers. It returns a [*CorruptError] unless the document shows exactly these.
func unmaskedRelayerOf(rec Record) (*Relayer, error) {
	r, err := documentRelayer(rec)
	if err != nil {
		return nil, err
	}
	if r.CustomRPCURLs, err = fullEndpoints(rec, r.CustomRPCURLs); err != nil {
		return nil, err
	}
	return r, nil
}

// fullEndpoints returns the endpoints of a record, whose private part is in clear, in full. It
// returns a [*CorruptError] unless the document shows exactly these.
func fullEndpoints(rec Record, shown []RPCConfig) (full []RPCConfig, err error) {
	if len(rec.Private) > 0 {
		full, err = endpointsOf(rec.Private)
	}
	if err != nil {
		// The error of the decoder may quote secrets.
		return nil, corruptPart(rec, "is not readable")
	}
	if !slices.EqualFunc(shown, full, RPCConfig.isMaskOf) {
		return nil, corruptPart(rec, mismatch)
	}
	if len(full) == 0 {
		return shown, nil // a list may be empty, but not nil
	}
	return full, nil
}

const mismatch = "does not match its document"

var errNoObject = errors.New("it is not a JSON object")

func corruptDocument(rec Record, err error) error {
	return &CorruptError{ID: rec.ID, Sequence: rec.Sequence, Err: fmt.Errorf("relayer: stored document of %s: %w", rec.ID, err)}
}

func corruptPart(rec Record, problem string) error {
	return &CorruptError{ID: rec.ID, Sequence: rec.Sequence, Err: fmt.Errorf("relayer: the private part of %s %s: replace all RPC URLs, or restore a backup", rec.ID, problem)}
}

// isSealed reports whether a private part is sealed. In clear it is a JSON object.
func isSealed(private []byte) bool { return len(private) > 0 && private[0] != '{' }

// opened returns the record with its private part in clear.
func (m *Manager) opened(ctx context.Context, rec Record) (Record, error) {
	switch {
	case m.opener != nil:
		return m.opener.Open(ctx, rec)
	case isSealed(rec.Private):
		return Record{}, fmt.Errorf("relayer: opening the RPC URLs of %s: %w: the store has no keys: %w", rec.ID, errSealed, errors.ErrUnsupported)
	}
	return rec, nil
}

// masks reports whether methods that do not open RPC URLs return the URLs of the record masked:
// always if the store is an [Opener].
func (m *Manager) masks(rec Record) bool { return m.opener != nil || isSealed(rec.Private) }

// relayerOf decodes a record without opening its private part.
func (m *Manager) relayerOf(_ context.Context, rec Record) (*Relayer, error) {
	if m.masks(rec) {
		return maskedRelayerOf(rec)
	}
	return unmaskedRelayerOf(rec)
}

// orMasked returns decode for gets and writes, which damaged RPC URLs, and those that cannot be
// opened, do not prevent: they are masked.
func orMasked(decode form[*Relayer]) form[*Relayer] {
	return func(ctx context.Context, rec Record) (*Relayer, error) {
		if r, err := decode(ctx, rec); err == nil {
			return r, nil
		}
		return maskedRelayerOf(rec)
	}
}

// fullRelayerOf decodes a record into a relayer with its full RPC URLs.
func (m *Manager) fullRelayerOf(ctx context.Context, rec Record) (*Relayer, error) {
	opened, err := m.opened(ctx, rec)
	if err != nil {
		return nil, err
	}
	return unmaskedRelayerOf(opened)
}

// maskedRelayerOf decodes a record into a relayer whose RPC URLs are masked.
func maskedRelayerOf(rec Record) (*Relayer, error) {
	r, err := documentRelayer(rec)
	if err != nil {
		return nil, err
	}
	for i := range r.CustomRPCURLs {
		r.CustomRPCURLs[i].URL = RPCURL(mask.Marked(r.CustomRPCURLs[i].URL.Unmasked()))
	}
	return r, nil
}

// UnmarshalJSON decodes the document of a relayer, as clients of the HTTP API
// receive it. The network_type selects the type of Policy, which is an
// [*UnknownPolicy] if this version does not have the type. The RPC URLs remain masked.
func (r *Relayer) UnmarshalJSON(data []byte) error {
	type plain Relayer // without this method
	var response struct {
		plain
		Policy json.RawMessage `json:"policies"`
	}
	if err := json.Unmarshal(data, &response); err != nil {
		return err
	}
	if response.NetworkType == "" {
		return errors.New("relayer: network_type is missing")
	}
	policy := newPolicy(response.NetworkType)
	if policy == nil {
		policy = &UnknownPolicy{Type: response.NetworkType, Raw: response.Policy}
	} else if len(response.Policy) > 0 {
		if err := json.Unmarshal(response.Policy, policy); err != nil {
			return err
		}
	}
	*r = Relayer(response.plain)
	r.Policy = policy
	return nil
}

// UnmarshalJSON decodes a reason. If details is neither a text nor null, such as the list of
// reasons that OpenZeppelin Relayer sends for the type Multiple, Details is its JSON.
func (r *DisabledReason) UnmarshalJSON(data []byte) error {
	var reason struct {
		Type    DisabledReasonType `json:"type"`
		Details json.RawMessage    `json:"details"`
	}
	if err := json.Unmarshal(data, &reason); err != nil {
		return err
	}
	*r = DisabledReason{Type: reason.Type}
	if json.Unmarshal(reason.Details, &r.Details) != nil {
		r.Details = string(reason.Details)
	}
	return nil
}

// nativeKind is the JSON form of a [StellarTokenKind] with no field set.
const nativeKind = "native"

// MarshalJSON returns "native", an object, or Unknown.
func (k StellarTokenKind) MarshalJSON() ([]byte, error) {
	switch {
	case k.Unknown != nil:
		return k.Unknown, nil
	case k.Classic == nil && k.Contract == nil:
		return strictjson.Encode(nativeKind)
	}
	type plain StellarTokenKind // without this method
	return strictjson.Encode(plain(k))
}

// UnmarshalJSON decodes what MarshalJSON returns.
func (k *StellarTokenKind) UnmarshalJSON(data []byte) error {
	if string(data) == `"`+nativeKind+`"` {
		*k = StellarTokenKind{}
		return nil
	}
	type plain StellarTokenKind // without this method
	var known plain
	err := json.Unmarshal(data, &known)
	if _, isOtherForm := errors.AsType[*json.UnmarshalTypeError](err); isOtherForm || err == nil && known.Classic == nil && known.Contract == nil {
		*k = StellarTokenKind{Unknown: bytes.Clone(data)}
		return nil
	}
	*k = StellarTokenKind(known)
	return err
}

// keepUnknown adds to rec, the record of changed, the members of objects of the stored record
// that this version does not have: instances of a host are upgraded one after the other, and the
// older ones must not remove what the newer ones store. What changed replaces whole has none: a
// policy that was cleared, a reason, and a list.
func keepUnknown(rec *Record, changed *Relayer, current Record, stored *Relayer) error {
	known, knownPrivate, err := encodeRelayer(stored)
	if err != nil {
		return err
	}
	var replaced []string
	hasOtherURLs := !bytes.Equal(rec.Private, knownPrivate) // the masked form may be equal
	for name := range strictjson.InOrder(current.Document) {
		if strings.EqualFold(name, urlsMember) && (hasOtherURLs || name != urlsMember) { // decoders accept every letter case
			replaced = append(replaced, name)
		}
	}
	if isNil(changed.Policy) {
		replaced = append(replaced, "policies")
	}
	if changed.DisabledReason != nil && stored.DisabledReason != nil && *changed.DisabledReason != *stored.DisabledReason {
		replaced = append(replaced, "disabled_reason")
	}
	rec.Document = strictjson.KeepUnknown(current.Document, known, rec.Document, replaced...)
	if len(current.Private) > 0 {
		orEmpty := func(object []byte) []byte { return []byte(cmp.Or(string(object), "{}")) }
		rec.Private = strictjson.KeepUnknown(current.Private, orEmpty(knownPrivate), orEmpty(rec.Private))
	}
	if string(rec.Private) == "{}" {
		rec.Private = nil
	}
	return nil
}

// changedPaths returns the paths of the members in which two records differ, in order. Lists are
// compared as a whole. An object that is added or removed is the members in it.
func changedPaths(old, rec Record) []string {
	paths := appendChanged(nil, "", old.Document, rec.Document)
	if !bytes.Equal(old.Private, rec.Private) && !slices.Contains(paths, urlsMember) {
		paths = append(paths, urlsMember) // the masked URLs are equal
	}
	slices.Sort(paths)
	return paths
}

func appendChanged(paths []string, path string, old, changed []byte) []string {
	if bytes.Equal(old, changed) {
		return paths
	}
	var buffers [2][16]strictjson.Member // so that most lists need no memory
	before, after := strictjson.MemberList(buffers[0][:0], old), strictjson.MemberList(buffers[1][:0], changed)
	if old != nil && before == nil || changed != nil && after == nil || len(before)+len(after) == 0 {
		return append(paths, path)
	}
	for _, member := range before {
		if value := strictjson.ValueOf(after, member.Name); !bytes.Equal(value, member.Value) {
			paths = appendChanged(paths, strictjson.Join(path, string(member.Name)), member.Value, value)
		}
	}
	for _, member := range after {
		if strictjson.ValueOf(before, member.Name) == nil {
			paths = appendChanged(paths, strictjson.Join(path, string(member.Name)), nil, member.Value)
		}
	}
	return paths
}

// The limits of a note, the JSON of a [ChangeInfo] in a [Record]. With every character escaped it is
// below the limit of [Record.Note].
const (
	maxReasonLength    = 256 // characters
	maxActorLength     = 256 // bytes
	maxRequestIDLength = 128 // bytes
	maxPathsLength     = 600 // bytes
)

// requestIDOf returns the request ID of an actor as a note has it.
func requestIDOf(actor Actor) string { return shortened(actor.RequestID, maxRequestIDLength) }

// shortened returns a text of a caller without control characters, which JSON escapes.
func shortened(text string, limit int) string {
	printable := func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}
	return mask.Shortened(strings.Map(printable, text), limit)
}

// shortPaths returns the paths, or only their top-level members if the paths are too long.
func shortPaths(paths []string) []string {
	if len(strings.Join(paths, ",")) <= maxPathsLength {
		return paths
	}
	var members []string
	for _, path := range paths {
		members = append(members, path[:max(0, strings.IndexAny(path+".", ".["))])
	}
	return slices.Compact(members)
}

// noteOf returns the note of a change.
func noteOf(info ChangeInfo) []byte {
	encoded, _ := strictjson.Encode(info) // texts and times have an encoding
	return encoded
}

// changeInfoOf returns what is known of the change that made a record. It has only the revision
// if the note cannot be decoded.
func changeInfoOf(rec Record) ChangeInfo {
	info := noteInfo(rec.Note)
	if isDryRun := info.Time.IsZero() && info.Changed != nil; !isDryRun {
		info.Revision = rec.Revision
	}
	return info
}

// noteInfo decodes a note. It returns the zero value if that is impossible.
func noteInfo(note []byte) (info ChangeInfo) {
	if json.Unmarshal(note, &info) != nil {
		return ChangeInfo{}
	}
	return info
}

func (i ChangeInfo) isPausedBy(requestID string) bool {
	return i.PausedBy != nil && i.PausedBy.RequestID == requestID
}

// withoutPaths returns the note without what the change changed.
func withoutPaths(note []byte) []byte {
	info := noteInfo(note)
	info.Changed = nil
	return noteOf(info)
}

// isPaused reports whether the relayer of a record is paused.
func isPaused(rec Record) bool {
	_, isPaused := slices.BinarySearch(rec.Terms, "paused=true")
	return isPaused
}
