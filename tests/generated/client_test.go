// Package generated generates clients from the OpenAPI document that a server serves,
// compiles them, and runs them against that server.
package generated

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const (
	token = "a-token-0123456789"

	generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
	library   = "github.com/go-relayer/relayer"
)

// serve starts a server and returns it with its registry.
func serve(t *testing.T) (server *httptest.Server, manager *relayer.Manager) {
	t.Helper()
	manager, err := relayer.New(memory.New())
	must(t, err)
	auth, err := httpapi.Tokens(map[string][]string{"alice": {token}})
	must(t, err)
	handler, err := httpapi.New(manager, auth)
	must(t, err)
	server = httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server, manager
}

// project is a directory in which a program of a user is built.
type project struct {
	directory string
	env       []string
}

func newProject(t *testing.T, files string, env ...string) project {
	t.Helper()
	p := project{t.TempDir(), append(os.Environ(), env...)}
	must(t, os.CopyFS(p.directory, os.DirFS(files)))
	return p
}

func (p project) run(t *testing.T, name string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir, command.Env = p.directory, p.env
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command.Args, err, output)
	}
}

// TestGoClient builds a client with oapi-codegen in a separate module, as a user does.
func TestGoClient(t *testing.T) {
	if !*clients {
		t.Skip("needs -clients")
	}
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	server, manager := serve(t)
	url := server.URL
	p := newProject(t, "testdata/client", "GOWORK=off", "GOFLAGS=-mod=mod", "SERVER="+url, "TOKEN="+token)
	p.run(t, "go", "mod", "init", "example.com/client")
	p.run(t, "go", "mod", "edit", "-require="+library+"@v0.0.0", "-replace="+library+"="+repository,
		"-require=github.com/oapi-codegen/runtime@v1.8.0", "-require=github.com/oapi-codegen/nullable@v1.1.0")
	p.run(t, "go", "run", generator, "-config", "oapi-codegen.yaml", url+"/api/v1/openapi.json")
	p.run(t, "go", "build", "-o", "client", ".")

	p.run(t, filepath.Join(p.directory, "client"))
	for _, id := range []string{"evm", "solana", "stellar"} {
		r, err := manager.Get(t.Context(), id)
		must(t, err)
		for _, path := range unset("policies", reflect.ValueOf(r.Policy)) {
			t.Errorf("the client does not set %s of %s", path, id)
		}
	}
}

// unset returns the paths of the policy fields that are not set.
func unset(path string, value reflect.Value) []string {
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			return []string{path}
		}
		return unset(path, value.Elem())
	case reflect.Slice:
		if value.IsNil() {
			return []string{path}
		}
		var missing []string
		for i := range value.Len() {
			missing = append(missing, unset(fmt.Sprintf("%s[%d]", path, i), value.Index(i))...)
		}
		return missing
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[relayer.StellarTokenKind]() || value.Type() == reflect.TypeFor[relayer.Amount]() {
			return nil
		}
		var missing []string
		for field, below := range value.Fields() {
			missing = append(missing, unset(path+"."+field.Name, below)...)
		}
		return missing
	default:
		return nil
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

var clients = flag.Bool("clients", false, "generate clients and build them; installs generators, and needs Node 20.19 or later")

// TestNPM runs the linters and the generators of TypeScript clients. It is not part of the
// full run, because npm installs hundreds of packages.
func TestNPM(t *testing.T) {
	if !*clients {
		t.Skip("needs -clients")
	}
	server, _ := serve(t)
	url := server.URL
	p := newProject(t, "testdata/npm", "SERVER="+url, "TOKEN="+token)
	p.run(t, "npm", "install", "--no-audit", "--no-fund")
	document := filepath.Join(p.directory, "openapi.json")
	download(t, url+"/api/v1/openapi.json", document)

	t.Run("Spectral", func(t *testing.T) {
		p.run(t, "npx", "spectral", "lint", "--fail-severity", "hint", "--ruleset", "spectral.yaml", document)
	})
	t.Run("Redocly", func(t *testing.T) {
		p.run(t, "npx", "redocly", "lint", "--config", "lint.yaml", document)
	})
	t.Run("TypeScript", func(t *testing.T) {
		p.run(t, "npx", "openapi-typescript", document, "--output", "src/openapi.d.ts")
		p.run(t, "npx", "openapi-ts", "--input", document, "--output", "src/hey", "--client", "@hey-api/client-fetch")
		p.run(t, "npx", "tsc")
		p.run(t, "node", "out/fetch.js")
		p.run(t, "node", "out/hey.js")
	})
}

func download(t *testing.T, url, file string) {
	t.Helper()
	response, err := http.Get(url)
	must(t, err)
	defer response.Body.Close()
	out, err := os.Create(file)
	must(t, err)
	if _, err := out.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	must(t, out.Close())
}
