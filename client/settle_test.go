package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// lostResponses are what a client gets in place of the response to a write.
var lostResponses = map[string]step{
	"reset":        reset,
	"timeout":      blocked,
	"truncated":    truncated(201),
	"cut JSON":     respondJSON(200, `{"success":tr`),
	"500":          fail(500, "Internal Server Error"),
	"HTML 502":     html(502),
	"HTML 503":     html(503),
	"HTML 504":     html(504),
	"HTML 200":     html(200),
	"another data": respondJSON(200, `{"success":true,"data":5}`),
	"another ID":   respondJSON(200, `{"success":true,"data":{"id":"b","network_type":"evm"}}`),
}

// delivery is when the server gets a write whose response is lost.
type delivery string

const (
	delivered delivery = "delivered"
	never     delivery = "never"
	twice     delivery = "twice"
	afterRead delivery = "after the next request"
	atTheEnd  delivery = "after the call"

	// duplicated loses no response: the client gets that of the second copy.
	duplicated delivery = "duplicated"
)

// losing is a transport to a server that loses the response to the first write.
type losing struct {
	server   http.Handler
	delivery delivery
	lost     step
	between  func()   // runs after the first write, and before the next request
	pending  []func() // deliveries
	writes   int

	replacesIDs bool // as some proxies do with X-Request-Id
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	deliver := func() *http.Response {
		sent := r.Clone(context.WithoutCancel(r.Context()))
		sent.RequestURI, sent.Body = r.URL.RequestURI(), io.NopCloser(bytes.NewReader(body))
		if l.replacesIDs {
			sent.Header.Del("X-Request-Id")
		}
		recorder := httptest.NewRecorder()
		l.server.ServeHTTP(recorder, sent)
		return recorder.Result()
	}
	if r.Method == http.MethodGet {
		resp := deliver()
		if l.delivery == afterRead {
			l.deliverPending()
		}
		return resp, nil
	}
	if l.writes++; l.writes > 1 {
		return deliver(), nil
	}
	switch l.delivery {
	case delivered:
		deliver()
	case twice, duplicated:
		deliver()
		second := deliver()
		if l.between(); l.delivery == duplicated {
			return second, nil
		}
		return l.lost(r)
	case afterRead, atTheEnd:
		l.pending = append(l.pending, func() { deliver() })
	}
	l.between()
	return l.lost(r)
}

func (l *losing) deliverPending() {
	for _, deliver := range l.pending {
		deliver()
	}
	l.pending = nil
}

// withoutHistory is a store that retains no history.
type withoutHistory struct{ relayer.Store }

func (withoutHistory) History(context.Context, relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	return nil, errors.ErrUnsupported
}

// others are what another writer does between a lost write and the next request.
var others = map[string]func(t *testing.T, m *relayer.Manager){
	"nothing": func(*testing.T, *relayer.Manager) {},
	"changes it": func(t *testing.T, m *relayer.Manager) {
		for _, id := range []string{"a", "new"} {
			for i := range 3 {
				ignoreMissing(t, second(m.Patch(t.Context(), id, fmt.Appendf(nil, `{"labels":{"other":"%d"}}`, i))))
			}
		}
	},
	"changes it often": func(t *testing.T, m *relayer.Manager) {
		for i := range 105 { // more than a page of the history
			ignoreMissing(t, second(m.Patch(t.Context(), "a", fmt.Appendf(nil, `{"labels":{"other":"%d"}}`, i))))
		}
	},
	"deletes it": func(t *testing.T, m *relayer.Manager) {
		ignoreMissing(t, m.Delete(t.Context(), "a"))
		ignoreMissing(t, m.Delete(t.Context(), "new"))
	},
	"creates it again": func(t *testing.T, m *relayer.Manager) {
		for _, id := range []string{"a", "new"} {
			ignoreMissing(t, m.Delete(t.Context(), id))
			ignoreMissing(t, second(m.Create(t.Context(), evm(id))))
		}
	},
	"creates it": func(t *testing.T, m *relayer.Manager) {
		if err := second(m.Create(t.Context(), evm("new"))); !errors.Is(err, relayer.ErrExists) {
			ignoreMissing(t, err)
		}
	},
}

func second[T any](_ T, err error) error { return err }

func ignoreMissing(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, relayer.ErrNotFound) {
		t.Error(err)
	}
}

