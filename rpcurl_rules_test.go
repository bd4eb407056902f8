package relayer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// urlProblem returns the message that a URL is refused with, or "". It makes
// sure that the URL is blamed, by both ways in, and not repeated.
func urlProblem(t *testing.T, text string) string {
	t.Helper()
	req := minimal("")
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://ok.example"}, {URL: relayer.RPCURL(text)}}
	m := newManager(t)
	_, err := m.Create(context.Background(), req)
	_, wireErr := m.CreateDocument(context.Background(), []byte(evmBody(`"custom_rpc_urls":[{"url":"https://ok.example"},{"url":`+treeText(t, text)+`}]`)))
	if err == nil && wireErr == nil {
		return ""
	}
	problems := fieldErrors(t, err)
	wantFields(t, problems, "custom_rpc_urls[1].url")
	if wire := fieldErrors(t, wireErr); len(wire) != 1 || wire[0] != problems[0] {
		t.Errorf("%q: over the wire %+v, in Go %+v", text, wire, problems)
	}
	return problems[0].Message
}

// TestURLRefused covers what is no RPC endpoint.
func TestURLRefused(t *testing.T) {
	for _, text := range []string{
		"javascript:alert(1)", "javascript://SECRET.example/%0aalert(1)", "data:text/plain,SECRET", "file:///SECRET", "file://host/SECRET", "ftp://SECRET.example/", "gopher://SECRET.example",
		"unix:///SECRET.sock", "httpx://SECRET.example", "http+unix://SECRET.example", "mailto:SECRET@a.example",
		"SECRET", "SECRET.example", "SECRET.example:8545", "localhost:8545", "/SECRET", "//SECRET.example/", "?SECRET", "#SECRET",
		"http:", "http:SECRET", "http:/SECRET", "http://", "http:///SECRET", "http://?SECRET", "http://#SECRET", "http://:8545/SECRET", "http://user:SECRET@/", "http://user:SECRET@:8545/",
		"http://[]/SECRET", "http://[::1/SECRET", "http://::1/SECRET", "http://[SECRET]:x/", "http://[::1]SECRET/", "http://[fd00:ec2::254%25]/SECRET", "http://[::%25]/SECRET",
		"http://a.example:0/SECRET", "http://a.example:65536/SECRET", "http://a.example:99999999999999999999/", "http://a.example:-1/SECRET", "http://a.example:SECRET/", "http://a.example:80:80/",
		" http://SECRET.example", "http://SECRET.example ", "http://SEC RET.example", "http://a.example/SEC RET", "http://a.example/SECRET\n", "http://a.example/\tSECRET", "http://a.example/SECRET\x01",
		"http://a.example/SECRET\x7f", "ht\ntp://SECRET.example", "http://SECRET%2eexample/", "http://a.example/%zzSECRET", "http://SECRET\\a.example/",
	} {
		t.Run(text, func(t *testing.T) {
			message := urlProblem(t, text)
			if message == "" {
				t.Error("accepted")
			}
			for _, part := range []string{"SECRET", "a.example", "alert", "8545", "65536", "javascript", "ftp", "invalid URL", "parse"} {
				if strings.Contains(message, part) {
					t.Errorf("message %q repeats %q", message, part)
				}
			}
		})
	}
	if problems := problemsOf(t, evmBody(`"custom_rpc_urls":[{"url":""}]`)); problems[0].Message != "must not be empty" {
		t.Errorf("empty: %+v", problems)
	}
}

// TestURLAccepted covers what only looks wrong.
func TestURLAccepted(t *testing.T) {
	for _, text := range []string{
		"http://a", "https://a.example", "ws://a.example/ws", "wss://a.example", "HTTPS://A.EXAMPLE", "hTTp://a.example", "https://a.example.", "https://xn--bcher-kva.example", "https://bücher.example/",
		"http://localhost:8545", "http://127.0.0.1:8545", "http://10.0.0.1", "http://192.168.0.1", "http://172.17.0.1", "http://[::1]:8545", "http://[fe80::1%25eth0]:8545", "http://host.docker.internal:8545",
		"http://a.example:1", "http://a.example:65535", "http://a.example:", "http://a_b.example", "https://user:pass@a.example", "https://a.example/v2/KEY?k=v&l=%20#f", "https://a.example/ü", "https://a.example/{id}",
		"http://eth-mainnet:8545", "http://169.254.169.253", "http://169.254.169.25", "http://169.254.1.1", "http://168.63.129.17", "http://100.100.100.201", "http://192.0.0.193", "http://[fd00:ec2::253]",
		"http://0.0.0.1", "http://1", "http://[::2]", "http://[64:ff9b::a00:1]", "http://[2002:a00:1::]", "http://[::ffff:10.0.0.1]", "http://[::ffff:127.0.0.1]",
		"http://metadata.example", "http://metadata.google.internal.example", "http://my-metadata", "http://169.254.169.254.example",
		"http://１２７.0.0.1", "http://ｌocalhost", "http://[64:ff9b:1:a00:0:100::]",
		"http://0xg", "http://1.0xg", "http://1a", "http://a.1b", "http://1.2.3.4.example", "http://0x.example", "http://4294967295", "http://255.16777215",
	} {
		if message := urlProblem(t, text); message != "" {
			t.Errorf("%s refused: %s", text, message)
		}
	}
}

