package fairness

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// attacker sends requests with one token on any number of connections.
type attacker struct {
	url, token string
	relayers   int
	client     *http.Client
	sent       atomic.Int64 // requests that have an effect: they are served, refused or held
}

// attack calls one on each worker until ctx is done.
func (a *attacker) attack(ctx context.Context, workers int, one func(ctx context.Context, a *attacker, i int)) (wait func()) {
	var running sync.WaitGroup
	for worker := range workers {
		running.Go(func() {
			for i := worker; ctx.Err() == nil; i += workers {
				one(ctx, a, i)
			}
		})
	}
	return running.Wait
}

func (a *attacker) send(ctx context.Context, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", "application/json")
	return a.client.Do(r)
}

// repeat returns an attack that sends requests and reads the responses.
func repeat(method string, path func(a *attacker, i int) string, body func(i int) string) func(context.Context, *attacker, int) {
	return func(ctx context.Context, a *attacker, i int) {
		response, err := a.send(ctx, method, path(a, i), body(i))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		a.sent.Add(1)
	}
}

// costlyFilters are 1,000 values. All relayers have the last one, and none has a search.
var costlyFilters = values("signer_id", 991) + "&signer_id=signer&" + values("search", 8)

// holdStream opens a stream and reads nothing of it. The server refuses those above the share.
func holdStream(ctx context.Context, a *attacker, _ int) {
	response, err := a.send(ctx, "GET", collection+":watch?"+costlyFilters, "")
	if err != nil {
		return
	}
	defer response.Body.Close()
	a.sent.Add(1)
	if response.StatusCode == http.StatusOK {
		<-ctx.Done()
	}
}

// hold returns an attack that writes a text to a connection, and keeps it until a response
// begins. It never reads if the attack is one of slow readers.
func hold(text func(a *attacker) string, isSlowReader bool) func(context.Context, *attacker, int) {
	return func(ctx context.Context, a *attacker, _ int) {
		address := strings.TrimPrefix(a.url, "http://")
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		defer connection.Close()
		defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
		_ = connection.(*net.TCPConn).SetReadBuffer(4096)
		a.sent.Add(1)
		_, _ = io.WriteString(connection, text(a))
		if isSlowReader {
			<-ctx.Done()
		}
		_, _ = connection.Read(make([]byte, 1))
	}
}

func head(a *attacker, method, target, more string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: registry\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n", method, target, a.token, more)
}

const (
	collection = "/api/v1/relayers"
	own        = collection + "/attacked"
	largePages = collection + "?per_page=100&"
)

func fixed(path string) func(*attacker, int) string {
	return func(*attacker, int) string { return path }
}
func text(body string) func(int) string { return func(int) string { return body } }

func values(parameter string, count int) string {
	query := make(url.Values)
	for i := range count {
		query.Add(parameter, fmt.Sprintf("value-%d-", i)+strings.Repeat("x", 100/(1+count/100)))
	}
	return query.Encode()
}

var (
	manyReceivers = strings.Repeat(`,"0x742d35Cc6634C0532925a3b844Bc454e4438f44e"`, 4500)

	// patchBodies are of 1 MiB, which is too large for a relayer, and of 200 KiB.
	patchBodies = [...]string{
		`{"name":"` + strings.Repeat("x", 1<<20-40) + `"}`,
		`{"policies":{"whitelist_receivers":["one"` + manyReceivers + `]}}`,
		`{"policies":{"whitelist_receivers":["another"` + manyReceivers + `]}}`,
	}

	manyURLs = strings.Repeat(`{"url":"https://rpc.example/v2/KEY"},`, 500)
)

// attacks are what one token can send.
var attacks = []struct {
	name string
	one  func(ctx context.Context, a *attacker, i int)

	// isControlled is true if the attack occupies a limit, so that it is noticed by a caller
	// with the same share.
	isControlled bool
}{
	{name: "searches", one: repeat("GET", fixed(largePages+values("search", 8)), text(""))},
	{name: "pages of 100", one: repeat("GET", func(a *attacker, i int) string {
		return fmt.Sprintf("%spage=%d", largePages, 1+i%(a.relayers/100))
	}, text(""))},
	{name: "streams", one: holdStream, isControlled: true},
	{name: "slow readers", one: hold(func(a *attacker) string {
		return strings.Repeat(head(a, "GET", collection+"?per_page=100", ""), 100)
	}, true)},
	{name: "patches of the largest body", one: repeat("PATCH", fixed(own), func(i int) string {
		return patchBodies[i%len(patchBodies)]
	})},
	{name: "pauses and resumes of all", one: repeat("POST", func(_ *attacker, i int) string {
		return collection + [...]string{":pause", ":resume"}[i%2] + "?all=true"
	}, text(""))},
	{name: "creates that are refused", one: repeat("POST", fixed(collection), text(relayerJSON("attacked")))},
	{name: "guesses of tokens", one: func(ctx context.Context, a *attacker, i int) {
		guessing := &attacker{url: a.url, token: fmt.Sprintf("a-token-that-nobody-has-%d", i), client: a.client}
		repeat("GET", fixed(collection), text(""))(ctx, guessing, i)
		a.sent.Add(guessing.sent.Load())
	}},
	{name: "engine reads", one: repeat("GET", fixed(collection+"?rpc_urls=full&per_page=100"), text(""))},
	{name: "history", one: repeat("GET", fixed(own+"/history?per_page=100"), text(""))},
	{name: "dry runs", one: repeat("PATCH", fixed(own+"?dry_run=true"), func(i int) string {
		return fmt.Sprintf(`{"name":"%d","custom_rpc_urls":[%s{"url":"https://rpc.example"}]}`, i, manyURLs)
	})},
	{name: "filters of 1,000 values", one: repeat("GET", fixed(largePages+values("signer_id", 1000)), text(""))},
	{name: "connections", isControlled: true, one: hold(func(a *attacker) string {
		return head(a, "POST", collection, "Content-Length: 1000\r\n") + "{"
	}, false)},
}

func relayerJSON(id string) string {
	return fmt.Sprintf(`{"id":%q,"name":"Payments %s","network":"sepolia","network_type":"evm","paused":false,"signer_id":"signer",`+
		`"custom_rpc_urls":[{"url":"https://rpc.example/v2/KEY"}],"policies":{"min_balance":1}}`, id, id)
}
