package httpapi_test

import (
	"net"
	"testing"
)

func solana(policies string) string {
	return `{"name":"n","network":"devnet","network_type":"solana","paused":false,"signer_id":"s","policies":` + policies + `}`
}

func TestHandler_RawRequests(t *testing.T) {
	s := serve(t)
	const headers = "Host: x\r\nAuthorization: Bearer " + validToken + "\r\nContent-Type: application/json\r\nConnection: close\r\n"
	// A client that closes its side ends a request that is not complete.
	hangUp := (*net.TCPConn).CloseWrite
	wait := func(*net.TCPConn) error { return nil }
	for name, c := range map[string]struct {
		request string
		finish  func(*net.TCPConn) error
		want    int
	}{
		"a body shorter than Content-Length": {"POST " + collection + " HTTP/1.1\r\n" + headers + "Content-Length: 500\r\n\r\n" + minimal(""), hangUp, 400},
		"a chunk that ends early":            {"POST " + collection + " HTTP/1.1\r\n" + headers + "Transfer-Encoding: chunked\r\n\r\nff\r\n{", hangUp, 400},
		"a path with a raw ..":               {"GET /api/v1/relayers/.. HTTP/1.1\r\n" + headers + "\r\n", wait, 404},
		"an absolute URL as target":          {"GET http://x" + collection + " HTTP/1.1\r\n" + headers + "\r\n", wait, 200},
		"CONNECT":                            {"CONNECT x:1 HTTP/1.1\r\n" + headers + "\r\n", wait, 404},
		"a star as path":                     {"GET * HTTP/1.1\r\n" + headers + "\r\n", wait, 404},
	} {
		t.Run(name, func(t *testing.T) {
			got := raw(t, s, c.request, c.finish)
			if got.status != c.want {
				t.Errorf("returned %d, want %d: %s", got.status, c.want, got.body)
			}
			wantResponse(t, "GET", got)
		})
	}
	if contents := s.contents(); contents != "" {
		t.Errorf("something was stored:\n%s", contents)
	}
}
