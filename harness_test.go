package relayer_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// newManager returns a Manager on an empty store.
func newManager(t testing.TB, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	m, err := relayer.New(memory.New(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// minimal is the least that a create request can say.
func minimal(id string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
}

func mustCreate(t testing.TB, m *relayer.Manager, req relayer.CreateRequest) *relayer.Relayer {
	t.Helper()
	r, err := m.Create(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustCreateDocument(t testing.TB, m *relayer.Manager, body string) relayer.Document {
	t.Helper()
	document, err := m.CreateDocument(context.Background(), []byte(body))
	if err != nil {
		t.Fatalf("%v\nof %s", err, body)
	}
	return document
}

// problemsOf returns the problems of a refused create, having made sure of what
// holds for every refusal: the error is of the right kind, nothing is stored,
// and the messages are words for a client.
func problemsOf(t testing.TB, body string, options ...relayer.Option) []relayer.FieldError {
	t.Helper()
	m := newManager(t, options...)
	document, err := m.CreateDocument(context.Background(), []byte(body))
	if err == nil {
		t.Fatalf("accepted as %s\nbody %s", document.JSON, body)
	}
	if document.ID != "" || document.JSON != nil || document.Revision != 0 {
		t.Errorf("a refused create returned %+v", document)
	}
	if page, err := m.List(context.Background(), 1, 10); err != nil || page.Pagination.TotalItems != 0 {
		t.Errorf("after a refused create: %d stored, error %v", page.Pagination.TotalItems, err)
	}
	return fieldErrors(t, err)
}

// goWords are what a message would contain that was made from a Go error, a
// type or a struct, instead of being written for whoever sent the request.
var goWords = regexp.MustCompile(`(?i)\b(u?int(8|16|32|64)?|float(32|64)|bool|nil|struct|slice|map|interface|pointer|reflect|unmarshal|json:|validator|namespace|key: |tag|rpc_url|omitnil|finite64|relayer_id|gte|lte|oneof|big\.int)\b|%!|\*|\b(EVM|Solana|Stellar|Jupiter|RPC|Create|Token|Field|Network|Fee)[A-Z][A-Za-z]+|[A-Za-z]+\.[A-Z][A-Za-z]+`)

func fieldErrors(t testing.TB, err error) []relayer.FieldError {
	t.Helper()
	var invalid *relayer.ValidationError
	if !errors.As(err, &invalid) || !errors.Is(err, relayer.ErrInvalid) {
		t.Fatalf("error %v (%T) is not a ValidationError that matches ErrInvalid", err, err)
	}
	if len(invalid.Fields) == 0 {
		t.Fatal("a ValidationError without problems")
	}
	for _, problem := range invalid.Fields {
		if problem.Message == "" || goWords.MatchString(problem.Message) {
			t.Errorf("field %s: message %q is not for a client", problem.Field, problem.Message)
		}
	}
	return invalid.Fields
}

// fieldsOf returns the fields to blame, sorted.
func fieldsOf(problems []relayer.FieldError) []string {
	fields := make([]string, len(problems))
	for i, problem := range problems {
		fields[i] = problem.Field
	}
	slices.Sort(fields)
	return fields
}

// wantFields fails unless exactly these fields are to blame.
func wantFields(t testing.TB, problems []relayer.FieldError, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := fieldsOf(problems); !slices.Equal(got, want) {
		t.Errorf("blamed %q, want %q\nof %+v", got, want, problems)
	}
}

// evmBody is a minimal request with more members in it.
func evmBody(members ...string) string { return body("evm", members...) }

func body(networkType string, members ...string) string {
	all := append([]string{
		`"name":"n"`, `"network":"w"`, `"network_type":"` + networkType + `"`, `"paused":false`, `"signer_id":"s"`,
	}, members...)
	return "{" + strings.Join(all, ",") + "}"
}

// member returns the JSON of one top-level member of a document, or "".
func member(t testing.TB, document []byte, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil {
		t.Fatal(err)
	}
	return string(members[name])
}

// contains tells whether a field or a message has part in it.
func contains(problems []relayer.FieldError, part string) bool {
	return slices.ContainsFunc(problems, func(problem relayer.FieldError) bool {
		return strings.Contains(problem.Field, part) || strings.Contains(problem.Message, part)
	})
}

// storedDocument returns the text of the document that is stored under id.
func storedDocument(t testing.TB, m *relayer.Manager, id string) string {
	t.Helper()
	document, _, err := m.AppendDocument(context.Background(), nil, id)
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}
