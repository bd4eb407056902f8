package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

// role is what the owner of a token may do: one of the names, or several with + in between.
type role string

const (
	roleWrite  role = "write"  // everything that clients do
	roleRead   role = "read"   // get, list and watch
	roleEngine role = "engine" // what a relaying engine does
	roleBackup role = "backup" // a copy of the database file, and no operation of the API
)

func (r role) has(name role) bool {
	return slices.Contains(strings.Split(string(r), "+"), string(name))
}

// permits reports whether the role has an action. Unknown actions are denied.
func (r role) permits(action relayer.Action) bool {
	switch action {
	case relayer.ActionGet, relayer.ActionList, relayer.ActionWatch:
		return r.has(roleRead) || r.has(roleWrite) || r.has(roleEngine)
	case relayer.ActionCreate, relayer.ActionUpdate, relayer.ActionPause, relayer.ActionResume, relayer.ActionDelete:
		return r.has(roleWrite)
	case relayer.ActionReveal, relayer.ActionDisable, relayer.ActionEnable:
		return r.has(roleEngine)
	default:
		return false
	}
}

// grant is what the tokens of a name permit.
type grant struct {
	role   role
	within relayer.Selector
}

// tokenTable is the content of a tokens file. It is never changed after parsing.
type tokenTable struct {
	names  map[[sha256.Size]byte]string // by the digest of the token
	grants map[string]grant             // by name
}

func newTokenTable() *tokenTable {
	return &tokenTable{names: make(map[[sha256.Size]byte]string), grants: make(map[string]grant)}
}

var principalName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// isBearerToken reports whether a text has only visible ASCII.
func isBearerToken(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return r < '!' || r > '~' }) < 0
}

// minTokenBytes is the shortest length of a token: one of 128 random bits is longer.
const minTokenBytes = 16

// parseTokens reads lines of the form "name token role [selector]". Errors contain line
// numbers, and no part of the file. A line that was cut off could permit more than the whole
// one, so that the last line must end.
func parseTokens(text string) (*tokenTable, error) {
	table := newTokenTable()
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
	if number > 0 && !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("line %d: the last line has no newline at its end, so that the file may be incomplete: add one if it is whole", number)
	}
	if len(table.names) == 0 {
		return nil, errors.New("the file contains no token")
	}
	return table, nil
}

func (t *tokenTable) add(fields []string) error {
	if len(fields) < 3 || len(fields) > 4 {
		return errors.New(`must be "name token role" or "name token role selector", with a role such as read or write`)
	}
	name, token := fields[0], fields[1]
	if !principalName.MatchString(name) {
		return errors.New("the name must have 1 to 64 letters, digits, dots, hyphens or underscores")
	}
	if !isBearerToken(token) {
		return errors.New("the token must consist of ASCII letters, digits and symbols")
	}
	if len(token) < minTokenBytes {
		return fmt.Errorf("the token has fewer than %d bytes: generate one with openssl rand -hex 16", minTokenBytes)
	}
	granted, err := parseGrant(fields[2:])
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(token))
	if text, ok := strings.CutPrefix(token, "sha256:"); ok {
		decoded, err := hex.DecodeString(text)
		if copy(digest[:], decoded); err != nil || len(decoded) != len(digest) {
			return errors.New("sha256: must be followed by the 64 hexadecimal digits of the SHA-256 of a token")
		}
	}
	if _, exists := t.names[digest]; exists {
		return errors.New("an earlier line has the same token")
	}
	if other, exists := t.grants[name]; exists && (other.role != granted.role || other.within.String() != granted.within.String()) {
		return errors.New("an earlier line gives this name another role or selector")
	}
	t.names[digest] = name
	t.grants[name] = granted
	return nil
}

func parseGrant(fields []string) (grant, error) {
	granted := grant{role: role(fields[0])}
	for name := range strings.SplitSeq(string(granted.role), "+") {
		if !slices.Contains([]role{roleWrite, roleRead, roleEngine, roleBackup}, role(name)) {
			return grant{}, errors.New("the role must be read, write, engine or backup, or several of them, such as write+engine")
		}
	}
	if len(fields) < 2 {
		return granted, nil
	}
	if granted.role.has(roleBackup) {
		return grant{}, errors.New("the role backup has no selector: a backup has all relayers")
	}
	within, err := relayer.ParseSelector(fields[1])
	if err != nil {
		return grant{}, errSelector
	}
	for key := range within.Terms() {
		if key == "search" {
			return grant{}, errSelector
		}
	}
	granted.within = within
	return granted, nil
}

// errSelector quotes nothing: the fields of a line may be in the wrong order.
var errSelector = errors.New("the selector must have terms such as network=sepolia,label.team=payments|risk: " +
	"the keys are the filters of a list, except search")

// tokensFile is the current content of --tokens-file.
type tokensFile struct{ atomic.Pointer[tokenTable] }

func (s *server) openTokensFile(ctx context.Context) (*tokensFile, error) {
	file := new(tokensFile)
	return file, s.reloading(ctx, "--tokens-file", func(context.Context) error {
		text, err := os.ReadFile(s.tokensFile)
		if err != nil {
			return inputError("--tokens-file", s.tokensFile, `create it with a line "name token role" for each client`, err)
		}
		if err := checkNotWritable(s.tokensFile); err != nil {
			return fmt.Errorf("--tokens-file: %w", err)
		}
		table, err := parseTokens(string(text))
		if err != nil {
			return fmt.Errorf("--tokens-file: %s: %w", s.tokensFile, err)
		}
		warnIfReadable(s.logger, "tokens file", s.tokensFile)
		file.Store(table)
		return nil
	}, s.tokensFile)
}

// authenticate is an [httpapi.Authenticator] for the tokens of the current file.
func (f *tokensFile) authenticate(r *http.Request) (relayer.Actor, error) {
	return f.Load().authenticate(r)
}

// authenticate is an [httpapi.Authenticator]. It looks up a digest, so that the duration
// reveals nothing about a token.
func (t *tokenTable) authenticate(r *http.Request) (relayer.Actor, error) {
	token, ok := httpapi.BearerToken(r)
	if !ok {
		return relayer.Actor{}, httpapi.ErrUnauthorized
	}
	name, ok := t.names[sha256.Sum256([]byte(token))]
	if !ok {
		return relayer.Actor{}, httpapi.ErrUnauthorized
	}
	return relayer.Actor{ID: name}, nil
}

// grantOf returns what an actor may do. A reload may have removed the name since the request was
// authenticated.
func (f *tokensFile) grantOf(actor relayer.Actor) (grant, bool) {
	granted, ok := f.Load().grants[actor.ID]
	return granted, ok
}

// grantFor authenticates a request outside of the API, and returns what its token permits.
func (f *tokensFile) grantFor(r *http.Request) (actor relayer.Actor, granted grant, ok bool) {
	actor, err := f.authenticate(r)
	if err != nil {
		return actor, grant{}, false
	}
	granted, ok = f.grantOf(actor)
	return actor, granted, ok
}

// authorize is an [httpapi.Authorizer].
func (f *tokensFile) authorize(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	if granted, ok := f.grantOf(access.Actor); ok && granted.role.permits(access.Action) {
		return httpapi.Allow(granted.within), nil
	}
	return httpapi.Decision{}, nil
}
