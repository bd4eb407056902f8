package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
)

func TestCreate(t *testing.T) {
	s := serve(t)
	created := s.do("POST", collection, minimal(`,"id":"r-1"`))
	want := `{"success":true,"data":{"id":"r-1","name":"n","network":"sepolia","network_type":"evm","address":"","paused":false,` +
		`"system_disabled":false,"signer_id":"s","policies":{}}}`
	tag := created.header.Get("ETag")
	if created.status != http.StatusCreated || created.header.Get("Location") != one || created.body != want || tag == "" || tag[0] != '"' {
		t.Errorf("got %d %v %s\nwant %s", created.status, created.header, created.body, want)
	}
	if got := s.do("GET", one, ""); got.status != http.StatusOK || got.body != want || got.header.Get("ETag") != tag {
		t.Errorf("read %d %q %s\nwant %q %s", got.status, got.header.Get("ETag"), got.body, tag, want)
	}
}

func TestMaxBodyBytes(t *testing.T) {
	s := serve(t, httpapi.WithMaxBodyBytes(200))
	exact := minimal(`,"id":"` + strings.Repeat("a", 40) + `"`)
	fits := exact + strings.Repeat(" ", 200-len(exact))
	check := s.unchanged()
	wantRejected(t, s.do("POST", collection, fits+" "), http.StatusRequestEntityTooLarge, "", "the body must be at most 200 bytes")
	check()
	s.expect(http.StatusCreated, "POST", collection, fits)
	byHost := serveHandler(t, s.manager, http.MaxBytesHandler(apiOn(t, s.manager, validTokens), 200))
	wantRejected(t, byHost.do("POST", collection, fits+" "), http.StatusRequestEntityTooLarge, "", "the body must be at most 200 bytes")
	s = serve(t)
	fits = minimal("") + strings.Repeat(" ", 1<<20-len(minimal("")))
	s.expect(http.StatusCreated, "POST", collection, fits)
}

// writes has a request for each write of one relayer.
var writes = []struct{ method, path, body string }{
	{"POST", collection, minimal(`,"id":"r-2"`)},
	{"POST", collection + dryRun, minimal("")},
	{"PATCH", one, `{"name":"m"}`},
	{"PUT", one + "/disabled_reason", `{"type":"x"}`},
	{"DELETE", one + "/disabled_reason", ""},
	{"DELETE", one, ""},
}

// TestWrite_Rejected: every write checks its header and its body before it has an effect.
func TestWrite_Rejected(t *testing.T) {
	s := serveEngine(t)
	defer s.unchanged()()
	for _, write := range writes {
		expect := func(status int, problem, name string, values ...string) {
			t.Helper()
			wantRejected(t, s.do(write.method, write.path, write.body, with(name, values...)), status, "", problem)
		}
		expect(http.StatusBadRequest, "the X-Change-Reason must be at most 256 characters", "X-Change-Reason", strings.Repeat("é", 257))
		expect(http.StatusBadRequest, "the X-Change-Reason must be one line without control characters", "X-Change-Reason", "a\tb")
		expect(http.StatusBadRequest, "the X-Change-Reason must be one line without control characters", "X-Change-Reason", "a", "b")
		expect(http.StatusBadRequest, "the X-Change-Reason must be UTF-8", "X-Change-Reason", "\xff")
		if write.body == "" {
			continue
		}
		types, other := "the Content-Type must be application/json", "application/merge-patch+json"
		if write.method == "PATCH" {
			types, other = types+" or application/merge-patch+json", "application/json-patch+json"
		}
		for _, values := range [][]string{nil, {""}, {"application/json", "application/json"}, {"text/plain"}, {"application/jsonx"}, {other}, {"application/json;;="}} {
			expect(http.StatusUnsupportedMediaType, types, "Content-Type", values...)
		}
		for _, values := range [][]string{{"gzip"}, {"identity, gzip"}, {"identity", "deflate"}} {
			expect(http.StatusUnsupportedMediaType, "the Content-Encoding must be identity", "Content-Encoding", values...)
		}
		large := s.do(write.method, write.path, write.body+strings.Repeat(" ", 1<<20))
		wantRejected(t, large, http.StatusRequestEntityTooLarge, "", "the body must be at most 1048576 bytes")
	}
}

