package stores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// operation is one call, or a few that belong together.
type operation struct {
	kind string
	text string // the arguments
	run  func(ctx context.Context, s *session) string
}

// label is on every relayer of a script, and on no other.
const label = "suite"

var ids = []string{"a", "b", "c"}

// request returns a request with an exclusive signer.
func request(id string, networkType relayer.NetworkType) relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: id, Name: "name of " + id, Network: "sepolia", NetworkType: networkType, SignerID: "signer of " + id,
		Labels: map[string]string{label: "yes", "team": "payments"},
	}
}

// script returns random operations, of which most change the same few relayers.
func script(random *rand.Rand, length int) []operation {
	operations := []operation{{"mark", "", func(ctx context.Context, s *session) string { return describe(s.mark(ctx), "") }}}
	for range length {
		id := pick(random, ids...)
		if random.IntN(20) == 0 {
			id = pick(random, "unknown", "", "no id", "a/b", "..")
		}
		draw := pick(random, drawCreate, drawCreate, drawCreate, drawUpdate, drawUpdate, drawUpdate, drawPatch, drawPatch, drawPatch,
			drawSwitch, drawSwitch, drawDelete, drawRead, drawRead, drawList, drawList)
		operations = append(operations, draw(random, id))
	}
	return operations
}

func pick[T any](random *rand.Rand, choices ...T) T { return choices[random.IntN(len(choices))] }

func drawCreate(random *rand.Rand, id string) operation {
	if id == "" {
		id = "unknown" // a generated ID is never the same
	}
	req := request(id, pick(random, relayer.EVM, relayer.Solana, relayer.Stellar))
	req.Network, req.Paused = pick(random, "sepolia", "mainnet"), random.IntN(2) == 0
	req.Labels["team"] = pick(random, "payments", "risk", "")
	req.CustomRPCURLs = pick(random, nil, []relayer.RPCConfig{{URL: "https://rpc.example/v2/key", Headers: map[string]relayer.Secret{"X-Key": "value"}}, {URL: "wss://user:pw@b.example/?k=1", Weight: new(2.5)}})
	req.Settings = pick(random, nil, json.RawMessage(`{"a":{"b":1},"c":null}`), json.RawMessage(`{}`))
	if req.NetworkType == relayer.EVM {
		req.Policy = &relayer.EVMPolicy{GasPriceCap: new(relayer.Gwei(7)), WhitelistReceivers: []string{"x"}}
	}
	fault := pick(random, "", "", "", "", "", "", "", "", "signer", "name", "policy", "masked", "label", "settings", "many")
	switch fault {
	case "signer":
		req.SignerID = "signer of " + pick(random, ids...)
	case "name":
		req.Name = ""
	case "policy": // the only problem: a client does not send it
		id, req = "a", request("a", relayer.Stellar)
		req.NetworkType, req.Policy = relayer.Stellar, &relayer.EVMPolicy{}
	case "masked":
		req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://rpc.example/***"}, {URL: "https://rpc.example", Headers: map[string]relayer.Secret{"X-Key": "***", "Host": "x"}}}
	case "label":
		req.Labels["-"] = "x"
	case "settings":
		req.Settings = json.RawMessage(pick(random, `[]`, `5`, `{"a":1,"a":2}`, `{"a":"https://u:p@h.example"}`))
	case "many":
		req.Name, req.Network, req.SignerID, req.Labels["é"] = "", "", "", "\n"
	}
	return withOptions(random, "create", id, fmt.Sprint(req), func(ctx context.Context, s *session, options []relayer.WriteOption) string {
		r, err := s.registry.Create(ctx, req, options...)
		return s.result(r, err, id)
	})
}

// withOptions adds conditions on revisions, which differ by session, or a dry run, which no
// server offers for disable and enable.
func withOptions(random *rand.Rand, kind, id, text string, run func(context.Context, *session, []relayer.WriteOption) string) operation {
	condition := pick(random, "", "", "", "", "", "", "", "current", "current", "current", "first", "either", "both", "zero", "never")
	isDry := random.IntN(6) == 0 && kind != "disable" && kind != "enable"
	return operation{kind, fmt.Sprintf("%q %s, condition %q, dry run %t", id, text, condition, isDry), func(ctx context.Context, s *session) string {
		s.isDry = isDry
		defer func() { s.isDry = false }()
		var options []relayer.WriteOption
		first, last := s.seen(id, 0), s.seen(id, -1)
		switch condition {
		case "current":
			options = append(options, relayer.IfRevision(last))
		case "first":
			options = append(options, relayer.IfRevision(first))
		case "either":
			options = append(options, relayer.IfRevision(first, last))
		case "both":
			options = append(options, relayer.IfRevision(first, last), relayer.IfRevision(last))
		case "zero":
			options = append(options, relayer.IfRevision(0))
		case "never":
			options = append(options, relayer.IfRevision())
		}
		if isDry {
			options = append(options, relayer.DryRun())
		}
		return run(ctx, s, options)
	}}
}

