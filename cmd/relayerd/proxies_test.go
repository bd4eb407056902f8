package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestTrustedProxies_ClientAddress(t *testing.T) {
	t.Parallel()
	trusted, err := parseProxies("10.0.0.0/8, 192.0.2.7,::1,2001:db8:1::/48")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"203.0.113.5:1000", nil, "203.0.113.5"},
		{"203.0.113.5:1000", []string{"198.51.100.1"}, "203.0.113.5"},                    // not a proxy
		{"10.1.2.3:1000", nil, "10.1.2.3"},                                               // a proxy itself
		{"10.1.2.3:1000", []string{"198.51.100.1"}, "198.51.100.1"},                      // one proxy
		{"10.1.2.3:1000", []string{"6.6.6.6, 198.51.100.1"}, "198.51.100.1"},             // a forged address
		{"10.1.2.3:1000", []string{"6.6.6.6", "198.51.100.1"}, "198.51.100.1"},           // in a separate header
		{"10.1.2.3:1000", []string{"198.51.100.1, 10.9.9.9 ,192.0.2.7"}, "198.51.100.1"}, // three proxies
		{"10.1.2.3:1000", []string{"10.9.9.9"}, "10.9.9.9"},                              // only proxies
		{"10.1.2.3:1000", []string{"198.51.100.1, unknown"}, "10.1.2.3"},                 // unreadable
		{"10.1.2.3:1000", []string{""}, "10.1.2.3"},                                      // empty
		{"10.1.2.3:1000", []string{"198.51.100.1:54321"}, "198.51.100.1"},                // with a port
		{"10.1.2.3:1000", []string{"6.6.6.6, 198.51.100.1:5, 10.9.9.9:6"}, "198.51.100.1"},
		{"10.1.2.3:1000", []string{"[2001:db8:5:6::7]:54321"}, "2001:db8:5:6::7"},
		{"10.1.2.3:1000", []string{"[2001:db8:5:6::7]"}, "2001:db8:5:6::7"}, // brackets without a port
		{"10.1.2.3:1000", []string{"2001:db8:5:6::7"}, "2001:db8:5:6::7"},
		{"10.1.2.3:1000", []string{`"[2001:db8:5:6::7]:54321"`}, "2001:db8:5:6::7"}, // quoted
		{"10.1.2.3:1000", []string{`"198.51.100.1"`}, "198.51.100.1"},
		{"10.1.2.3:1000", []string{"\t198.51.100.1 \t,  10.9.9.9\t"}, "198.51.100.1"},
		{"10.1.2.3:1000", []string{"198.51.100.1, , ,"}, "198.51.100.1"},                // empty elements
		{"10.1.2.3:1000", []string{"198.51.100.1, 10.9.9.9:x"}, "10.1.2.3"},             // unreadable
		{"192.0.2.8:1000", []string{"198.51.100.1"}, "192.0.2.8"},                       // next to a proxy
		{"[::ffff:10.1.2.3]:1000", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},     // IPv4 in IPv6 form
		{"[::1]:1000", []string{"2001:db8:5:6:7:8:9:a"}, "2001:db8:5:6:7:8:9:a"},        // IPv6
		{"[2001:db8:1:2::3]:1000", []string{"2001:db8:5:6::b%eth0"}, "2001:db8:5:6::b"}, // with a zone
		{"[2001:db8:5:6::c]:1000", nil, "2001:db8:5:6::c"},
		{"@", []string{"198.51.100.1"}, "@"}, // a Unix socket
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if got := trusted.clientAddress(r); got != c.want {
			t.Errorf("%s with %q: client %s, want %s", c.remote, c.forwarded, got, c.want)
		}
	}
}

// TestTrustedProxies_IPv4InIPv6 checks the form of addresses in the logs of systems that
// accept IPv4 on an IPv6 socket.
func TestTrustedProxies_IPv4InIPv6(t *testing.T) {
	t.Parallel()
	trusted, err := parseProxies("::ffff:192.0.2.7,::ffff:10.0.0.0/104")
	if err != nil {
		t.Fatal(err)
	}
	for _, remote := range []string{"192.0.2.7:1000", "[::ffff:10.9.9.9]:1000"} {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": {"198.51.100.1"}}}
		if got := trusted.clientAddress(r); got != "198.51.100.1" {
			t.Errorf("%s: client %s", remote, got)
		}
	}
}

// The log has the address of the client behind a trusted proxy. Without the flag, a client
// cannot choose its address.
func TestTrustedProxies_Log(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--trusted-proxies", "127.0.0.0/8"}, "198.51.100.1"},
		{nil, "127.0.0.1"},
	} {
		server := start(t, token, append(c.flags, "--db", "memory")...)
		request, err := http.NewRequest("DELETE", server.url+collection+"/nobody", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("X-Forwarded-For", "198.51.100.1")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		server.stop()
		if log := server.output.String(); !strings.Contains(log, " address="+c.want+" ") {
			t.Errorf("%q: the address is not %s: %s", c.flags, c.want, log)
		}
	}
}
