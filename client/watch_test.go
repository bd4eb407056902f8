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

// feed is the change feed of a server. Every connection plays the next script, and then
// stays open and silent, unless the script ends it.
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
	heartbeat = "event: heartbeat\ndata: {\"complete_ms\":15000}\n\n"
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

// end is a script step: the server ends the stream.
func end(c *connection) { _ = c.w.Close() }

// follow watches the feed with the scripts, in a bubble, until check has seen enough.
func follow(t *testing.T, check func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]), scripts ...func(*connection)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &feed{scripts: scripts}
		ctx := t.Context() // its end must end all goroutines
		c := newClient(t, "https://relayers.example", client.WithHTTPClient(&http.Client{Transport: f, Timeout: time.Second}), client.WithMaxResponseBytes(64<<10))
		check(t, f, c.Watch(ctx, relayer.WatchQuery{}))
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

// wantEnd fails unless the sequence has these items only.
func wantEnd(t *testing.T, changes iter.Seq2[relayer.Change, error], want ...string) {
	t.Helper()
	if got := take(len(want)+1, changes); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the changes are %q, want %q and the end", got, want)
	}
}

// The first resync is the start of the feed, a later one is a gap.
func TestWatch_Resync(t *testing.T) {
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		if len(f.opened) != 1 || f.opened[0].Get("Authorization") != "Bearer "+token || f.opened[0].Get("Accept") != "text/event-stream" {
			t.Errorf("the call sent %v", f.opened)
		}
		wantEnd(t, changes, "updated a 1", "gap")
		wantEnd(t, changes, "client: watch: client: the changes can be ranged over once: call Watch again")
		if f.closed != 1 {
			t.Errorf("%d connections are closed", f.closed)
		}
	}, func(c *connection) {
		c.send(heartbeat + resync)
		c.change(1)
		c.send(resync)
		c.change(2)
	})
}

// The start of a later connection is not that of the feed.
func TestWatch_FirstConnectionEndsAtOnce(t *testing.T) {
	follow(t, func(t *testing.T, _ *feed, changes iter.Seq2[relayer.Change, error]) {
		wantEnd(t, changes, "gap")
	}, end, func(c *connection) { c.send(resync) })
}

// A server that can return all changes from the call on need not send a resync.
func TestWatch_ChangeAtStart(t *testing.T) {
	follow(t, func(t *testing.T, _ *feed, changes iter.Seq2[relayer.Change, error]) {
		wantItems(t, changes, "updated a 1", "updated a 2")
	}, func(c *connection) {
		c.change(1)
		c.change(2)
	})
}

func TestWatch_Resumes(t *testing.T) {
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		wantEnd(t, changes, "updated a 1", "updated a 2", "updated a 3", "gap")
		var sent []string
		for _, header := range f.opened {
			sent = append(sent, header.Get("Last-Event-Id"))
		}
		if got := strings.Join(sent, " "); got != " p2" {
			t.Errorf("resumed at %q", got)
		}
	}, func(c *connection) {
		c.send(resync)
		c.change(1)
		c.change(2)
		c.send("id: p9\nevent: updated\ndata: an event that is not comp")
		end(c)
	}, func(c *connection) {
		c.send(heartbeat)
		c.change(3)
		c.send(resync)
		c.change(4)
	})
}

// A program that starts again resumes at the position of its last change. A resync is
// then a gap.
func TestWatch_After(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{scripts: []func(*connection){
			func(c *connection) { c.send(heartbeat); c.change(8) },
			func(c *connection) { c.send(resync); c.change(9) },
			func(c *connection) { c.send(resync); c.change(10) },
		}}
		ctx := t.Context() // its end must end all goroutines
		c := newClient(t, "https://relayers.example", client.WithHTTPClient(&http.Client{Transport: f}))
		for change, err := range c.Watch(ctx, relayer.WatchQuery{After: "p7"}) {
			if err != nil || change.Position != "p8" {
				t.Errorf("position %s, error %v", change.Position, err)
			}
			break
		}
		wantEnd(t, c.Watch(ctx, relayer.WatchQuery{After: "p1"}), "gap")
		wantEnd(t, c.Watch(ctx, relayer.WatchQuery{After: "no\nposition"}), "gap")
		for i, want := range []string{"p7", "p1", ""} {
			if got := f.opened[i].Get("Last-Event-Id"); got != want {
				t.Errorf("resumed at %q, want %q", got, want)
			}
		}
	})
}