// spellings returns an IPv4 address in those of inet_aton, and as the IPv6
// addresses that lead to it.
func spellings(a, b, c, d uint32) []string {
	return []string{
		fmt.Sprintf("%d.%d.%d.%d", a, b, c, d), fmt.Sprintf("%d.%d.%d.%d.", a, b, c, d),
		fmt.Sprintf("%d.%d.%d", a, b, c<<8|d), fmt.Sprintf("%d.%d", a, b<<16|c<<8|d), fmt.Sprintf("%d", a<<24|b<<16|c<<8|d), fmt.Sprintf("%d.", a<<24|b<<16|c<<8|d),
		fmt.Sprintf("%#x.%#x.%#x.%#x", a, b, c, d), fmt.Sprintf("%#X.%d.%#x.%d", a, b, c, d), fmt.Sprintf("%#x", a<<24|b<<16|c<<8|d), fmt.Sprintf("%#X", a<<24|b<<16|c<<8|d), fmt.Sprintf("0x000000%x", a<<24|b<<16|c<<8|d),
		fmt.Sprintf("0%o.0%o.0%o.0%o", a, b, c, d), fmt.Sprintf("000%o.%d.0%o.%#x", a, b, c, d), fmt.Sprintf("0%o", a<<24|b<<16|c<<8|d), fmt.Sprintf("0%o.%#x", a, b<<16|c<<8|d),
		fmt.Sprintf("[::ffff:%d.%d.%d.%d]", a, b, c, d), fmt.Sprintf("[::FFFF:%x:%x]", a<<8|b, c<<8|d), fmt.Sprintf("[0:0:0:0:0:ffff:%x:%x]", a<<8|b, c<<8|d), fmt.Sprintf("[::ffff:%x:%x%%25eth0]", a<<8|b, c<<8|d),
		fmt.Sprintf("[64:ff9b::%x:%x]", a<<8|b, c<<8|d), fmt.Sprintf("[64:ff9b::%d.%d.%d.%d]", a, b, c, d), fmt.Sprintf("[64:ff9b:1::%x:%x]", a<<8|b, c<<8|d),
		fmt.Sprintf("[2002:%x:%x::]", a<<8|b, c<<8|d), fmt.Sprintf("[2002:%x:%x::1]", a<<8|b, c<<8|d), fmt.Sprintf("[::ffff:0:%x:%x]", a<<8|b, c<<8|d),
	}
}

