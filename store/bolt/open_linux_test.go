package bolt_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// A file that cannot be opened for lack of file descriptors is not of an unknown format:
// the file is whole, and the next Open can succeed.
func TestOpen_NoFileDescriptors(t *testing.T) {
	store, path := openTemp(t)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	_, err := bolt.Open(t.Context(), path)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EMFILE) || errors.Is(err, relayer.ErrUnknownFormat) {
		t.Errorf("error %v, want EMFILE", err)
	}
	if err := open(t, path).Close(); err != nil {
		t.Error(err)
	}
}
