package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Authenticator decides who may call the API. It is one of what [Tokens],
// [TrustHost] and [AuthFunc] make.
type Authenticator interface {
	// authenticate returns the principal that the request comes from. It returns
	// errNoToken, errInvalidToken, a guessLimitError if the token may not be checked
	// now, or another error if the check failed. ctx is that of the request.
	authenticate(ctx context.Context, r *http.Request, guesses *guesses) (principal string, err error)
}

var (
	errNoToken      = errors.New("no bearer token")
	errInvalidToken = errors.New("invalid bearer token")
)

// AuthFunc asks the host whom a bearer token belongs to. The principal is what
// rate limits and logs go by. An error refuses the token, unless it matches
// [relayer.ErrUnavailable] or the request's context is over: then nobody can
// tell, and the caller is asked to come back. It is called by many goroutines at once, and
// never with an empty token.
type AuthFunc func(ctx context.Context, token string) (principal string, err error)

// authenticate asks the host about a token that was never right only if the client
// may guess: the guess counts before its result is known, because guesses that
// are checked at the same time must count too.
func (f AuthFunc) authenticate(ctx context.Context, r *http.Request, guesses *guesses) (string, error) {
	token, err := bearerToken(r.Header)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256([]byte(token))
	if !guesses.isTrusted(digest) {
		if err := guesses.count(r); err != nil {
			return "", err
		}
	}
	principal, err := f(ctx, token)
	if err == nil {
		guesses.trust(digest)
		return principal, nil
	}
	if isUnavailable(ctx, err) {
		return "", err
	}
	return "", errInvalidToken
}

// tokens are the digests of the bearer tokens that are taken. Digests are
// compared, so that the time it takes tells nothing of a token, not even its
// length.
type tokens struct {
	digests    [][sha256.Size]byte
	principals []string
	err        error
}

// Tokens takes any of the bearer tokens given. Several can be valid at once, so
// that they can be rotated without a gap. The principal of the first is
// "token-1", and so on. [New] returns an error where there is none, or one that
// no client could send: empty, or with spaces or control characters in it.
//
// A valid token is accepted whatever else its client address sends, so that the
// guess limit (see [WithGuessLimit]) does not slow down an attacker who waits for
// success only. Tokens must be too long to guess: random, of 128 bits or more.
func Tokens(valid ...string) Authenticator {
	if len(valid) == 0 {
		return tokens{err: errors.New("httpapi: no bearer token given")}
	}
	var t tokens
	for i, token := range valid {
		if !isToken(token) {
			return tokens{err: fmt.Errorf("httpapi: bearer token %d is empty or has spaces, control or non-ASCII characters in it", i+1)}
		}
		t.digests = append(t.digests, sha256.Sum256([]byte(token)))
		t.principals = append(t.principals, fmt.Sprintf("token-%d", i+1))
	}
	return t
}

func (t tokens) authenticate(_ context.Context, r *http.Request, guesses *guesses) (string, error) {
	token, err := bearerToken(r.Header)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256([]byte(token))
	match := 0
	for i := range t.digests {
		// Every digest is compared, so that the time does not tell which one
		// matched.
		equal := subtle.ConstantTimeCompare(digest[:], t.digests[i][:])
		match = subtle.ConstantTimeSelect(equal, i+1, match)
	}
	if match > 0 {
		return t.principals[match-1], nil
	}
	if err := guesses.count(r); err != nil {
		return "", err
	}
	return "", errInvalidToken
}

// trustHost lets every request in.
type trustHost struct{}

// TrustHost lets every request in, for a host whose own middleware has
// authenticated it already. That middleware may say who is calling by
// [WithPrincipal]; otherwise all callers are one to the rate limit.
func TrustHost() Authenticator { return trustHost{} }

func (trustHost) authenticate(ctx context.Context, _ *http.Request, _ *guesses) (string, error) {
	principal, _ := ctx.Value(principalKey{}).(string)
	return principal, nil
}

type principalKey struct{}

// WithPrincipal returns a context that tells [TrustHost] who is calling.
func WithPrincipal(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, principalKey{}, principal)
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

// bearerToken returns the token of the one Authorization header (spec section
// 5). Several headers are refused even where one of them is right: whoever
// stands in between may have looked at another.
func bearerToken(header http.Header) (string, error) {
	refusal := errNoToken
	values := header["Authorization"]
	for _, value := range values {
		scheme, token, _ := strings.Cut(value, " ")
		token = strings.Trim(token, " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			continue
		}
		if len(values) == 1 && isToken(token) {
			return token, nil
		}
		refusal = errInvalidToken
	}
	return "", refusal
}

// isToken tells whether a client could send text as a bearer token.
func isToken(text string) bool {
	isOther := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	return text != "" && !strings.ContainsFunc(text, isOther)
}
