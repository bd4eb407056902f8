//go:build !unix

package main

import "os"

// notifyBackup does nothing: this system has no SIGUSR1.
func notifyBackup(chan<- os.Signal) {}
