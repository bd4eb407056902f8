package httpapi

import (
	"net/http"
	"strconv"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

// response is a complete response. It is built before the first byte is sent, so that a
// fault until then is a 500. The header is in addition to the fields of every response.
type response struct {
	status int
	header []headerField
	body   []byte
}

type headerField struct{ name, value string }

// withHeader returns the response with one more header.
func (p response) withHeader(name, value string) response {
	p.header = append(p.header, headerField{name, value})
	return p
}

// startResponse records the status and returns the header with the fields of every
// response. From then on the request does not count as in flight.
func (x *exchange) startResponse(status int, contentType string) http.Header {
	x.status = status
	x.releaseInFlight()
	header := x.Header()
	header.Set("Content-Type", contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Request-Id", x.actor.RequestID)
	return header
}

func (x *exchange) respond(p response) {
	header := x.startResponse(p.status, jsonType)
	for _, field := range p.header {
		header.Set(field.name, field.value)
	}
	if p.status == http.StatusNotModified {
		x.WriteHeader(p.status)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(p.body)))
	if x.request.ContentLength != 0 && x.input.body == nil {
		header.Set("Connection", "close") // otherwise net/http reads the rest of the body before it sends the response
	}
	x.WriteHeader(p.status)
	if x.request.Method != http.MethodHead {
		x.bytes = len(p.body)
		_, _ = x.Write(p.body) // an error means that the client is gone
	}
}

// dataStart is what precedes the data of a success.
const dataStart = `{"success":true,"data":`

// startBody returns the start of a success body in the buffer of the exchange. The
// caller appends the data, which is JSON already, and passes the result to success.
func (x *exchange) startBody() []byte { return append((*x.buffer)[:0], dataStart...) }

// success returns a response whose body was started by startBody, with the other members of its
// envelope. Most reads have none but the pagination, so these do not encode the whole envelope.
func (x *exchange) success(status int, body []byte, envelope relayer.Envelope) response {
	envelope.Success, envelope.Metadata = true, x.input.warnings()
	switch {
	case !isPlain(envelope):
		body = append(body, encodeJSON(envelope)[len(dataStart+"null"):]...)
	case envelope.Pagination != nil:
		body = append(append(body, `,"pagination":`...), encodeJSON(envelope.Pagination)...)
		body = append(body, '}')
	default:
		body = append(body, '}')
	}
	*x.buffer = body
	return response{status: status, body: body}
}

// isPlain reports whether a success has no members besides data and pagination.
func isPlain(e relayer.Envelope) bool {
	return e.Next == "" && e.Position == nil && e.Change == nil && e.Changes == nil && e.Sealed == nil && e.Metadata == nil
}

func (x *exchange) document(status int, document relayer.Document) response {
	body := append(x.startBody(), document.JSON...)
	return x.success(status, body, relayer.Envelope{Change: x.lastChange(document), Sealed: sealedOf(document)})
}

// notModified returns the response to a request whose If-None-Match has the current tag.
func notModified(tag string) response {
	return response{status: http.StatusNotModified}.withHeader("Etag", tag)
}

// maxPooledBuffer is the capacity of the largest buffer that is kept for later
// requests.
const maxPooledBuffer = 512 << 10

// putBuffer returns the buffer to the pool. The body of the response is invalid
// afterwards.
func (a *API) putBuffer(x *exchange) {
	if cap(*x.buffer) <= maxPooledBuffer {
		a.buffers.Put(x.buffer)
	}
}

// failure returns a failure response that is not about one relayer.
func failure(status int) response { return failureOf(status, "") }

// failureOf returns a failure response. id is the relayer ID in the path, or empty.
func failureOf(status int, id string) response {
	return response{status: status, body: encodeJSON(relayer.Envelope{Message: wire.Message(status, id)})}
}

// overloaded returns the response to a request that may succeed later.
func overloaded() response {
	return failure(http.StatusServiceUnavailable).withHeader("Retry-After", "1")
}

// invalidRequest returns the response to a malformed or invalid request, with all
// problems found.
func invalidRequest(status int, problems ...relayer.FieldError) response {
	return response{status: status, body: encodeJSON(relayer.Envelope{Message: wire.Message(status, ""), Errors: problems})}
}

// encodeJSON encodes a value that consists of strings and numbers, which cannot
// fail.
func encodeJSON(value any) []byte {
	encoded, err := strictjson.Encode(value)
	if err != nil {
		panic(err)
	}
	return encoded
}