func TestWrite_Header(t *testing.T) {
	s := serve(t)
	for _, h := range []header{
		with("Content-Type", "application/json"), with("Content-Type", "application/json; charset=utf-8"), with("Content-Type", "Application/JSON;charset=UTF-8"),
		with("Content-Encoding", "identity"), with("Content-Encoding", "Identity"), with("Content-Encoding", ""),
	} {
		s.expect(http.StatusCreated, "POST", collection, minimal(""), h)
	}
}

func TestGet_UnknownID(t *testing.T) {
	s := serve(t)
	for escaped, id := range map[string]string{
		"nobody":                "nobody",
		strings.Repeat("a", 65): strings.Repeat("a", 65),
		"a%20b":                 "a b",
		"a%2Fb":                 "a/b",
		"%2e%2e":                "..",
		"%00":                   "\x00",
		"%22%5C":                `"\`,
	} {
		got := s.do("GET", collection+"/"+escaped, "")
		wantFailure(t, got, http.StatusNotFound, "Relayer with ID "+id+" not found")
	}
}

func TestRateLimit(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(0.01, 2))
	s.do("GET", collection, "")
	s.do("GET", collection+"/nobody", "")
	for _, path := range []string{collection, collection + "?page=x", collection + "/nobody"} {
		got := s.do("GET", path, "")
		wantFailure(t, got, http.StatusTooManyRequests, "Too Many Requests")
		if after := got.header.Get("Retry-After"); after != "100" {
			t.Errorf("Retry-After is %q, want 100 seconds", after)
		}
	}
	s.expect(http.StatusTooManyRequests, "HEAD", collection, "")
	for range 20 {
		s.create(minimal(`,"id":"r-1"`))
		for _, method := range []string{"PATCH", "DELETE"} {
			s.expect(http.StatusOK, method, one, "{}")
		}
	}
}

// TestFault: an error or a panic of a hook is 500, nothing is stored, and the cause is only in the
// log, without a secret of the request. So is the error of a request to another registry, which is
// not an error of the caller. Each request ends its share of the limit.
func TestFault(t *testing.T) {
	for _, err := range []error{errors.New("refused"), client.ErrUnauthorized, client.ErrForbidden, nil} {
		resolve := func(context.Context, relayer.CreateRequest) (string, error) {
			if err == nil {
				panic("vault sealed")
			}
			return "", fmt.Errorf("vault sealed: %w", err)
		}
		s := serveAs(t, validTokens, []relayer.Option{relayer.WithAddressResolver(resolve)}, httpapi.WithMaxInFlight(1))
		const secrets = `,"custom_rpc_urls":[{"url":"https://user-secret:pw@h0stsecreth0stsecreth0st.rpc.example/path-secret","headers":{"X-Key":"header-secret"}}]`
		for range 3 {
			got := s.do("POST", collection+"?key=query-secret", minimal(secrets), with("X-Request-Id", "req-7"))
			wantFailure(t, got, http.StatusInternalServerError, "Internal Server Error")
		}
		for _, want := range []string{"vault sealed", "request_id=req-7", "principal=alice"} {
			if log := s.log.String(); strings.Count(log, want) != 3 {
				t.Errorf("%q is not in the log of each request: %s", want, log)
			}
		}
		if s.contents() != "" {
			t.Error("something was stored")
		}
	}
}

func TestUnknownPath(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"", "/", "//", "/api", "/api/v1", "/api/v1/", collection + "/", collection + "/a/b", collection + "/.", collection + "/..", "/api/v2/relayers",
		"//api/v1/relayers", "/api//v1/relayers", "/api/v1/./relayers", "/x/../api/v1/relayers", "/API/v1/relayers"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			got := s.do(method, path, "")
			wantFailure(t, got, http.StatusNotFound, "Not Found")
		}
	}
}

func TestOtherMethod(t *testing.T) {
	s := serve(t, httpapi.WithEngineOperations())
	for path, allowed := range map[string]string{
		collection: "GET, HEAD, POST", one: "GET, HEAD, PATCH, DELETE", access: "GET, HEAD", pause: "POST", resume: "POST", openAPI: "GET, HEAD",
		changes: "GET, HEAD", collection + ":history": "GET, HEAD", one + "/history": "GET, HEAD", one + "/disabled_reason": "PUT, DELETE",
	} {
		for _, method := range []string{"GET", "PUT", "POST", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if strings.Contains(allowed, method) {
				continue
			}
			var headers []header
			if path == openAPI {
				headers = append(headers, with("Authorization")) // it needs no token
			}
			got := s.do(method, path, "", headers...)
			wantFailure(t, got, http.StatusMethodNotAllowed, "Method Not Allowed")
			if allow := got.header.Get("Allow"); allow != allowed {
				t.Errorf("%s: Allow is %q", path, allow)
			}
		}
	}
}

func TestStoreUnavailable(t *testing.T) {
	s := serveManager(t, downManager(t), validTokens)
	for _, got := range []reply{s.do("GET", collection+"?query-secret=1", ""), s.do("GET", one, ""), s.do("POST", collection, minimal("")), s.patch("{}"), s.do("GET", one+"/history", "")} {
		wantFailure(t, got, http.StatusServiceUnavailable, "Service Unavailable")
		if got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if !strings.Contains(s.log.String(), "request failed") {
		t.Errorf("no fault was logged: %s", s.log)
	}
}

func TestRequestID(t *testing.T) {
	s := serve(t)
	for _, id := range []string{"a", "0194f1a2-7b3c-7def-8123-456789abcdef", "trace:1/2.3_4+5=@", "azAZ09", strings.Repeat("x", 128)} {
		if got := s.do("GET", collection, "", with("X-Request-Id", id)).header.Get("X-Request-Id"); got != id {
			t.Errorf("sent %q, got %q", id, got)
		}
	}
	seen := map[string]bool{}
	for _, ids := range [][]string{nil, {""}, {"a b"}, {"a\"b"}, {"é"}, {"<script>"}, {strings.Repeat("x", 129)}, {"a", "b"}, {"https://rpc.example/key"}} {
		got := s.do("GET", collection, "", with("X-Request-Id", ids...)).header["X-Request-Id"]
		if len(got) != 1 || seen[got[0]] || slices.Contains(append(ids, strings.Join(ids, "")), got[0]) {
			t.Errorf("sent %q, got %q", ids, got)
		}
		seen[got[0]] = true
	}
}

func TestHEAD_SameAsGET(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"r-1"`))
	for _, path := range []string{collection, collection + "?per_page=0", collection + "/r-1", collection + "/nobody", collection + "?page=x", "/nowhere"} {
		get, head := s.do("GET", path, ""), s.do("HEAD", path, "")
		if head.status != get.status {
			t.Errorf("%s: HEAD returned %d, GET %d", path, head.status, get.status)
		}
		for _, name := range []string{"Content-Length", "ETag", "Content-Type"} {
			if head.header.Get(name) != get.header.Get(name) {
				t.Errorf("%s: %s is %q for HEAD and %q for GET", path, name, head.header.Get(name), get.header.Get(name))
			}
		}
	}
}

