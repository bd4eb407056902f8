//go:build unix

package mirror

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/mirror"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/ledger"
	"github.com/go-relayer/relayer/tests/internal/patchtest"
)

var (
	soakMirrors  = flag.Int("mirrors", 20, "mirrors of the soak")
	soakRelayers = flag.Int("relayers", 300, "relayers of the soak")
	soakTime     = flag.Duration("for", 3*time.Second, "duration of the soak")
	soakKills    = flag.Int("kills", 2, "how often the server of the soak is killed")
	soakRate     = flag.Int("rate", 200, "changes per second of the soak")
)

// soakTask is the task of a server, which is a child process.
type soakTask struct {
	Path     string // of the file, or a schema
	Postgres string // how to connect to PostgreSQL; empty for a file

	Create  int    // relayers
	Changes int    // of each relayer, before the server listens
	Name    string // of each relayer after them, active

	// Follow is the URL of a server: the child is a view of it then, and no server.
	Follow string

	HasRateLimit bool // the default one
	MaxPerPage   int  // 0 is the default
}

// listening is the event of a server that is ready.
type listening struct{ Address string }

// serveSoak serves a store until it is killed.
func serveSoak(task soakTask) error {
	if task.Follow != "" {
		return reportView(task.Follow)
	}
	store, err := openSoak(task)
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
	options := []httpapi.Option{httpapi.WithEngineOperations()}
	if !task.HasRateLimit {
		options = append(options, httpapi.WithRateLimit(0, 0))
	}
	api, err := httpapi.New(manager, tokens, options...)
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

func openSoak(task soakTask) (relayer.Store, error) {
	if task.Postgres != "" {
		return postgres.Open(context.Background(), task.Postgres, postgres.WithSchema(task.Path))
	}
	return bolt.Open(context.Background(), task.Path)
}

func changeAll(manager *relayer.Manager, name string) error {
	page, err := manager.List(context.Background(), relayer.ListQuery{})
	for i := 0; err == nil && i < page.Pagination.TotalItems; i++ {
		_, err = manager.Patch(context.Background(), fmt.Sprint("r", i), patchtest.JSON(map[string]any{"name": name, "paused": false}))
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
				req.CustomRPCURLs = endpoints("https://rpc.example/v2/key")
				_, errs[i] = manager.Create(context.Background(), req)
			}
		})
	}
	creators.Wait()
	return errors.Join(errs...)
}

// soakServer is a server that is killed and started again. Every process has its own port,
// because another program could take a port in between.
type soakServer struct {
	task    soakTask
	process *child.Process
	ended   chan error
	address atomic.Value
}

// client returns a client of the current process, with separate connections.
func (s *soakServer) client(t *testing.T, options ...client.Option) *client.Client {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.address.Load().(string))
	}
	return newClient(t, "http://127.0.0.1", &http.Transport{DialContext: dial}, options...)
}

