package relayer_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/examples/mapstore"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

// newManager returns a Manager on an empty store.
func newManager(t testing.TB, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	return managerOf(t, memory.New(), options...)
}

func managerOf(t testing.TB, store relayer.Store, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	return must(relayer.New(store, options...))(t)
}

// minimal returns a request with only the required fields.
func minimal(id string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
}

func mustCreate(t testing.TB, m *relayer.Manager, req relayer.CreateRequest) *relayer.Relayer {
	t.Helper()
	return must(m.Create(context.Background(), req))(t)
}

func mustCreateDocument(t testing.TB, m *relayer.Manager, body string) relayer.Document {
	t.Helper()
	document, err := m.Documents().Create(context.Background(), []byte(body))
	if err != nil {
		t.Fatalf("%v\nof %s", err, body)
	}
	return document
}

// problemsOf returns the problems of an invalid request. It fails unless the error is a
// ValidationError, nothing is stored, and the messages are for a client.
func problemsOf(t testing.TB, body string, options ...relayer.Option) []relayer.FieldError {
	t.Helper()
	m := newManager(t, options...)
	document, err := m.Documents().Create(context.Background(), []byte(body))
	if err == nil {
		t.Fatalf("accepted as %s\nbody %s", document.JSON, body)
	}
	if document.ID != "" || document.JSON != nil || document.Revision != 0 {
		t.Errorf("a rejected create returned %+v", document)
	}
	if page, err := m.List(context.Background(), relayer.ListQuery{Page: 1, PerPage: 10}); err != nil || page.Pagination.TotalItems != 0 {
		t.Errorf("after a rejected create: %d stored, error %v", page.Pagination.TotalItems, err)
	}
	return fieldErrors(t, err)
}

// goWords matches messages that contain a Go error, type or struct.
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

// wantRefused fails unless a create and a patch with this member have problems of exactly these
// fields. It returns the problems of the create.
func wantRefused(t testing.TB, member string, want []string, options ...relayer.Option) []relayer.FieldError {
	t.Helper()
	problems := problemsOf(t, evmBody(member), options...)
	wantFields(t, problems, want...)
	m := newManager(t, options...)
	before := mustCreateDocument(t, m, evmBody(`"id":"r"`, `"settings":{}`))
	wantFields(t, fieldErrors(t, second(m.Patch(t.Context(), "r", []byte("{"+member+"}")))), want...)
	if after := storedDocument(t, m, "r"); after != string(before.JSON) {
		t.Errorf("stored %s", after)
	}
	return problems
}

// wantFields fails unless exactly these fields have problems.
func wantFields(t testing.TB, problems []relayer.FieldError, want ...string) {
	t.Helper()
	var got []string
	for _, problem := range problems {
		got = append(got, problem.Field)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("blamed %q, want %q\nof %+v", got, want, problems)
	}
}

// evmBody returns a minimal request with additional members.
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
	mustSucceed(t, json.Unmarshal(document, &members))
	return string(members[name])
}

// patchOfURLs returns a patch with RPC URLs and headers in full.
func patchOfURLs(t testing.TB, endpoints []relayer.RPCConfig) []byte {
	t.Helper()
	request := must(relayer.CreateRequest{CustomRPCURLs: endpoints}.MarshalUnmasked())(t)
	return []byte(`{"custom_rpc_urls":` + cmp.Or(member(t, request, "custom_rpc_urls"), "null") + `}`)
}

// storedDocument returns the stored document of a relayer.
func storedDocument(t testing.TB, m *relayer.Manager, id string) string {
	t.Helper()
	return string(must(m.Documents().Get(context.Background(), id))(t).JSON)
}

// parseTree parses JSON without rounding numbers.
func parseTree(t testing.TB, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		t.Fatalf("%v\nin %s", err, text)
	}
	return tree
}

func treeText(t testing.TB, tree any) string {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	mustSucceed(t, encoder.Encode(tree))
	return strings.TrimSpace(out.String())
}

