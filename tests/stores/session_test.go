package stores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

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
