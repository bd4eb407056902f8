package plan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

// Config is a parsed configuration file.
type Config struct {
	// Relayers are the desired relayers, in the order of the file.
	Relayers []relayer.CreateRequest

	// Ignored are the names of the other sections of the file, such as signers.
	Ignored []string

	// Unexpanded are the names of the environment variables that the RPC URLs and headers refer to
	// as ${NAME}. It is empty if Parse has expanded them.
	Unexpanded []string
}

// Parse reads a configuration file in JSON. It returns a [*relayer.ValidationError] with the
// first 1,000 problems of all relayers, each with a path such as
// relayers[3].policies.gas_price_cap.
//
// With a lookup such as [os.LookupEnv], the value that it returns replaces ${NAME} in the RPC
// URLs of the relayers and in the values of their headers. A variable in a host is a problem. A
// variable that is not set or empty is a problem, and so are API_KEY and names that begin with RELAYERD_
// or PG: they are credentials of programs that apply a file. The variables of a relayer are
// looked up when its JSON has no problem. Everywhere else, and if lookup is nil, ${NAME} is
// ordinary text.
func Parse(data []byte, lookup func(name string) (value string, ok bool)) (*Config, error) {
	found, referred := new(wire.Problems), &variables{lookup: lookup, names: make(map[string]bool)}
	if problem := syntaxProblem(data); problem != "" {
		found.Add("", "the file "+problem)
		return nil, found.Err()
	}
	entries := relayersOf(data, found)
	c := &Config{Relayers: check(context.Background(), len(entries), found, func(i int) (req relayer.CreateRequest, err error) {
		if err = req.UnmarshalJSON(entries[i]); err == nil {
			err = referred.expand(req.CustomRPCURLs)
		}
		return req, err
	})}
	if err := found.Err(); err != nil {
		return nil, err
	}
	if lookup == nil {
		c.Unexpanded = slices.Sorted(maps.Keys(referred.names))
	}
	sections, _ := strictjson.Members(data)
	delete(sections, "relayers")
	c.Ignored = slices.Sorted(maps.Keys(sections))
	return c, nil
}

// syntaxProblem returns why data is not a JSON object, or "".
func syntaxProblem(data []byte) string {
	problem := strictjson.Check(data)
	if start := bytes.TrimSpace(data); problem != "" && len(start) > 0 && start[0] != '{' && start[0] != '[' {
		return "must be a JSON object, which begins with {: convert it if it is YAML, has comments or a byte order mark"
	}
	return problem
}

// relayersOf returns the elements of the list of relayers.
func relayersOf(data []byte, found *wire.Problems) (entries []json.RawMessage) {
	lists := 0
	for name, value := range strictjson.InOrder(data) {
		if name == "relayers" {
			lists++
			if json.Unmarshal(value, &entries) != nil {
				found.Report(name, strictjson.WrongType, "must be an array")
			}
		}
	}
	if lists > 1 {
		found.Report("relayers", strictjson.Duplicate, "must not be given more than once")
	}
	if entries == nil {
		found.Report("relayers", strictjson.Required, "is required") // unless it has a problem
	}
	return entries
}

// check returns the requests that read returns. It adds their problems, until there are too many.
func check(ctx context.Context, count int, found *wire.Problems, read func(i int) (relayer.CreateRequest, error)) (requests []relayer.CreateRequest) {
	ids := make(map[string]int)
	for i := 0; i < count && !found.Full(); i++ {
		req, err := read(i)
		if err == nil {
			err = req.Validate(ctx)
		}
		path := fmt.Sprintf("relayers[%d]", i)
		first, isKnown := ids[req.ID]
		switch {
		case err != nil:
			found.AddBelow(path, err)
		case req.ID == "":
			found.Report(path+".id", strictjson.Required, "is required")
		case isKnown:
			found.Add(path+".id", fmt.Sprintf("must be unique: relayers[%d] has the same", first))
		default:
			ids[req.ID] = i
		}
		requests = append(requests, req)
	}
	return requests
}

// Export returns the configuration file of a registry: the relayers that the selector selects, in
// the order of the reader, with their RPC URLs masked. A hidden path is /***, and hidden user
// information is ***@. The values of headers are ***. A plan of the file has no changes. The
// masked URLs of a server lack user information: their file has no ***@. A relayer that hides
// nothing else is then [Blocked]: write its URLs in full. If a Manager has sealed URLs, all of
// them have ***.
//
// A relayer that [Parse] would refuse is an error, which matches [relayer.ErrInvalid]: a
// newer version has stored it, with a network type or a value that this version does not
// have. Export it with the newer version, or leave it out with the selector.
func Export(ctx context.Context, registry relayer.Reader, selector relayer.Selector) ([]byte, error) {
	relayers := []json.RawMessage{}
	for r, err := range registry.All(ctx, selector) {
		if err != nil {
			return nil, err
		}
		req := wire.RequestOf(r)
		req.CustomRPCURLs = maskedList(r.CustomRPCURLs)
		body, err := req.MarshalUnmasked()
		if err = cmp.Or(req.Validate(ctx), err); err != nil {
			return nil, fmt.Errorf("plan: the file cannot have the relayer %s: %w", r.ID, err)
		}
		relayers = append(relayers, body)
	}
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(struct {
		Relayers []json.RawMessage `json:"relayers"`
	}{relayers})
	return file.Bytes(), err
}
