package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

// rolePermits has the actions of each role. Only the role backup permits a copy of the database file.
var rolePermits = map[string][]relayer.Action{
	"read": {relayer.ActionGet, relayer.ActionList, relayer.ActionWatch},
	"write": {relayer.ActionGet, relayer.ActionList, relayer.ActionWatch, relayer.ActionCreate, relayer.ActionUpdate, relayer.ActionPause,
		relayer.ActionResume, relayer.ActionDelete},
	"engine": {relayer.ActionGet, relayer.ActionList, relayer.ActionWatch, relayer.ActionReveal, relayer.ActionDisable, relayer.ActionEnable},
	"backup": {},
}

// grant is what the tokens of a name permit.
type grant struct {
	roles  []string
	within relayer.Selector
}

func (g grant) permits(action relayer.Action) bool {
	return slices.ContainsFunc(g.roles, func(role string) bool { return slices.Contains(rolePermits[role], action) })
}

func (g grant) mayBackUp() bool { return slices.Contains(g.roles, "backup") }

// tokenTable has tokens and their grants. It is never changed after parsing.
type tokenTable struct {
	names  map[[sha256.Size]byte]string // by the digest of the token
	grants map[string]grant             // by name
}

func newTokenTable() tokenTable {
	return tokenTable{names: make(map[[sha256.Size]byte]string), grants: make(map[string]grant)}
}

var principalName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// parseTokens reads lines of the form "name token role [selector]". Errors contain no part of the
// file. A line that was cut off could permit more than the whole line, so the last line must end.
func parseTokens(text string) (tokenTable, error) {
	table := newTokenTable()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if err := table.add(fields); err != nil {
			return table, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if lines[len(lines)-1] != "" {
		return table, fmt.Errorf("line %d: the last line has no newline at its end, so the file may be incomplete: add one if it is whole", len(lines))
	}
	if len(table.names) == 0 {
		return table, errors.New("the file contains no token")
	}
	return table, nil
}

func (t tokenTable) add(fields []string) error {
	if len(fields) < 3 || len(fields) > 4 {
		return errors.New(`must be "name token role" or "name token role selector", with a role such as read or write`)
	}
	name, token := fields[0], fields[1]
	if !principalName.MatchString(name) {
		return errors.New("the name must have 1 to 64 letters, digits, dots, hyphens or underscores")
	}
	// The error must not have the name: the fields of a line may be in the wrong order.
	if _, err := httpapi.Tokens(map[string][]string{"any": {token}}); err != nil {
		return errors.New("the token " + strings.TrimPrefix(err.Error(), `httpapi: a bearer token of "any" `))
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
	if other, exists := t.grants[name]; exists && !reflect.DeepEqual(other, granted) {
		return errors.New("an earlier line gives this name another role or selector")
	}
	t.names[digest] = name
	t.grants[name] = granted
	return nil
}

func parseGrant(fields []string) (granted grant, err error) {
	granted.roles = strings.Split(fields[0], "+")
	for _, role := range granted.roles {
		if _, exists := rolePermits[role]; !exists {
			return granted, errors.New("the role must be read, write, engine or backup, or several of them, such as write+engine")
		}
	}
	if len(fields) < 2 {
		return granted, nil
	}
	if granted.mayBackUp() {
		return granted, errors.New("the role backup has no selector: a backup has all relayers")
	}
	if granted.within, err = relayer.ParseSelector(fields[1]); err != nil || maps.Collect(granted.within.Terms())["search"] != nil {
		// It quotes nothing: the fields of a line may be in the wrong order.
		return granted, errors.New("the selector must have terms such as network=sepolia,label.team=payments|risk: the keys are the filters of a list, except search")
	}
	return granted, nil
}

// tokensFile has the current tokens.
type tokensFile struct{ *atomic.Pointer[tokenTable] }

func (s *server) readTokens(context.Context) (table tokenTable, err error) {
	text, err := readFile("--tokens-file", s.tokensFile, `create it with a line "name token role" for each client`)
	if err != nil {
		return table, err
	}
	if err := checkNotWritable(s.tokensFile); err != nil {
		return table, fmt.Errorf("--tokens-file: %w", err)
	}
	if table, err = parseTokens(string(text)); err != nil {
		return table, fmt.Errorf("--tokens-file: %s: %w", s.tokensFile, err)
	}
	warnIfReadable(s.logger, "tokens file", s.tokensFile)
	return table, nil
}

// authenticate is an [httpapi.Authenticator]. It looks up a digest, so that the duration
// reveals nothing about a token.
func (f tokensFile) authenticate(r *http.Request) (relayer.Actor, error) {
	token, ok := httpapi.BearerToken(r)
	name, exists := f.Load().names[sha256.Sum256([]byte(token))]
	if !ok || !exists {
		return relayer.Actor{}, httpapi.ErrUnauthorized
	}
	return relayer.Actor{ID: name}, nil
}

// grantFor authenticates a request outside of the API, and returns what its token permits.
func (f tokensFile) grantFor(r *http.Request) (actor relayer.Actor, granted grant) {
	actor, _ = f.authenticate(r)
	return actor, f.Load().grants[actor.ID]
}

// authorize is an [httpapi.Authorizer]. A reload may have removed the name since the request was
// authenticated: the zero grant permits nothing.
func (f tokensFile) authorize(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	if granted := f.Load().grants[access.Actor.ID]; granted.permits(access.Action) {
		return httpapi.Allow(granted.within), nil
	}
	return httpapi.Decision{}, nil
}