func TestGet_IfNoneMatch(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"r-1"`))
	tag := s.do("GET", collection+"/r-1", "").header.Get("ETag")
	for _, values := range [][]string{{tag}, {"W/" + tag}, {"*"}, {`"x", ` + tag}, {`"x"`, tag}, {`"a,b" ,` + tag}, {`W/"x",W/` + tag}} {
		for _, method := range []string{"GET", "HEAD"} {
			got := s.do(method, collection+"/r-1", "", with("If-None-Match", values...))
			if got.status != http.StatusNotModified || got.header.Get("ETag") != tag {
				t.Errorf("%s with If-None-Match %q returned %d with ETag %q", method, values, got.status, got.header.Get("ETag"))
			}
		}
	}
	for _, value := range []string{`"x"`, strings.Trim(tag, `"`), `w/` + tag, `"` + tag, "", `"x", *`} {
		s.expect(http.StatusOK, "GET", collection+"/r-1", "", with("If-None-Match", value))
	}
	s.expect(http.StatusNotFound, "GET", collection+"/nobody", "", with("If-None-Match", "*"))
}

func TestCreate_LocationUnderPrefix(t *testing.T) {
	handler, manager := newAPI(t, validTokens)
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.Handle("/registry/", http.StripPrefix("/registry", handler))
	mux.Handle("/a/b%20c/", http.StripPrefix("/a/b c", handler))
	s := serveHandler(t, manager, mux)
	for path, want := range map[string]string{
		"/registry/%61pi/v1/relayers":   "/registry" + collection,
		"/registry/api/v1/relayer%73":   "/registry" + collection,
		"/api/%761/relayers?x=/y/../z/": collection,
	} {
		created := s.do("POST", path, minimal(""))
		id := decode[envelope[relayer.Relayer]](t, created.body).Data.ID
		if location := created.header.Get("Location"); location != want+"/"+id {
			t.Errorf("Location of %s is %q, want %q", path, location, want+"/"+id)
		}
	}
	body := minimal(`,"id":"r-9"`)
	const absolute = "http://x/registry" + collection
	created := raw(t, s, "POST "+absolute+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+validToken+"\r\nContent-Type: application/json\r\nContent-Length: "+
		fmt.Sprint(len(body), "\r\n\r\n", body), func(*net.TCPConn) error { return nil })
	if location := created.header.Get("Location"); location != absolute+"/r-9" {
		t.Errorf("Location of an absolute URL is %q", location)
	}
	for i, prefix := range []string{"", "/registry", "/a/b%20c"} {
		id := fmt.Sprintf("r-%d", i)
		created := s.do("POST", prefix+collection+"?trace=1", minimal(`,"id":"`+id+`"`))
		if want := prefix + collection + "/" + id; created.header.Get("Location") != want {
			t.Errorf("Location is %q, want %q", created.header.Get("Location"), want)
		}
		s.expect(http.StatusOK, "GET", created.header.Get("Location"), "")
		s.expect(http.StatusNotFound, "GET", prefix+"/nowhere", "")
		if got := s.send("GET", prefix+openAPI, "", with("Authorization")); got.status != http.StatusOK {
			t.Errorf("the document below %q returned %d", prefix, got.status)
		}
	}
}

// TestRoutes_EscapedPath: a path that is spelled with escapes has the route of the plain
// one, also for middleware of the host.
func TestRoutes_EscapedPath(t *testing.T) {
	handler, manager := newAPI(t, validTokens)
	patterns := make(chan string, 1)
	s := serveHandler(t, manager, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		patterns <- r.Pattern
	}))
	s.create(minimal(`,"id":"r-1"`))
	<-patterns
	for path, want := range map[string]string{
		collection:                     "GET " + collection,
		"/api/%761/relayers":           "GET " + collection,
		collection + "/r-1":            "GET " + collection + "/{relayer_id}",
		collection + "/%72-1":          "GET " + collection + "/{relayer_id}",
		"/%61pi/v1/relayers/%72%2d%31": "GET " + collection + "/{relayer_id}",
	} {
		got := s.do("GET", path, "")
		if pattern := <-patterns; got.status != http.StatusOK || pattern != want {
			t.Errorf("%s returned %d with the pattern %q, want %q", path, got.status, pattern, want)
		}
	}
}

// TestEnvelope_RoundTrip: a relayer.Envelope has exactly the members that the handler sends.
func TestEnvelope_RoundTrip(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"r-1"`))
	s.create(minimal(`,"id":"r-2","custom_rpc_urls":[{"url":"https://rpc.example/key"}]`))
	for _, path := range []string{"/r-1", "/r-1?changes=true&x=y", "", "?after=&per_page=1&changes=true", "?page=x", "/r-3"} {
		body := s.do("GET", collection+path, "").body
		if again := encode(t, decode[relayer.Envelope](t, body)); again != body {
			t.Errorf("body\n%s\ndecoded and encoded\n%s", body, again)
		}
	}
}

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
		"a refused body that never arrives":  {"POST " + collection + " HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n", wait, 401},
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
