// Package generated generates clients from the OpenAPI document that a server serves,
// compiles them, and runs them against that server.
package generated

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

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
