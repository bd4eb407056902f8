package relayer

import (
	"encoding/json"
	"errors"
)

// Envelope is the body of the responses of the HTTP API, except for streams and openapi.json.
// Package httpapi encodes it, and package client decodes it.
type Envelope struct {
	Success bool `json:"success"`

	// Data is the result. It is null on failure.
	Data json.RawMessage `json:"data"`

	// Message is the text of a failure. OpenZeppelin Relayer sends it as Error.
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`

	// Errors are the problems of an invalid request.
	Errors []FieldError `json:"errors,omitempty"`

	// Next is the [Page.Next] of a list, or the next [HistoryQuery.Before] of a history.
	Next Cursor `json:"next,omitempty"`

	// Position is the [Page.Position] if the query has a cursor, and otherwise nil.
	Position *string `json:"position,omitempty"`

	// Change is the last change of the relayer in Data, or what a dry run would change. Changes
	// has the last change of each relayer of a page.
	Change  *ChangeInfo  `json:"change,omitempty"`
	Changes []ChangeInfo `json:"changes,omitzero"`

	// Sealed are the IDs of relayers whose RPC URLs cannot be opened.
	Sealed []string `json:"sealed,omitempty"`

	Pagination *Pagination `json:"pagination,omitempty"`
	Metadata   *Metadata   `json:"metadata,omitempty"`
}

// Metadata is what a server reports about a request besides its result.
type Metadata struct {
	Logs []LogEntry `json:"logs"`
}

// LogEntry is a message of a server, such as a warning about an unknown query parameter.
type LogEntry struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}

// UnmarshalJSON decodes an envelope of this API or of OpenZeppelin Relayer. It ignores members of
// a wrong type, but a malformed time can be an error. Without a boolean success member, it
// returns an error.
func (e *Envelope) UnmarshalJSON(data []byte) error {
	type plain Envelope // without this method
	decoded := struct {
		Success *bool `json:"success"`
		*plain
	}{plain: (*plain)(e)}
	err := json.Unmarshal(data, &decoded)
	if _, isOtherType := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !isOtherType {
		return err
	}
	if decoded.Success == nil {
		return errors.New("relayer: the body is not a JSON object with a success member")
	}
	e.Success = *decoded.Success
	return nil
}
