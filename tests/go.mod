module github.com/go-relayer/relayer/tests

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/go-relayer/relayer v0.0.0
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)

require (
	go.etcd.io/bbolt v1.5.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/go-relayer/relayer => ../
