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

// pausable is the model of a relayer: its ID, Labels, Paused, and the request that paused it.
type pausable struct {
	relayer.Relayer
	pausedBy string
}

// fleet is a registry with its model. An editor changes what the model does not have.
type fleet struct {
	*rapid.T
	manager  *relayer.Manager
	model    map[string]*pausable
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

// TestPauseAll_Model compares random pauses and resumes of many relayers, through a Manager and
// through a client, with a model, while another writer renames the relayers.
func TestPauseAll_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &fleet{T: t, manager: must(relayer.New(memory.New()))(t), model: make(map[string]*pausable)}
		for range rapid.SampledFrom([]int{1, 5, 20, 105}).Draw(t, "relayers") { // a request reads pages of 100
			f.create()
		}
		transport := &http.Client{Transport: inProcess{newAPI(f, f.manager)}}
		c := must(client.New("http://localhost", client.WithToken(token), client.WithHTTPClient(transport)))(f)
		t.Repeat(map[string]func(*rapid.T){
			"":        func(*rapid.T) { f.check() },
			"create":  func(*rapid.T) { f.create() },
			"one":     func(*rapid.T) { f.changeOne() },
			"several": func(*rapid.T) { f.changeAll(f.manager) },
			"remote":  func(*rapid.T) { f.changeAll(c) },
		})
	})
}

func (f *fleet) create() {
	r := &pausable{Relayer: relayer.Relayer{ID: fmt.Sprintf("r-%03d", len(f.model)), Labels: f.drawLabels()}}
	if r.Paused = rapid.Bool().Draw(f.T, "paused"); r.Paused {
		r.pausedBy = "create"
	}
	must(f.manager.Create(relayer.WithActor(ctx, relayer.Actor{RequestID: "create"}), relayer.CreateRequest{
		ID: r.ID, Name: "0", Network: "n", NetworkType: relayer.EVM, SignerID: "s", Paused: r.Paused, Labels: r.Labels,
	}))(f)
	f.model[r.ID] = r
}

func (f *fleet) drawLabels() map[string]string {
	return map[string]string{"team": rapid.SampledFrom([]string{"payments", "risk"}).Draw(f.T, "team")}
}

// changeOne pauses or resumes a relayer, and moves it to a team.
func (f *fleet) changeOne() {
	r := f.model[rapid.SampledFrom(slices.Sorted(maps.Keys(f.model))).Draw(f.T, "id")]
	request, paused := fmt.Sprint("one-", len(f.requests)), rapid.Bool().Draw(f.T, "paused")
	if r.Labels = f.drawLabels(); paused != r.Paused {
		r.Paused, r.pausedBy = paused, map[bool]string{true: request}[paused]
	}
	patch := fmt.Appendf(nil, `{"paused":%t,"labels":{"team":%q}}`, paused, r.Labels["team"])
	must(f.manager.Patch(relayer.WithActor(ctx, relayer.Actor{RequestID: request}), r.ID, patch))(f)
}

// changeAll pauses or resumes a selection while another writer renames the relayers, and compares
// the result with that of the model.
func (f *fleet) changeAll(registry relayer.Registry) {
	text := rapid.SampledFrom([]string{"", "label.team=payments", "label.team=risk,paused=true", "paused=false", "id=r-000|r-003"}).Draw(f.T, "selection")
	selector, change, pausedBy := must(relayer.ParseSelector(text))(f), registry.PauseAll, ""
	isPause := rapid.Bool().Draw(f.T, "pause")
	var options []relayer.WriteOption
	if selector.IsZero() {
		options = append(options, relayer.AllRelayers())
	}
	if !isPause {
		change, pausedBy = registry.ResumeAll, rapid.SampledFrom(append([]string{"", "", "create"}, f.requests...)).Draw(f.T, "paused by")
	}
	if pausedBy != "" {
		options = append(options, relayer.PausedBy(pausedBy))
	}
	stop := f.rename()
	result := must(change(ctx, selector, options...))(f)
	stop()
	want := relayer.BulkResult{RequestID: result.RequestID}
	for _, r := range f.model {
		switch {
		case !selector.Matches(&r.Relayer):
		case r.Paused == isPause, pausedBy != "" && r.pausedBy != pausedBy:
			want.Unchanged++
		default:
			want.Changed++
			r.Paused, r.pausedBy = isPause, map[bool]string{true: result.RequestID}[isPause]
		}
	}
	if result.RequestID == "" || fmt.Sprint(result) != fmt.Sprint(want) {
		f.Fatalf("the result is %+v, want %+v", result, want)
	}
	f.requests = append(f.requests, result.RequestID)
}

// rename renames relayers until stop is called, which checks that no name is lost.
func (f *fleet) rename() (stop func()) {
	done, names := make(chan struct{}), make(map[string]string)
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			id := fmt.Sprintf("r-%03d", i%len(f.model))
			names[id] = fmt.Sprint(i)
			if _, err := f.manager.Patch(ctx, id, fmt.Appendf(nil, `{"name":%q}`, names[id])); err != nil {
				f.Errorf("renaming %s: %v", id, err)
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
		for id, name := range names {
			if r := must(f.manager.Get(ctx, id))(f); r.Name != name {
				f.Errorf("%v is not named %s", r, name)
			}
		}
	}
}

// check compares all relayers with the model.
func (f *fleet) check() {
	all := must(collect(f.manager))(f)
	for _, r := range all {
		want, pausedBy := f.model[r.ID], cmp.Or(r.LastChange.PausedBy, new(relayer.ChangeInfo)).RequestID
		if r.Paused != want.Paused || pausedBy != want.pausedBy || r.Labels["team"] != want.Labels["team"] {
			f.Errorf("%v is paused by %q, want %+v", r, pausedBy, want)
		}
	}
	if len(all) != len(f.model) {
		f.Errorf("%d relayers, want %d", len(all), len(f.model))
	}
}
