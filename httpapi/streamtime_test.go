package httpapi_test

import (
	"context"
	"iter"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/storeutil"
)

// TestWatch_Time: each change and each heartbeat has the milliseconds from the arrival of the
// request to the moment up to which the stream is complete. An idle stream stays open past the time
// limits of the server, with a heartbeat at least every 5 seconds.
func TestWatch_Time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		manager, _, w := watchInBubble(t, slowTokens(1500*time.Millisecond))
		if e := must(w.read())(t); e.name != "resync" || e.milliseconds != "" {
			t.Fatalf("got %+v", e)
		}
		time.AfterFunc(10*time.Minute+345678*time.Microsecond-time.Since(begun), func() { createIn(t, manager, "r-1", "n") })
		last, heartbeats := time.Since(begun), 0
		for {
			e := must(w.read())(t)
			now := time.Since(begun)
			milliseconds, err := strconv.ParseInt(e.milliseconds, 10, 64)
			if err != nil || milliseconds != now.Milliseconds() {
				t.Errorf("after %v: %+v, error %v", now, e, err)
			}
			if now-last > 5*time.Second {
				t.Errorf("%v passed without an event", now-last)
			}
			if last = now; e.name == "heartbeat" {
				heartbeats++
				continue
			}
			if e.name != "created" || e.milliseconds != "600345" || heartbeats < 119 {
				t.Errorf("after %d heartbeats: %+v", heartbeats, e)
			}
			break
		}
		w.cancel()
	})
}

// slowTokens accepts validToken, the first time after a delay.
func slowTokens(delay time.Duration) httpapi.Authenticator {
	return func(r *http.Request) (relayer.Actor, error) {
		time.Sleep(delay)
		delay = 0
		return validTokens(r)
	}
}

// TestWatch_TimeBeforeArrival: a change that the stream got up to a moment before the arrival
// of the request has no time, which would claim a later moment. A heartbeat of then is not sent.
func TestWatch_TimeBeforeArrival(t *testing.T) {
	old := time.Now()
	change := func(at time.Time) func() (relayer.RecordChange, error) {
		return func() (relayer.RecordChange, error) {
			c, err := changeOf("r-1", "p", validDocument("r-1"))()
			c.Time = at
			return c, err
		}
	}
	heartbeat := func() (relayer.RecordChange, error) {
		return relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: "q", Time: old}, nil
	}
	w := serveFeed(t, change(old), heartbeat, change(time.Now().Add(time.Hour))).watch(with("Last-Event-ID", "o"))
	if e, err := w.read(); err != nil || e.name != "created" || e.milliseconds != "" || e.id != "p" {
		t.Errorf("got %+v, error %v", e, err)
	}
	e, err := w.read()
	if milliseconds, parseErr := strconv.Atoi(e.milliseconds); err != nil || parseErr != nil || e.name != "created" || milliseconds < 3_500_000 || milliseconds > 3_600_000 {
		t.Errorf("got %+v, errors %v, %v", e, err, parseErr)
	}
}

// TestWatch_HeartbeatPosition: a heartbeat has the position if it has advanced over changes
// that are not selected, so that the stream resumes behind them.
func TestWatch_HeartbeatPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager := managerOn(t, nil)
		page := must(manager.List(t.Context(), relayer.ListQuery{Selector: relayer.Selector{}.Where("network", "other")}))(t)
		api := apiOn(t, manager, validTokens)
		listener := serveInBubble(t, api)
		open := func(id string) *stream { return listener.watch(t, "?network=other", with("Last-Event-ID", id)) }
		w := open(page.Position)
		if e := must(w.read())(t); e.name != "heartbeat" || e.milliseconds == "" || e.id != "" {
			t.Errorf("without a change the heartbeat is %+v", e)
		}
		createIn(t, manager, "r-1", "n")
		advanced := must(w.read())(t)
		if advanced.name != "heartbeat" || advanced.milliseconds == "" || advanced.id == "" || advanced.id == page.Position {
			t.Errorf("after a change the heartbeat is %+v", advanced)
		}
		if e := must(w.read())(t); e.name != "heartbeat" || e.id != "" {
			t.Errorf("the next heartbeat is %+v", e)
		}
		w.cancel()
		for i := range 1024 { // the first change is no longer retained
			createIn(t, manager, "n-"+strconv.Itoa(i), "n")
		}
		w = open(page.Position)
		if e := must(w.read())(t); e.name != "resync" {
			t.Errorf("from the position of the list: %+v", e)
		}
		w.cancel()
		w = open(advanced.id)
		if e := must(w.read())(t); e.name != "heartbeat" || e.id == "" {
			t.Errorf("from the position of the heartbeat: %+v", e)
		}
		w.cancel()
	})
}

// brokenWriter is a ResponseWriter whose writes fail, but not its flushes.
type brokenWriter struct {
	blockedWriter
	isBroken *atomic.Bool
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.isBroken.Load() {
		return 0, net.ErrClosed
	}
	return len(p), nil
}

// TestWatch_Released: when the handler of a stream returns, its watch of the store has ended,
// and the stream uses nothing of a limit.
func TestWatch_Released(t *testing.T) {
	for _, name := range []string{"drain", "client is gone", "revoked", "write fails"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watching := 0
				feed := new(storeutil.Feed)
				store := scriptedFeed{memory.New(), func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
					watching++
					return func(yield func(relayer.RecordChange, error) bool) {
						defer func() { watching-- }()
						feed.Watch(ctx, after)(yield)
						time.Sleep(time.Second) // such as the release of a connection
					}
				}}
				var isRevoked, isBroken atomic.Bool
				authenticate := func(r *http.Request) (relayer.Actor, error) {
					if isRevoked.Load() {
						return relayer.Actor{}, httpapi.ErrUnauthorized
					}
					return validTokens(r)
				}
				api := apiOn(t, managerOn(t, store), authenticate, httpapi.WithMaxWatchers(1), httpapi.WithMaxPendingBytes(300))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(time.Second, func() {
					change, _ := changeOf("r-1", "p", validDocument("r-1"))()
					feed.Publish(change)
				})
				time.AfterFunc(time.Minute, func() {
					switch name {
					case "drain":
						api.Drain()
					case "client is gone":
						cancel()
					case "revoked":
						isRevoked.Store(true)
					default:
						isBroken.Store(true)
					}
				})
				w := &brokenWriter{blockedWriter{statusWriter: statusWriter{header: make(http.Header)}}, &isBroken}
				api.ServeHTTP(w, newRequest(ctx, "GET", changes, ""))
				if watching != 0 {
					t.Errorf("%d watches of the store have not ended", watching)
				}
				isRevoked.Store(false)
				for range 2 { // HEAD uses nothing either
					got := serveHTTP(t.Context(), api, "HEAD", changes, "")
					if name != "drain" && (got.Code != http.StatusOK || got.Header().Get("Content-Type") != "text/event-stream") {
						t.Errorf("another stream returned %d %v", got.Code, got.Header())
					}
				}
				if got := serveHTTP(t.Context(), api, "GET", collection, ""); got.Code != http.StatusOK {
					t.Errorf("a list returned %d", got.Code)
				}
			})
		})
	}
}
