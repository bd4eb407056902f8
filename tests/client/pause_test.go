//go:build unix

package client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/store/memory"
)

// pausable is the model of a relayer.
type pausable struct {
	team     string
	pausedBy string // the request, or empty
}

// fleet is a registry with its model. Editors change what the model does not have.
type fleet struct {
	*rapid.T
	manager  *relayer.Manager
	model    map[string]*pausable
	created  int
	requests []string // of the pauses
}

var ctx = context.Background()

// inProcess is a transport that calls the handler of a server.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder, received := httptest.NewRecorder(), r.Clone(r.Context())
	if received.RequestURI = r.URL.RequestURI(); received.Body == nil {
		received.Body = http.NoBody
	}
	p.ServeHTTP(recorder, received)
	return recorder.Result(), nil
}

// client returns a client of the registry.
func (f *fleet) client() *client.Client {
	transport := inProcess{newAPI(f, f.manager)}
	return must(client.New("http://localhost", client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: transport})))(f)
}

// TestPauseAll_Model compares random pauses and resumes of many relayers, through a Manager and
// through a client, with a model, while others edit the relayers.
func TestPauseAll_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		manager := must(relayer.New(memory.New()))(t)
		f := &fleet{T: t, manager: manager, model: make(map[string]*pausable)}
		for range rapid.SampledFrom([]int{0, 5, 20, 105}).Draw(t, "relayers") { // a request reads pages of 100
			f.create()
		}
		registries := []relayer.Registry{f.manager, f.client()}
		t.Repeat(map[string]func(*rapid.T){
			"":       func(t *rapid.T) { f.check() },
			"create": func(t *rapid.T) { f.create() },
			"delete": func(t *rapid.T) {
				id := f.drawID()
				f.fail(f.manager.Delete(ctx, id))
				delete(f.model, id)
			},
			"move": func(t *rapid.T) {
				id, team := f.drawID(), f.drawTeam()
				must(f.manager.Patch(ctx, id, fmt.Appendf(nil, `{"labels":{"team":%q}}`, team)))(t)
				f.model[id].team = team
			},
			"pause one": func(t *rapid.T) {
				id, request := f.drawID(), fmt.Sprint("one-", len(f.requests))
				must(f.manager.Pause(relayer.WithActor(ctx, relayer.Actor{RequestID: request}), id))(t)
				f.model[id].pause(request)
			},
			"resume one": func(t *rapid.T) {
				id := f.drawID()
				must(f.manager.Resume(ctx, id))(t)
				f.model[id].pausedBy = ""
			},
			"pause":  func(t *rapid.T) { f.pauseAll(rapid.SampledFrom(registries).Draw(t, "registry")) },
			"resume": func(t *rapid.T) { f.resumeAll(rapid.SampledFrom(registries).Draw(t, "registry")) },
		})
	})
}

func (p *pausable) pause(request string) (isChanged bool) {
	if p.pausedBy != "" {
		return p.pausedBy == request
	}
	p.pausedBy = request
	return true
}

func (f *fleet) fail(err error) {
	if f.Helper(); err != nil {
		f.Fatal(err)
	}
}

func (f *fleet) create() {
	f.created++
	id, r := fmt.Sprintf("r-%03d", f.created), &pausable{team: f.drawTeam()}
	if rapid.Bool().Draw(f.T, "paused") {
		r.pausedBy = "create"
	}
	must(f.manager.Create(relayer.WithActor(ctx, relayer.Actor{RequestID: "create"}), relayer.CreateRequest{
		ID: id, Name: "0", Network: "n", NetworkType: relayer.EVM, SignerID: "s", Paused: r.pausedBy != "", Labels: map[string]string{"team": r.team},
	}))(f)
	f.model[id] = r
}

func (f *fleet) drawID() string {
	if len(f.model) == 0 {
		f.create()
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(f.model))).Draw(f.T, "id")
}

func (f *fleet) drawTeam() string {
	return rapid.SampledFrom([]string{"payments", "risk"}).Draw(f.T, "team")
}

