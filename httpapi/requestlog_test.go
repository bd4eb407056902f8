package httpapi_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/httpapi"
)

func TestRequestLog(t *testing.T) {
	log := new(syncBuffer)
	s := serve(t, httpapi.WithRequestLog(slog.New(slog.NewJSONHandler(log, nil))))
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[{"url":"https://user:pw@rpc.example/v2/key"}]`))
	s.do("GET", collection+"/r-1?api_key=query-secret", "", with("X-Request-Id", "req-1"))
	s.do("GET", collection, "", with("Authorization", "Bearer wrong-token"))
	s.do("GET", "/path-secret", "")

	type line struct {
		Message   string  `json:"msg"`
		RequestID string  `json:"request_id"`
		Principal string  `json:"principal"`
		Method    string  `json:"method"`
		Route     string  `json:"route"`
		Status    int     `json:"status"`
		Bytes     int     `json:"bytes"`
		Took      float64 `json:"took"`
	}
	var lines []line
	for text := range strings.Lines(log.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if l.Message != "request" || l.RequestID == "" || l.Took <= 0 || l.Bytes == 0 {
			t.Errorf("logged %s", text)
		}
		lines = append(lines, l)
	}
	if len(lines) != 4 {
		t.Fatalf("%d lines: %s", len(lines), log)
	}
	const one = "/api/v1/relayers/{relayer_id}"
	if l := lines[0]; l.Principal != "token-1" || l.Method != "POST" || l.Route != "POST /api/v1/relayers" || l.Status != 201 {
		t.Errorf("create was logged as %+v", l)
	}
	if l := lines[1]; l.RequestID != "req-1" || l.Route != "GET "+one || l.Status != 200 {
		t.Errorf("get was logged as %+v", l)
	}
	if l := lines[2]; l.Principal != "" || l.Route != "" || l.Status != 401 {
		t.Errorf("a refused request was logged as %+v", l)
	}
	if l := lines[3]; l.Route != "/" || l.Status != 404 {
		t.Errorf("an unknown path was logged as %+v", l)
	}
	for _, secret := range []string{validToken, "wrong-token", "query-secret", "path-secret", "pw", "key"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s was logged: %s", secret, log)
		}
	}
}