// walkTree calls visit for every member and element below tree, with its path in the
// form of problems.
func walkTree(tree any, path string, visit func(path string, value any)) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			below := strings.TrimPrefix(path+"."+name, ".")
			visit(below, value)
			walkTree(value, below, visit)
		}
	case []any:
		for i, value := range tree {
			below := fmt.Sprintf("%s[%d]", path, i)
			visit(below, value)
			walkTree(value, below, visit)
		}
	}
}

// pathsOf returns the paths of all members and elements of a document, sorted.
func pathsOf(t testing.TB, text string) []string {
	t.Helper()
	var paths []string
	walkTree(parseTree(t, text), "", func(path string, _ any) { paths = append(paths, path) })
	slices.Sort(paths)
	return paths
}

var pathStep = regexp.MustCompile(`[^.\[\]]+`)

// editTree calls edit with the object, or element with the array, that contains the
// value at path.
func editTree(t testing.TB, text, path string, edit func(object map[string]any, name string), element func(array []any, index int)) string {
	t.Helper()
	tree := parseTree(t, text)
	steps := pathStep.FindAllString(path, -1)
	at := tree
	for i, step := range steps {
		last := i == len(steps)-1
		switch container := at.(type) {
		case map[string]any:
			if last {
				edit(container, step)
			}
			at = container[step]
		case []any:
			var index int
			must(fmt.Sscan(step, &index))(t)
			if last {
				element(container, index)
			}
			at = container[index]
		default:
			t.Fatalf("no %s in %s", path, text)
		}
	}
	return treeText(t, tree)
}

// replaced returns text with the value at path replaced.
func replaced(t testing.TB, text, path, value string) string {
	t.Helper()
	return editTree(t, text, path,
		func(object map[string]any, name string) { object[name] = json.RawMessage(value) },
		func(array []any, index int) { array[index] = json.RawMessage(value) })
}

// without returns text without the member at path.
func without(t testing.TB, text, path string) string {
	t.Helper()
	return editTree(t, text, path,
		func(object map[string]any, name string) { delete(object, name) },
		func([]any, int) { t.Fatalf("%s is an element", path) })
}

// eachStore runs a test with every store that needs no server.
func eachStore(t *testing.T, run func(t *testing.T, store relayer.Store)) {
	t.Run("memory", func(t *testing.T) { run(t, memory.New()) })
	t.Run("bolt", func(t *testing.T) {
		store := must(bolt.Open(t.Context(), t.TempDir()+"/relayers.db"))(t)
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		run(t, store)
	})
	t.Run("map", func(t *testing.T) { run(t, new(mapstore.Store)) })
}

// registry returns a Manager with one relayer of each network type, with the IDs "evm",
// "solana" and "stellar".
func registry(t *testing.T, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	return registryOn(t, memory.New(), options...)
}

func registryOn(t *testing.T, store relayer.Store, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	m := managerOf(t, store, options...)
	for _, networkType := range relayer.NetworkTypes() {
		req := withURLs(string(networkType), "https://user:pw@rpc.example/v2/key")
		req.Network, req.NetworkType, req.SignerID = "testnet", networkType, "s-"+string(networkType)
		mustCreate(t, m, req)
	}
	return m
}

func mustGet(t testing.TB, m *relayer.Manager, id string) *relayer.Relayer {
	t.Helper()
	return must(m.Get(t.Context(), id))(t)
}

// allOf returns what All yields. It fails for an error.
func allOf(t testing.TB, m *relayer.Manager, s relayer.Selector) (all []*relayer.Relayer) {
	t.Helper()
	for r, err := range m.All(t.Context(), s) {
		mustSucceed(t, err)
		all = append(all, r)
	}
	return all
}

func storedRecord(t testing.TB, store relayer.Store, id string) relayer.Record {
	t.Helper()
	return must(store.Get(context.Background(), id))(t)
}

// editRecord changes a stored record without a Manager, as another program would.
func editRecord(t testing.TB, store relayer.Store, id string, edit func(rec *relayer.Record)) relayer.Record {
	t.Helper()
	rec := storedRecord(t, store, id)
	edit(&rec)
	return must(store.Update(context.Background(), rec))(t)
}

// must returns the first result of a call, or a function that fails the test with its error.
func must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func second[T any](_ T, err error) error { return err }

