package plan

import (
	"bytes"
	"context"
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

	lookup func(name string) (value string, ok bool)
}

// Parse reads a configuration file in JSON. It returns a [*relayer.ValidationError] with every
// problem of every relayer, up to 1,000; the path of a problem is such as
// relayers[3].policies.gas_price_cap.
//
// With a lookup such as [os.LookupEnv], ${NAME} in the RPC URLs of the relayers and in the values
// of their headers is replaced by
// the value that it returns. A variable that is not set is a problem, and so are API_KEY and
// names that begin with RELAYERD_ or PG: they are credentials of programs that apply a file. The
// variables of a relayer are looked up when its JSON has no problem.
// Everywhere else, and if lookup is nil, ${NAME} is ordinary text.
func Parse(data []byte, lookup func(name string) (value string, ok bool)) (*Config, error) {
	c := &Config{lookup: lookup}
	found := new(wire.Problems)
	if problem := syntaxProblem(data); problem != "" {
		found.Add("", "the file "+problem)
		return nil, found.Err()
	}
	entries := parseEntries(data, found)
	c.parseRelayers(entries, found)
	if err := found.Err(); err != nil {
		return nil, err
	}
	sections, _ := strictjson.Members(data)
	delete(sections, "relayers")
	c.Ignored = slices.Sorted(maps.Keys(sections))
	return c, nil
}

// syntaxProblem returns why data is not a JSON object, or "". For two common mistakes the
// position that strictjson reports would explain nothing.
func syntaxProblem(data []byte) string {
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		return "must not begin with a byte order mark: save it as UTF-8 without one"
	}
	problem := strictjson.Check(data)
	if start := bytes.TrimSpace(data); problem != "" && len(start) > 0 && start[0] != '{' && start[0] != '[' {
		return "must be a JSON object, which begins with {: convert it if it is YAML or has comments"
	}
	return problem
}

type entry []byte

// parseEntries returns the elements of relayers. An element that is not an object is
// nil.
func parseEntries(data []byte, found *wire.Problems) []entry {
	var file struct {
		Relayers []entry `json:"relayers"`
	}
	decoder := strictjson.Decoder{Reporter: found, IgnoreUnknown: true, Hook: func(v strictjson.Value, target any) bool {
		relayer, isEntry := target.(*entry)
		switch {
		case !isEntry:
		case v.First() != '{':
			v.Report("must be an object")
		default:
			*relayer = v.Raw()
		}
		return isEntry
	}}
	decoder.Decode(data, &file)
	if file.Relayers == nil && found.Err() == nil {
		found.Report("relayers", strictjson.Required, "is required")
	}
	return file.Relayers
}

func (c *Config) parseRelayers(entries []entry, found *wire.Problems) {
	references, ids := make(map[string]bool), make(positions)
	for i, data := range entries {
		if found.Full() {
			return
		}
		path := relayerPath(i)
		var req relayer.CreateRequest
		if data != nil {
			err := req.UnmarshalJSON(data)
			if err == nil {
				for _, name := range c.expand(req.CustomRPCURLs, path, found) {
					references[name] = true
				}
				err = req.Validate(context.Background())
			}
			ids.add(i, req.ID, err, found)
		}
		c.Relayers = append(c.Relayers, req)
	}
	if c.lookup == nil {
		c.Unexpanded = slices.Sorted(maps.Keys(references))
	}
}

func relayerPath(i int) string { return fmt.Sprintf("relayers[%d]", i) }

// positions are those of the relayers of a configuration by ID.
type positions map[string]int

// add adds the problems of a relayer, or that its ID is missing or repeated.
func (p positions) add(i int, id string, problems error, found *wire.Problems) {
	path := relayerPath(i)
	found.AddBelow(path, problems)
	first, isKnown := p[id]
	switch {
	case problems != nil:
	case id == "":
		found.Report(path+".id", strictjson.Required, "is required")
	case isKnown:
		found.Add(path+".id", fmt.Sprintf("must be unique: relayers[%d] has the same", first))
	default:
		p[id] = i
	}
}
