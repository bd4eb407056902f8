package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
)

func TestApply_Order(t *testing.T) {
	m := newManager(t)
	create(t, m, minimal("z"), minimal("old"))
	desired := []relayer.CreateRequest{minimal("b"), renamed("z"), minimal("a")}
	want := []plan.Result{{ID: "b", Action: plan.Create}, {ID: "z", Action: plan.Update}, {ID: "a", Action: plan.Create}, {ID: "old", Action: plan.Delete}}
	if got := mustApply(t, newPlan(t, m, desired, plan.Options{Prune: true})); !slices.Equal(got, want) {
		t.Errorf("results %v, want %v", got, want)
	}
	expectNoChanges(t, m, desired)
}

// Every change by another writer between plan and apply is a conflict, and stays.
func TestApply_Conflict(t *testing.T) {
	rename := func(t *testing.T, m *relayer.Manager, id string) {
		must(m.Patch(t.Context(), id, []byte(`{"name":"theirs"}`)))(t)
	}
	remove := func(t *testing.T, m *relayer.Manager, id string) {
		if err := m.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	theirs := func(id string) relayer.CreateRequest {
		return requestWith(id, func(r *relayer.CreateRequest) { r.Name = "theirs" })
	}
	for name, c := range map[string]struct {
		interfere func(t *testing.T, m *relayer.Manager)
		failed    string
		want      error
	}{
		"created":             {func(t *testing.T, m *relayer.Manager) { create(t, m, theirs("new")) }, "new", relayer.ErrExists},
		"updated":             {func(t *testing.T, m *relayer.Manager) { rename(t, m, "changed") }, "changed", relayer.ErrConflict},
		"deleted":             {func(t *testing.T, m *relayer.Manager) { remove(t, m, "changed") }, "changed", relayer.ErrNotFound},
		"deleted and created": {func(t *testing.T, m *relayer.Manager) { remove(t, m, "changed"); create(t, m, theirs("changed")) }, "changed", relayer.ErrConflict},
		"extra updated":       {func(t *testing.T, m *relayer.Manager) { rename(t, m, "extra") }, "extra", relayer.ErrConflict},
		"extra replaced":      {func(t *testing.T, m *relayer.Manager) { remove(t, m, "extra"); create(t, m, theirs("extra")) }, "extra", relayer.ErrConflict},
		"extra deleted":       {func(t *testing.T, m *relayer.Manager) { remove(t, m, "extra") }, "", nil},
	} {
		for _, isRemote := range []bool{false, true} {
			t.Run(fmt.Sprint(name, isRemote), func(t *testing.T) {
				m := newManager(t)
				create(t, m, minimal("changed"), minimal("extra"))
				var registry relayer.Registry = m
				if isRemote {
					registry = &remote{Registry: m}
				}
				p := newPlan(t, registry, []relayer.CreateRequest{renamed("changed"), minimal("new"), minimal("last")}, plan.Options{Prune: true})
				c.interfere(t, m)
				results, err := p.Apply(t.Context())
				if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.failed+": ") {
					t.Errorf("error %v, want %v of %s", err, c.want, c.failed)
				}
				for _, result := range results {
					if isFailed := result.ID == c.failed; (result.Err != nil) != isFailed {
						t.Errorf("result %v", result)
					}
				}
				get(t, m, "last")
				if c.want == relayer.ErrConflict || c.want == relayer.ErrExists {
					if got := get(t, m, c.failed); got.Name != "theirs" {
						t.Errorf("the relayer of the other writer was overwritten: %v", got)
					}
				}
			})
		}
	}
}

// Deletes wait until everything else has succeeded.
func TestApply_DeletesAfterFailure(t *testing.T) {
	moved := requestWith("moved", func(r *relayer.CreateRequest) { r.SignerID = "s2" })
	for name, desired := range map[string][]relayer.CreateRequest{"blocked": {minimal("moved")}, "conflict": {moved, minimal("new")}} {
		m := newManager(t)
		create(t, m, moved, minimal("extra"))
		p := newPlan(t, m, desired, plan.Options{Prune: true})
		if name == "conflict" {
			create(t, m, minimal("new"))
		}
		if _, err := p.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "deletes not tried because of the failures: 1") {
			t.Errorf("%s: error %v", name, err)
		}
		get(t, m, "extra")
	}
}