// drawSelection draws a selector and its model.
func (f *fleet) drawSelection() (selector relayer.Selector, options []relayer.WriteOption, selects func(id string) bool) {
	selects = func(string) bool { return true }
	switch rapid.SampledFrom([]string{"all", "team", "paused", "not paused", "ids"}).Draw(f.T, "selection") {
	case "all":
		options = append(options, relayer.AllRelayers())
	case "team":
		team := f.drawTeam()
		selector, selects = selector.Where("label.team", team), func(id string) bool { return f.model[id].team == team }
	case "paused":
		selector, selects = selector.Where("paused", "true"), func(id string) bool { return f.model[id].pausedBy != "" }
	case "not paused":
		selector, selects = selector.Where("paused", "false"), func(id string) bool { return f.model[id].pausedBy == "" }
	case "ids":
		ids := []string{f.drawID(), f.drawID()}
		selector, selects = selector.Where("id", ids...), func(id string) bool { return slices.Contains(ids, id) }
	}
	return selector, options, selects
}

func (f *fleet) pauseAll(registry relayer.Registry) {
	selector, options, selects := f.drawSelection()
	f.run("pause", selects, func() (relayer.BulkResult, error) { return registry.PauseAll(ctx, selector, options...) },
		func(r *pausable, request string) bool { return r.pause(request) })
}

func (f *fleet) resumeAll(registry relayer.Registry) {
	selector, options, selects := f.drawSelection()
	pausedBy := rapid.SampledFrom(append([]string{"", "", "create"}, f.requests...)).Draw(f.T, "paused by")
	if pausedBy != "" {
		options = append(options, relayer.PausedBy(pausedBy))
	}
	f.run("resume", selects, func() (relayer.BulkResult, error) { return registry.ResumeAll(ctx, selector, options...) },
		func(r *pausable, _ string) bool {
			isChanged := r.pausedBy != "" && (pausedBy == "" || r.pausedBy == pausedBy)
			if isChanged {
				r.pausedBy = ""
			}
			return isChanged
		})
}

// run calls a pause or a resume while others edit the relayers, and compares the result with that of
// the model.
func (f *fleet) run(kind string, selects func(id string) bool, call func() (relayer.BulkResult, error), change func(r *pausable, request string) bool) {
	var selected []string
	for id := range f.model {
		if selects(id) {
			selected = append(selected, id)
		}
	}
	stop := f.edit()
	result, err := call()
	stop()
	f.fail(err)
	want := relayer.BulkResult{RequestID: result.RequestID}
	for _, id := range selected {
		if change(f.model[id], result.RequestID) {
			want.Changed++
		} else {
			want.Unchanged++
		}
	}
	if result.RequestID == "" || fmt.Sprint(result) != fmt.Sprint(want) {
		f.Fatalf("the result of the %s is %+v, want %+v", kind, result, want)
	}
	f.requests = append(f.requests, result.RequestID)
}

// edit starts to rename relayers until stop is called, which checks that no edit is lost.
func (f *fleet) edit() (stop func()) {
	const editors = 2
	done := make(chan struct{})
	var running sync.WaitGroup
	for editor := range editors {
		var own []string // that no other editor renames
		for i, id := range slices.Sorted(maps.Keys(f.model)) {
			if i%editors == editor {
				own = append(own, id)
			}
		}
		running.Go(func() { f.rename(own, done) })
	}
	return func() {
		close(done)
		running.Wait()
	}
}

func (f *fleet) rename(own []string, done chan struct{}) {
	names := make(map[string]string)
	for i := 1; len(own) > 0; i++ {
		select {
		case <-done:
			for id, name := range names {
				if r, err := f.manager.Get(ctx, id); err != nil || r.Name != name {
					f.Errorf("%v is not named %s, error %v", r, name, err)
				}
			}
			return
		default:
		}
		id, name := own[i%len(own)], fmt.Sprint(i)
		if _, err := f.manager.Patch(ctx, id, fmt.Appendf(nil, `{"name":%q}`, name)); err != nil {
			f.Errorf("renaming %s: %v", id, err)
		}
		names[id] = name
	}
}

// check compares all relayers with the model.
func (f *fleet) check() {
	left := maps.Clone(f.model)
	for r, err := range f.manager.All(ctx, relayer.Selector{}) {
		f.fail(err)
		want, pausedBy := left[r.ID], cmp.Or(r.LastChange.PausedBy, new(relayer.ChangeInfo)).RequestID
		if want == nil || r.Paused != (want.pausedBy != "") || pausedBy != want.pausedBy || r.Labels["team"] != want.team {
			f.Errorf("%v is paused by %q, want %+v", r, pausedBy, want)
		}
		delete(left, r.ID)
	}
	if len(left) > 0 {
		f.Errorf("missing: %v", left)
	}
}
