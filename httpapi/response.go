package httpapi

import (
	"net/http"
	"strconv"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// The messages of failures (spec section 7), beside the one that names an id.
const (
	messageBadRequest         = "Bad Request"
	messageUnauthorized       = "Unauthorized"
	messageExists             = "Relayer with this ID already exists"
	messageTooManyRequests    = "Too Many Requests"
	messageInternal           = "Internal Server Error"
	messageUnavailable        = "Service Unavailable"
	messageNotFound           = "Not Found"
	messageMethodNotAllowed   = "Method Not Allowed"
	messagePreconditionFailed = "Precondition Failed"
)

// response is what to answer. It is made whole before the first byte goes out,
// so that a fault on the way can still become a 500.
type response struct {
	status int
	header [2]headerField
	body   []byte
}

type headerField struct{ name, value string }

// with returns the response with one more header. The name is in canonical
// form.
func (p response) with(name, value string) response {
	for i := range p.header {
		if p.header[i].name == "" {
			p.header[i] = headerField{name, value}
			return p
		}
	}
	panic("httpapi: too many headers in a response")
}

// The values of headers that every response has.
var (
	contentTypeJSON = []string{"application/json"}
	noSniff         = []string{"nosniff"}
	noStore         = []string{"no-store"}
)

// answer sends the response.
func (x *exchange) answer(r *http.Request, p response) {
	x.answered, x.status = true, p.status
	x.leave()
	header := x.Header()
	header["Content-Type"] = contentTypeJSON
	header["X-Content-Type-Options"] = noSniff
	header["Cache-Control"] = noStore
	header["X-Request-Id"] = []string{x.requestID}
	for _, field := range p.header {
		if field.name != "" {
			header[field.name] = []string{field.value}
		}
	}
	if p.status == http.StatusNotModified {
		x.WriteHeader(p.status)
		return
	}
	header["Content-Length"] = []string{strconv.Itoa(len(p.body))}
	x.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		x.bytes = len(p.body)
		// A client that is gone cannot be told so.
		_, _ = x.Write(p.body)
	}
}

// begin returns the start of the body of a success, in the exchange's buffer,
// for the caller to append the data to.
func (x *exchange) begin() []byte {
	return append((*x.buffer)[:0], `{"success":true,"data":`...)
}

// success answers with a body that begin has begun.
func (x *exchange) success(status int, body []byte) response {
	*x.buffer = append(body, '}')
	return response{status: status, body: *x.buffer}
}

// maxPooledBuffer bounds what a buffer that once held a large page keeps
// afterwards.
const maxPooledBuffer = 256 << 10

// release gives the buffer back. Nothing of the exchange may be used after it.
func (a *api) release(x *exchange) {
	if cap(*x.buffer) <= maxPooledBuffer {
		a.buffers.Put(x.buffer)
	}
}

// failure answers with one of the messages.
func failure(status int, message string) response {
	return response{status: status, body: encode(relayer.Failure{Message: message})}
}

// invalidRequest answers a request that is malformed or invalid, with every
// problem found.
func invalidRequest(status int, problems ...relayer.FieldError) response {
	return response{status: status, body: encode(relayer.Failure{Message: messageBadRequest, Errors: problems})}
}

// encode encodes values that cannot fail to encode: strings and numbers.
func encode(value any) []byte {
	encoded, err := strictjson.Encode(value)
	if err != nil {
		panic(err)
	}
	return encoded
}