// The heartbeats of the server are passed on if they are wanted, with their position.
// Comments are not, whatever they contain.
func TestWatch_Heartbeats(t *testing.T) {
	script := func(c *connection) {
		c.send(": keep-alive\n\n" + resync + heartbeat)
		c.change(1)
		c.send(": keep-alive\n\n: 8\n\n" + beat(8, "p7") + heartbeat)
		c.change(2)
	}
	for wanted, want := range map[bool]string{false: "updated p1 updated p2", true: "heartbeat  updated p1 heartbeat p7 heartbeat p7 updated p2"} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context() // its end must end all goroutines
			c := newClient(t, "https://relayers.example", client.WithHTTPClient(&http.Client{Transport: &feed{scripts: []func(*connection){script}}}))
			var got []string
			for change, err := range c.Watch(ctx, relayer.WatchQuery{Heartbeats: wanted}) {
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

// An idle stream resumes at the position of its last heartbeat.
func TestWatch_ResumesAfterHeartbeat(t *testing.T) {
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		wantItems(t, changes, "updated a 1")
		if got := f.opened[1].Get("Last-Event-Id"); got != "p9" {
			t.Errorf("resumed at %q", got)
		}
	}, func(c *connection) {
		c.send(resync + beat(5000, "p9"))
		end(c)
	}, func(c *connection) { c.change(1) })
}

