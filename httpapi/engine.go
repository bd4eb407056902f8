package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

// WithEngineOperations adds the operations of a relaying engine in another process: it
// reads the full RPC URLs ([relayer.ActionReveal]), and disables and enables relayers
// ([relayer.ActionDisable], [relayer.ActionEnable]). Without it their paths are unknown.
// With it every caller may use them, unless an [Authorizer] refuses: permit them only to
// engines.
func WithEngineOperations() Option {
	return Option{func(s *settings) error {
		s.engineOperations = true
		return nil
	}}
}

// fullRPCConfig is a [relayer.RPCConfig] whose URL is not masked.
type fullRPCConfig struct {
	URL    string   `json:"url"`
	Weight *float64 `json:"weight"`
}

// revealRPCURLs reads the revision before the URLs: if they change in between, the client
// reads them again at the next revision.
func (a *API) revealRPCURLs(x *exchange, r *http.Request) response {
	x.ignoreQuery(r)
	document, err := x.manager.GetDocument(x, x.relayerID)
	tag := entityTag(document.Revision)
	if err == nil && matchesAny(r.Header["If-None-Match"], tag) {
		return notModified(tag)
	}
	// The observers of the host see each attempt, also if there is no such relayer.
	endpoints, revealErr := x.manager.RPCURLs(x, x.relayerID)
	if err := cmp.Or(err, revealErr); err != nil {
		return a.errorResponse(x, r, err)
	}
	full := make([]fullRPCConfig, 0, len(endpoints))
	for _, endpoint := range endpoints {
		full = append(full, fullRPCConfig{endpoint.URL.Unmasked(), endpoint.Weight})
	}
	body := append(x.startBody(), encodeJSON(full)...)
	return x.success(http.StatusOK, body).withHeader("Etag", tag)
}

func (a *API) disableRelayer(x *exchange, r *http.Request) response {
	options, err := x.writeOptions(r)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	body, rejection := a.readJSON(x, r)
	if rejection != nil {
		return *rejection
	}
	reason, err := parseReason(body)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	disabled, err := x.manager.Disable(x, x.relayerID, reason, options...)
	if err != nil {
		return a.conditionalErrorResponse(x, r, reasonError(err))
	}
	return x.relayer(disabled)
}

func (a *API) enableRelayer(x *exchange, r *http.Request) response {
	options, err := x.writeOptions(r)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	enabled, err := x.manager.Enable(x, x.relayerID, options...)
	if err != nil {
		return a.conditionalErrorResponse(x, r, err)
	}
	return x.relayer(enabled)
}

func (x *exchange) relayer(r *relayer.Relayer) response {
	body := append(x.startBody(), encodeJSON(r)...)
	return x.success(http.StatusOK, body).withHeader("Etag", entityTag(r.Revision))
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
	decoder := strictjson.Decoder{Reporter: &found}
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
