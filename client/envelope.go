package client

import (
	"encoding/json"
	"errors"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// envelope is the body of a success or a failure. OpenZeppelin Relayer sends the
// text of a failure as error, package httpapi as message.
type envelope struct {
	Success    bool                 `json:"success"`
	Data       json.RawMessage      `json:"data"`
	Change     *wire.Change         `json:"change"`  // of a single relayer
	Changes    []wire.Change        `json:"changes"` // of a page
	Pagination *relayer.Pagination  `json:"pagination"`
	Next       relayer.Cursor       `json:"next"`
	Position   *string              `json:"position"`
	Sealed     []string             `json:"sealed"` // IDs of relayers whose URLs cannot be opened
	Message    string               `json:"message"`
	Error      string               `json:"error"`
	Errors     []relayer.FieldError `json:"errors"`
	Metadata   *metadata            `json:"metadata"`
}

type metadata struct {
	Logs []struct{ Message string } `json:"logs"`
}

// UnmarshalJSON ignores members that have another type. It returns an error if data is not an
// object whose success is a boolean.
func (e *envelope) UnmarshalJSON(data []byte) error {
	type plain envelope // without this method
	decoded := struct {
		Success *bool `json:"success"`
		*plain
	}{plain: (*plain)(e)}
	err := json.Unmarshal(data, &decoded)
	if _, isOtherType := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !isOtherType {
		return err
	}
	if decoded.Success == nil {
		return errNoData
	}
	e.Success = *decoded.Success
	return nil
}

// setChange sets what is known of the last change of a relayer.
func setChange(r *relayer.Relayer, c wire.Change) {
	r.Revision, r.LastChange, r.PausedBy = c.Revision, c.Info(), c.PausedBy.Info()
}
