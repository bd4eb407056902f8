package httpapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-relayer/relayer/internal/wire"
)

// Authenticator decides who may call the API. It is the result of [Tokens],
// [TrustHost] or [AuthFunc].
type Authenticator interface {
	// authenticate returns the principal that sent the request. It returns
	// errNoToken, errInvalidToken, a guessLimitError if the token may not be checked
	// now, or another error if the check failed. ctx is the context of the request.
	authenticate(ctx context.Context, r *http.Request, guesses *guessLimiter) (principal string, err error)
}

var (
	errNoToken      = errors.New("no bearer token")
	errInvalidToken = errors.New("invalid bearer token")
)

// AuthFunc returns the principal that a bearer token belongs to. Rate limits and
// logs use the principal. If it returns an error the token is rejected with 401,
// unless the error matches [relayer.ErrUnavailable] or ctx is done: then the
// response is 503. It must be safe for concurrent use. The token is never empty.
type AuthFunc func(ctx context.Context, token string) (principal string, err error)

// authenticate counts an unknown token before it calls f, so that tokens that are
// checked concurrently count too.
func (f AuthFunc) authenticate(ctx context.Context, r *http.Request, guesses *guessLimiter) (string, error) {
	token, err := bearerToken(r.Header)
	if err != nil {
		return "", err
	}
	digest := digestOf(token)
	if guesses.isKnown(digest) {
		return f.authenticateKnown(ctx, r, token, guesses)
	}
	refund, err := guesses.count(r)
	if err != nil {
		return "", err
	}
	principal, err := f.check(ctx, token)
	if err == nil {
		refund()
		guesses.remember(digest)
	}
	return principal, err
}

// authenticateKnown forgets and counts a token that is no longer valid.
func (f AuthFunc) authenticateKnown(ctx context.Context, r *http.Request, token string, guesses *guessLimiter) (string, error) {
	principal, err := f.check(ctx, token)
	if errors.Is(err, errInvalidToken) {
		guesses.forget(digestOf(token))
		return "", guesses.reject(r)
	}
	return principal, err
}

// check calls f. It returns errInvalidToken if f rejects the token, and the error of
// f if the token could not be checked.
func (f AuthFunc) check(ctx context.Context, token string) (string, error) {
	principal, err := f(ctx, token)
	switch {
	case err == nil:
		return principal, nil
	case isTemporary(ctx, err):
		return "", err
	default:
		return "", errInvalidToken
	}
}

// tokens holds the digests of the valid bearer tokens. Digests are compared, so
// that the duration reveals nothing about a token, not even its length.
type tokens struct {
	digests    []tokenDigest
	principals []string
	err        error
}

// MinTokenBytes is the length of the shortest token that [Tokens] accepts: one of 128
// random bits in Base64 or hexadecimal digits is longer.
const MinTokenBytes = 16

// Tokens accepts each of the given bearer tokens. Several can be valid at the same
// time, so that they can be rotated without a gap. The principal of the first is
// "token-1", and so on. [New] returns an error if no token is given, one that has fewer
// than [MinTokenBytes], or one that no client could send: with spaces, control or non-ASCII
// characters.
//
// A valid token is accepted however many unknown ones its client address sends. The
// guess limit (see [WithGuessLimit]) therefore does not slow down an attacker who
// only waits for a success. Tokens must be random and have at least 128 bits.
func Tokens(valid ...string) Authenticator { return tokensOf(MinTokenBytes, valid) }

// TokensOfAnyLength is [Tokens] with tokens that can be shorter, and can then be guessed: for tests, and for tokens that cannot be changed yet.
func TokensOfAnyLength(valid ...string) Authenticator { return tokensOf(1, valid) }

func tokensOf(minBytes int, valid []string) Authenticator {
	if len(valid) == 0 {
		return tokens{err: errors.New("httpapi: no bearer token given")}
	}
	var t tokens
	for i, token := range valid {
		if !wire.IsToken(token) {
			return tokens{err: fmt.Errorf("httpapi: bearer token %d is empty or contains spaces, control or non-ASCII characters", i+1)}
		}
		if len(token) < minBytes {
			return tokens{err: fmt.Errorf("httpapi: bearer token %d has fewer than %d bytes: generate one with openssl rand -hex 16", i+1, minBytes)}
		}
		t.digests = append(t.digests, digestOf(token))
		t.principals = append(t.principals, fmt.Sprintf("token-%d", i+1))
	}
	return t
}

func (t tokens) authenticate(_ context.Context, r *http.Request, guesses *guessLimiter) (string, error) {
	token, err := bearerToken(r.Header)
	if err != nil {
		return "", err
	}
	if i := t.index(token); i >= 0 {
		return t.principals[i], nil
	}
	return "", guesses.reject(r)
}

// index returns the index of a valid token, or -1. It compares all digests, so that
// the duration does not reveal which one matched.
func (t tokens) index(token string) int {
	digest := digestOf(token)
	match := 0
	for i := range t.digests {
		equal := subtle.ConstantTimeCompare(digest[:], t.digests[i][:])
		match = subtle.ConstantTimeSelect(equal, i+1, match)
	}
	return match - 1
}

// trustHost accepts every request with a principal in its context.
type trustHost struct{}

// TrustHost accepts every request whose context has a principal, for a host whose own
// middleware has already authenticated it and has called [WithPrincipal]. Any other request
// is rejected with 401, so that a forgotten middleware does not open the API.
func TrustHost() Authenticator { return trustHost{} }

func (trustHost) authenticate(ctx context.Context, _ *http.Request, _ *guessLimiter) (string, error) {
	if principal := Principal(ctx); principal != "" {
		return principal, nil
	}
	return "", errNoToken
}

type principalKey struct{}

// WithPrincipal returns a context that carries the principal, for [TrustHost] and
// [Principal]. The empty principal is none.
func WithPrincipal(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, principalKey{}, principal)
}

// Principal returns the principal of a request that [API.Protect] has authenticated, or
// the one of [WithPrincipal]; otherwise "".
func Principal(ctx context.Context) string {
	principal, _ := ctx.Value(principalKey{}).(string)
	return principal
}

func checkAuthenticator(auth Authenticator) error {
	switch auth := auth.(type) {
	case nil:
		return errors.New("httpapi: no authenticator given: use Tokens, AuthFunc or TrustHost")
	case AuthFunc:
		if auth == nil {
			return errors.New("httpapi: AuthFunc is nil")
		}
	case tokens:
		return auth.err
	}
	return nil
}

// bearerToken returns the token of the only Authorization header. Several headers
// are rejected even if one of them is valid, because a proxy in front of the handler
// may have checked another one.
func bearerToken(header http.Header) (string, error) {
	err := errNoToken
	values := header["Authorization"]
	for _, value := range values {
		scheme, token, _ := strings.Cut(value, " ")
		token = strings.Trim(token, " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			continue
		}
		if len(values) == 1 && wire.IsToken(token) {
			return token, nil
		}
		err = errInvalidToken
	}
	return "", err
}
