package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// feed is the change feed of a server, whose current position is p0. Every connection plays the next
// script, and then stays open and silent, unless the script ends it.
type feed struct {
	mu      sync.Mutex
	scripts []func(*connection)
	opened  []http.Header
	closed  int
}

// connection is one stream, as the server writes it.
type connection struct {
	ctx context.Context
	w   *io.PipeWriter
}

func (c *connection) send(text string) { _, _ = io.WriteString(c.w, text) }

const (
	heartbeat = "event: heartbeat\ndata: {\"complete_ms\":0}\n\n"
	resync    = "event: resync\ndata: {}\n\n"
)

// change sends an update of relayer a to the revision, whose position is the same number.
func (c *connection) change(revision int) { c.send(changeEvent(revision)) }

func changeEvent(revision int) string {
	return fmt.Sprintf("id: p%d\nevent: updated\ndata: {\"change\":{\"revision\":%d},\"relayer\":{\"id\":\"a\",\"network_type\":\"evm\"}}\n\n", revision, revision)
}

// timedEvent is a change up to which the stream is complete after a time.
func timedEvent(milliseconds, revision int) string {
	return strings.Replace(changeEvent(revision), "data: {", fmt.Sprintf("data: {\"complete_ms\":%d,", milliseconds), 1)
}

// beat is a heartbeat with a position.
func beat(milliseconds int, id string) string {
	return fmt.Sprintf("id: %s\nevent: heartbeat\ndata: {\"complete_ms\":%d}\n\n", id, milliseconds)
}

func (f *feed) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, ":watch") {
		return currentPosition(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, r.Header)
	if len(f.scripts) == 0 {
		return nil, errors.New("connection refused")
	}
	play := f.scripts[0]
	f.scripts = f.scripts[1:]
	reader, writer := io.Pipe()
	stop := context.AfterFunc(r.Context(), func() { _ = writer.CloseWithError(context.Cause(r.Context())) })
	go func() {
		play(&connection{r.Context(), writer})
		if stop() {
			stop = context.AfterFunc(r.Context(), func() { _ = writer.CloseWithError(context.Cause(r.Context())) })
		}
	}()
	resp, _ := respond(200, "text/event-stream", "")(r)
	resp.Body = closer{reader, func() { f.mu.Lock(); f.closed++; f.mu.Unlock() }}
	return resp, nil
}

type closer struct {
	*io.PipeReader
	closed func()
}

func (c closer) Close() error {
	c.closed()
	return c.PipeReader.Close()
}

// watchOver watches over a transport until the end of the test, which must end all goroutines.
func watchOver(t *testing.T, transport http.RoundTripper, query relayer.WatchQuery, options ...client.Option) iter.Seq2[relayer.Change, error] {
	t.Helper()
	options = append(options, client.WithHTTPClient(&http.Client{Transport: transport}))
	return newClient(t, "https://relayers.example", options...).Watch(t.Context(), query)
}

// sends is a script that sends events, and ends lets the server end the stream after them.
func sends(events ...string) func(*connection) {
	return func(c *connection) { c.send(strings.Join(events, "")) }
}

func ends(events ...string) func(*connection) {
	return func(c *connection) {
		c.send(strings.Join(events, ""))
		_ = c.w.Close()
	}
}

func scripts(all ...func(*connection)) []func(*connection) { return all }

// positions returns where the connections resumed.
func (f *feed) positions() string {
	var all []string
	for _, header := range f.opened {
		all = append(all, header.Get("Last-Event-Id"))
	}
	return strings.Join(all, ",")
}

// follow watches the feed with the scripts, in a bubble, until check has seen enough.
func follow(t *testing.T, check func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]), scripts ...func(*connection)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &feed{scripts: scripts}
		limited := client.WithHTTPClient(&http.Client{Transport: f, Timeout: time.Second}) // of a response, not of a stream
		c := newClient(t, "https://relayers.example", limited, client.WithMaxResponseBytes(64<<10))
		check(t, f, c.Watch(t.Context(), relayer.WatchQuery{})) // the end of the context must end all goroutines
	})
}

