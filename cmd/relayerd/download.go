package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-relayer/relayer/store/bolt"
)

// backupPath responds with a copy of the database file.
const backupPath = "/backup"

// download returns the handler of [backupPath], for tokens with the role backup. Only one copy is
// written at a time. For all others, and with another store, the path does not exist.
func (s *server) download(api http.Handler) http.Handler {
	file, isFile := s.store.(*bolt.Store)
	var writing sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, granted, ok := s.tokens.grantFor(r)
		if !ok || !isFile || !granted.role.has(roleBackup) {
			api.ServeHTTP(w, r)
			return
		}
		if !writing.TryLock() {
			w.Header().Set("Retry-After", "10")
			http.Error(w, "another backup is being written", http.StatusServiceUnavailable)
			return
		}
		defer writing.Unlock()
		if err := s.send(w, r, file); err != nil {
			s.logger.Error("backup failed", "principal", actor.ID, "error", err.Error())
			if errors.Is(err, errIncomplete) {
				panic(http.ErrAbortHandler) // a client does not take a part for a whole copy
			}
			return
		}
		s.logger.Info("backup sent", "principal", actor.ID, "address", r.RemoteAddr)
	})
}

// send writes a backup next to the database and sends it.
func (s *server) send(w http.ResponseWriter, r *http.Request, from *bolt.Store) error {
	// A start of the server removes files with this suffix of package bolt.
	path := fmt.Sprint(s.database, ".tmp", time.Now().UnixNano())
	err := from.Backup(r.Context(), path)
	if err != nil {
		http.Error(w, "the backup failed: see the log of the server", http.StatusInternalServerError)
		return err
	}
	copied, err := os.Open(path)
	if err != nil {
		http.Error(w, "the backup failed: see the log of the server", http.StatusInternalServerError)
		return errors.Join(err, os.Remove(path))
	}
	defer copied.Close()
	if err := os.Remove(path); err != nil {
		http.Error(w, "the backup failed: see the log of the server", http.StatusInternalServerError)
		return err
	}
	// Without a length the response ends with the handler: the next backup is not refused.
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	for written := int64(0); err == nil; {
		// A client that stops to read is disconnected after the time of a usual response.
		_ = control.SetWriteDeadline(time.Now().Add(responseTimeout))
		if written, err = io.CopyN(w, copied, 1<<20); written == 0 {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("%w: %w", errIncomplete, err)
}

var errIncomplete = errors.New("the copy was not sent completely")

// download writes a backup of the server to a new file next to path. It returns its name and a
// function that removes it.
func (t *target) download(ctx context.Context, apiKey, path string) (name string, remove func(), err error) {
	if _, err := t.open(apiKey); err != nil { // checks the flags
		return "", nil, err
	}
	address, err := url.JoinPath(t.server, backupPath)
	if err != nil {
		return "", nil, errors.New("--server must be the URL of a server")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", nil, errors.New("--server must be the URL of a server")
	}
	request.Header.Set("Authorization", "Bearer "+apiKey)
	// A redirect would send the token to another server, and take the backup from there.
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := (&http.Client{Transport: &t.diagnosis, CheckRedirect: noRedirects}).Do(request)
	if err != nil {
		return "", nil, t.explain(fmt.Errorf("--server: %w", err))
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return "", nil, errors.New("--server: status 404: the token in API_KEY needs the role backup, and the server a database file: use pg_dump for PostgreSQL")
	default:
		return "", nil, t.explain(fmt.Errorf("--server: status %s", response.Status))
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".download*")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.Remove(file.Name()) }
	_, err = io.Copy(file, response.Body)
	if err = errors.Join(err, file.Close()); err != nil {
		remove()
		return "", nil, fmt.Errorf("--server: the backup is incomplete: %w", err)
	}
	return file.Name(), remove, nil
}