func drawUpdate(random *rand.Rand, id string) operation {
	name, team := fmt.Sprint("name ", random.IntN(3)), pick(random, "payments", "risk")
	changes := map[string]func(r *relayer.Relayer) error{
		"nothing":      func(*relayer.Relayer) error { return nil },
		"fail":         func(*relayer.Relayer) error { return errOfChange },
		"name":         func(r *relayer.Relayer) error { r.Name = name; return nil },
		"empty name":   func(r *relayer.Relayer) error { r.Name = ""; return nil },
		"pause":        func(r *relayer.Relayer) error { r.Paused = !r.Paused; return nil },
		"notification": func(r *relayer.Relayer) error { r.NotificationID = name; return nil },
		"team":         func(r *relayer.Relayer) error { r.Labels = map[string]string{label: "yes", "team": team}; return nil },
		"no team":      func(r *relayer.Relayer) error { r.Labels = map[string]string{label: "yes"}; return nil },
		"settings": func(r *relayer.Relayer) error {
			r.Settings = json.RawMessage(`{"a":{"` + team + `":1},"d":null}`)
			return nil
		},
		"no settings":  func(r *relayer.Relayer) error { r.Settings = nil; return nil },
		"not settings": func(r *relayer.Relayer) error { r.Settings = json.RawMessage(`[]`); return nil },
		"ID":           func(r *relayer.Relayer) error { r.ID = "other"; return nil },
		"network":      func(r *relayer.Relayer) error { r.Network = "other"; return nil },
		"URLs": func(r *relayer.Relayer) error {
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://other.example/" + relayer.RPCURL(team)}}
			return nil
		},
		"no URLs": func(r *relayer.Relayer) error { r.CustomRPCURLs = nil; return nil },
		"policy": func(r *relayer.Relayer) error {
			if policy, ok := r.Policy.(*relayer.EVMPolicy); ok {
				policy.GasPriceCap, policy.WhitelistReceivers = new(relayer.Gwei(uint64(len(team)))), nil
			}
			return nil
		},
		"no policy": func(r *relayer.Relayer) error { r.Policy = nil; return nil },
	}
	what := pick(random, "nothing", "fail", "name", "empty name", "pause", "notification", "team", "no team", "settings", "no settings", "not settings", "ID", "network", "URLs", "no URLs", "policy", "no policy")
	return withOptions(random, "update", id, what+" "+name+" "+team, func(ctx context.Context, s *session, options []relayer.WriteOption) string {
		r, err := s.registry.Update(ctx, id, changes[what], options...)
		return s.result(r, err, id)
	})
}

func drawPatch(random *rand.Rand, id string) operation {
	patch := pick(random,
		`{}`, `{"name":"patched"}`, `{"name":null}`, fmt.Sprintf(`{"paused":%t}`, random.IntN(2) == 0),
		`{"notification_id":"n","labels":{"team":"risk"}}`, `{"notification_id":null,"labels":{"team":null}}`,
		`{"policies":{"gas_price_cap":9000000000}}`, `{"policies":null}`,
		`{"custom_rpc_urls":[{"url":"https://patched.example/key"}]}`, `{"custom_rpc_urls":null}`,
		`{"custom_rpc_urls":[{"url":"https://patched.example/***"}]}`,
		`{"settings":{"a":{"b":null,"c":2}}}`, `{"settings":null}`, `{"settings":{"a":1,"a":2}}`,
		`{"unknown":1,"network":"other","system_disabled":true}`, `{"labels":{"é":"x"},"paused":"yes"}`)
	if random.IntN(10) == 0 { // without conditions: a client checks the type of the policy first
		patch = `{"policies":{"min_balance":5}}`
		return operation{"patch", fmt.Sprintf("%q %s of Solana", id, patch), func(ctx context.Context, s *session) string {
			r, err := s.registry.Patch(ctx, id, []byte(patch))
			return s.result(r, err, id)
		}}
	}
	return withOptions(random, "patch", id, patch, func(ctx context.Context, s *session, options []relayer.WriteOption) string {
		r, err := s.registry.Patch(ctx, id, []byte(patch), options...)
		return s.result(r, err, id)
	})
}