// take returns the first items of the sequence, as text: revisions, gap or the error.
func take(n int, changes iter.Seq2[relayer.Change, error]) (items []string) {
	for change, err := range changes {
		switch {
		case errors.Is(err, relayer.ErrGap):
			items = append(items, "gap")
		case err != nil:
			items = append(items, err.Error())
		default:
			items = append(items, fmt.Sprint(change.Kind, " ", change.Relayer.ID, " ", change.Relayer.Revision))
		}
		if len(items) == n {
			break
		}
	}
	return items
}

func wantItems(t *testing.T, changes iter.Seq2[relayer.Change, error], want ...string) {
	t.Helper()
	if got := take(len(want), changes); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the changes are %q, want %q", got, want)
	}
}

// A watch begins at the position of the call, and has a connection while it is ranged over.
func TestWatch_Call(t *testing.T) {
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		if len(f.opened) != 0 {
			t.Errorf("the call sent %v", f.opened)
		}
		for change := range changes {
			wantFailure(t, changes, nil, "client: watch: the changes can be ranged over once: call Watch again")
			if change.Info.Revision != 1 {
				t.Errorf("the first change is %+v", change)
			}
			break
		}
		wantFailure(t, changes, nil, "client: watch: the changes can be ranged over once: call Watch again")
		if f.closed != 1 || f.positions() != "p0" || f.opened[0].Get("Authorization") != "Bearer "+token || f.opened[0].Get("Accept") != "text/event-stream" {
			t.Errorf("%d connections are closed, opened by %v", f.closed, f.opened)
		}
	}, sends(changeEvent(1)))
}

// A resync is a gap, which ends the sequence. A lost connection resumes at its last position.
func TestWatch_Positions(t *testing.T) {
	const cut = "id: p9\nevent: updated\ndata: an event that is not comp"
	one, two, three, four := changeEvent(1), changeEvent(2), changeEvent(3), changeEvent(4)
	for name, c := range map[string]struct {
		after   string
		scripts []func(*connection)
		want    string
		resumed string // the positions of the connections
	}{
		"a resync":                  {"", scripts(sends(heartbeat, one, resync, two)), "updated a 1, gap", "p0"},
		"no connection at first":    {"", scripts(ends(), sends(one)), "updated a 1", "p0,p0"},
		"a lost connection":         {"", scripts(ends(one, two, cut), sends(heartbeat, three, resync, four)), "updated a 1, updated a 2, updated a 3, gap", "p0,p2"},
		"a lost idle connection":    {"", scripts(ends(beat(0, "p9")), sends(one)), "updated a 1", "p0,p9"},
		"after a position":          {"p7", scripts(sends(heartbeat, one)), "updated a 1", "p7"},
		"after an old position":     {"p1", scripts(sends(resync, two)), "gap", "p1"},
		"after an invalid position": {"no\nposition", scripts(sends(resync, two)), "gap", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{scripts: c.scripts}
			n := strings.Count(c.want, ",") + 1
			if strings.HasSuffix(c.want, "gap") {
				n++ // nothing follows
			}
			got := strings.Join(take(n, watchOver(t, f, relayer.WatchQuery{After: c.after})), ", ")
			if got != c.want || f.positions() != c.resumed {
				t.Errorf("%s: %s, resumed at %q, want %s at %q", name, got, f.positions(), c.want, c.resumed)
			}
		})
	}
}

// The heartbeats of the server are passed on if they are wanted, with their position.
// Comments are not, whatever they contain.
func TestWatch_Heartbeats(t *testing.T) {
	script := sends(": keep-alive\n\n", heartbeat, changeEvent(1), ": keep-alive\n\n: 8\n\n", beat(8, "p7"), heartbeat, changeEvent(2))
	for wanted, want := range map[bool]string{false: "updated p1 updated p2", true: "heartbeat p0 updated p1 heartbeat p7 heartbeat p7 updated p2"} {
		synctest.Test(t, func(t *testing.T) {
			var got []string
			for change, err := range watchOver(t, &feed{scripts: scripts(script)}, relayer.WatchQuery{Heartbeats: wanted}) {
				if err != nil || (change.Relayer == nil) != (change.Kind == relayer.ChangeHeartbeat) {
					t.Fatalf("%+v, error %v", change, err)
				}
				got = append(got, string(change.Kind), change.Position)
				if change.Relayer != nil && change.Relayer.Revision == 2 {
					break
				}
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("heartbeats %t: %s, want %s", wanted, got, want)
			}
		})
	}
}