// ownChanges returns the revisions that the client has made.
func ownChanges(t *testing.T, m *relayer.Manager) (revisions map[uint64]bool) {
	t.Helper()
	revisions = make(map[uint64]bool)
	query := relayer.HistoryQuery{Actor: "alice"}
	for {
		changes, next, err := m.History(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			revisions[c.Info.Revision] = true
		}
		if query.Before = next; next == 0 {
			return revisions
		}
	}
}

// A lost response never makes a success of a write that had no effect, nor a failure of one that
// had. Its outcome remains unknown only if the server has no history, and the relayer does not show it.
func TestWrite_LostResponse(t *testing.T) {
	deliveries := []delivery{delivered, never, twice, afterRead, atTheEnd, duplicated}
	withHistory := func(store relayer.Store) relayer.Store { return store }
	noHistory := func(store relayer.Store) relayer.Store { return withoutHistory{store} }
	for name, write := range lostWrites() {
		for other, interfere := range others {
			t.Run(name+"/"+other, func(t *testing.T) {
				for lostBy, lost := range lostResponses {
					if other != "nothing" && lostBy != "reset" {
						continue // the other writer does not see how a response was lost
					}
					if write := name == "delete" || name == "conditional delete"; write && (lostBy == "another data" || lostBy == "another ID") {
						continue // a delete needs no data
					}
					for i, delivery := range deliveries {
						if i > 1 && (lostBy != "reset" || other == "changes it often") {
							continue // the server does not see how a response was lost
						}
						synctest.Test(t, func(t *testing.T) {
							what := fmt.Sprint(lostBy, ", ", delivery)
							testLost(t, what, write, withHistory, &losing{delivery: delivery, lost: lost}, interfere, true)
							if delivery == duplicated || lostBy != "reset" || other == "changes it often" {
								return // without history, a duplicate looks like the write of another client
							}
							isShown := delivery == never && other == "nothing" && write.isOnce // by the relayer itself
							testLost(t, what+", no history", write, noHistory, &losing{delivery: delivery, lost: lost}, interfere, isShown)
							testLost(t, what+", other request IDs", write, withHistory, &losing{delivery: delivery, lost: lost, replacesIDs: true}, interfere, isShown)
						})
					}
				}
			})
		}
	}
}

// lostWrites are all writes, also with a condition, with which they happen at most once.
func lostWrites() map[string]write {
	lost := maps.Clone(writes)
	for name, w := range writes {
		if strings.HasPrefix(name, "create") {
			continue
		}
		lost["conditional "+name] = write{func(c call) (*relayer.Relayer, error) {
			c.options = []relayer.WriteOption{relayer.IfRevision(c.revision, c.revision+1000)}
			return w.run(c)
		}, true, w.changed}
	}
	return lost
}

func testLost(t *testing.T, what string, write write, wrap func(relayer.Store) relayer.Store, l *losing, interfere func(*testing.T, *relayer.Manager), isShown bool) {
	t.Helper()
	store := memory.New()
	m := must(relayer.New(store))(t) // with history, to see what has happened
	served := must(relayer.New(wrap(store)))(t)
	stored := must(m.Create(t.Context(), evm("a")))(t)
	l.server = handlerOf(t, served, httpapi.WithEngineOperations())
	l.between = func() { interfere(t, m) }
	c := newClient(t, "http://localhost", client.WithHTTPClient(&http.Client{Transport: l}), client.WithTimeout(5*time.Second))
	result, err := write.run(call{Registry: c, ctx: t.Context(), revision: stored.Revision})
	l.deliverPending()
	own := ownChanges(t, m)
	switch isUnknown := errors.Is(err, relayer.ErrOutcomeUnknown); {
	case err == nil && len(own) == 0:
		t.Errorf("%s: success, but the write had no effect", what)
	case err != nil && !isUnknown && len(own) > 0:
		t.Errorf("%s: the write had an effect, but the error is %v", what, err)
	case isUnknown && isShown:
		t.Errorf("%s: the outcome is unknown: %v", what, err)
	case write.isOnce && len(own) > 1 && isShown:
		t.Errorf("%s: the write had %d effects", what, len(own))
	case err == nil && result != nil && !own[result.LastChange.Revision]:
		t.Errorf("%s: the result is of revision %d, the changes of the client are %v", what, result.LastChange.Revision, own)
	}
	checkUnknown(t, err)
}

// checkUnknown fails the test if an unknown outcome matches an error that promises that there was
// no effect.
func checkUnknown(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, relayer.ErrOutcomeUnknown) && (errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrExists) || errors.Is(err, relayer.ErrNotFound)) {
		t.Errorf("%v matches an error that says the outcome", err)
	}
	if err != nil {
		wantNoSecret(t, "the error", err.Error())
	}
}
