package generated

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

// TestEventSource follows a registry with an ordinary library for server-sent events. Its view
// has every change that was acknowledged before the time up to which it says to be complete,
// and remains young, also after its connection was cut.
func TestEventSource(t *testing.T) {
	if !*clients {
		t.Skip("needs -clients")
	}
	server, manager := serve(t)
	p := newProject(t, "testdata/eventsource", "SERVER="+server.URL, "TOKEN="+token)
	p.run(t, "npm", "install", "--no-audit", "--no-fund")
	for i := range 5 {
		_, err := manager.Create(t.Context(), relayer.CreateRequest{ID: fmt.Sprint("r-", i), Name: "0", Network: "n", NetworkType: relayer.EVM, SignerID: "s"})
		must(t, err)
	}
	program := exec.CommandContext(t.Context(), "node", "follow.js")
	program.Dir, program.Env, program.Stderr = p.directory, p.env, os.Stderr
	output, err := program.StdoutPipe()
	must(t, err)
	must(t, program.Start())
	t.Cleanup(func() { _ = program.Process.Kill(); _ = program.Wait() })

	var acknowledged []time.Time // when each name was, by the clock of the machine
	update := func() {
		name := fmt.Sprint(len(acknowledged) + 1)
		rename := func(r *relayer.Relayer) error { r.Name = name; return nil }
		if _, err := manager.Update(t.Context(), "r-0", rename); err != nil {
			t.Fatal(err)
		}
		acknowledged = append(acknowledged, time.Now())
	}
	defer time.AfterFunc(time.Minute, func() { _ = program.Process.Kill() }).Stop()
	lines := bufio.NewScanner(output)
	var complete time.Time // zero before the first time
	heartbeats := 0
	for heartbeats < 3 && lines.Scan() {
		if age := time.Since(complete); !complete.IsZero() && age > 10*time.Second { // the library reconnects after 3
			t.Errorf("the view became %v old", age)
		}
		var got struct {
			Kind     string
			Complete float64 // milliseconds since 1970
			View     map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		complete = time.UnixMicro(int64(got.Complete * 1000))
		seen, err := strconv.Atoi(got.View["r-0"])
		if err != nil || len(got.View) != 5 {
			t.Fatalf("the view is %v, error %v", got.View, err)
		}
		if seen < len(acknowledged) && acknowledged[seen].Before(complete) {
			t.Errorf("complete up to %v, name %d was acknowledged at %v, and the view has %d", complete, seen+1, acknowledged[seen], seen)
		}
		if got.Kind != "heartbeat" && len(acknowledged) < 50*heartbeats {
			update()
			continue
		}
		heartbeats++
		update()
		if heartbeats == 2 {
			server.CloseClientConnections()
			update()
		}
	}
	if heartbeats < 3 || len(acknowledged) < 100 {
		t.Errorf("%d heartbeats, %d changes: %v", heartbeats, len(acknowledged), lines.Err())
	}
}