func drawSwitch(random *rand.Rand, id string) operation {
	reason := relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: fmt.Sprint("nonce ", random.IntN(2), " of https://rpc.example/v2/key")}
	switches := map[string]func(relayer.Registry, context.Context, string, ...relayer.WriteOption) (*relayer.Relayer, error){
		"pause":  relayer.Registry.Pause,
		"resume": relayer.Registry.Resume,
		"disable": func(g relayer.Registry, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
			return g.Disable(ctx, id, reason, options...)
		},
		"enable": relayer.Registry.Enable,
	}
	kind := pick(random, "pause", "resume", "disable", "disable", "enable")
	return withOptions(random, kind, id, reason.Details, func(ctx context.Context, s *session, options []relayer.WriteOption) string {
		r, err := switches[kind](s.registry, ctx, id, options...)
		return s.result(r, err, id)
	})
}

func drawDelete(random *rand.Rand, id string) operation {
	return withOptions(random, "delete", id, "", func(ctx context.Context, s *session, options []relayer.WriteOption) string {
		return describe(s.registry.Delete(ctx, id, options...), id)
	})
}

func drawRead(random *rand.Rand, id string) operation {
	return pick(random,
		operation{"get", id, func(ctx context.Context, s *session) string {
			r, err := s.registry.Get(ctx, id)
			return s.result(r, err, id)
		}},
		operation{"get canceled", id, func(ctx context.Context, s *session) string {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := s.registry.Get(ctx, id)
			return describe(err, id)
		}},
		operation{"reveal", id, func(ctx context.Context, s *session) string {
			urls, err := s.registry.RPCURLs(ctx, id)
			text := describe(err, id)
			for _, each := range urls {
				text += fmt.Sprintf(" %s %v", each.URL.Unmasked(), *each.Weight)
			}
			return text
		}},
		operation{"watch after an unknown position", "", func(ctx context.Context, s *session) string {
			text := ""
			for change, err := range s.registry.Watch(ctx, relayer.WatchQuery{After: "unknown"}) {
				text += fmt.Sprintf("%v %s\n", change, describe(err, ""))
			}
			return text
		}})
}

var selectors = []relayer.Selector{
	{}, {},
	relayer.Selector{}.Where("network", "sepolia"),
	relayer.Selector{}.Where("network_type", "evm", "solana").Where("paused", "true"),
	relayer.Selector{}.Where("label.team", "payments"),
	relayer.Selector{}.Where("label.team", "risk", ""),
	relayer.Selector{}.Where("label.team", "risk").Where("label.suite", "yes"),
	relayer.Selector{}.Where("id", "a", "c", "unknown"),
	relayer.Selector{}.Where("signer_id", "signer of b"),
	relayer.Selector{}.Where("notification_id", "n"),
	relayer.Selector{}.Where("system_disabled", "true"),
	relayer.Selector{}.Where("search", "NAME O", "patch"),
	relayer.Selector{}.Where("network"),
	relayer.Selector{}.Where("unknown", "x"),
	relayer.Selector{}.Where("paused", "maybe"),
}

func drawList(random *rand.Rand, _ string) operation {
	query := relayer.ListQuery{
		Selector: pick(random, selectors...),
		Page:     pick(random, 0, 0, 0, 1, 2, 3, 1_000_000, -1),
		PerPage:  pick(random, 0, 0, 1, 2, 3, 100, 1000, -1),
	}
	text := fmt.Sprintf("%s %d %d, error %v", query.Selector, query.Page, query.PerPage, query.Selector.Err())
	return pick(random,
		operation{"list", text, func(ctx context.Context, s *session) string {
			page, err := s.registry.List(ctx, query)
			if err != nil {
				return describe(err, "")
			}
			text := fmt.Sprintf("%+v", page.Pagination)
			for _, r := range page.Relayers {
				text += "\n" + s.relayer(r)
			}
			return text
		}},
		operation{"all", text, func(ctx context.Context, s *session) string {
			return s.all(s.registry.All(ctx, query.Selector))
		}})
}

// session calls one implementation. It describes what the calls return by texts, which are
// equal if the implementations behave in the same way.
type session struct {
	name      string
	registry  relayer.Registry
	revisions map[string][]uint64 // by ID, in the order in which they were first seen
	isDry     bool                // what a dry run returns has no revision over HTTP

	pull func() (relayer.Change, error, bool)
	stop func()
}