// The time of a change is when the request was sent plus what the server reports, however
// late the change arrives. An event without a time keeps the one before, also on another
// connection.
func TestWatch_Time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &feed{scripts: scripts(func(c *connection) {
			c.change(1)
			time.Sleep(10 * time.Second)
			c.send(timedEvent(1500, 2))
			time.Sleep(10 * time.Second)
			ends(beat(7000, "p2"))(c)
		}, sends(changeEvent(3), timedEvent(10, 4)))}
		var got []time.Duration
		var kinds []relayer.ChangeKind
		for change := range each(t, watchOver(t, slow{f}, relayer.WatchQuery{After: "p0", Heartbeats: true})) {
			if change.Time.IsZero() {
				change.Time = start.Add(-1)
			}
			kinds, got = append(kinds, change.Kind), append(got, change.Time.Sub(start))
			if len(got) == 5 {
				break
			}
		}
		second := got[4].Truncate(time.Second) // when the second request was sent, less the backoff
		want := []time.Duration{-1, 1500 * time.Millisecond, 7 * time.Second, 7 * time.Second}
		if !slices.Equal(got[:4], want) || second != 20*time.Second || kinds[2] != relayer.ChangeHeartbeat {
			t.Errorf("the times are %v, want %v and 20s", got, want)
		}
	})
}

// A machine and its clocks can be paused while a stream goes on: its times are then in the future,
// and the times of a new stream are not.
func TestWatch_TimeInFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{scripts: scripts(sends(timedEvent(0, 1), timedEvent(60_000, 2)), sends(timedEvent(1<<62, 2)), sends(timedEvent(0, 2)))}
		var got []string
		for change, err := range watchOver(t, f, relayer.WatchQuery{After: "p0"}) {
			if err != nil || change.Time.After(time.Now()) {
				t.Errorf("revision %d of %v at %v, error %v", change.Info.Revision, change.Time, time.Now(), err)
			}
			if got = append(got, fmt.Sprint(change.Info.Revision)); len(got) == 2 {
				break
			}
		}
		if strings.Join(got, " ") != "1 2" || f.positions() != "p0,p1,p1" {
			t.Errorf("the revisions are %v, resumed at %s", got, f.positions())
		}
	})
}

// slow is a transport that takes a while until the response.
type slow struct{ http.RoundTripper }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Second / 2)
	return s.RoundTripper.RoundTrip(r)
}

// stalled is a transport that holds requests until a moment, or until their context is done.
type stalled struct {
	http.RoundTripper
	until func() time.Time
}

func (s stalled) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(time.Until(s.until())):
		return s.RoundTripper.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// After a stall of any duration the age of a view is that of a fast connection within 15
// seconds.
func TestWatch_AgeAfterStall(t *testing.T) {
	for _, stall := range []time.Duration{time.Second / 2, 2 * time.Second, 12 * time.Second, 45 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			live := func(c *connection) {
				for arrived := time.Now(); ; {
					select {
					case <-time.After(5 * time.Second):
						passed := time.Since(arrived).Milliseconds()
						c.send(beat(int(passed), fmt.Sprint("p", passed)))
					case <-c.ctx.Done():
						return
					}
				}
			}
			f := &feed{scripts: slices.Repeat([]func(*connection){live}, 10)}
			end := time.Now().Add(stall)
			transport := stalled{f, func() time.Time { return end }}
			caughtUp := time.Now()
			for change := range each(t, watchOver(t, transport, relayer.WatchQuery{After: "p0", Heartbeats: true})) {
				if age := time.Since(caughtUp); time.Since(end) > 15*time.Second && age > 6*time.Second {
					t.Errorf("%v after a stall of %v the age is %v", time.Since(end), stall, age)
				}
				if caughtUp = change.Time; time.Since(end) > time.Minute {
					break
				}
			}
			if f.closed != len(f.opened) || f.closed > 2 {
				t.Errorf("after a stall of %v: %d of %d connections are closed", stall, f.closed, len(f.opened))
			}
		})
	}
}