// The time of a change is when the request was sent plus what the server reports, however
// late the change arrives. An event without a time keeps the one before, also on another
// connection.
func TestWatch_Time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context() // its end must end all goroutines
		start := time.Now()
		f := &feed{scripts: []func(*connection){func(c *connection) {
			c.send(resync)
			c.change(1)
			time.Sleep(10 * time.Second)
			c.send(timedEvent(1500, 2))
			time.Sleep(10 * time.Second)
			c.send(beat(7000, "p2"))
			end(c)
		}, func(c *connection) {
			c.change(3)
			c.send(timedEvent(10, 4))
		}}}
		c := newClient(t, "https://relayers.example", client.WithHTTPClient(&http.Client{Transport: slow{f}}))
		var got []time.Duration
		var kinds []relayer.ChangeKind
		for change, err := range c.Watch(ctx, relayer.WatchQuery{Heartbeats: true}) {
			if err != nil {
				t.Fatal(err)
			}
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
// seconds, with and without a position at the start.
func TestWatch_AgeAfterStall(t *testing.T) {
	for _, stall := range []time.Duration{time.Second / 2, 2 * time.Second, 12 * time.Second, 45 * time.Second} {
		for _, after := range []string{"", "p0"} {
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
				ctx := t.Context() // its end must end all goroutines
				end := time.Now().Add(stall)
				transport := stalled{f, func() time.Time { return end }}
				c := newClient(t, "https://relayers.example", client.WithHTTPClient(&http.Client{Transport: transport}))
				caughtUp := time.Now()
				for change, err := range c.Watch(ctx, relayer.WatchQuery{After: after, Heartbeats: true}) {
					if err != nil {
						t.Fatal(err)
					}
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
}

// A connection whose response was late is used until another one is fast. No change is lost or
// repeated.
func TestWatch_LateResponseIsUsed(t *testing.T) {
	var delays []time.Duration
	follow := func(r http.RoundTripper) roundTripper {
		return func(sent *http.Request) (*http.Response, error) {
			delay := delays[0]
			delays = delays[1:]
			return stalled{r, func() time.Time { return time.Now().Add(delay) }}.RoundTrip(sent)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		delays = []time.Duration{3 * time.Second, 2 * time.Second, 1500 * time.Millisecond, 0}
		f := &feed{scripts: []func(*connection){func(c *connection) {
			c.send(resync)
			for i := range 10 {
				c.change(i)
				select {
				case <-time.After(4 * time.Second):
				case <-c.ctx.Done():
				}
			}
		}, func(c *connection) {
			c.change(100)
			c.change(101)
		}}}
		ctx := t.Context() // its end must end all goroutines
		c := newClient(t, "https://relayers.example", client.WithHTTPClient(&http.Client{Transport: follow(f)}))
		wantItems(t, c.Watch(ctx, relayer.WatchQuery{}),
			"updated a 0", "updated a 1", "updated a 2", "updated a 3", "updated a 4", "updated a 5", "updated a 6", "updated a 100", "updated a 101")
		if len(f.opened) != 2 || f.opened[1].Get("Last-Event-Id") != "p6" || len(delays) > 0 {
			t.Errorf("the connections are %v, and %d were not made", f.opened, len(delays))
		}
	})
}

// A token that takes long neither makes a connection late nor delays the changes of a late one.
func TestWatch_SlowToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{scripts: []func(*connection){func(c *connection) { c.send(resync + changeEvent(1) + changeEvent(2)) }, end}}
		ctx := t.Context() // its end must end all goroutines
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
		c := newClient(t, "https://relayers.example", client.WithTokenFunc(wait), client.WithHTTPClient(&http.Client{Transport: transport}))
		start := time.Now()
		wantItems(t, c.Watch(ctx, relayer.WatchQuery{}), "updated a 1", "updated a 2")
		if took := time.Since(start); took != 6*time.Second || tokens != 2 {
			t.Errorf("two changes took %v and %d tokens", took, tokens)
		}
		tokens, response, f.scripts = 2, 0, []func(*connection){func(c *connection) { c.send(resync + changeEvent(1) + changeEvent(2)) }}
		wantItems(t, c.Watch(ctx, relayer.WatchQuery{}), "updated a 1", "updated a 2")
		if tokens != 3 {
			t.Errorf("a fast response was replaced: %d tokens", tokens-2)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A connection whose times may no longer be right is replaced.
func TestWatch_OldConnection(t *testing.T) {
	beat := func(c *connection) {
		c.send(resync)
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
		if passed := time.Since(start); passed < time.Hour || passed > time.Hour+time.Minute || f.opened[1].Get("Last-Event-Id") != "p720" {
			t.Errorf("replaced after %v, at %q", passed, f.opened[1].Get("Last-Event-Id"))
		}
	}, beat, func(c *connection) { c.change(1) })
}

// If the first connection fails, the changes made until the next one are unknown.
func TestWatch_FirstConnectionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		ctx := t.Context() // its end must end all goroutines
		c := newClient(t, "https://relayers.example", client.WithHTTPClient(&http.Client{Transport: f}))
		changes := c.Watch(ctx, relayer.WatchQuery{})
		time.AfterFunc(time.Minute, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.scripts = append(f.scripts, func(c *connection) {
				c.send(resync)
				c.change(1)
			})
		})
		wantEnd(t, changes, "gap")
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
		progress[i] = func(c *connection) { c.change(i); end(c) }
		silent[i] = func(c *connection) { c.send(heartbeat); end(c) }
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
			take(1, c.Watch(t.Context(), relayer.WatchQuery{}))
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
	scripts := make([]func(*connection), 12)
	for i := range scripts {
		scripts[i] = func(c *connection) {
			time.Sleep(5 * time.Second)
			c.send(heartbeat)
			time.Sleep(7 * time.Second)
			ended = time.Now()
			end(c)
		}
	}
	scripts = append(scripts, func(c *connection) {
		opened = time.Now()
		c.change(1)
	})
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		take(1, changes)
		if waited := opened.Sub(ended); opened.IsZero() || waited > 100*time.Millisecond {
			t.Errorf("the next connection was opened after %s", waited)
		}
	}, scripts...)
}

