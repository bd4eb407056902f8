//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyBackup receives the signal that requests a backup.
func notifyBackup(signals chan<- os.Signal) { signal.Notify(signals, syscall.SIGUSR1) }