// A connection whose response was late is used until another one is fast. No change is lost or
// repeated.
func TestWatch_LateResponseIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delays := []time.Duration{3 * time.Second, 2 * time.Second, 1500 * time.Millisecond, 0}
		f := &feed{scripts: scripts(func(c *connection) {
			for i := range 10 {
				c.change(i)
				select {
				case <-time.After(4 * time.Second):
				case <-c.ctx.Done():
				}
			}
		}, sends(changeEvent(100), changeEvent(101)))}
		transport := stalled{f, func() time.Time {
			delay := delays[0]
			delays = delays[1:]
			return time.Now().Add(delay)
		}}
		wantItems(t, watchOver(t, transport, relayer.WatchQuery{After: "p0"}),
			"updated a 0", "updated a 1", "updated a 2", "updated a 3", "updated a 4", "updated a 5", "updated a 6", "updated a 100", "updated a 101")
		if len(f.opened) != 2 || f.positions() != "p0,p6" || len(delays) > 0 {
			t.Errorf("the connections are %v, and %d were not made", f.opened, len(delays))
		}
	})
}

// A token that takes long neither makes a connection late nor delays the changes of a late one.
func TestWatch_SlowToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := sends(changeEvent(1), changeEvent(2))
		f := &feed{scripts: scripts(two, ends())}
		tokens, response := 0, 2*time.Second
		wait := func(ctx context.Context) (string, error) {
			if tokens++; tokens == 2 {
				<-ctx.Done() // that of the replacement
				return "", ctx.Err()
			}
			time.Sleep(3 * time.Second)
			return token, nil
		}
		transport := stalled{f, func() time.Time { return time.Now().Add(response) }}
		start := time.Now()
		wantItems(t, watchOver(t, transport, relayer.WatchQuery{After: "p0"}, client.WithTokenFunc(wait)), "updated a 1", "updated a 2")
		if took := time.Since(start); took != 6*time.Second || tokens != 2 {
			t.Errorf("two changes took %v and %d tokens", took, tokens)
		}
		tokens, response, f.scripts = 2, 0, scripts(two)
		wantItems(t, watchOver(t, transport, relayer.WatchQuery{After: "p0"}, client.WithTokenFunc(wait)), "updated a 1", "updated a 2")
		if tokens != 3 {
			t.Errorf("a fast response was replaced: %d tokens", tokens-2)
		}
	})
}

// A connection whose times may no longer be right is replaced.
func TestWatch_OldConnection(t *testing.T) {
	beat := func(c *connection) {
		for i := 0; c.ctx.Err() == nil; i++ {
			c.send(beat(5000*i, fmt.Sprint("p", i)))
			select {
			case <-time.After(5 * time.Second):
			case <-c.ctx.Done():
			}
		}
	}
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		start := time.Now()
		wantItems(t, changes, "updated a 1")
		if passed := time.Since(start); passed < time.Hour || passed > time.Hour+time.Minute || f.positions() != "p0,p720" {
			t.Errorf("replaced after %v, at %q", passed, f.positions())
		}
	}, beat, sends(changeEvent(1)))
}

// A first connection that fails is made again, after the position of the call.
func TestWatch_FirstConnectionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		changes := watchOver(t, f, relayer.WatchQuery{})
		time.AfterFunc(time.Minute, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.scripts = scripts(sends(changeEvent(1)))
		})
		wantItems(t, changes, "updated a 1")
		if n := len(f.opened); n < 8 || n > 60 {
			t.Errorf("%d connections in a minute, want exponential backoff", n)
		}
	})
}

// Connections that are lost after every change are opened again without growing waits.
// The waits grow while connections are lost without a change.
func TestWatch_Backoff(t *testing.T) {
	progress, silent := make([]func(*connection), 50), make([]func(*connection), 50)
	for i := range progress {
		progress[i], silent[i] = ends(changeEvent(i)), ends(heartbeat)
	}
	silent[0], silent[49] = progress[0], progress[49]
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		start := time.Now()
		take(50, changes)
		if waited := time.Since(start); waited > 10*time.Second {
			t.Errorf("50 changes took %s", waited)
		}
	}, progress...)
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		start := time.Now()
		take(2, changes)
		if waited := time.Since(start); waited < time.Minute {
			t.Errorf("50 connections were opened within %s", waited)
		}
	}, silent...)
}

func TestWatch_RetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"100": 100 * time.Second, "99999999999": 5 * time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := scripted(t, nil, reset, fail(503, "", "Retry-After", header), fail(401, ""))
			start := time.Now()
			take(1, c.Watch(t.Context(), relayer.WatchQuery{After: "p0"}))
			if waited := time.Since(start); waited < want || waited > want+2*time.Second {
				t.Errorf("Retry-After %s: waited %s, want %s", header, waited, want)
			}
		})
	}
}

