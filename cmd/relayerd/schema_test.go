package main

import (
	"net/http"
	"strings"
	"testing"
)

const schemaText = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"properties": {
		"max_in_flight": {"type": "integer", "minimum": 1},
		"mode": {"enum": ["fast", "safe"]},
		"by_chain": {"type": "object", "additionalProperties": {"type": "integer"}},
		"contracts": {"type": "array", "items": {"$ref": "#/$defs/contract"}}
	},
	"additionalProperties": false,
	"$defs": {"contract": {"type": "object", "required": ["address"], "properties": {"address": {"type": "string", "pattern": "^0x"}}}}
}`

func TestSettingsSchema(t *testing.T) {
	t.Parallel()
	server := startMemory(t, "--settings-schema", newFile(t, schemaText))
	defer server.stop()
	with := func(settings string) string { return strings.Replace(definition, "{", `{"settings":`+settings+`,`, 1) }
	const one = collection + "/r-1"
	server.expect("POST", collection, token, with(`{"max_in_flight":5,"mode":"safe","contracts":[{"address":"0x1"}]}`), http.StatusCreated)
	for settings, problems := range map[string][]string{
		`{"max_in_flight":0,"mode":"slow","unknown":1}`:       {`"settings.max_in_flight"`, `"settings.mode"`, `"settings.unknown"`},
		`{"contracts":[{"address":"0x"},{},{"address":"x"}]}`: {`"settings.contracts[1].address"`, `"settings.contracts[2].address"`},
		`{"by_chain":{"1":"x","a~b":"x"}}`:                    {`"settings.by_chain.1"`, `"settings.by_chain.a~b"`},
		`{"contracts":{},"max_in_flight":1.5}`:                {`"settings.contracts"`, `"settings.max_in_flight"`},
	} {
		for _, request := range [][3]string{
			{"POST", collection, strings.Replace(with(settings), `"id":"r-1",`, "", 1)},
			{"PATCH", one, `{"settings":` + settings + `}`},
			{"PATCH", one + "?dry_run=true", `{"settings":` + settings + `}`},
		} {
			body := server.expect(request[0], request[1], token, request[2], http.StatusBadRequest)
			for _, problem := range problems {
				if !strings.Contains(body, problem) {
					t.Errorf("%v: %s has no problem of %s", request, body, problem)
				}
			}
		}
	}
	// A patch is checked with what it is merged into, and other changes are not.
	for _, patch := range []string{`{"settings":{"mode":null,"max_in_flight":7}}`, `{"paused":true}`, `{"settings":null}`} {
		server.expect("PATCH", one, token, patch, http.StatusOK)
	}
	for text, want := range map[string]string{
		`{"type":`:                        "must be a JSON Schema: ",
		`{"type":"strange"}`:              "relayerd: --settings-schema: ",
		`{"$ref":"file:///etc/hostname"}`: "the schema must not refer to other documents",
		`{"$ref":"http://127.0.0.1:1/a"}`: "the schema must not refer to other documents",
	} {
		t.Run(text, func(t *testing.T) {
			expectFailure(t, want, "serve", "--addr", "127.0.0.1:0", "--db", "memory", "--settings-schema", newFile(t, text))
		})
	}
}