func TestWatch_SilentConnection(t *testing.T) {
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		time.Sleep(50 * time.Minute) // the time before the range is no silence
		start := time.Now()
		wantItems(t, changes, "updated a 1", "updated a 2", "updated a 3")
		if waited := time.Since(start); waited < 5*time.Minute+30*time.Second || waited > 6*time.Minute {
			t.Errorf("the next connections were opened after %s", waited)
		}
		if len(f.opened) != 3 {
			t.Errorf("%d connections", len(f.opened))
		}
	}, func(c *connection) {
		c.send(resync)
		c.change(1)
		for range 60 { // the heartbeats of 5 minutes
			time.Sleep(5 * time.Second)
			c.send(heartbeat)
		}
	}, func(c *connection) {
		c.change(2)
	}, func(c *connection) {
		c.change(3)
	})
}

func TestWatch_EventFormat(t *testing.T) {
	follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
		wantItems(t, changes, "created b 5", "deleted b 5", "deleted c 7", "updated a 6")
	}, func(c *connection) {
		c.send("\n\nretry: 5\n" + resync + ":comment\nevent: renamed\ndata: {}\n\nevent: updated\n\n")
		c.send("id:1\r\nevent:created\r\ndata:{\"change\":{\"revision\":5},\r\ndata: \"relayer\":{\"id\":\"b\",\"network_type\":\"evm\",\"new\":1}}\r\n\r\n")
		c.send("event: deleted\ndata: {\"change\":{\"revision\":5},\"relayer\":{\"id\":\"b\",\"network_type\":\"evm\"}}\n\n")
		c.send("event: deleted\ndata: {\"change\":{\"revision\":7},\"relayer\":{\"id\":\"c\"}}\n\n") // no longer selected
		// Neither the type nor the size of an event without data counts for the next one.
		c.send("event: deleted\n\ndata: {\"relayer\":{\"id\":\"b\",\"network_type\":\"evm\"}}\n\n")
		c.send(strings.Repeat("event: "+strings.Repeat("x", 1<<10)+"\n\n", 100))
		c.change(6)
	})
}

// A change that cannot be decoded ends the sequence.
func TestWatch_InvalidEvent(t *testing.T) {
	for _, event := range []string{
		"event: updated\ndata: {\"relayer\":{\"id\":\"c\",\"network_type\":5}}\n\n",
		"event: updated\ndata: {\"relayer\":{\"id\":\"c\"}}\n\n",
		"event: deleted\ndata: {\"relayer\":{}}\n\n",
		"event: updated\ndata: no JSON\n\n",
		"event: updated\ndata: {\"relayer\":{\"id\":\"b\",\"network_type\":\"evm\",\"new\":1\ndata: 2}}\n\n", // 1, a line break and 2
	} {
		follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
			wantEnd(t, changes, "client: watch: GET /api/v1/relayers:watch: the response has no usable data")
		}, func(c *connection) {
			c.send(resync + event)
			c.change(6)
		})
	}
}

func TestWatch_LargeEvent(t *testing.T) {
	for what, text := range map[string]string{
		"a line":   "data: " + strings.Repeat("x", 100<<10),
		"an event": strings.Repeat("data: "+strings.Repeat("x", 1<<10)+"\n", 100),
	} {
		follow(t, func(t *testing.T, f *feed, changes iter.Seq2[relayer.Change, error]) {
			items := take(2, changes)
			if len(items) != 1 || !strings.Contains(items[0], "larger than the limit") {
				t.Errorf("%s: the changes are %.300q", what, items)
			}
		}, func(c *connection) {
			c.send(resync + text)
		})
	}
}

