package httpapi_test

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

func TestCreate_ExactWei(t *testing.T) {
	s := serve(t)
	for sent, served := range map[string]string{
		"1e21": "1000000000000000000000", "1e+21": "1000000000000000000000", "1000000000000000000000": "1000000000000000000000",
		"9007199254740993": "9007199254740993",
	} {
		for _, field := range []string{"gas_price_cap", "min_balance"} {
			created := s.do("POST", collection, minimal(`,"policies":{"`+field+`":`+sent+`}`))
			if want := `"policies":{"` + field + `":` + served + `}`; !strings.Contains(created.body, want) {
				t.Errorf("%s = %s: %s is not in %s", field, sent, want, created.body)
			}
			read := s.do("GET", created.header.Get("Location"), "")
			if read.body != created.body {
				t.Errorf("created %s\nread %s", created.body, read.body)
			}
		}
	}
}

// TestCreate_InvalidRequest: problems of every kind arrive with their field and message.
// The tests of package relayer prove each of them.
func TestCreate_InvalidRequest(t *testing.T) {
	s := serve(t)
	for name, c := range map[string]struct{ body, field, message string }{
		"empty body":       {"", "", "the body must be a JSON object, not empty"},
		"array":            {"[" + minimal("") + "]", "", "the body must be a JSON object"},
		"trailing data":    {minimal("") + "x", "", "the body must be one JSON object with nothing after it"},
		"too deep":         {minimal(`,"policies":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)), "", "the body must not nest deeper than 10000 levels"},
		"unknown field":    {minimal(`,"color":1`), "color", "is not a known field"},
		"duplicate field":  {minimal(`,"paused":true`), "paused", "must not be given more than once"},
		"missing field":    {`{}`, "paused", "is required"},
		"null":             {minimal(`,"custom_rpc_urls":[{"url":null}]`), "custom_rpc_urls[0].url", "is required and must not be null"},
		"wrong type":       {minimal(`,"policies":{"whitelist_receivers":[1]}`), "policies.whitelist_receivers[0]", "must be a string"},
		"wrong value":      {solana(`{"swap_config":{"strategy":"jupiter"}}`), "policies.swap_config.strategy", "must be one of jupiter-swap, jupiter-ultra, noop"},
		"number too large": {stellar(`{"allowed_tokens":[{"asset":"a","metadata":{"decimals":4294967296}}]}`), "policies.allowed_tokens[0].metadata.decimals", "must be at most 4294967295"},
		"other network":    {stellar(`{"eip1559_pricing":true}`), "policies.eip1559_pricing", "is not a known field"},
		"forbidden URL":    {minimal(`,"custom_rpc_urls":[{"url":"http://169.254.169.254/latest"}]`), "custom_rpc_urls[0].url", "must not point at a cloud metadata service"},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			got := s.do("POST", collection, c.body)
			wantFailure(t, got, http.StatusBadRequest, "Bad Request")
			wantProblem(t, got, c.field, c.message)
		})
	}
	s.t = t
	if contents := s.contents(); contents != "" {
		t.Errorf("something was stored:\n%s", contents)
	}
}

func solana(policies string) string {
	return `{"name":"n","network":"devnet","network_type":"solana","paused":false,"signer_id":"s","policies":` + policies + `}`
}

func stellar(policies string) string {
	return `{"policies":` + policies + `,"name":"n","network":"testnet","network_type":"stellar","paused":false,"signer_id":"s"}`
}

// TestCreate_ValidRequest has unusual requests that must be accepted.
func TestCreate_ValidRequest(t *testing.T) {
	s := serve(t)
	for name, c := range map[string]struct{ body, want string }{
		"paused false":                 {minimal(""), `"paused":false`},
		"optional fields null":         {minimal(`,"id":null,"notification_id":null,"custom_rpc_urls":null,"policies":null`), `"signer_id":"s","policies":{}`},
		"weight null":                  {minimal(`,"custom_rpc_urls":[{"url":"https://a","weight":null}]`), `[{"url":"https://a","weight":100}]`},
		"empty lists":                  {minimal(`,"policies":{"whitelist_receivers":[]}`), `"policies":{"whitelist_receivers":[]}`},
		"policies before network_type": {stellar(`{"max_fee":1}`), `"policies":{"max_fee":1}`},
		"solana default strategy":      {solana(`null`), `"policies":{"fee_payment_strategy":"user"}`},
		"name beyond ASCII":            {`{"name":"\ud83d\ude00 é <b>","network":"x","network_type":"evm","paused":true,"signer_id":"\u0001"}`, `"name":"😀 é <b>"`},
		"white space around":           {" \r\n\t" + minimal("") + "\n ", `"name":"n"`},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			got := s.do("POST", collection, c.body)
			if got.status != http.StatusCreated || !strings.Contains(got.body, c.want) {
				t.Errorf("got %d %s\nwithout %s", got.status, got.body, c.want)
			}
		})
	}
}

// TestCreate_HostileBody: the memory that a body costs is proportional to its size.
func TestCreate_HostileBody(t *testing.T) {
	s := serve(t)
	const room = 1<<20 - 300
	for name, body := range map[string]string{
		"a long unknown name":     minimal(`,"` + strings.Repeat(".", room) + `":1`),
		"a long name of brackets": minimal(`,"` + strings.Repeat("[", room) + `":1`),
		"many empty endpoints":    minimal(`,"custom_rpc_urls":[{}` + strings.Repeat(`,{}`, room/3-1) + `]`),
		"many wrong endpoints":    minimal(`,"custom_rpc_urls":[1` + strings.Repeat(`,1`, room/2-1) + `]`),
		"many empty URLs":         minimal(`,"custom_rpc_urls":[{"url":""}` + strings.Repeat(`,{"url":""}`, room/11-1) + `]`),
		"many bad receivers":      minimal(`,"policies":{"whitelist_receivers":["\u0000"` + strings.Repeat(`,"\u0000"`, room/9-1) + `]}`),
		"a number of many digits": minimal(`,"policies":{"min_balance":1` + strings.Repeat("0", room) + `}`),
		"a long exponent":         minimal(`,"policies":{"min_balance":1e` + strings.Repeat("9", room) + `}`),
		"many escapes":            minimal(`,"id":"` + strings.Repeat(`\u0041`, room/6) + `"`),
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := s.do("POST", collection, body)
			runtime.ReadMemStats(&after)
			wantFailure(t, got, http.StatusBadRequest, "Bad Request")
			// A parser with quadratic cost needs 300 times the size of the body or more.
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 150<<20 {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
		})
	}
}

// TestCreate_ProblemLimit: 1,000 problems arrive, and a notice in place of more.
func TestCreate_ProblemLimit(t *testing.T) {
	s := serve(t)
	const notice = "only the first 1000 problems are listed"
	for sent, want := range map[int]int{1000: 1000, 1001: 1001, 5000: 1001} {
		var more strings.Builder
		for i := range sent {
			fmt.Fprintf(&more, `,"a%d":1`, i)
		}
		got := s.do("POST", collection, minimal(more.String()))
		problems := decode[failureBody](t, got.body).Errors
		if len(problems) != want || (problems[len(problems)-1].Message == notice) != (sent > 1000) {
			t.Errorf("of %d problems %d are listed, the last %+v", sent, len(problems), problems[len(problems)-1])
		}
	}
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
