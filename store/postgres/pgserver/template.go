//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-relayer/relayer/store/postgres/internal/process"
)

// template is the result of one initdb, which every server copies: that is faster than
// initdb. It is removed with the last server.
var template struct {
	mu        sync.Mutex
	servers   int
	directory string // empty before the first server
}

// useTemplate counts a server until it calls release.
func useTemplate() (release func() error) {
	template.mu.Lock()
	defer template.mu.Unlock()
	template.servers++
	return sync.OnceValue(func() error {
		template.mu.Lock()
		defer template.mu.Unlock()
		if template.servers--; template.servers > 0 {
			return nil
		}
		err := os.RemoveAll(template.directory)
		template.directory = ""
		return err
	})
}

func (s *Server) copyTemplate() error {
	data, err := s.makeTemplate()
	if err != nil {
		return err
	}
	output, err := process.Command(s.account, s.directory, "/bin/cp", "-pR", data, s.data()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pgserver: copy the template: %w\n%s", err, output)
	}
	return nil
}

// makeTemplate runs initdb unless another server has done so, and returns the data
// directory.
func (s *Server) makeTemplate() (data string, err error) {
	template.mu.Lock()
	defer template.mu.Unlock()
	if template.directory == "" {
		directory, err := process.MakeDirectory(s.account)
		if err != nil {
			return "", err
		}
		// The files need no sync: a crash of the machine ends the test anyway.
		err = s.run("initdb", "-D", filepath.Join(directory, "data"), "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync",
			"--auth-local=trust", "--auth-host=scram-sha-256")
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(directory))
		}
		template.directory = directory
	}
	return filepath.Join(template.directory, "data"), nil
}
