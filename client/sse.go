package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// maxSilence is how long a stream may be silent: more than three heartbeats of package
// httpapi.
const maxSilence = 50 * time.Second

var errSilence = errors.New("the change feed is silent")

// event is one of the Server-Sent Events.
type event struct {
	id    string
	hasID bool
	kind  string
	data  []byte // nil for a comment

	comment string
}

// heartbeat is the comment of package httpapi on a stream that has had all changes.
const heartbeat = "heartbeat"

// eventStream reads Server-Sent Events.
type eventStream struct {
	body    io.ReadCloser
	lines   *bufio.Reader
	cancel  context.CancelCauseFunc // ends the request, and a blocked read with it
	maxSize int64
	opened  time.Time
}

func (s *eventStream) close() {
	s.cancel(nil)
	_ = s.body.Close()
}

// next returns the next event or comment. It returns an error if the stream ends, is silent
// for too long, or sends an event that is too large. The time between two calls does not
// count as silence.
func (s *eventStream) next() (event, error) {
	silence := time.AfterFunc(maxSilence, func() { s.cancel(errSilence) })
	defer silence.Stop()
	var e event
	var size int64
	for {
		line, err := s.line(s.maxSize - size)
		if err != nil {
			return event{}, err
		}
		silence.Reset(maxSilence)
		size += int64(len(line))
		if len(line) > 0 {
			e.add(line)
			continue
		}
		if e.data != nil || e.comment != "" {
			return e, nil
		}
		e, size = event{}, 0 // an event without data is ignored
	}
}

// add adds a line of the event. A line that begins with a colon is a comment.
func (e *event) add(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "":
		e.comment = string(value)
	case "id":
		e.id, e.hasID = string(value), !bytes.Contains(value, []byte{0})
	case "event":
		e.kind = string(value)
	case "data":
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		if e.data == nil {
			e.data = []byte{}
		}
	}
}

// line returns the next line without its end.
func (s *eventStream) line(most int64) ([]byte, error) {
	var line []byte
	for {
		part, err := s.lines.ReadSlice('\n')
		if int64(len(line)+len(part)) > most {
			return nil, errTooLarge
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// isHeaderValue reports whether an ID can be sent as Last-Event-ID.
func isHeaderValue(id string) bool {
	return !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r >= 0x7f })
}