func TestWatch_ContextDone(t *testing.T) {
	for name, script := range map[string]func(*connection){
		"connected": func(c *connection) { c.send(resync) },
		"lost":      func(c *connection) { c.send(resync); end(c) },
		"blocked":   func(*connection) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{scripts: []func(*connection){script}}
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

// An envelope of the server ends Watch at once, also after temporary failures.
func TestWatch_Rejected(t *testing.T) {
	tests := map[string]struct {
		step step
		is   error
		text string
	}{
		"unauthorized": {fail(401, "Unauthorized"), client.ErrUnauthorized, "401"},
		"forbidden":    {fail(403, "Forbidden"), client.ErrForbidden, "403"},
		"no feed":      {fail(404, "Not Found"), errors.ErrUnsupported, "does not offer"},
		"another API":  {respondJSON(200, `{"success":true,"data":[]}`), nil, "application/json"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, steps := range [][]step{{test.step}, {busy, fail(429, ""), html(408), html(502), fail(500, ""), reset, truncated(503), blocked, test.step}} {
				synctest.Test(t, func(t *testing.T) {
					c, s := scripted(t, nil, steps...)
					start := time.Now()
					wantFailure(t, c.Watch(t.Context(), relayer.WatchQuery{}), test.is, test.text)
					if len(s.seen) != len(steps) || time.Since(start) > 2*time.Minute {
						t.Errorf("%d requests in %s", len(s.seen), time.Since(start))
					}
				})
			}
		})
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

// Responses of a load balancer while the server restarts do not end a feed that has
// worked. Before that, they end it at once.
func TestWatch_LoadBalancer(t *testing.T) {
	untrusted := func(*http.Request) (*http.Response, error) {
		return nil, &tls.CertificateVerificationError{Err: errors.New("a default certificate")}
	}
	tests := map[string]struct {
		step step
		is   error
		text string
	}{
		"302":           {respond(302, "", "", "Location", "https://elsewhere.example/login"), nil, "302"},
		"401":           {html(401), client.ErrUnauthorized, "401"},
		"403":           {html(403), client.ErrForbidden, "403"},
		"404":           {html(404), errors.ErrUnsupported, "does not offer"},
		"404, no body":  {respond(404, "", ""), errors.ErrUnsupported, "does not offer"},
		"405":           {html(405), errors.ErrUnsupported, "does not offer"},
		"404 in JSON":   {respondJSON(404, `{"message":"no Route matched with those values"}`), errors.ErrUnsupported, "does not offer"},
		"421":           {html(421), nil, "421"},
		"425":           {html(425), nil, "425"},
		"a web page":    {html(200), nil, "text/html"},
		"a certificate": {untrusted, nil, "certificate"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
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
				wantItems(t, c.Watch(ctx, relayer.WatchQuery{}), "updated a 1", "updated a 2")
			})
			synctest.Test(t, func(t *testing.T) { // there is no server
				c, s := scripted(t, nil, test.step)
				wantFailure(t, c.Watch(t.Context(), relayer.WatchQuery{After: "p1"}), test.is, test.text)
				if len(s.seen) != 1 {
					t.Errorf("ended after %d requests", len(s.seen))
				}
			})
		})
	}
}

// The body of a failure that never ends does not block Watch.
func TestWatch_EndlessFailure(t *testing.T) {
	for _, status := range []int{401, 503} {
		synctest.Test(t, func(t *testing.T) {
			drip := func(r *http.Request) (*http.Response, error) {
				resp, err := respondJSON(status, "")(r)
				resp.Body = io.NopCloser(&drippingReader{ctx: r.Context()})
				return resp, err
			}
			c, s := scripted(t, []client.Option{client.WithTimeout(10 * time.Second)}, drip, drip, fail(403, "Forbidden"))
			start := time.Now()
			for _, err := range c.Watch(t.Context(), relayer.WatchQuery{}) {
				if !errors.Is(err, client.ErrForbidden) {
					t.Errorf("status %d: error %v", status, err)
				}
			}
			if waited := time.Since(start); len(s.seen) != 3 || waited > 25*time.Second {
				t.Errorf("status %d: %d requests in %s", status, len(s.seen), waited)
			}
		})
	}
}

// A page in place of a stream is not read: it may have no end.
func TestWatch_EndlessPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, s := scripted(t, nil, func(r *http.Request) (*http.Response, error) {
			resp, err := html(200)(r)
			resp.Body = io.NopCloser(&drippingReader{ctx: r.Context()})
			return resp, err
		})
		wantFailure(t, c.Watch(ctx, relayer.WatchQuery{}), nil, "text/html")
		if len(s.seen) != 1 {
			t.Errorf("%d requests", len(s.seen))
		}
	})
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
		for _, err := range c.Watch(t.Context(), relayer.WatchQuery{}) {
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
