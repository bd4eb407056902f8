package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-relayer/relayer/httpapi"
)

// role is what the owner of a token may do.
type role string

const (
	readWrite role = ""
	readOnly  role = "read" // get, list and watch
)

// tokenTable is the content of a tokens file. It is never changed after parsing.
type tokenTable struct {
	names map[[sha256.Size]byte]string // by the digest of the token
	roles map[string]role              // by name

	minBytes int // the shortest length of a token
}

var (
	principalName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	bearerToken   = regexp.MustCompile(`^[!-~]+$`)
)

// minTokenBytesOf returns the shortest length of a token that the flags permit.
func minTokenBytesOf(c config) int {
	if c.allowShortTokens {
		return 1
	}
	return httpapi.MinTokenBytes
}

func checkTokenLength(token string, minBytes int) error {
	if len(token) < minBytes {
		return fmt.Errorf("the token has fewer than %d bytes: generate one with openssl rand -hex 16, or use --allow-short-tokens", minBytes)
	}
	return nil
}

// parseTokens reads lines of the form "name token" or "name token read". Errors
// contain line numbers, and no part of the file.
func parseTokens(text string, minBytes int) (*tokenTable, error) {
	if hasByteOrderMark(text) {
		return nil, errors.New("the file begins with a byte order mark: save it as UTF-8 without one")
	}
	table := &tokenTable{names: make(map[[sha256.Size]byte]string), roles: make(map[string]role), minBytes: minBytes}
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if err := table.add(fields); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if len(table.names) == 0 {
		return nil, errors.New("the file contains no token")
	}
	return table, nil
}

// hasByteOrderMark reports whether a text begins with a mark of UTF-8 or UTF-16, which
// editors hide.
func hasByteOrderMark(text string) bool {
	return slices.ContainsFunc([]string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"}, func(mark string) bool {
		return strings.HasPrefix(text, mark)
	})
}

func (t *tokenTable) add(fields []string) error {
	granted := readWrite
	switch {
	case len(fields) == 3 && fields[2] == string(readOnly):
		granted = readOnly
	case len(fields) != 2:
		return errors.New(`must be "name token" or "name token read"`)
	}
	name, token := fields[0], fields[1]
	if !principalName.MatchString(name) {
		return errors.New("the name must have 1 to 64 letters, digits, dots, hyphens or underscores")
	}
	if !bearerToken.MatchString(token) {
		return errors.New("the token must consist of ASCII letters, digits and symbols")
	}
	if err := checkTokenLength(token, t.minBytes); err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(token))
	if _, exists := t.names[digest]; exists {
		return errors.New("an earlier line has the same token")
	}
	if other, exists := t.roles[name]; exists && other != granted {
		return errors.New("an earlier line gives this name another role")
	}
	t.names[digest] = name
	t.roles[name] = granted
	return nil
}

// tokensFile authenticates and authorizes requests with the tokens of a file.
type tokensFile struct {
	path     string
	minBytes int // the shortest length of a token
	logger   *slog.Logger
	current  atomic.Pointer[tokenTable]
}

// load reads the file. If it is invalid, the earlier tokens stay valid.
func (f *tokensFile) load() error {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("--tokens-file: %w", err)
	}
	table, err := parseTokens(string(text), f.minBytes)
	if err != nil {
		return fmt.Errorf("--tokens-file: %s: %w", f.path, err)
	}
	warnIfReadable(f.logger, "tokens file", f.path)
	f.current.Store(table)
	return nil
}

// reloadOn loads the file for each signal until ctx is done.
func (f *tokensFile) reloadOn(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		if err := f.load(); err != nil {
			f.logger.Error("tokens not reloaded: the earlier tokens stay valid", "error", err.Error())
			continue
		}
		f.logger.Info("tokens reloaded", "tokens", len(f.current.Load().names))
	}
}

// authenticate is an [httpapi.AuthFunc]. It looks up a digest, so that the duration
// reveals nothing about a token.
func (f *tokensFile) authenticate(_ context.Context, token string) (principal string, err error) {
	name, ok := f.current.Load().names[sha256.Sum256([]byte(token))]
	if !ok {
		return "", errors.New("unknown token")
	}
	return name, nil
}

// authorize is a function for [httpapi.WithAuthorizer]. A reload may have removed
// the name since the request was authenticated.
func (f *tokensFile) authorize(_ context.Context, access httpapi.Access) error {
	granted, ok := f.current.Load().roles[access.Principal]
	isRead := access.Action == httpapi.ActionGet || access.Action == httpapi.ActionList || access.Action == httpapi.ActionWatch
	if !ok || granted == readOnly && !isRead {
		return httpapi.ErrForbidden
	}
	return nil
}

// openTokensFile loads a tokens file and reloads it for each signal until stop is
// called.
func openTokensFile(ctx context.Context, c config, signals <-chan os.Signal, logger *slog.Logger) (file *tokensFile, stop func(), err error) {
	file = &tokensFile{path: c.tokensFile, minBytes: minTokenBytesOf(c), logger: logger}
	if err := file.load(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		file.reloadOn(ctx, signals)
	}()
	return file, func() { cancel(); <-done }, nil
}
