//go:build unix

package mirror

import (
	"context"
	"flag"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/mirror"
	"github.com/go-relayer/relayer/tests/internal/child"
)

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