// A failure of one relayer does not stop the others. After a failure of the registry, no
// change begins: 16 have begun, of which one has failed.
func TestApply_Failures(t *testing.T) {
	unauthorized := errors.New("unauthorized")
	for err, isFatal := range map[error]bool{
		relayer.ErrExists: false, relayer.ErrConflict: false, &relayer.ValidationError{}: false,
		relayer.ErrUnavailable: true, relayer.ErrOutcomeUnknown: true, context.DeadlineExceeded: true, unauthorized: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlan(t, &slow{Registry: newManager(t), refused: "r5", err: err}, fleet(40))
			results, got := p.Apply(t.Context())
			want := 40
			if isFatal {
				want = 16
			}
			if len(results) != want || !errors.Is(got, err) || strings.Contains(got.Error(), "changes not tried after the failure: 24") != isFatal {
				t.Errorf("%v: %d results, want %d; error %v", err, len(results), want, got)
			}
			for i, result := range results {
				if isFailed := i == 5; result.ID != fmt.Sprint("r", i) || errors.Is(result.Err, err) != isFailed || (result.Err != nil) != isFailed {
					t.Errorf("%v: result %d is %v", err, i, result)
				}
			}
		})
	}
}

// slow is a registry whose creates take a second. One may be refused after half of it. It
// counts those that run at once.
type slow struct {
	relayer.Registry
	refused       string
	err           error
	running, most atomic.Int32
}

func (s *slow) Create(ctx context.Context, req relayer.CreateRequest, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	if req.ID == s.refused && !isDryRun(options) {
		time.Sleep(time.Second / 2)
		return nil, s.err
	}
	running := s.running.Add(1)
	for most := s.most.Load(); most < running && !s.most.CompareAndSwap(most, running); most = s.most.Load() {
	}
	time.Sleep(time.Second)
	s.running.Add(-1)
	return s.Registry.Create(ctx, req, options...)
}

// Both the dry runs of a plan and its changes run in parallel.
func TestApply_Parallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &slow{Registry: newManager(t)}
		start := time.Now()
		p := newPlan(t, registry, fleet(160))
		if took := time.Since(start); took != 10*time.Second || registry.most.Load() != 16 {
			t.Errorf("New took %v, and %d dry runs at once", took, registry.most.Load())
		}
		start = time.Now()
		results := mustApply(t, p)
		if took := time.Since(start); took != 10*time.Second || registry.most.Load() != 16 || len(results) != 160 {
			t.Errorf("Apply took %v, and %d changes at once: %d results", took, registry.most.Load(), len(results))
		}
	})
}

// Apply makes what the plan shows, whatever happens to the requests and entries.
func TestApply_ChangedRequests(t *testing.T) {
	full := func(id string) relayer.CreateRequest {
		req := withURLs(id, "https://a.example/"+secret)
		req.CustomRPCURLs[0].Weight, req.Labels = new(50.0), map[string]string{"team": "x"}
		req.Policy = &relayer.EVMPolicy{GasPriceCap: new(relayer.Gwei(1)), WhitelistReceivers: []string{"0xabc"}}
		return req
	}
	m, want := newManager(t), newManager(t)
	create(t, m, minimal("updated"), minimal("deleted"))
	create(t, want, full("updated"), full("created"))
	desired := []relayer.CreateRequest{full("updated"), full("created")}
	p := newPlan(t, m, desired, plan.Options{Prune: true})
	shown := p.String()

	for i := range desired {
		*desired[i].CustomRPCURLs[0].Weight = 1
		desired[i].CustomRPCURLs[0].URL = "https://other.example"
		desired[i].Labels["team"] = "y"
		policy := desired[i].Policy.(*relayer.EVMPolicy)
		*policy.GasPriceCap, policy.WhitelistReceivers[0] = relayer.Gwei(2), "0xdef"
		desired[i].Name = "other"
	}
	entries := p.Entries()
	entries[0], entries[2] = plan.Entry{ID: "updated", Action: plan.Delete}, plan.Entry{Action: plan.Update}

	if got := p.String(); got != shown {
		t.Errorf("the plan was\n%s\nand is\n%s", shown, got)
	}
	mustApply(t, p)
	for _, id := range []string{"updated", "created"} {
		if got := document(t, m, id); got != document(t, want, id) {
			t.Errorf("stored %s, want %s", got, document(t, want, id))
		}
	}
}