// A connection of some seconds ends a series of failures, even if nothing changed: a proxy
// may limit the duration of a connection to a few heartbeats.
func TestWatch_BackoffAfterRepeatedCuts(t *testing.T) {
	var ended, opened time.Time
	cuts := make([]func(*connection), 12)
	for i := range cuts {
		cuts[i] = func(c *connection) {
			time.Sleep(5 * time.Second)
			c.send(heartbeat)
			time.Sleep(7 * time.Second)
			ended = time.Now()
			ends()(c)
		}
	}
	cuts = append(cuts, func(c *connection) {
		opened = time.Now()
		c.change(1)
	})
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		take(1, changes)
		if waited := opened.Sub(ended); opened.IsZero() || waited > 100*time.Millisecond {
			t.Errorf("the next connection was opened after %s", waited)
		}
	}, cuts...)
}

func TestWatch_SilentConnection(t *testing.T) {
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		var start time.Time
		for change, err := range changes {
			if err != nil || change.Position == "p3" {
				break
			}
			if start.IsZero() {
				time.Sleep(50 * time.Minute) // that of a consumer is no silence
				start = time.Now()
			}
		}
		if waited := time.Since(start); waited < 5*time.Minute+20*time.Second || waited > 6*time.Minute {
			t.Errorf("the next connections were opened after %s", waited)
		}
		if len(f.opened) != 3 {
			t.Errorf("%d connections", len(f.opened))
		}
	}, func(c *connection) {
		c.change(1)
		for range 17 { // the heartbeats of 5 minutes
			time.Sleep(9 * time.Second)
			c.send(":\n")
			time.Sleep(9 * time.Second) // a late event is one
			c.send(heartbeat)
		}
	}, func(c *connection) {
		c.change(2)
		for c.ctx.Err() == nil { // a proxy that has lost the server
			time.Sleep(10 * time.Second)
			c.send(":\n")
		}
	}, sends(changeEvent(3)))
}

func TestWatch_EventFormat(t *testing.T) {
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		wantItems(t, changes, "created b 5", "deleted b 5", "deleted c 7", "updated a 6")
	}, func(c *connection) {
		c.send("\n\nretry: 5\n:comment\nevent: renamed\ndata: {}\n\nevent: updated\n\n")
		c.send("id:1\r\nevent:created\r\ndata:{\"change\":{\"revision\":5},\r\ndata: \"relayer\":{\"id\":\"b\",\"network_type\":\"evm\",\"new\":1}}\r\n\r\n")
		c.send("event: deleted\ndata: {\"change\":{\"revision\":5},\"relayer\":{\"id\":\"b\",\"network_type\":\"evm\"}}\n\n")
		c.send("event: deleted\ndata: {\"change\":{\"revision\":7},\"relayer\":{\"id\":\"c\"}}\n\n") // no longer selected
		// Neither the type nor the size of an event without data counts for the next one.
		c.send("event: deleted\n\ndata: {\"relayer\":{\"id\":\"b\",\"network_type\":\"evm\"}}\n\n")
		c.send(strings.Repeat("event: "+strings.Repeat("x", 1<<10)+"\n\n", 100))
		c.change(6)
	})
}

// A change that cannot be decoded, or that is too large, ends the sequence.
func TestWatch_InvalidEvent(t *testing.T) {
	const noData = "client: watch: GET /api/v1/relayers:watch: the response has no usable data"
	for event, want := range map[string]string{
		"event: updated\ndata: {\"relayer\":{\"id\":\"c\",\"network_type\":5}}\n\n":                          noData,
		"event: updated\ndata: {\"relayer\":{\"id\":\"c\"}}\n\n":                                             noData,
		"event: deleted\ndata: {\"relayer\":{}}\n\n":                                                         noData,
		"event: updated\ndata: no JSON\n\n":                                                                  noData,
		"event: updated\ndata: {\"relayer\":{\"id\":\"b\",\"network_type\":\"evm\",\"new\":1\ndata: 2}}\n\n": noData, // 1, a line break and 2
		"data: " + strings.Repeat("x", 100<<10) + "\n\n":                                                     "larger than the limit",
		strings.Repeat("data: "+strings.Repeat("x", 1<<10)+"\n", 100) + "\n":                                 "larger than the limit",
	} {
		follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
			if items := take(2, changes); len(items) != 1 || !strings.Contains(items[0], want) {
				t.Errorf("%.100q: the changes are %.300q, want %q", event, items, want)
			}
		}, sends(event, changeEvent(6)))
	}
}