// atEnd returns an observer that calls record at the end of every operation.
func atEnd(record func(operation relayer.Operation, err error)) relayer.Option {
	return relayer.WithObserver(func(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
		return ctx, func(err error) { record(*operation, err) }
	})
}

func newFullManager(t testing.TB) *relayer.Manager {
	t.Helper()
	return newManager(t, withAddress("0xfeed"))
}

var refuseNothing = relayer.WithAdmission(func(context.Context, relayer.Operation, *relayer.Relayer, *relayer.Relayer) error { return nil })

// requestFor returns the request for a relayer like r.
func requestFor(r *relayer.Relayer) relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: r.ID, Name: r.Name, Network: r.Network, NetworkType: r.NetworkType, Paused: r.Paused, SignerID: r.SignerID,
		NotificationID: r.NotificationID, CustomRPCURLs: r.CustomRPCURLs, Policy: r.Policy, Labels: r.Labels, Settings: r.Settings,
	}
}

func named(id, name string) relayer.CreateRequest {
	req := minimal(id)
	req.Name = name
	return req
}

func mustSucceed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An operation is an operation on one relayer, like the methods of a Manager.
type operation = func(m *relayer.Manager, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error)

func patching(patch string) operation {
	return func(m *relayer.Manager, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Patch(ctx, id, []byte(patch), options...)
	}
}

func patchingDocument(patch string) operation {
	return func(m *relayer.Manager, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
		return nil, second(m.Documents().Patch(ctx, id, []byte(patch), options...))
	}
}

func updating(change func(r *relayer.Relayer)) operation {
	return func(m *relayer.Manager, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Update(ctx, id, func(r *relayer.Relayer) error { change(r); return nil }, options...)
	}
}

func disabling(reason relayer.DisabledReason) operation {
	return func(m *relayer.Manager, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Disable(ctx, id, reason, options...)
	}
}

func deleting(m *relayer.Manager, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return nil, m.Delete(ctx, id, options...)
}

// hooked is a store whose calls begin with before, which can fail them, and end with after,
// which can replace their errors.
type hooked struct {
	relayer.Store
	before func(ctx context.Context, call, id string) error
	after  func(ctx context.Context, call string, err error) error
}

func hook[T any](s hooked, ctx context.Context, call, id string, do func() (T, error)) (result T, err error) {
	if s.before != nil {
		if err := s.before(ctx, call, id); err != nil {
			return result, err
		}
	}
	result, err = do()
	if s.after != nil {
		err = s.after(ctx, call, err)
	}
	return result, err
}

func (s hooked) Get(ctx context.Context, id string) (relayer.Record, error) {
	return hook(s, ctx, "get", id, func() (relayer.Record, error) { return s.Store.Get(ctx, id) })
}

func (s hooked) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	return hook(s, ctx, "list", "", func() (relayer.Listing, error) { return s.Store.List(ctx, query) })
}

func (s hooked) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return hook(s, ctx, "create", rec.ID, func() (relayer.Record, error) { return s.Store.Create(ctx, rec) })
}

func (s hooked) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return hook(s, ctx, "update", rec.ID, func() (relayer.Record, error) { return s.Store.Update(ctx, rec) })
}

func (s hooked) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return second(hook(s, ctx, "delete", id, func() (any, error) { return nil, s.Store.Delete(ctx, id, revision, note) }))
}

// beforeUpdate calls a function before each update of the store.
func beforeUpdate(store relayer.Store, call func(id string) error) relayer.Store {
	return hooked{Store: store, before: func(_ context.Context, name, id string) error {
		if name == "update" {
			return call(id)
		}
		return nil
	}}
}

// typical returns a request as deployments have it: an endpoint with a key, a policy and
// labels.
func typical(id string) relayer.CreateRequest {
	req := withURLs(id, "https://eth-sepolia.example/v2/KEY")
	req.Name, req.NotificationID = "Payments "+id, "alerts"
	req.Policy = &relayer.EVMPolicy{MinBalance: new(relayer.Gwei(100)), GasPriceCap: new(relayer.Gwei(90)), EIP1559Pricing: new(true)}
	req.Labels = map[string]string{"team": "payments", "environment": "production"}
	return req
}