func TestApply_NotMadeByNew(t *testing.T) {
	for name, p := range map[string]*plan.Plan{"nil": nil, "zero": {}} {
		if results, err := p.Apply(t.Context()); err == nil || len(results) > 0 {
			t.Errorf("%s: results %v, error %v", name, results, err)
		}
	}
	m := newManager(t)
	copied := *newPlan(t, m, []relayer.CreateRequest{minimal("a")})
	mustApply(t, &copied)
	get(t, m, "a")
}

func TestApply_Reason(t *testing.T) {
	const reason = "relayers.json: more for the fair"
	for name := range registries(t, newManager(t)) {
		m := newManager(t)
		create(t, m, minimal("updated"), minimal("deleted"))
		p := newPlan(t, registries(t, m)[name], []relayer.CreateRequest{renamed("updated"), minimal("created")}, plan.Options{Prune: true})
		_, err := p.Apply(t.Context(), relayer.Reason("two\nlines"))
		expectProblems(t, err, relayer.FieldError{Field: "change_reason", Message: "must be one line without control characters"})
		must(p.Apply(t.Context(), relayer.Reason(reason)))(t)
		for _, id := range []string{"updated", "created", "deleted"} {
			changes, _, err := m.History(t.Context(), relayer.HistoryQuery{ID: id, Limit: 1})
			if err != nil || changes[0].Info.Reason != reason {
				t.Errorf("%s: the last change of %s is %+v, error %v", name, id, changes, err)
			}
		}
	}
}

// contextIgnorer ignores the end of a context.
type contextIgnorer struct{ relayer.Registry }

func (h contextIgnorer) Create(ctx context.Context, req relayer.CreateRequest, options ...relayer.WriteOption) (*relayer.Relayer, error) {
	return h.Registry.Create(context.WithoutCancel(ctx), req, options...)
}

func TestApply_Canceled(t *testing.T) {
	m := contextIgnorer{newManager(t)}
	p := newPlan(t, m, []relayer.CreateRequest{minimal("a"), minimal("b")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results, err := p.Apply(ctx)
	if !errors.Is(err, context.Canceled) || len(results) == 0 {
		t.Errorf("results %v, error %v", results, err)
	}
	expectActions(t, newPlan(t, m, []relayer.CreateRequest{minimal("a"), minimal("b")}), plan.Create, plan.Create)
}

// A plan that deletes more relayers than it may changes nothing, and says so before.
func TestApply_MaxDeletes(t *testing.T) {
	for _, c := range []struct {
		stored, kept, maximum int
		want                  string
	}{
		{11, 1, 0, ""},
		{12, 1, 0, "the plan deletes 11 relayers, and the maximum of deletes is 10: nothing is changed"},
		{12, 1, 10, "the plan deletes 11 relayers, and the maximum of deletes is 10: nothing is changed"},
		{12, 1, 11, ""},
		{3, 1, 1, "the plan deletes 2 relayers, and the maximum of deletes is 1: nothing is changed"},
		{1, 0, 0, "the file has no relayers, and the plan deletes all (1): nothing is changed without a maximum of deletes"},
		{1, 0, 1, ""},
		{0, 0, 0, ""},
	} {
		m := newManager(t)
		create(t, m, fleet(c.stored)...)
		desired := fleet(c.kept)
		for i := range desired {
			desired[i].Name = "new"
		}
		p := newPlan(t, m, desired, plan.Options{Prune: true, MaxDeletes: c.maximum})
		if c.want == "" {
			if err := p.Err(); err != nil || strings.Contains(p.String(), "refuse") {
				t.Errorf("%+v: error %v\n%s", c, err, p)
			}
			mustApply(t, p)
			expectNoChanges(t, m, desired)
			continue
		}
		results, err := p.Apply(t.Context())
		if len(results) > 0 || err == nil || err.Error() != c.want || p.Err() == nil || p.Err().Error() != c.want || !strings.Contains(p.String(), "apply would refuse this: "+c.want+"\n") {
			t.Errorf("%+v: results %v, errors %v, %v\n%s", c, results, err, p.Err(), p)
		}
		if unchanged := exported(t, m); strings.Contains(unchanged, "new") || strings.Count(unchanged, `"id"`) != c.stored {
			t.Errorf("%+v: the registry has\n%s", c, unchanged)
		}
	}
	if _, err := plan.New(t.Context(), newManager(t), nil, plan.Options{MaxDeletes: -1}); err == nil {
		t.Error("a negative maximum is no error")
	}
}
