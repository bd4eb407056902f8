//go:build unix

package mirror

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/mirror"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

var (
	ageViews  = flag.Int("age.views", 6, "views of the test of ages")
	agePhase  = flag.Duration("age.phase", 250*time.Millisecond, "duration of each phase of the test of ages")
	ageRounds = flag.Int("age.rounds", 1, "rounds of kills and restores of the test of ages")
	ageBound  = flag.Duration("age.bound", time.Minute, "how long a view may differ from a restored registry; 10s on a quiet machine")
)

const (
	ageRelayers = 24
	agePage     = 5 // relayers of a page
	ageSelected = 8 // relayers of a view with a selector
	ageWriters  = 8
)

// state is a state of a relayer: its name is "epoch-number". Every restore begins an epoch.
type state struct{ epoch, number int }

func (s state) String() string { return fmt.Sprintf("%d-%d", s.epoch, s.number) }

func (s state) isBefore(other state) bool {
	return s.epoch < other.epoch || s.epoch == other.epoch && s.number < other.number
}

// samples compares views with the acknowledged states of each relayer.
type samples struct {
	known    *ledger.Ledger[state]
	mayLack  atomic.Bool // a registry may be empty
	count    atomic.Int64
	mu       sync.Mutex
	problems []string
}

// sample compares a relayer of a view with what the view must have at its age. The age is
// read first: the view may be newer then.
func (s *samples) sample(view *mirror.Mirror, id string) (problem string) {
	mayLack := s.mayLack.Load()
	caughtUp := view.CaughtUp()
	r, err := view.Get(context.Background(), id)
	want := s.known.Before(id, caughtUp)
	s.count.Add(1)
	switch {
	case errors.Is(err, relayer.ErrNotFound):
		if mayLack || s.mayLack.Load() || want == (state{}) {
			return ""
		}
		return fmt.Sprintf("%s is missing in a view of %v ago, want %v", id, time.Since(caughtUp), want)
	case err != nil:
		return err.Error()
	}
	var got state
	_, err = fmt.Sscanf(r.Name, "%d-%d", &got.epoch, &got.number)
	if err != nil || got.isBefore(want) || r.Paused != (got.number%2 == 1) {
		return fmt.Sprintf("%s is in state %v, paused %t, in a view of %v ago, want %v or a later one", id, got, r.Paused, time.Since(caughtUp), want)
	}
	return ""
}

// wrongClock is a source that takes the arrival of a change for its time.
type wrongClock struct{ relayer.Registry }

func (s wrongClock) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	return func(yield func(relayer.Change, error) bool) {
		for change, err := range s.Registry.Watch(ctx, query) {
			change.Time = time.Now()
			if !yield(change, err) {
				return
			}
		}
	}
}

// TestMirror_Age follows a server over faulty networks, while it is killed, restored from a
// backup, with lower and with equal revisions, and replaced by an empty one. At no sample may
// a view be older than its age: a pause that was acknowledged before CaughtUp must be visible.
// Each read has several pages, and some views have a selector.
// After a restore every view must become the content of the registry. Views with a wrong
// clock are the control: they must be found.
func TestMirror_Age(t *testing.T) {
	t.Parallel() // to the other tests, which mostly wait too
	a := startAge(t)
	for range *ageRounds {
		a.writeFor(*agePhase)
		a.faultsDuring(allFaults, func() { a.writeFor(*agePhase) })
		a.faultsDuring(allFaults, func() { a.writeDuring(func() { a.server.kill(t); a.server.start(t); time.Sleep(*agePhase / 2) }) })
		a.restore("lower revisions", false)
		a.restore("equal revisions", true)
		a.empty()
	}
	close(a.end)
	a.sampling.Wait()
	for i, problem := range a.samples.problems {
		if i == 20 {
			t.Errorf("and %d more", len(a.samples.problems)-i)
			break
		}
		t.Error(problem)
	}
	if a.controls.Load() == 0 {
		t.Error("views with a wrong clock were not found")
	}
	t.Logf("%d samples of %d views; %d findings in the control", a.samples.count.Load(), len(a.views), a.controls.Load())
}

// agedView is a view of some relayers.
type agedView struct {
	*mirror.Mirror
	ids  []string
	link *link
}

