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
	backup chan os.Signal // SIGUSR1
	end    chan os.Signal // SIGINT and SIGTERM, also the first one, which ends the context
}

// receiveSignals receives every signal, even if its flag is not set: an unhandled signal
// would end the process.
func receiveSignals() signals {
	s := signals{reload: make(chan os.Signal, 1), keys: make(chan os.Signal, 1), backup: make(chan os.Signal, 1), end: make(chan os.Signal, endSignals)}
	signal.Notify(s.end, os.Interrupt, syscall.SIGTERM)
	signal.Notify(s.reload, syscall.SIGHUP)
	signal.Notify(s.keys, syscall.SIGHUP)
	notifyBackup(s.backup)
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
	signal.Stop(s.backup)
	signal.Reset(syscall.SIGPIPE)
}

// ignoreUnused logs each signal whose flag is not set, until ctx is done.
func (s signals) ignoreUnused(ctx context.Context, c config, logger *slog.Logger) {
	ignore := func(received <-chan os.Signal, name, reason string) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-received:
				logger.Warn("signal ignored: "+reason, "signal", name)
			}
		}
	}
	if c.tokensFile == "" && c.keysFile == "" {
		go ignore(s.reload, "SIGHUP", "neither --tokens-file nor --keys is set")
	}
	if c.backup.directory == "" {
		go ignore(s.backup, "SIGUSR1", "--backup is not set")
	}
}
