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
}

// Parse reads a configuration file in JSON. It returns a [*relayer.ValidationError] with every
// problem of every relayer, up to 1,000; the path of a problem is such as
// relayers[3].policies.gas_price_cap.
//
// With a lookup such as [os.LookupEnv], ${NAME} in the RPC URLs of the relayers and in the values
// of their headers is replaced by the value that it returns. A variable that is not set is a
// problem, and so are API_KEY and names that begin with RELAYERD_ or PG: they are credentials of
// programs that apply a file. The variables of a relayer are looked up when its JSON has no
// problem. Everywhere else, and if lookup is nil, ${NAME} is ordinary text.
func Parse(data []byte, lookup func(name string) (value string, ok bool)) (*Config, error) {
	found, referred := new(wire.Problems), &variables{lookup: lookup, names: make(map[string]bool)}
	if problem := syntaxProblem(data); problem != "" {
		found.Add("", "the file "+problem)
		return nil, found.Err()
	}
	c := &Config{Relayers: parseRelayers(parseEntries(data, found), referred, found)}
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

// entry is the JSON of a relayer. It is nil if the element of the file is not an object.
type entry []byte

func parseEntries(data []byte, found *wire.Problems) []entry {
	var file struct {
		Relayers []entry `json:"relayers"`
	}
	decoder := strictjson.Decoder{Problems: &found.Problems, IgnoreUnknown: true, Hook: func(v strictjson.Value, target any) bool {
		element, isEntry := target.(*entry)
		if isEntry && v.First() == '{' {
			*element = v.Raw()
		} else if isEntry {
			v.Report("must be an object")
		}
		return isEntry
	}}
	decoder.Decode(data, &file)
	if file.Relayers == nil && found.Err() == nil {
		found.Report("relayers", strictjson.Required, "is required")
	}
	return file.Relayers
}

func parseRelayers(entries []entry, referred *variables, found *wire.Problems) (requests []relayer.CreateRequest) {
	ids := make(positions)
	for i, data := range entries {
		if found.Full() {
			break
		}
		var req relayer.CreateRequest
		if data != nil {
			err := req.UnmarshalJSON(data)
			if err == nil {
				err = referred.expand(req.CustomRPCURLs)
			}
			if err == nil {
				err = req.Validate(context.Background())
			}
			ids.add(i, req.ID, err, found)
		}
		requests = append(requests, req)
	}
	return requests
}

// positions are those of the relayers of a configuration by ID.
type positions map[string]int

// add adds the problems of a relayer, or that its ID is missing or repeated.
func (p positions) add(i int, id string, problems error, found *wire.Problems) {
	path := fmt.Sprintf("relayers[%d]", i)
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
