package relayer

import (
	"bytes"
	"fmt"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// keepUnknown adds to rec, the record of changed, the members of objects of the stored record
// that this version does not have: instances of a host are upgraded one after the other, and the
// older ones must not remove what the newer ones store. What changed replaces whole has none: a
// policy that was cleared, a reason, and a list.
func keepUnknown(rec *Record, changed *Relayer, current Record, stored *Relayer) error {
	known, err := strictjson.Encode(stored)
	if err != nil {
		return fmt.Errorf("relayer: encoding %s: %w", stored.ID, err)
	}
	knownPrivate, err := encodePrivate(stored)
	if err != nil {
		return err
	}
	var replaced []string
	if !bytes.Equal(rec.Private, knownPrivate) {
		replaced = append(replaced, urlsMember) // the masked URLs may be equal
	}
	if isNil(changed.Policy) {
		replaced = append(replaced, "policies")
	}
	if changed.DisabledReason != nil && stored.DisabledReason != nil && *changed.DisabledReason != *stored.DisabledReason {
		replaced = append(replaced, "disabled_reason")
	}
	rec.Document = strictjson.KeepUnknown(current.Document, known, rec.Document, replaced...)
	if len(current.Private) == 0 {
		return nil
	}
	private := strictjson.KeepUnknown(current.Private, orEmptyObject(knownPrivate), orEmptyObject(rec.Private))
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
