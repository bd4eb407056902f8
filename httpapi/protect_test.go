package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/httpapi"
)

// serveProtected serves an API, and below /host/ a route of the host that
// writes the principal. Requests of the host route go to the URL returned.
func serveProtected(t *testing.T, auth httpapi.Authenticator, options ...httpapi.Option) (url string) {
	t.Helper()
	api, _ := newAPI(t, auth, options...)
	mux := http.NewServeMux()
	mux.Handle("/api/v1/relayers", api)
	mux.Handle("/", api.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/host/panic" {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "hello %s", httpapi.Principal(r.Context()))
	})))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url, token string) (status int, header http.Header, body string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(content)
}

func TestProtect_Authentication(t *testing.T) {
	url := serveProtected(t, httpapi.TokensOfAnyLength("first", "second"))
	for _, path := range []string{"/host/", "/api/v1/openapi.json"} {
		for token, want := range map[string]int{"": 401, "wrong": 401, "first": 200, "second": 200} {
			status, header, body := get(t, url+path, token)
			if status != want || header.Get("X-Request-Id") == "" {
				t.Errorf("%s with token %q: status %d, header %v, want %d and a request ID", path, token, status, header, want)
			}
			if want == 401 && body != `{"success":false,"data":null,"message":"Unauthorized"}` {
				t.Errorf("%s with token %q: body %s", path, token, body)
			}
		}
	}
	if _, _, body := get(t, url+"/host/", "second"); body != "hello token-2" {
		t.Errorf("principal: %s", body)
	}
}

func TestProtect_SharesRateWithAPI(t *testing.T) {
	url := serveProtected(t, httpapi.TokensOfAnyLength("token"), httpapi.WithRateLimit(0.001, 2))
	for i, path := range []string{collection, "/host/", "/host/", collection} {
		want := http.StatusOK
		if i > 1 {
			want = http.StatusTooManyRequests
		}
		if status, header, _ := get(t, url+path, "token"); status != want || (header.Get("Retry-After") != "") != (i > 1) {
			t.Errorf("request %d, %s: status %d, Retry-After %q, want %d", i, path, status, header.Get("Retry-After"), want)
		}
	}
}

func TestProtect_SharesGuessLimitWithAPI(t *testing.T) {
	url := serveProtected(t, httpapi.TokensOfAnyLength("token"), httpapi.WithGuessLimit(0.001, 2))
	for i, path := range []string{collection, "/host/", "/host/", collection} {
		want := http.StatusUnauthorized
		if i > 1 {
			want = http.StatusTooManyRequests
		}
		if status, _, _ := get(t, url+path, fmt.Sprint("guess-", i)); status != want {
			t.Errorf("request %d, %s: status %d, want %d", i, path, status, want)
		}
	}
	if status, _, _ := get(t, url+"/host/", "token"); status != http.StatusOK {
		t.Errorf("a valid token: status %d", status)
	}
}

// A handler that is running no longer counts as in flight: here the only slot.
func TestProtect_ReleasesInFlight(t *testing.T) {
	api, _ := newAPI(t, httpapi.TokensOfAnyLength("token"), httpapi.WithMaxInFlight(1))
	mux := http.NewServeMux()
	mux.Handle("/api/v1/relayers", api)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.Handle("/host/", api.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, _, _ := get(t, server.URL+collection, "token")
		w.WriteHeader(status)
	})))
	if status, _, _ := get(t, server.URL+"/host/", "token"); status != http.StatusOK {
		t.Errorf("status %d of a list while the host route runs", status)
	}
}

// A panic of the authenticator rejects the request; one of the host's handler is left to
// the server of the host.
func TestProtect_Panic(t *testing.T) {
	var log syncBuffer
	auth := httpapi.AuthFunc(func(_ context.Context, token string) (string, error) {
		if token == "panic" {
			panic("broken authenticator")
		}
		return "caller", nil
	})
	url := serveProtected(t, auth, httpapi.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if status, _, body := get(t, url+"/host/", "panic"); status != http.StatusInternalServerError || strings.Contains(body, "hello") {
		t.Errorf("panic of the authenticator: status %d, body %s", status, body)
	}
	if !strings.Contains(log.String(), "broken authenticator") {
		t.Errorf("the panic is not in the log: %s", log.String())
	}
	request, err := http.NewRequest(http.MethodGet, url+"/host/panic", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer token")
	if response, err := http.DefaultClient.Do(request); !errors.Is(err, io.EOF) {
		t.Errorf("panic of the host's handler: %v, %v, want an aborted connection", response, err)
	}
}

// The host application writes its own log: only requests that were rejected are logged.
func TestProtect_RequestLog(t *testing.T) {
	var log syncBuffer
	url := serveProtected(t, httpapi.TokensOfAnyLength("token"), httpapi.WithRequestLog(slog.New(slog.NewTextHandler(&log, nil))))
	get(t, url+"/host/", "token")
	get(t, url+"/host/", "wrong")
	if logged := log.String(); strings.Count(logged, "msg=request") != 1 || !strings.Contains(logged, "status=401") {
		t.Errorf("log: %s", logged)
	}
}
