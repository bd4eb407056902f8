package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer/httpapi"
)

// fromHeader lets a test be many clients.
func fromHeader(r *http.Request) string { return r.Header.Get("X-Client") }

func TestGuessesAreSlowedDown(t *testing.T) {
	var asked atomic.Int64
	auth := httpapi.AuthFunc(func(_ context.Context, token string) (string, error) {
		asked.Add(1)
		if token == "right" || token == "other-right" {
			return token, nil
		}
		return "", errors.New("wrong")
	})
	s := serveAs(t, auth, nil, httpapi.WithGuessLimit(0.01, 4), httpapi.WithClientAddress(fromHeader))
	send := func(client, token string) reply {
		t.Helper()
		return s.do("POST", collection, "{", with("X-Client", client), with("Authorization", "Bearer "+token))
	}
	expect := func(client, token string, want int) {
		t.Helper()
		if got := send(client, token); got.status != want {
			t.Errorf("%s with %s answered %d, want %d", client, token, got.status, want)
		}
	}
	expect("office", "right", http.StatusBadRequest)
	expect("office", "wrong", http.StatusUnauthorized)
	expect("office", "wrong", http.StatusUnauthorized)
	expect("office", "wrong", http.StatusUnauthorized)

	before := asked.Load()
	for range 20 {
		got := send("office", "wrong")
		expectFailure(t, got, http.StatusTooManyRequests, "Too Many Requests")
		if got.header.Get("Retry-After") != "100" {
			t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
		}
	}
	expect("office", "other-right", http.StatusTooManyRequests) // never seen before: it may be a guess
	if asked.Load() != before {
		t.Error("the host was asked about a token that was not to be looked at")
	}
	expect("office", "right", http.StatusBadRequest) // known to be right
	expect("elsewhere", "wrong", http.StatusUnauthorized)
	expect("elsewhere", "other-right", http.StatusBadRequest)
	if got := s.do("GET", collection, "", with("X-Client", "office"), with("Authorization")); got.status != http.StatusUnauthorized {
		t.Errorf("no token at all answered %d", got.status)
	}
}

// Guesses that are under way at the same time count as well.
func TestGuessesAtTheSameTime(t *testing.T) {
	var asked atomic.Int64
	auth := httpapi.AuthFunc(func(context.Context, string) (string, error) {
		asked.Add(1)
		time.Sleep(50 * time.Millisecond)
		return "", errors.New("wrong")
	})
	s := serveAs(t, auth, nil, httpapi.WithGuessLimit(0.01, 3))
	var guessers sync.WaitGroup
	for range 50 {
		guessers.Go(func() { s.do("GET", collection, "", with("Authorization", "Bearer wrong")) })
	}
	guessers.Wait()
	if asked.Load() != 3 {
		t.Errorf("the host was asked about %d tokens, want 3", asked.Load())
	}
}

func TestGuessesOfOneConnectionAddress(t *testing.T) {
	limited := serve(t, httpapi.WithGuessLimit(0.01, 2))
	unlimited := serve(t, httpapi.WithoutGuessLimit())
	for i := range 10 {
		want := http.StatusUnauthorized
		if i >= 2 {
			want = http.StatusTooManyRequests
		}
		if got := limited.do("GET", collection, "", with("Authorization", "Bearer wrong")); got.status != want {
			t.Errorf("guess %d answered %d, want %d", i, got.status, want)
		}
	}
	for i := range 2 * httpapi.DefaultGuessBurst {
		if got := unlimited.do("GET", collection, "", with("Authorization", "Bearer wrong")); got.status != http.StatusUnauthorized {
			t.Fatalf("without a limit, guess %d answered %d", i, got.status)
		}
	}
}

// TestGuessLimit_KnownToken: a configured token is accepted at once by a server
// that has just started, although its address has used up its guesses.
func TestGuessLimit_KnownToken(t *testing.T) {
	s := serve(t, httpapi.WithGuessLimit(0.01, 2))
	for i := range 10 {
		want := http.StatusUnauthorized
		if i >= 2 {
			want = http.StatusTooManyRequests
		}
		if got := s.do("GET", collection, "", with("Authorization", "Bearer wrong")); got.status != want {
			t.Errorf("guess %d returned %d, want %d", i, got.status, want)
		}
	}
	for range 10 {
		if got := s.do("GET", collection, ""); got.status != http.StatusOK {
			t.Errorf("the configured token returned %d", got.status)
		}
	}
}

// TestGuessLimit_TrustHost: tokens that nobody checks are no guesses.
func TestGuessLimit_TrustHost(t *testing.T) {
	s := serveAs(t, httpapi.TrustHost(), nil, httpapi.WithGuessLimit(0.01, 1))
	for i := range 10 {
		token := fmt.Sprintf("Bearer token-%d", i)
		if got := s.do("GET", collection, "", with("Authorization", token)); got.status != http.StatusOK {
			t.Errorf("request %d returned %d", i, got.status)
		}
	}
}
