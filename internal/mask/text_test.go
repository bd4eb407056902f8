package mask_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/internal/mask"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"nonce 5 is too low (want 7/8)":   "nonce 5 is too low (want 7/8)",
		"dial tcp 10.0.0.1:8545: refused": "dial tcp 10.0.0.1:8545: refused",
		"lookup a.example on 127.0.0.53:53: no such host":  "lookup a.example on 127.0.0.53:53: no such host",
		"mail ops@example.com or @team, net/http: timeout": "mail ops@example.com or @team, net/http: timeout",
		"\tat  10:30\n": "\tat  10:30\n",
		`Post "https://h.example/v2/KEY": dial tcp: refused`:                       `Post "https://h.example/***": dial tcp: refused`,
		`Post "https://h.example": EOF`:                                            `Post "https://h.example": EOF`,
		`Get "https://h.example/KEY\"KEY": EOF`:                                    `Get "https://h.example/***": EOF`,
		`{"url":"https://h.example/KEY","code":5}`:                                 `{"url":"https://h.example/***","code":5}`,
		"websocket: wss://h.example:8546/ws/KEY?a=KEY closed":                      "websocket: wss://h.example:8546/*** closed",
		"HTTPS://H.example/KEY.":                                                   "HTTPS://H.example/***.",
		"https://user:KEY@h.example":                                               "https://h.example",
		"https://user:KE@Y@h.example/":                                             "https://h.example/",
		"https://KEY@h.example:9545/, again":                                       "https://h.example:9545/, again",
		"https://us/KEY:KEY@h.example/":                                            "https://us/***",
		"https://user:KEY/KEY@h.example/":                                          "https://***",
		"https://h.example:KEY":                                                    "https://***",
		"https://user:77777/KEY@h.example":                                         "https://***",
		`parse "https://u:KEY/KEY@h.example": invalid port ":KEY\"KEY" after host`: `parse "https://***": invalid port ":***" after host`,
		"https://h.example?KEY and https://i.example#KEY":                          "https://h.example/*** and https://i.example/***",
		"(see https://h.example/KEY)":                                              "(see https://h.example/***)",
		"<https://h.example/KEY>;":                                                 "<https://h.example/***>;",
		"<https://h.example/K>EY>, or":                                             "<https://h.example/***>, or",
		"'https://h.example/KEY','https://i.example/KEY'":                          "'https://h.example/***'",
		"map[url:https://h.example/KEY] {https://h.example/K(EY)}":                 "map[url:https://h.example/*** {https://h.example/***)}",
		"https://h.example/KEY,https://i.example/KEY":                              "https://h.example/***",
		"http://[::1]:8545/KEY http://[fe80::1] http://127.0.0.1/KEY":              "http://[::1]:8545/*** http://[fe80::1] http://127.0.0.1/***",
		"https://bücher.example/KEY":                                               "https://bücher.example/***",
		`https:\/\/h.example\/v2\/KEY`:                                             `https:\/\/h.example/***`,
		"https%3A%2F%2Fuser%3AKEY%40h.example%2Fv2%2FKEY":                          "https%3A%2F%2Fh.example/***",
		"url=https%253a%252f%252fh.example%252fKEY":                                "url=https%253a%252f%252fh.example/***",
		"postgres://u:KEY@db:5432/KEY redis://:KEY@cache":                          "postgres://db:5432/*** redis://cache",
		"file:///KEY": "file://***",
		`Get "h.example/v2/KEY": unsupported protocol scheme ""`:                `Get "h.example/***": unsupported protocol scheme ""`,
		"to localhost:8545/KEY, or 127.0.0.1:8545/KEY or //h.example/K":         "to localhost:8545/***, or 127.0.0.1:8545/*** or //h.example/***",
		"dial user:KEY@h.example:8545: refused":                                 "dial h.example:8545: refused",
		"dial user:K@E/Y@h.example/KEY":                                         "dial h.example/***",
		"h.example/ h.example/.":                                                "h.example/ h.example/.",
		"https://0123456789ABCDEFabcd.h.example":                                "https://***.h.example",
		"https://u:KEY@0123456789abcdefabcd.h.example:1/KEY, again":             "https://***.h.example:1/***, again",
		"url=https%3A%2F%2F0123456789abcdefabcd.h.example%2FKEY":                "url=https%3A%2F%2F***.h.example/***",
		"dial tcp: lookup 0123456789abcdefabcd.h.example on 127.0.0.53:53: EOF": "dial tcp: lookup ***.h.example on 127.0.0.53:53: EOF",
		"valid for *.h.example, not 0123456789abcdefabcd.h.example.":            "valid for *.h.example, not ***.h.example.",
		"to 0123456789abcdefabcd.h.example:8545/KEY":                            "to ***.h.example:8545/***",
		"rpc1.example/v2/KEY?auth=u:KEY@rpc2.example":                           "rpc1.example/***",
		"rpc1.example/v2/KEY,u:KEY@rpc2.example/KEY":                            "rpc1.example/***",
		"u:KEY@0123456789abcdefabcd.h.example":                                  "***.h.example",
		"no host ０123456789abcdefabcd。h。example":                                "no host ***.h.example",
		"dial rpc。example/v2/KEY: 0123456789abcdefabcd.h｡example/KEY":           "dial rpc。example/***: ***.h.example/***",
		"https://０123456789abcdefabcd。h。example/KEY":                            "https://***.h.example/***",
		"tx 0x0123456789abcdefabcd. Then 0123456789abcdefabcd.example":          "tx 0x0123456789abcdefabcd. Then 0123456789abcdefabcd.example",
		"https://***.h.example and https://***.h.example/*** stay":              "https://***.h.example and https://***.h.example/*** stay",
		"https://h.example/*** stays":                                           "https://h.example/*** stays",

		"HTTPSConnectionPool(host='h.example', port=443): Max retries exceeded with url: /v2/0123456789abcdef-ABCDEF (EOF)": "HTTPSConnectionPool(host='h.example', port=443): Max retries exceeded with url: /v2/*** (EOF)",
		"see incidents/2026-11-27-rpc-outage-of-sepolia":                                                                    "see incidents/2026-11-27-rpc-outage-of-sepolia",
		"Cannot POST /v2/0123456789abcdefabcd":                                                                              "Cannot POST /v2/***",
		// A part of a URL, as debuggers, encoders and servers print it.
		`url: Url { host: Some(Domain("h.example")), path: "/", query: Some("api-key=7f3c9a1e-52bd-4a5c-9f00-0123456789ab"), fragment: None }`: `url: Url { host: Some(Domain("h.example")), path: "/", query: Some("***"), fragment: None }`,
		`Url { username: "0123456789abcdef", password: Some("S3") }`:                                                                           `Url { username: "***", password: Some("***") }`,
		`{Scheme:https Host:h.example RawQuery:apikey=0123456789abcdef Fragment:}`:                                                             `{Scheme:https Host:h.example RawQuery:*** Fragment:}`,
		`password: 'S3', searchParams: URLSearchParams { 'api-key' => '0123456789abcdef' }`:                                                    `password: '***', searchParams: URLSearchParams { 'api-key' => '***' }`,
		"exceeded with url: /rpc?token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fw":                                  "exceeded with url: /rpc?token=***",
		"url: /?k=ab%2BS3kr3tAbCdEf0123456789%3D%3D or /?0123456789abcdefabcd":                                                                 "url: /?k=*** or /?***",
		`{"path":"/rpc?chain=1\u0026key=0123456789abcdefabcd"}`:                                                                                `{"path":"/rpc?chain=1\u0026key=***"}`,
		"login?next=%2Fv2%2F0123456789abcdefabcd and next=/%3Fapi-key%3D0123456789abcdefabcd;":                                                 "login?next=*** and next=/***;",
		`{"body":"{\"url\":\"https:\\/\\/h.example\\/?chain=1\\u0026key=KEY\"}"}`:                                                              `{"body":"{\"url\":\"https:\\/\\/h.example/***"}`,
		`Authorization:[Bearer 0123456789abcdef] X-Api-Key:[0123456789abcdef] 'Authorization': 'Basic dXNlcjpwYXNz'`:                           `Authorization:[Bearer ***] X-Api-Key:[***] 'Authorization': 'Basic ***'`,
		`invalid URL: nonnumeric port: 'KEY\'KEY'`:                                                                                             `invalid URL: nonnumeric port: '***'`,

		`user:pa"KEY@rpc.example and rpc.example/rpc?filter={"key":"KEY"} or "h:1u@a"KEY"`: `rpc.example and rpc.example/***"} or "***"`,
		"dial rpc.example/12345678, http:/10.0.0.1:8545/12345678 or localhost:8545/1234":   "dial rpc.example/***, http:/10.0.0.1:8545/*** or localhost:8545/***",

		`{Scheme:"https", RawQuery:"token=abc123def456ghi789", Fragment:"abc123def456"} Fragment:frag1234567890ab`:    `{Scheme:"https", RawQuery:"***", Fragment:"***"} Fragment:***`,
		"/v2/abcdef1234567890abcdef.9876543210fedcba98zz and /rpc?key=SG.abcdef1234567890abc.abcdef1234567890abcdefg": "/v2/*** and /rpc?key=***",
		"password=Tr0ub4dor3xyz, Authorization: Basic dTpwYXNz":                                                       "password=***, Authorization: Basic ***",
		`{"url":"user:pa\",ss@rpc.example/x"}`:                                                                        `{"url":"rpc.example/***"}`,

		// What only looks like one.
		"password: see vault, query: 0x52908400098527886e0f, Authorization: Bearer is required": "password: see vault, query: 0x52908400098527886e0f, Authorization: Bearer is required",
		"open /var/backups/relayers.db.20261127T101500.000Z: no such file":                      "open /var/backups/relayers.db.20261127T101500.000Z: no such file",
		"balance 0.05/0.1 ETH, 3/5 tries, retry:3/5, 10.0.0.0/8 refused":                        "balance 0.05/0.1 ETH, 3/5 tries, retry:3/5, 10.0.0.0/8 refused",
		`{"error":"rate_limited","support":"support@rpc.example","query":"none"}`:               `{"error":"rate_limited","support":"support@rpc.example","query":"none"}`,
		`{"version":"Geth/v1.13.5-stable/linux","error":"nonce too low"}`:                       `{"version":"Geth/v1.13.5-stable/***","error":"nonce too low"}`,
		"password authentication failed, basic authentication, no bearer token, key: 0xabc":     "password authentication failed, basic authentication, no bearer token, key: 0xabc",

		"GET /rpc?chain=1&key=0123456789abcdefabcd: 403":          "GET /rpc?chain=1&key=***: 403",
		"open /var/lib/relayers-of-the-whole-company.db: is full": "open /var/lib/relayers-of-the-whole-company.db: is full",
	} {
		if got := mask.Text(text); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
		if again := mask.Text(want); again != want {
			t.Errorf("%s masked again is %s", want, again)
		}
	}
}