type ageTest struct {
	t        *testing.T
	server   *childServer
	writer   *client.Client
	samples  *samples
	ids      []string
	views    []agedView
	faults   atomic.Int32
	controls atomic.Int64 // findings

	epoch       int
	attempts    atomic.Int64
	sinceBackup atomic.Int64 // acknowledged writes

	end      chan struct{}
	sampling sync.WaitGroup
}

func startAge(t *testing.T) *ageTest {
	a := &ageTest{t: t, samples: &samples{known: ledger.New[state]()}, end: make(chan struct{})}
	a.server = &childServer{task: serverTask{Path: filepath.Join(t.TempDir(), "relayers.db"), Create: ageRelayers, Name: "0-0", MaxPerPage: agePage}}
	a.server.start(t)
	t.Cleanup(func() { a.server.kill(t) })
	for i := range ageRelayers {
		a.ids = append(a.ids, fmt.Sprint("r", i))
	}
	a.writer = a.server.client(t, client.WithRetries(1, time.Second), client.WithTimeout(5*time.Second))
	for i := range *ageViews {
		var selector relayer.Selector
		ids := a.ids
		if i%3 == 2 {
			ids = a.ids[:ageSelected]
			selector = selector.Where("id", ids...)
		}
		var options []client.Option
		if i%2 == 0 {
			options = append(options, client.WithFullRPCURLs())
		}
		l := a.link(fault(i % int(countOfFaults)))
		a.views = append(a.views, agedView{a.open(l.client(t, options...), selector), ids, l})
	}
	var controls []agedView
	for kind := range countOfFaults {
		l := a.link(kind)
		controls = append(controls, agedView{a.open(wrongClock{l.client(t)}, relayer.Selector{}), a.ids, l})
	}
	a.sample(a.views, func(problem string) {
		a.samples.mu.Lock()
		defer a.samples.mu.Unlock()
		a.samples.problems = append(a.samples.problems, problem)
	})
	a.sample(controls, func(string) { a.controls.Add(1) })
	return a
}

func (a *ageTest) link(kind fault) *link {
	return &link{fault: kind, level: &a.faults, server: a.server}
}

func (a *ageTest) open(source relayer.Registry, selector relayer.Selector) *mirror.Mirror {
	view := must(mirror.Open(a.t.Context(), source, selector))(a.t)
	a.t.Cleanup(view.Close)
	return view
}

func (a *ageTest) sample(views []agedView, report func(problem string)) {
	a.sampling.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-a.end:
				return
			case <-time.After(200 * time.Microsecond):
			}
			view := views[i%len(views)]
			if problem := a.samples.sample(view.Mirror, view.ids[rand.IntN(len(view.ids))]); problem != "" {
				report(problem)
			}
		}
	})
}

// write changes a relayer. An odd number is a pause.
func (a *ageTest) write(id string) {
	next := state{a.epoch, int(a.attempts.Add(1))}
	patch := fmt.Appendf(nil, `{"name":%q,"paused":%t}`, next, next.number%2 == 1)
	if _, err := a.writer.Patch(a.t.Context(), id, patch); err == nil {
		a.samples.known.Add(ledger.Done, next, id)
		a.sinceBackup.Add(1)
	}
}

// writeDuring writes about 100 times a second until run returns. Each relayer has one writer.
func (a *ageTest) writeDuring(run func()) {
	done := make(chan struct{})
	var writing sync.WaitGroup
	for writer := range ageWriters {
		writing.Go(func() {
			for i := writer; ; i += ageWriters {
				select {
				case <-done:
					return
				case <-time.After(ageWriters * 10 * time.Millisecond):
					a.write(a.ids[i%ageRelayers])
				}
			}
		})
	}
	run()
	close(done)
	writing.Wait()
}

func (a *ageTest) writeFor(duration time.Duration) { a.writeDuring(func() { time.Sleep(duration) }) }

func (a *ageTest) faultsDuring(level int32, run func()) {
	a.faults.Store(level)
	defer a.faults.Store(noFaults)
	run()
}

