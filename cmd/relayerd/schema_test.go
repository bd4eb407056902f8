package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const schemaText = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"properties": {
		"max_in_flight": {"type": "integer", "minimum": 1},
		"mode": {"enum": ["fast", "safe"]},
		"contracts": {"type": "array", "items": {"$ref": "#/$defs/contract"}}
	},
	"additionalProperties": false,
	"$defs": {"contract": {"type": "object", "required": ["address"], "properties": {"address": {"type": "string", "pattern": "^0x"}}}}
}`

func schemaFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSettingsSchema(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory", "--settings-schema", schemaFile(t, schemaText))
	defer server.stop()
	const create = `{"id":"r","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"`
	if status, body := server.do("POST", collection, create+`,"settings":{"max_in_flight":5,"mode":"safe","contracts":[{"address":"0x1"}]}}`); status != http.StatusCreated {
		t.Fatalf("returned %d %s", status, body)
	}
	for settings, fields := range map[string][]string{
		`{"max_in_flight":0,"mode":"slow","unknown":1}`:                     {"settings.max_in_flight", "settings.mode", "settings.unknown"},
		`{"contracts":[{"address":"0x"},{},{"address":"x"},{"address":1}]}`: {"settings.contracts[1].address", "settings.contracts[2].address", "settings.contracts[3].address"},
		`{"contracts":{},"max_in_flight":1.5}`:                              {"settings.contracts", "settings.max_in_flight"},
	} {
		for _, request := range [][3]string{
			{"POST", collection, strings.Replace(create, `"id":"r",`, "", 1) + `,"settings":` + settings + `}`},
			{"PATCH", collection + "/r", `{"settings":` + settings + `}`},
			{"PATCH", collection + "/r?dry_run=true", `{"settings":` + settings + `}`},
		} {
			status, body := server.do(request[0], request[1], request[2])
			if status != http.StatusBadRequest || strings.Count(body, `"field"`) != len(fields) {
				t.Errorf("%v: returned %d %s, want problems of %v", request, status, body, fields)
			}
			for _, field := range fields {
				if !strings.Contains(body, `{"field":"`+field+`","message":"`) {
					t.Errorf("%v: %s has no problem of %s", request, body, field)
				}
			}
		}
	}
	// A patch is checked with what it is merged into, and other changes are not.
	for _, patch := range []string{`{"settings":{"mode":null,"max_in_flight":7}}`, `{"paused":true}`, `{"paused":false,"name":"x"}`, `{"settings":null}`} {
		if status, body := server.do("PATCH", collection+"/r", patch); status != http.StatusOK {
			t.Errorf("%s: returned %d %s", patch, status, body)
		}
	}
}

func TestSettingsSchema_InvalidFile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not JSON":           `{"type":`,
		"byte order mark":    "\ufeff{}",
		"not a schema":       `{"type":"strange"}`,
		"another file":       `{"$ref":"file:///etc/hostname"}`,
		"a file of the same": `{"$ref":"other.json"}`,
		"the network":        `{"$ref":"http://127.0.0.1:1/schema.json"}`,
	} {
		_, err := rules{settingsSchema: schemaFile(t, text)}.managerOptions()
		if err == nil || !strings.Contains(err.Error(), "--settings-schema: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := (rules{settingsSchema: filepath.Join(t.TempDir(), "none.json")}).managerOptions(); err == nil || !strings.Contains(err.Error(), "--settings-schema") {
		t.Errorf("no file: error %v", err)
	}
}