func TestWatch_ContextDone(t *testing.T) {
	for name, script := range map[string]func(*connection){
		"connected": sends(heartbeat),
		"lost":      ends(),
		"blocked":   func(*connection) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{scripts: scripts(script)}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer synctest.Wait()
			defer cancel()
			c := newClient(t, "https://relayers.example", client.WithHTTPClient(&http.Client{Transport: f}))
			start := time.Now()
			for range 2 {
				wantFailure(t, c.Watch(ctx, relayer.WatchQuery{}), context.DeadlineExceeded, "")
			}
			if waited := time.Since(start); waited != time.Minute {
				t.Errorf("%s: ended after %s", name, waited)
			}
		})
	}
}

// Before the first connection, an envelope of the server and a response of a load balancer end Watch at
// once, also after temporary failures. A feed that has worked does not end because of the responses of a
// load balancer, while the server restarts.
func TestWatch_Rejected(t *testing.T) {
	untrusted := func(*http.Request) (*http.Response, error) {
		return nil, &tls.CertificateVerificationError{Err: errors.New("a default certificate")}
	}
	tests := map[string]struct {
		step       step
		is         error
		text       string
		isBalancer bool
	}{
		"unauthorized":  {fail(401, "Unauthorized"), client.ErrUnauthorized, "401", false},
		"forbidden":     {fail(403, "Forbidden"), client.ErrForbidden, "403", false},
		"no feed":       {fail(404, "Not Found"), errors.ErrUnsupported, "does not offer", false},
		"another API":   {respondJSON(200, `{"success":true,"data":[]}`), nil, "application/json", false},
		"302":           {respond(302, "", "", "Location", "https://elsewhere.example/login"), nil, "302", true},
		"401":           {html(401), client.ErrUnauthorized, "401", true},
		"403":           {html(403), client.ErrForbidden, "403", true},
		"404":           {html(404), errors.ErrUnsupported, "does not offer", true},
		"404, no body":  {respond(404, "", ""), errors.ErrUnsupported, "does not offer", true},
		"405":           {html(405), errors.ErrUnsupported, "does not offer", true},
		"501":           {html(501), errors.ErrUnsupported, "does not offer", true},
		"404 in JSON":   {respondJSON(404, `{"message":"no Route matched with those values"}`), errors.ErrUnsupported, "does not offer", true},
		"421":           {html(421), nil, "421", true},
		"425":           {html(425), nil, "425", true},
		"a web page":    {html(200), nil, "text/html", true},
		"a certificate": {untrusted, nil, "certificate", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, steps := range [][]step{{test.step}, {busy, fail(429, ""), html(408), html(502), fail(500, ""), reset, truncated(503), blocked, test.step}} {
				synctest.Test(t, func(t *testing.T) {
					c, s := scripted(t, nil, steps...)
					start := time.Now()
					wantFailure(t, c.Watch(t.Context(), relayer.WatchQuery{After: "p1"}), test.is, test.text)
					if len(s.seen) != len(steps) || time.Since(start) > 2*time.Minute {
						t.Errorf("%d requests in %s", len(s.seen), time.Since(start))
					}
				})
			}
			if !test.isBalancer {
				return
			}
			synctest.Test(t, func(t *testing.T) { // the server restarts for 5 minutes
				c, s := scripted(t, nil, nil)
				ready, revision := time.Now(), 0
				s.steps[0] = func(r *http.Request) (*http.Response, error) {
					if time.Now().Before(ready) {
						return test.step(r)
					}
					ready = time.Now().Add(5 * time.Minute)
					revision++
					return respond(200, "text/event-stream", changeEvent(revision))(r)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wantItems(t, c.Watch(ctx, relayer.WatchQuery{After: "p0"}), "updated a 1", "updated a 2")
			})
		})
	}
}

