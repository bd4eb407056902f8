//go:build unix

package main

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// acceptLast accepts all waiting connections, and ends the listener before others arrive. A
// Close of the listener alone takes effect only when the goroutine that accepts has run.
func acceptLast(listener *net.TCPListener) (accepted []net.Conn) {
	raw, err := listener.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) {
		for {
			connection, _, err := syscall.Accept(int(fd))
			switch {
			case err == nil:
				accepted = appendConn(accepted, connection)
			case !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.ECONNABORTED):
				_ = syscall.Shutdown(int(fd), syscall.SHUT_RD)
				return
			}
		}
	})
	return accepted
}

func appendConn(all []net.Conn, fd int) []net.Conn {
	file := os.NewFile(uintptr(fd), "connection")
	defer file.Close()
	connection, err := net.FileConn(file) // sets close-on-exec and non-blocking
	if err != nil {
		return all
	}
	return append(all, connection)
}
