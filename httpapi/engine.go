package httpapi

import (
	"errors"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

// WithEngineOperations adds the operations of a relaying engine in another process: it
// reads the full RPC URLs with the query parameter rpc_urls=full of a get, a list and a stream
// ([relayer.ActionReveal]), and disables and enables relayers ([relayer.ActionDisable],
// [relayer.ActionEnable]). Without it the parameter and the paths are unknown. With it every
// caller may use them, unless an [Authorizer] refuses: permit them only to engines. The logger
// of [WithLogger] gets a line for every permitted request for full RPC URLs, and counts the
// others.
func WithEngineOperations() Option {
	return Option{func(s *settings) error {
		s.engineOperations = true
		return nil
	}}
}

func (a *API) disableRelayer(x *exchange) response {
	reason, err := parseReason(x.input.body)
	if err != nil {
		return a.errorResponse(x, err)
	}
	disabled, err := x.manager.Documents().Disable(x, x.relayerID, reason, x.input.options...)
	return a.changed(x, disabled, reasonError(err))
}

func (a *API) enableRelayer(x *exchange) response {
	enabled, err := x.manager.Documents().Enable(x, x.relayerID, x.input.options...)
	return a.changed(x, enabled, err)
}

type sentReason struct {
	Type    string `json:"type" wire:"nonempty"`
	Details string `json:"details" wire:"optional"`
}

// parseReason returns a [*relayer.ValidationError] if the body is not strict JSON of a
// reason.
func parseReason(body []byte) (relayer.DisabledReason, error) {
	if problem := strictjson.Check(body); problem != "" {
		return relayer.DisabledReason{}, invalid("the body " + problem)
	}
	var sent sentReason
	var found wire.Problems
	decoder := strictjson.Decoder{Problems: &found.Problems}
	decoder.Decode(body, &sent)
	return relayer.DisabledReason{Type: relayer.DisabledReasonType(sent.Type), Details: sent.Details}, found.Err()
}

// reasonError names the fields of a reason as the client wrote them.
func reasonError(err error) error {
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		return err
	}
	fields := make([]relayer.FieldError, 0, len(invalid.Fields))
	for _, field := range invalid.Fields {
		field.Field = strings.TrimPrefix(field.Field, "disabled_reason.")
		fields = append(fields, field)
	}
	return &relayer.ValidationError{Fields: fields}
}