func (s *soakServer) start(t *testing.T) {
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

func (s *soakServer) kill(t *testing.T) {
	s.process.Kill()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestSoak follows a server with many mirrors, while it is killed and started again. All
// mirrors must converge. It reports the time from an acknowledged write until the change is
// visible in a mirror.
func TestSoak(t *testing.T) {
	server := &soakServer{task: soakTask{Path: filepath.Join(t.TempDir(), "relayers.db"), Create: *soakRelayers}}
	server.start(t)
	began := time.Now()
	mirrors := openMirrors(t, server)
	t.Logf("%d mirrors opened in %s", len(mirrors), time.Since(began).Round(time.Millisecond))

	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var sights []*sight
	for i := 0; i < len(mirrors); i += max(1, len(mirrors)/20) {
		s := &sight{seen: make(map[string][]seenRevision)}
		sights = append(sights, s)
		watching.Go(func() { s.follow(ctx, mirrors[i]) })
	}
	acknowledged := make(chan []write, 1)
	go func() {
		acknowledged <- writeSoak(ctx, server.client(t, client.WithRetries(1, time.Second)), *soakRelayers, *soakRate, *soakTime)
	}()
	for range *soakKills {
		time.Sleep(*soakTime / time.Duration(*soakKills+1))
		server.kill(t)
		server.start(t)
	}
	writes := <-acknowledged
	ended := time.Now()
	awaitConvergence(t, server.client(t), mirrors)
	t.Logf("%d acknowledged writes in %s; all mirrors have converged %s after the last", len(writes), soakTime, time.Since(ended).Round(time.Millisecond))
	report(t, writes, sights)
	stop()
	watching.Wait()
	server.kill(t)
}

// openMirrors opens the mirrors, a few at a time.
func openMirrors(t *testing.T, server *soakServer) []*mirror.Mirror {
	mirrors, errs := make([]*mirror.Mirror, *soakMirrors), make([]error, *soakMirrors)
	slots := make(chan struct{}, 8)
	var opening sync.WaitGroup
	for i := range mirrors {
		c := server.client(t)
		opening.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			mirrors[i], errs[i] = mirror.Open(t.Context(), c, relayer.Selector{})
		})
	}
	opening.Wait()
	t.Cleanup(func() {
		for _, m := range mirrors {
			m.Close()
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return mirrors
}

// write is an acknowledged write. Its value is the revision.
type write = ledger.Acknowledged[uint64]

// writeSoak changes relayers at a rate per second. Writes whose outcome is unknown or
// that fail are not acknowledged.
func writeSoak(ctx context.Context, c *client.Client, relayers, rate int, duration time.Duration) []write {
	known := ledger.New[uint64]()
	var writing sync.WaitGroup
	slots := make(chan struct{}, 64)
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end); <-ticker.C {
		slots <- struct{}{}
		writing.Go(func() {
			defer func() { <-slots }()
			id := fmt.Sprint("r", rand.IntN(relayers))
			r, err := c.Patch(ctx, id, patchtest.JSON(map[string]any{"name": fmt.Sprint("name-", rand.Uint64())}))
			if err == nil {
				known.Add(ledger.Done, r.Revision, id)
			}
		})
	}
	writing.Wait()
	return known.Acknowledged()
}

// awaitConvergence waits until all mirrors have the relayers of the server.
func awaitConvergence(t *testing.T, c *client.Client, mirrors []*mirror.Mirror) {
	want := revisions(t, c)
	if len(want) != *soakRelayers {
		t.Fatalf("the server has %d relayers", len(want))
	}
	for i, m := range mirrors {
		eventually(t, fmt.Sprint("mirror ", i), func() string {
			behind := *soakRelayers - lengthOf(m)
			for r := range m.All(t.Context(), relayer.Selector{}) {
				if want[r.ID] != r.Revision {
					behind++
				}
			}
			if behind == 0 {
				return ""
			}
			return fmt.Sprint(behind, " relayers differ")
		})
	}
}

func revisions(t *testing.T, registry relayer.Reader) map[string]uint64 {
	t.Helper()
	all := make(map[string]uint64)
	for r, err := range registry.All(t.Context(), relayer.Selector{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[r.ID] = r.Revision
	}
	return all
}

// sight is what a program saw of a mirror.
type sight struct {
	mu   sync.Mutex
	seen map[string][]seenRevision
}

type seenRevision struct {
	revision uint64
	at       time.Time
}

func (s *sight) follow(ctx context.Context, m *mirror.Mirror) {
	for change := range m.Changes(ctx) {
		s.add(change.After)
	}
}

func (s *sight) add(r *relayer.Relayer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[r.ID] = append(s.seen[r.ID], seenRevision{r.Revision, time.Now()})
}

// delay returns the time until the write, or a later one of the same relayer, was visible.
func (s *sight) delay(w write) (delay time.Duration, isSeen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[w.Key]
	i, _ := slices.BinarySearchFunc(seen, w.Value, func(e seenRevision, revision uint64) int { return cmp.Compare(e.revision, revision) })
	if i == len(seen) {
		return 0, false
	}
	return max(0, seen[i].at.Sub(w.At)), true
}

func report(t *testing.T, writes []write, sights []*sight) (most time.Duration) {
	var delays []time.Duration
	for _, s := range sights {
		for _, w := range writes {
			eventually(t, "the write of "+w.Key, func() string {
				delay, isSeen := s.delay(w)
				if !isSeen {
					return "is not visible"
				}
				delays = append(delays, delay)
				return ""
			})
		}
	}
	if len(delays) == 0 {
		t.Fatal("no write was acknowledged")
	}
	slices.Sort(delays)
	at := func(share float64) time.Duration {
		return delays[int(share*float64(len(delays)-1))].Round(100 * time.Microsecond)
	}
	t.Logf("visible after: median %s, p90 %s, p99 %s, most %s", at(0.5), at(0.9), at(0.99), at(1))
	return at(1)
}
