package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

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

// withHeader returns the response with one more header, whose name is canonical.
func (p response) withHeader(name, value string) response {
	p.header = append(p.header, headerField{name, value})
	return p
}

// startResponse records the status and returns the header with the fields of every
// response. From then on the request does not count as in flight, unless it is held.
func (x *exchange) startResponse(status int, contentType string) http.Header {
	x.status = status
	if !x.isHeld {
		x.releaseInFlight()
	}
	header := x.Header()
	setFields(header,
		headerField{"Content-Type", contentType}, headerField{"X-Content-Type-Options", "nosniff"},
		headerField{"Cache-Control", "no-store"}, headerField{"X-Request-Id", x.actor.RequestID})
	return header
}

// setFields sets fields with canonical names. Their values share an allocation: it is faster than Set.
func setFields(header http.Header, fields ...headerField) {
	values := make([]string, len(fields))
	for i, field := range fields {
		values[i] = field.value
		header[field.name] = values[i : i+1 : i+1]
	}
}

func (x *exchange) respond(p response) {
	header := x.startResponse(p.status, jsonType)
	setFields(header, p.header...)
	if p.status == http.StatusNotModified {
		x.WriteHeader(p.status)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(p.body)))
	if x.request.ProtoMajor == 1 && x.request.ContentLength != 0 && x.input.body == nil {
		// Otherwise net/http first reads up to 256 KiB of the body. HTTP/2 ends only the stream.
		header.Set("Connection", "close")
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
// envelope. Reads that have only the pagination do not encode the whole envelope.
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

// maxPooledBuffer is the capacity of the largest buffer that is kept for later requests.
const maxPooledBuffer = 512 << 10

// putBuffer returns the buffer to the pool. The body of the response is invalid afterwards.
func (a *API) putBuffer(x *exchange) {
	if cap(*x.buffer) <= maxPooledBuffer {
		a.buffers.Put(x.buffer)
	}
}

// failure returns a failure response, with the problems of a request that is malformed or invalid.
func failure(status int, problems ...relayer.FieldError) response {
	return response{status: status, body: encodeJSON(relayer.Envelope{Message: wire.Message(status, ""), Errors: problems})}
}

// overloaded returns the response to a request that may succeed later.
func overloaded() response {
	return failure(http.StatusServiceUnavailable).withHeader("Retry-After", "1")
}

// encodeJSON encodes a value whose encoding cannot fail.
func encodeJSON(value any) []byte {
	encoded, err := strictjson.Encode(value)
	if err != nil {
		panic(err)
	}
	return encoded
}

// entityTag returns the ETag of a revision. It is strong, as If-Match needs: a store never reuses
// a revision.
func entityTag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// wildcard matches every revision. A * among tags has no meaning.
var wildcard = []string{"*"}

// conditions returns the condition of If-Match: one of the listed revisions, or no condition
// for *. A tag that is weak or not created by this package matches no revision (RFC
// 9110 section 13.1.1).
func conditions(header http.Header) []relayer.WriteOption {
	tags := entityTags(header["If-Match"])
	if len(tags) == 0 || slices.Equal(tags, wildcard) {
		return nil
	}
	var revisions []uint64
	for _, tag := range tags {
		revision, err := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64)
		if err == nil && revision != 0 && entityTag(revision) == tag {
			revisions = append(revisions, revision)
		}
	}
	return []relayer.WriteOption{relayer.IfRevision(revisions...)}
}

// matchesAny reports whether the values of If-None-Match match the tag. The
// comparison is the weak one (RFC 9110 section 13.1.2).
func matchesAny(values []string, tag string) bool {
	tags := entityTags(values)
	return slices.Equal(tags, wildcard) || slices.ContainsFunc(tags, func(candidate string) bool {
		return strings.TrimPrefix(candidate, "W/") == tag
	})
}

// entityTags returns the elements of a header's lists. A tag that contains a comma is not of this
// package, and neither are its parts.
func entityTags(values []string) (tags []string) {
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			tags = append(tags, strings.TrimSpace(tag))
		}
	}
	return tags
}