// restore replaces the registry by a backup, after writes that it does not have. The restored
// registry is changed once, or as often as the one before, so that its revisions are equal.
func (a *ageTest) restore(name string, isEqual bool) {
	backup := a.server.task.Path + ".backup"
	a.server.kill(a.t)
	copyFile(a.t, a.server.task.Path, backup)
	a.server.start(a.t)
	a.awaitViews("the start after a backup")
	a.sinceBackup.Store(0)
	a.faultsDuring(allFaults, func() { a.writeFor(*agePhase) })
	for a.sinceBackup.Load()%ageRelayers != 0 {
		a.write(a.ids[0])
	}
	for _, id := range a.ids { // the last write of each gives it its revision
		a.write(id)
	}
	before := revisions(a.t, a.server.client(a.t))
	changes := 1
	if isEqual {
		changes = int(a.sinceBackup.Load()) / ageRelayers
	}
	a.replace(name, changes, func() { copyFile(a.t, backup, a.server.task.Path) })
	if after := revisions(a.t, a.server.client(a.t)); maps.Equal(before, after) != isEqual {
		a.t.Errorf("%s: revisions %v are restored as %v", name, before, after)
	}
}

// empty replaces the registry by an empty one, in which the relayers are then created again.
func (a *ageTest) empty() {
	a.samples.mayLack.Store(true)
	removeFile := func() { succeed(a.t, os.Remove(a.server.task.Path)) }
	a.swap("an empty registry", removeFile)
	a.server.task.Create, a.server.task.Name = ageRelayers, state{a.epoch, 0}.String()
	a.replace("a new registry", 1, removeFile)
	a.samples.mayLack.Store(false)
}

// replace begins an epoch: it replaces the registry by one that changes each relayer before it
// listens.
func (a *ageTest) replace(name string, changes int, replaceFile func()) {
	a.epoch++
	a.attempts.Store(0)
	a.server.task.Changes, a.server.task.Name = changes, state{a.epoch, 0}.String()
	a.swap(name, replaceFile, a.ids...)
	a.server.task.Changes = 0
}

// swap kills the server, replaces its file, and starts it. The registry then has the relayers
// with the first state of the epoch. The views read it again with light faults.
func (a *ageTest) swap(name string, replaceFile func(), ids ...string) {
	a.faultsDuring(lightFaults, func() {
		a.server.kill(a.t)
		replaceFile()
		a.server.start(a.t)
		for _, id := range ids {
			a.samples.known.Add(ledger.Done, state{a.epoch, 0}, id)
		}
		a.awaitViews(name + ", links without a fault")
		time.Sleep(*agePhase)
	})
	a.awaitViews(name)
}

