package main

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

// logWriter writes lines to an output that may block, such as a pipe that is not read. A
// line is dropped if the output fails, or if too many lines wait.
type logWriter struct {
	output  io.Writer
	lines   chan []byte
	dropped atomic.Uint64

	stopping chan struct{} // closed by close
	stopped  chan struct{} // closed when no line is written any more
}

const (
	// waitingLines bounds the memory of the lines that wait, to some MiB.
	waitingLines = 10_000

	// flushTimeout limits how long an output that blocks delays the end of the server.
	flushTimeout = 2 * time.Second
)

func newLogWriter(output io.Writer) *logWriter {
	w := &logWriter{output: output, lines: make(chan []byte, waitingLines), stopping: make(chan struct{}), stopped: make(chan struct{})}
	go w.run()
	return w
}

// Write takes one line. It neither blocks nor fails.
func (w *logWriter) Write(line []byte) (int, error) {
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.dropped.Add(1)
	}
	return len(line), nil
}

func (w *logWriter) run() {
	defer close(w.stopped)
	for {
		select {
		case line := <-w.lines:
			w.write(line)
		case <-w.stopping:
			for len(w.lines) > 0 {
				w.write(<-w.lines)
			}
			return
		}
	}
}

func (w *logWriter) write(line []byte) {
	if _, err := w.output.Write(line); err != nil {
		w.dropped.Add(1)
	}
}

// close writes the lines that wait, unless the output blocks.
func (w *logWriter) close() {
	close(w.stopping)
	select {
	case <-w.stopped:
	case <-time.After(flushTimeout):
	}
}