// The sequence ends with the error of reading the position. A server without positions has no feed.
func TestWatch_PositionFails(t *testing.T) {
	for _, test := range []struct {
		step step
		is   error
		text string
	}{
		{fail(403, "Forbidden"), client.ErrForbidden, "403"},
		{fail(503, "Service Unavailable"), relayer.ErrUnavailable, "503"},
		{respondJSON(200, `{"success":true,"data":[],"changes":[],"pagination":{}}`), errors.ErrUnsupported, "no positions"},
	} {
		c, _ := scripted(t, once, test.step)
		wantFailure(t, c.Watch(t.Context(), relayer.WatchQuery{}), test.is, test.text)
	}
}

// wantFailure reads the only item of the changes, an error.
func wantFailure(t *testing.T, changes iter.Seq2[relayer.Change, error], want error, text string) {
	t.Helper()
	n := 0
	for _, err := range changes {
		if n++; n > 1 || err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			t.Fatalf("item %d: error %v", n, err)
		}
		wantNoSecret(t, "the error", err.Error())
	}
	if n != 1 {
		t.Errorf("%d items", n)
	}
}

// A body that never ends does not block Watch: that of a failure, and a page in place of a stream,
// which is not read.
func TestWatch_EndlessBody(t *testing.T) {
	for _, test := range []struct {
		step     step
		requests int
		is       error
		text     string
	}{
		{respondJSON(401, ""), 3, client.ErrForbidden, ""},
		{respondJSON(503, ""), 3, client.ErrForbidden, ""},
		{html(200), 1, nil, "text/html"},
	} {
		synctest.Test(t, func(t *testing.T) {
			drip := func(r *http.Request) (*http.Response, error) {
				resp, err := test.step(r)
				resp.Body = io.NopCloser(&drippingReader{ctx: r.Context()})
				return resp, err
			}
			c, s := scripted(t, []client.Option{client.WithTimeout(10 * time.Second)}, drip, drip, fail(403, "Forbidden"))
			start := time.Now()
			wantFailure(t, c.Watch(t.Context(), relayer.WatchQuery{After: "p0"}), test.is, test.text)
			if waited := time.Since(start); len(s.seen) != test.requests || waited > 25*time.Second {
				t.Errorf("%d requests in %s, want %d", len(s.seen), waited, test.requests)
			}
		})
	}
}

// drippingReader sends a byte every second until its request ends, but not for ever if a
// test fails.
type drippingReader struct {
	ctx  context.Context
	sent int
}

func (r *drippingReader) Read(p []byte) (int, error) {
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case <-time.After(time.Second):
		if r.sent++; r.sent > 100 {
			return 0, io.EOF
		}
		p[0] = ' '
		return 1, nil
	}
}

// A page of a load balancer that is too large to read does not end Watch.
func TestWatch_LoadBalancerLargePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := respond(404, "text/html", strings.Repeat("<p>", 1000))
		stream := respond(200, "text/event-stream", changeEvent(1))
		c, s := scripted(t, []client.Option{client.WithMaxResponseBytes(1000)}, stream, large, fail(403, "Forbidden"))
		var last error
		for _, err := range c.Watch(t.Context(), relayer.WatchQuery{After: "p0"}) {
			last = err
		}
		if !errors.Is(last, client.ErrForbidden) || len(s.seen) != 3 {
			t.Errorf("ended after %d requests: %v", len(s.seen), last)
		}
	})
}

// A stream ends if its clocks disagree.
func TestWatch_ClocksDisagree(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		began time.Time
		want  bool
	}{
		{now, false},
		{withMonotonic(now.Add(-time.Second/2), time.Second/2), false},
		{withMonotonic(now.Add(-time.Minute), time.Minute), true},
		{withMonotonic(now.Add(time.Minute), -time.Minute), true},
	} {
		if got := client.HasClockStep(test.began); got != test.want {
			t.Errorf("the clocks disagree since %v: %t, want %t", test.began, got, test.want)
		}
	}
}

// withMonotonic adds a duration to the monotonic clock reading of a time only, as if the
// machine had been suspended since, or its wall clock set.
func withMonotonic(t time.Time, add time.Duration) time.Time {
	type layout struct {
		wall      uint64
		monotonic int64
		location  *time.Location
	}
	(*layout)(unsafe.Pointer(&t)).monotonic += int64(add)
	return t
}