// The mark is in addition to a label that only contains stars.
func TestMarked(t *testing.T) {
	for url, want := range map[string]string{
		"https://a.example": "https://***@a.example", "https://a***.example.com": "https://***@a***.example.com",
		"https://***.a.example": "https://***.a.example", "https://a.example/***": "https://a.example/***", "***": "***",
	} {
		if got := mask.Marked(url); got != want {
			t.Errorf("%s is %s, want %s", url, got, want)
		}
	}
}

func TestError(t *testing.T) {
	cause := &url.Error{Op: "Post", URL: "https://h.example/KEY", Err: errors.New("refused")}
	err := fmt.Errorf("hook: %w", mask.Error(cause))
	if err.Error() != `hook: Post "https://h.example/***": refused` || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// FuzzText puts a secret into each part of a URL, and the URL into texts that quote it.
func FuzzText(f *testing.F) {
	f.Add("https", "h.example", "dial tcp: ", ": refused", "KEY")
	f.Add("WSS", "[::1]:8545", `{"a":"b","url":"`, `","c":"d"}`, "a,b;c)d")
	f.Add("http", "localhost", "(", ").", "%41@:/")
	f.Add("https", "h.example", "u:p@https://i.example/", ",https://", "x'y")
	f.Fuzz(func(t *testing.T, scheme, host, before, after, part string) {
		const mark = "S3CR3T"
		if strings.Contains(before+after+host+scheme, mark) || strings.ContainsFunc(part, func(r rune) bool {
			return r <= ' ' || r == '"' || r == '\\' || r == '\'' || r == '`' || r == '<' || r == '>' || r == 0x7f
		}) {
			return
		}
		secret := part + mark + part
		parsed, err := url.Parse(scheme + "://" + host + "/" + secret)
		if err != nil || parsed.Host != host || host == "" || parsed.User != nil || strings.ContainsFunc(secret, isSpace) {
			return
		}
		urls := []string{
			parsed.String(),
			scheme + "://" + host + "/" + secret,
			scheme + "://" + host + "?k=" + secret,
			scheme + "://" + host + "#" + secret,
			scheme + "://" + url.UserPassword(secret, secret).String() + "@" + host,
			url.QueryEscape(parsed.String()),
			scheme + "://0123456789abcdef" + mark + ".a.example/" + part,
		}
		for _, whole := range urls {
			for _, text := range []string{
				before + " " + whole + " " + after,
				before + " " + whole,
				before + (&url.Error{Op: "Post", URL: whole, Err: errors.New(after)}).Error(),
				fmt.Sprintf("%s%q%s", before+" ", whole, after),
				whole + " " + whole + ", " + whole + ": " + after,
			} {
				masked := mask.Text(text)
				if strings.Contains(masked, mark) {
					t.Errorf("%q shows the secret in %q", text, masked)
				}
				if again := mask.Text(masked); again != masked {
					t.Errorf("%q masked again is %q", masked, again)
				}
			}
		}
	})
}

func isSpace(r rune) bool {
	return strings.TrimSpace(string(r)) == "" || r < ' ' || r == 0x85 || r >= 0x80 && r < 0xa0
}

func TestField(t *testing.T) {
	for path, want := range map[string]string{
		"labels.app.kubernetes.io/name": "labels.app.kubernetes.io/name",
		"custom_rpc_urls[0].url":        "custom_rpc_urls[0].url",
		"https://u:KEY@h.example/KEY":   "https://h.example/***",
		"u:KEY@h.example":               "h.example",
		`https:\/\/h.example\/KEY`:      `https:\/\/h.example/***`,
	} {
		if got := mask.Field(path); got != want {
			t.Errorf("%s is shown as %s, want %s", path, got, want)
		}
	}
}
