package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// signals receives the requests of an operator to a running server.
type signals struct {
	reload chan os.Signal // SIGHUP
	keys   chan os.Signal // SIGHUP
	end    chan os.Signal // SIGINT and SIGTERM, also the first one, which ends the context
}

// receiveSignals receives every signal, even if its flag is not set: an unhandled signal
// would end the process.
func receiveSignals() signals {
	s := signals{reload: make(chan os.Signal, 1), keys: make(chan os.Signal, 1), end: make(chan os.Signal, endSignals)}
	signal.Notify(s.end, os.Interrupt, syscall.SIGTERM)
	signal.Notify(s.reload, syscall.SIGHUP)
	signal.Notify(s.keys, syscall.SIGHUP)
	// The end of the process that reads the log would end this one.
	signal.Ignore(syscall.SIGPIPE)
	return s
}

// endSignals is the number of signals that end the server after the running requests: the
// first one after --drain-delay, the second one at once.
const endSignals = 2

func (s signals) stop() {
	signal.Stop(s.end)
	signal.Stop(s.reload)
	signal.Stop(s.keys)
	signal.Reset(syscall.SIGPIPE)
}

// ignoreUnused logs SIGHUP if no flag uses it, until ctx is done.
func (s signals) ignoreUnused(ctx context.Context, c config, logger *slog.Logger) {
	if c.tokensFile != "" || c.keysFile != "" {
		return
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.reload:
				logger.Warn("signal ignored: neither --tokens-file nor --keys is set", "signal", "SIGHUP")
			}
		}
	}()
}
