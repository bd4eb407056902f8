package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestService_MountedRegistry(t *testing.T) {
	server := httptest.NewServer(must(newService(newRegistry(t)))(t))
	t.Cleanup(server.Close)

	for _, c := range []struct {
		method, path, user, body string
		want                     int
		contains                 string
	}{
		{"GET", "/hello", "", "", http.StatusOK, "hello"},
		{"GET", "/registry/api/v1/relayers", "", "", http.StatusUnauthorized, "login required"},
		{"GET", "/registry/api/v1/relayers", "mallory", "", http.StatusUnauthorized, "login required"},
		{"GET", "/registry/api/v1/relayers", "ops", "", http.StatusOK, `"total_items":0`},
		{"POST", "/registry/api/v1/relayers", "ops",
			`{"id":"r-1","name":"n","network":"sepolia","network_type":"evm","paused":false,"signer_id":"s"}`,
			http.StatusCreated, `"id":"r-1"`},
		{"GET", "/registry/api/v1/relayers/r-1", "ops", "", http.StatusOK, `"id":"r-1"`},
		{"GET", "/registry/api/v1/relayers/r-1", "payments", "", http.StatusNotFound, "not found"},
		{"GET", "/registry/api/v1/relayers", "payments", "", http.StatusOK, `"total_items":0`},
		{"GET", "/admin/", "", "", http.StatusUnauthorized, "login required"},
		{"GET", "/admin/", "payments", "", http.StatusOK, `data-api="/registry/api/v1" data-trust-host="true"`},
		{"GET", "/admin/assets/main.js", "payments", "", http.StatusOK, "import"},
		{"GET", "/registry/nowhere", "ops", "", http.StatusNotFound, "Not Found"},
		{"GET", "/api/v1/relayers", "ops", "", http.StatusNotFound, "404"},
	} {
		request := must(http.NewRequest(c.method, server.URL+c.path, strings.NewReader(c.body)))(t)
		request.Header.Set("Content-Type", "application/json")
		if c.user != "" {
			request.SetBasicAuth(c.user, c.user)
		}
		response := must(http.DefaultClient.Do(request))(t)
		body := must(io.ReadAll(response.Body))(t)
		response.Body.Close()
		if response.StatusCode != c.want || !strings.Contains(string(body), c.contains) {
			t.Errorf("%s %s as %q returned %d %s, want %d with %s", c.method, c.path, c.user, response.StatusCode, body, c.want, c.contains)
		}
		if location := response.Header.Get("Location"); c.want == http.StatusCreated && location != "/registry/api/v1/relayers/r-1" {
			t.Errorf("Location is %q", location)
		}
	}

	// The page of another site, to which the browser adds the login.
	request := must(http.NewRequest(http.MethodPost, server.URL+"/registry/api/v1/relayers:pause?all=true", nil))(t)
	request.SetBasicAuth("ops", "ops")
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	response := must(http.DefaultClient.Do(request))(t)
	if response.Body.Close(); response.StatusCode != http.StatusForbidden {
		t.Errorf("a request of another site returned %d", response.StatusCode)
	}
}
