package generated

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

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