func newSession(name string, registry relayer.Registry) *session {
	return &session{name: name, registry: registry, revisions: make(map[string][]uint64), stop: func() {}}
}

// relayer describes a relayer. RPC URLs are masked, because only a Manager has them in full.
// Each store has its own revisions: they are described by the order in which they were seen.
func (s *session) relayer(r *relayer.Relayer) string {
	if r == nil {
		return "no relayer"
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s at %s", encoded, s.revision(r.ID, r.Revision))
}

func (s *session) revision(id string, revision uint64) string {
	switch {
	case s.isDry:
		return "any revision"
	case revision == 0:
		return "no revision"
	}
	if !slices.Contains(s.revisions[id], revision) {
		s.revisions[id] = append(s.revisions[id], revision)
	}
	return fmt.Sprintf("revision %d", 1+slices.Index(s.revisions[id], revision))
}

// seen returns the revision of the index, or of the last if it is negative.
func (s *session) seen(id string, index int) uint64 {
	all := s.revisions[id]
	if len(all) == 0 {
		return 1 << 40
	}
	if index < 0 {
		return all[len(all)-1]
	}
	return all[min(index, len(all)-1)]
}

func (s *session) result(r *relayer.Relayer, err error, id string) string {
	if err != nil {
		return describe(err, id)
	}
	return s.relayer(r)
}

var sentinels = []error{
	relayer.ErrNotFound, relayer.ErrExists, relayer.ErrConflict, relayer.ErrInvalid, relayer.ErrNoRevision,
	relayer.ErrGap, relayer.ErrUnavailable, relayer.ErrOutcomeUnknown, errors.ErrUnsupported, context.Canceled, errOfChange,
}

// errOfChange is returned by the function of an update.
var errOfChange = errors.New("error of the change")

// describe returns what a program can find out about an error, and whether its text names
// the ID.
func describe(err error, id string) string {
	if err == nil {
		return "ok"
	}
	var kinds []string
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			kinds = append(kinds, sentinel.Error())
		}
	}
	if invalid, ok := errors.AsType[*relayer.ValidationError](err); ok {
		for _, problem := range invalid.Fields {
			kinds = append(kinds, problem.Field+" "+problem.Message)
		}
	}
	if len(kinds) == 0 {
		return "another error: " + err.Error()
	}
	slices.Sort(kinds)
	return fmt.Sprintf("error: %s; names %q: %t", strings.Join(kinds, "; "), id, strings.Contains(err.Error(), id))
}

// all describes a sequence.
func (s *session) all(relayers iter.Seq2[*relayer.Relayer, error]) string {
	var lines []string
	for r, err := range relayers {
		lines = append(lines, s.result(r, err, ""))
	}
	return strings.Join(lines, "\n")
}

// watch begins to follow a selection.
func (s *session) watch(ctx context.Context, selector relayer.Selector) {
	s.pull, s.stop = iter.Pull2(s.registry.Watch(ctx, relayer.WatchQuery{Selector: selector}))
}

// marker is the last relayer of a script.
func (s *session) mark(ctx context.Context) error {
	if _, err := s.registry.Create(ctx, request("marker", relayer.EVM)); err != nil {
		return err
	}
	return s.registry.Delete(ctx, "marker")
}

// changes describes the changes up to the deletion of the marker, and those after one in
// the middle again, from a watch that resumes.
func (s *session) changes(ctx context.Context, selector relayer.Selector) string {
	if err := s.mark(ctx); err != nil {
		return err.Error()
	}
	var all []string
	var positions []string
	for {
		change, err, ok := s.pull()
		if err != nil || !ok {
			return fmt.Sprintf("%s\nafter %d changes: %s, ended is %t", strings.Join(all, "\n"), len(all), describe(err, ""), !ok)
		}
		all, positions = append(all, s.change(change)), append(positions, change.Position)
		if isEnd(change) {
			break
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all = append(all, "resumed")
	query := relayer.WatchQuery{Selector: selector, After: positions[len(positions)/2]}
	for change, err := range s.registry.Watch(ctx, query) {
		if err != nil {
			all = append(all, describe(err, ""))
			continue
		}
		all = append(all, s.change(change))
		if isEnd(change) {
			break
		}
	}
	return strings.Join(all, "\n")
}

func isEnd(change relayer.Change) bool {
	return change.Kind == relayer.ChangeDeleted && change.Relayer.ID == "marker"
}

func (s *session) change(change relayer.Change) string {
	return fmt.Sprintf("%s %s, has a position: %t", change.Kind, s.relayer(change.Relayer), change.Position != "")
}
