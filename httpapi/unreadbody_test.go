package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer/httpapi"
)

// dialService opens a connection to a service, which fails after a minute.
func dialService(t *testing.T, s *service) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	return connection
}

// A client that sends its body byte by byte keeps its connection only until it has the
// response.
func TestUnreadBody_SlowClient(t *testing.T) {
	t.Parallel()
	server := serve(t)
	for name, c := range map[string]struct {
		authorization, contentType string
		want                       int
	}{
		"wrong token":  {"Bearer wrong-token-0123456789", "application/json", http.StatusUnauthorized},
		"wrong type":   {"Bearer " + validToken, "text/plain", http.StatusUnsupportedMediaType},
		"wrong method": {"Bearer " + validToken, "application/json", http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection := dialService(t, server)
			method := "POST"
			if c.want == http.StatusMethodNotAllowed {
				method = "PUT"
			}
			_, _ = fmt.Fprintf(connection, "%s /api/v1/relayers HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: %s\r\nContent-Length: 100000\r\n\r\n",
				method, c.authorization, c.contentType)
			go func() {
				for err := error(nil); err == nil; time.Sleep(10 * time.Millisecond) {
					_, err = io.WriteString(connection, " ")
				}
			}()
			reader := bufio.NewReader(connection)
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != c.want || !response.Close {
				t.Errorf("status %d, closes %t, error %v, want %d and a connection that closes", response.StatusCode, response.Close, err, c.want)
			}
			if _, err := reader.ReadByte(); isTimeout(err) {
				t.Error("the connection stays open")
			}
		})
	}
}

func isTimeout(err error) bool {
	failed, ok := err.(net.Error)
	return ok && failed.Timeout()
}

// A proxy may send a body above the limit without waiting for the response that it expects.
func TestUnreadBody_ExpectContinue(t *testing.T) {
	t.Parallel()
	server := serve(t, httpapi.WithMaxBodyBytes(1024))
	connection := dialService(t, server)
	const size = 4 << 20 // more than the buffers of the connection
	_, _ = fmt.Fprintf(connection, "POST /api/v1/relayers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
		validToken, size)
	if _, err := io.WriteString(connection, strings.Repeat(" ", size)); err != nil {
		t.Fatalf("the body cannot be sent: %v", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", response.StatusCode)
	}
}
