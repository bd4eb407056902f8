//go:build unix

// Package mirror compares views of package mirror with the registries that they follow: over
// every store, in the same process and through a client, with gaps, lost connections and
// restarts of the server.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/tests/internal/child"
)

func TestMain(m *testing.M) {
	child.Main(serveTask)
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests mostly wait
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const token = "token-of-the-mirror-suite"

func newManager(t testing.TB, store relayer.Store) *relayer.Manager {
	t.Helper()
	return must(relayer.New(store))(t)
}

func newAPI(t testing.TB, manager *relayer.Manager, options ...httpapi.Option) *httpapi.API {
	t.Helper()
	tokens := must(httpapi.Tokens(map[string][]string{"alice": {token}}))(t)
	return must(httpapi.New(manager, tokens, append([]httpapi.Option{httpapi.WithRateLimit(0, 0)}, options...)...))(t)
}

func newClient(t testing.TB, url string, transport *http.Transport, options ...client.Option) *client.Client {
	t.Helper()
	t.Cleanup(transport.CloseIdleConnections)
	options = append([]client.Option{
		client.WithToken(token),
		client.WithHTTPClient(&http.Client{Transport: transport}),
	}, options...)
	return must(client.New(url, options...))(t)
}

func request(id, team string) relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: id, Name: id, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "signer",
		Labels: map[string]string{"team": team},
	}
}

var patience = flag.Duration("patience", 2*time.Minute, "how long a view may take to converge")

// eventually waits until check returns no problem.
func eventually(t testing.TB, what string, check func() (problem string)) {
	t.Helper()
	deadline := time.Now().Add(*patience)
	for problem := check(); problem != ""; problem = check() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, problem)
		}
		time.Sleep(time.Millisecond)
	}
}

// content returns what a registry has, by ID.
func content(t testing.TB, reader relayer.Reader, selector relayer.Selector) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for r, err := range reader.All(context.Background(), selector) {
		succeed(t, err)
		all[r.ID] = fmt.Sprint(*r)
	}
	return all
}

// must returns a function that returns the value, or fails the test with the error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		succeed(t, err)
		return value
	}
}

func succeed(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// serverTask is the task of a server, which is a child process.
type serverTask struct {
	Path string // of the file

	Create  int    // relayers
	Changes int    // of each relayer, before the server listens
	Name    string // of each relayer after them, active

	// Follow is the URL of a server: the child is a view of it then, and no server.
	Follow string

	MaxPerPage int // 0 is the default
}

// listening is the event of a server that is ready.
type listening struct{ Address string }

// serveTask serves a store until it is killed.
func serveTask(task serverTask) error {
	if task.Follow != "" {
		return reportView(task.Follow)
	}
	store, err := bolt.Open(context.Background(), task.Path)
	if err != nil {
		return err
	}
	manager, err := relayer.New(store, relayer.WithMaxPerPage(cmp.Or(task.MaxPerPage, 100)))
	if err != nil {
		return err
	}
	if err := createMany(manager, task.Create, task.Name); err != nil {
		return err
	}
	for i := range task.Changes {
		if err := changeAll(manager, fmt.Sprint(task.Name, strings.Repeat(".", task.Changes-1-i))); err != nil {
			return err
		}
	}
	tokens, err := httpapi.Tokens(map[string][]string{"alice": {token}})
	if err != nil {
		return err
	}
	api, err := httpapi.New(manager, tokens, httpapi.WithEngineOperations(), httpapi.WithRateLimit(0, 0))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	child.Send(listening{listener.Addr().String()})
	return http.Serve(listener, api)
}

func changeAll(manager *relayer.Manager, name string) error {
	page, err := manager.List(context.Background(), relayer.ListQuery{})
	for i := 0; err == nil && i < page.Pagination.TotalItems; i++ {
		_, err = manager.Patch(context.Background(), fmt.Sprint("r", i), fmt.Appendf(nil, `{"name":%q,"paused":false}`, name))
	}
	return err
}

func createMany(manager *relayer.Manager, count int, name string) error {
	var creators sync.WaitGroup
	errs := make([]error, 64)
	for i := range errs {
		creators.Go(func() {
			for n := i; n < count && errs[i] == nil; n += len(errs) {
				req := request(fmt.Sprint("r", n), "a")
				req.Name = cmp.Or(name, req.Name)
				req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://rpc.example/v2/key"}}
				_, errs[i] = manager.Create(context.Background(), req)
			}
		})
	}
	creators.Wait()
	return errors.Join(errs...)
}

// childServer is a server that is killed and started again. Every process has its own port,
// because another program could take a port in between.
type childServer struct {
	task    serverTask
	process *child.Process
	ended   chan error
	address atomic.Value
}

// client returns a client of the current process, with separate connections.
func (s *childServer) client(t *testing.T, options ...client.Option) *client.Client {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.address.Load().(string))
	}
	return newClient(t, "http://127.0.0.1", &http.Transport{DialContext: dial}, options...)
}

func (s *childServer) start(t *testing.T) {
	t.Helper()
	s.process, s.ended = child.Start(t, s.task), make(chan error, 1)
	ready := make(chan listening, 1)
	go func() {
		_, err := child.Follow(s.process, func(event listening) { ready <- event })
		s.ended <- err
	}()
	select {
	case event := <-ready:
		s.address.Store(event.Address)
		s.task.Create = 0
	case err := <-s.ended:
		t.Fatalf("the server has ended: %v", err)
	}
}

func (s *childServer) kill(t *testing.T) {
	s.process.Kill()
	succeed(t, <-s.ended)
}

func revisions(t *testing.T, registry relayer.Reader) map[string]uint64 {
	t.Helper()
	all := make(map[string]uint64)
	for r, err := range registry.All(t.Context(), relayer.Selector{}) {
		succeed(t, err)
		all[r.ID] = r.Revision
	}
	return all
}
