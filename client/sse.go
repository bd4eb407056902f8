package client

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	"github.com/go-relayer/relayer/internal/wire"
)

// maxSilence is how long a stream may be silent: three heartbeats of package httpapi.
const maxSilence = 15 * time.Second

var errSilence = errors.New("the change feed is silent")

// event is one of the Server-Sent Events.
type event struct {
	id   string // "" if it has none that can be sent back
	kind string
	data []byte
}

// eventStream reads Server-Sent Events.
type eventStream struct {
	request *request // its times are too early by the duration of the request to the server
	body    io.ReadCloser
	lines   *bufio.Scanner
	cancel  context.CancelCauseFunc // ends the request, and a blocked read with it
	maxSize int64
	silence *time.Timer

	replaceAt time.Time // when its times are not exact enough
}

const (
	lateResponse = time.Second // the request may have taken as long
	maxStreamAge = time.Hour   // the clocks of client and server run at different rates
)

func newEventStream(body io.ReadCloser, cancel context.CancelCauseFunc, maxSize int64, req *request) *eventStream {
	s := &eventStream{body: body, cancel: cancel, maxSize: maxSize, request: req, replaceAt: req.began.Add(maxStreamAge)}
	if time.Since(req.began) > lateResponse {
		s.replaceAt = req.began
	}
	s.lines = bufio.NewScanner(s)
	s.lines.Buffer(nil, int(min(maxSize, math.MaxInt32)))
	s.silence = time.AfterFunc(maxSilence, func() { cancel(errSilence) })
	s.silence.Stop()
	return s
}

// Read reads the body. Each part of a slow line ends the silence.
func (s *eventStream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.silence.Reset(maxSilence)
	return n, err
}

// hasClockStep reports whether the times of a stream since a time are wrong.
func hasClockStep(since time.Time) bool { return wire.ClockStep(since).Abs() > time.Second }

func (s *eventStream) close() {
	s.cancel(nil)
	_ = s.body.Close()
}

// next returns the next event. It returns an error if the stream ends, is silent for too long, or
// sends an event that is too large. The time between two calls does not count as silence.
func (s *eventStream) next() (event, error) {
	s.silence.Reset(maxSilence)
	defer s.silence.Stop()
	var e event
	for size := 0; s.lines.Scan(); {
		line := s.lines.Bytes()
		if size += len(line) + 1; int64(size) > s.maxSize {
			return event{}, errTooLarge
		}
		switch {
		case len(line) > 0:
			e.add(line)
		case e.data != nil:
			return e, nil
		default:
			e, size = event{}, 0 // an event without data is ignored
		}
	}
	err := cmp.Or(s.lines.Err(), io.EOF)
	if errors.Is(err, bufio.ErrTooLong) {
		err = errTooLarge
	}
	return event{}, err
}

// add adds a line of the event.
func (e *event) add(line []byte) {
	name, value, _ := strings.Cut(string(line), ":")
	value = strings.TrimPrefix(value, " ")
	switch {
	case name == "id" && wire.IsToken(value):
		e.id = value
	case name == "event":
		e.kind = value
	case name == "data":
		e.data = append(append(e.data, value...), '\n')
	}
}