// awaitViews waits until all views whose links are not faulty are equal to the registry.
func (a *ageTest) awaitViews(name string) {
	a.t.Helper()
	began := time.Now()
	server := a.server.client(a.t)
	for i, view := range a.views {
		want := content(a.t, server, relayer.Selector{}.Where("id", view.ids...))
		for !view.link.isFaulty() {
			got := content(a.t, view, relayer.Selector{})
			if problem := differs(got, want); problem == "" {
				break
			} else if time.Since(began) > *ageBound {
				a.t.Fatalf("%s: view %d differs after %v: %s", name, i, time.Since(began), problem)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	a.t.Logf("%s: the views are equal after %v", name, time.Since(began).Round(time.Millisecond))
}

// differs compares contents without RPC URLs, which some views have in full: they are masked
// in both.
func differs(got, want map[string]string) string {
	var problems []string
	for id, text := range want {
		if got[id] != text {
			problems = append(problems, fmt.Sprintf("%s is %s, want %s", id, got[id], text))
		}
	}
	if len(got) != len(want) {
		problems = append(problems, fmt.Sprintf("%d relayers, want %d", len(got), len(want)))
	}
	if len(problems) > 3 {
		problems = problems[:3]
	}
	return strings.Join(problems, "; ")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data := must(os.ReadFile(from))(t)
	succeed(t, os.WriteFile(to, data, 0o600))
}

// fault is what a network does to the connections of a client.
type fault int

const (
	delays    fault = iota // each part arrives late
	throttles              // 5 KB/s
	stalls                 // for seconds, and then delivers what has arrived
	cuts                   // each connection after a number of bytes
	reorders               // a later connection overtakes an earlier one
	countOfFaults
)

// The levels of faults. Light ones are those with which a view can be read in seconds.
const (
	noFaults int32 = iota
	lightFaults
	allFaults
)

// link is the network between a client and a server. While it is faulty, its connections
// suffer from the fault.
type link struct {
	fault  fault
	level  *atomic.Int32
	server *childServer
}

func (l *link) isFaulty() bool {
	level := l.level.Load()
	return level == allFaults || level == lightFaults && l.fault != throttles && l.fault != stalls
}

func (l *link) client(t testing.TB, options ...client.Option) *client.Client {
	return newClient(t, "http://127.0.0.1", &http.Transport{DialContext: l.dial}, options...)
}

func (l *link) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, l.server.address.Load().(string))
	if err != nil {
		return nil, err
	}
	return &linkConn{Conn: conn, link: l, left: 20_000 + rand.IntN(40_000), late: rand.N(3 * time.Second)}, nil
}

type linkConn struct {
	net.Conn
	link *link
	left int           // bytes until the connection is cut
	late time.Duration // of this connection
}

func (c *linkConn) Read(p []byte) (int, error) {
	if c.link.fault == throttles && c.link.isFaulty() {
		p = p[:min(len(p), 512)]
	}
	n, err := c.Conn.Read(p)
	if !c.link.isFaulty() {
		return n, err
	}
	switch c.link.fault {
	case delays:
		c.wait(rand.N(200 * time.Millisecond))
	case throttles:
		c.wait(time.Duration(n) * time.Second / 5000)
	case stalls:
		if rand.IntN(40) == 0 {
			c.wait(rand.N(6 * time.Second))
		}
	case cuts:
		if c.left -= n; c.left < 0 {
			_ = c.Close()
		}
	case reorders:
		c.wait(c.late)
	}
	return n, err
}

// wait ends early if the link is no longer faulty.
func (c *linkConn) wait(duration time.Duration) {
	for end := time.Now().Add(duration); time.Now().Before(end) && c.link.isFaulty(); {
		time.Sleep(min(10*time.Millisecond, time.Until(end)))
	}
}

var stopped = flag.Duration("stopped", time.Second, "how long a process with a view is stopped")

// viewReport is what a process sees of its view. Times are in nanoseconds since 1970: the
// processes have the same wall clock.
type viewReport struct {
	At, CaughtUp int64
	Age          time.Duration
	Paused       bool
}

// reportView reports the relayer r0 of a view of a server all the time.
func reportView(url string) error {
	c, err := client.New(url, client.WithToken(token))
	if err != nil {
		return err
	}
	view, err := mirror.Open(context.Background(), c, relayer.Selector{})
	if err != nil {
		return err
	}
	for ; ; time.Sleep(time.Millisecond) {
		at := time.Now().UnixNano() // first: the process may be stopped in between
		caughtUp := view.CaughtUp()
		age := time.Since(caughtUp)
		r, err := view.Get(context.Background(), "r0")
		if err != nil {
			return err
		}
		child.Send(viewReport{at, caughtUp.UnixNano(), age, r.Paused})
	}
}

// A process that was stopped is old when it continues, until it has what happened meanwhile.
func TestMirror_StoppedProcess(t *testing.T) {
	for name, isKilled := range map[string]bool{"the server is killed": true, "the server continues": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &childServer{task: serverTask{Path: filepath.Join(t.TempDir(), "relayers.db"), Create: 3}}
			server.start(t)
			process := child.Start(t, serverTask{Follow: "http://" + server.address.Load().(string)})
			reports, ended := make(chan viewReport, 10_000), make(chan error, 1)
			go func() {
				_, err := child.Follow(process, func(r viewReport) { reports <- r })
				close(reports)
				ended <- err
			}()
			<-reports
			writer := server.client(t)
			if isKilled {
				server.kill(t)
			}
			succeed(t, process.Signal(syscall.SIGSTOP))
			began := time.Now()
			if !isKilled {
				must(writer.Pause(t.Context(), "r0"))(t)
			}
			acknowledged := time.Now().UnixNano()
			time.Sleep(*stopped)
			continued := time.Now()
			succeed(t, process.Signal(syscall.SIGCONT))
			seen := 0
			for r := range reports {
				if r.At < continued.UnixNano() {
					continue
				}
				if isKilled && r.Age < continued.Sub(began) {
					t.Errorf("after %v the view is %v old", continued.Sub(began), r.Age)
				}
				if !isKilled && r.CaughtUp > acknowledged && !r.Paused {
					t.Errorf("a pause is not visible in a view that is %v old", r.Age)
				}
				if seen++; seen > 200 && (isKilled || r.Paused && r.Age < 6*time.Second) {
					break
				}
			}
			process.Kill()
			for range reports { // until it has ended
			}
			succeed(t, <-ended)
			if !isKilled {
				server.kill(t)
			}
		})
	}
}
