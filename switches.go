package relayer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// switches are the members of a document that a pause or a disable changes.
type switches struct {
	isPaused, isDisabled bool
	reason               json.RawMessage // nil if there is none
}

// setPaused returns an edit that sets Paused.
func (m *Manager) setPaused(paused bool) edit {
	return m.setSwitches(func(s *switches) error {
		s.isPaused = paused
		return nil
	})
}

// setDisabled returns an edit that sets SystemDisabled with a reason.
func (m *Manager) setDisabled(reason DisabledReason) edit {
	reason.Details = mask.Details(reason.Details)
	return m.setSwitches(func(s *switches) error {
		found := new(problems)
		checkDisabled(&Relayer{SystemDisabled: true, DisabledReason: &reason}, found)
		if err := found.err(); err != nil {
			return err
		}
		encoded, err := strictjson.Encode(maskedReason(&reason))
		s.isDisabled, s.reason = true, encoded
		return err
	})
}

// setEnabled returns an edit that resets SystemDisabled.
func (m *Manager) setEnabled() edit {
	return m.setSwitches(func(s *switches) error {
		s.isDisabled, s.reason = false, nil
		return nil
	})
}

// setSwitches returns an edit that changes only the switches. It neither decodes nor checks
// the rest of the relayer, so that it is fast, and a pause in an emergency works even if
// stricter rules apply since the relayer was stored. It has no limit of the size.
func (m *Manager) setSwitches(set func(*switches) error) edit {
	return func(_ context.Context, current Record) (Record, error) {
		if !isObject(current.Document) {
			return Record{}, fmt.Errorf("relayer: stored document of %s is not a JSON object", current.ID)
		}
		before := readSwitches(current.Document)
		after := before
		if err := set(&after); err != nil {
			return Record{}, err
		}
		if after.equals(before) {
			return current, nil
		}
		rec := current
		rec.Document = after.writeTo(current.Document)
		rec.Terms = after.terms(current.Terms)
		if !m.exclusiveSigners {
			return rec, nil
		}
		claim, err := claimOfDocument(rec.Document)
		return withClaim(rec, claim), err
	}
}

// claimOfDocument returns the claim of the signer of a relayer that was stored before
// signers were exclusive.
func claimOfDocument(document []byte) (string, error) {
	var r struct {
		Network     string      `json:"network"`
		NetworkType NetworkType `json:"network_type"`
		SignerID    string      `json:"signer_id"`
	}
	err := json.Unmarshal(document, &r)
	return signerClaim(&Relayer{Network: r.Network, NetworkType: r.NetworkType, SignerID: r.SignerID}), err
}

func readSwitches(document []byte) (s switches) {
	for name, value := range strictjson.InOrder(document) {
		switch name {
		case "paused":
			s.isPaused = string(value) == "true"
		case "system_disabled":
			s.isDisabled = string(value) == "true"
		case "disabled_reason":
			s.reason = value
		}
	}
	return s
}

func (s switches) equals(other switches) bool {
	return s.isPaused == other.isPaused && s.isDisabled == other.isDisabled && bytes.Equal(s.reason, other.reason)
}

// writeTo returns the document with these switches. The reason follows
// system_disabled.
func (s switches) writeTo(document []byte) []byte {
	var changed strictjson.Object
	for name, value := range strictjson.InOrder(document) {
		switch name {
		case "disabled_reason":
			continue
		case "paused":
			value = strconv.AppendBool(nil, s.isPaused)
		case "system_disabled":
			value = strconv.AppendBool(nil, s.isDisabled)
		}
		changed.Add(name, value)
		if name == "system_disabled" && s.reason != nil {
			changed.Add("disabled_reason", s.reason)
		}
	}
	return changed.Bytes()
}

// terms returns the terms with those of these switches.
func (s switches) terms(stored []string) []string {
	r := &Relayer{Paused: s.isPaused, SystemDisabled: s.isDisabled}
	terms := slices.Clone(stored)
	for i, term := range terms {
		if name := termKey(term); name == "paused" || name == "system_disabled" {
			key, _ := selectorKeyNamed(name)
			value, _ := key.value(r)
			terms[i] = recordTerm(name, value)
		}
	}
	return terms // in order: a flag has one term
}