// TestDangerousHosts: cloud metadata services and the unspecified address are
// refused in every spelling that reaches them.
func TestDangerousHosts(t *testing.T) {
	hosts := map[string][]string{
		"cloud metadata": {
			"metadata", "METADATA", "metadata.", "metadata.google.internal", "Metadata.Google.Internal", "metadata.google.internal.", "metadata.google.internal..", "metadata.goog", "instance-data", "instance-data.ec2.internal",
			"[fd00:ec2::254]", "[FD00:EC2::254]", "[fd00:0ec2:0:0:0:0:0:0254]", "[fd00:ec2::254%25eth0]", "[fd00:ec2::0.0.2.84]", "[fd00:ec2::23]", "[fd20:ce::254]", "[fe80::a9fe:a9fe]", "[fe80::a9fe:a9fe%25eth0]",
			"[::169.254.169.254]", "[::a9fe:a9fe]", "168.63.129.16", "192.0.0.192", "169.254.170.2", "169.254.170.23", "169.254.0.23",
			"１６９.254.169.254", "169。254。169。254", "169．254．169．254", "169｡254.169.254", "①⑥⑨.②⑤④.①⑥⑨.②⑤④", "169.254.169.2\u00ad54", "169.254.169.25\u200d4", "169.254.169.254\ufe0f",
			"%EF%BC%91%EF%BC%96%EF%BC%99.254.169.254", "metadata.google。internal", "ｍetadata.google.internal", "ＭＥＴＡＤＡＴＡ", "𝟏𝟔𝟗.254.169.254", "meta\u00addata",
			"169\u034f.254.169.254", "m\u034fetadata.google.internal", "169.254.42.42", "[fd00:42::42]", "100.96.0.96", "metadata.tencentyun.com",
			"169.254.169.0254", "0169.0254.0169.0254", "169.254.0000169.254", "[64:ff9b:1:a9fe:a9:fe00::]", "[64:ff9b:1:12a9:fe:a9fe::]", "[64:ff9b:1:1234:a9:fea9:fe00::]",
		},
		"unspecified": {
			"0", "00", "0x0", "0X0", "0x", "0.0", "0x0.0", "000000000000", "[::]", "[0:0:0:0:0:0:0:0]", "[::0.0.0.0]", "[::%25eth0]", "０.0.0.0", "0。0", "⓪",
		},
	}
	hosts["cloud metadata"] = append(hosts["cloud metadata"], spellings(169, 254, 169, 254)...)
	hosts["cloud metadata"] = append(hosts["cloud metadata"], spellings(100, 100, 100, 200)...)
	hosts["unspecified"] = append(hosts["unspecified"], spellings(0, 0, 0, 0)...)
	for danger, hosts := range hosts {
		for _, host := range hosts {
			for _, form := range []string{"http://%s", "https://%s/latest/", "ws://user:pass@%s:80/x", "wss://%s:443?q"} {
				if message := urlProblem(t, fmt.Sprintf(form, host)); !strings.Contains(message, danger) {
					t.Errorf("%s: message %q, want one of %s", fmt.Sprintf(form, host), message, danger)
				}
			}
		}
	}
}

// numericHosts look like IPv4 addresses and are none. The first four are
// 169.254.169.254 to a resolver that keeps the low 32 bits of a number.
var numericHosts = []string{
	"7147006462", "0x1a9fea9fe", "425.254.169.254", "169.254.169.510", "4294967296", "0x100000000", "99999999999999999999", "0xfffffffffffffffff",
	"256.256.256.256", "256.254.169.254", "1.2.3.256", "1.2.65536", "1.16777216", "1.2.0x1000000", "256.1", "400.0", "1.2.3.4.5", "169.254.169.254.1", "0.0.0.0.0",
	"0178.0.0.1", "08", "1.09", "1.2.3.08", "0400.1", "a.1", "rpc.example.1", "rpc.0x", "rpc.0xff", "rpc.0", "eth_1.2", "-1.1", "1_0.1", "1..2", ".1", "1.-.2", "0xg.1", "a169.254.169.254", "127.0.0.1,8.8.8.8", "8.8.8.8&127.0.0.1",
	"7147006462.", "0X1A9FEA9FE", "256.256.256.256..", "７147006462", "２56。256。256。256", "①0000000000", "rpc.１", "42\u00ad94967296",
}

// TestRPCURL_NumericHost: a host whose last label is a number is an IPv4 address
// or invalid, as in the WHATWG URL standard.
func TestRPCURL_NumericHost(t *testing.T) {
	for _, host := range numericHosts {
		for _, form := range []string{"http://%s", "wss://user:SECRET@%s:8546/SECRET"} {
			if message := urlProblem(t, fmt.Sprintf(form, host)); message != "must have a host that is a name or an address" {
				t.Errorf("%s: message %q", fmt.Sprintf(form, host), message)
			}
		}
	}
}

// TestURLIsText: a URL that JSON cannot keep byte by byte is refused, not
// changed.
func TestURLIsText(t *testing.T) {
	for _, text := range []relayer.RPCURL{"https://a.example/\xffKEY", "https://a.example/?\xc0\xaf", "https://user:\xff@a.example", "https://\xff.example"} {
		req := minimal("")
		req.CustomRPCURLs = []relayer.RPCConfig{{URL: text}}
		r, err := newManager(t).Create(t.Context(), req)
		if err == nil {
			t.Errorf("%q accepted as %q", string(text), string(r.CustomRPCURLs[0].URL))
			continue
		}
		wantFields(t, fieldErrors(t, err), "custom_rpc_urls[0].url")
	}
}

// TestControlInURL: the control characters beyond ASCII are control characters
// too.
func TestControlInURL(t *testing.T) {
	for _, text := range []string{"https://a.example/\u0085x", "https://a.example/\u00a0x", "https://a.example/\u2028x", "https://a\u202e.example/"} {
		if message := urlProblem(t, text); message == "" {
			t.Errorf("%q accepted", text)
		}
	}
}
