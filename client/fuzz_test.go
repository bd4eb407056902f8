package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// FuzzResponse sends requests to a server whose responses are arbitrary.
func FuzzResponse(f *testing.F) {
	f.Add(200, "application/json", `{"success":true,"data":{"id":"a","network_type":"evm","disabled_reason":{"type":"Multiple","details":[{"type":1}]}}}`, `"1"`)
	f.Add(200, "application/json", `{"success":true,"data":[{"id":"a","network_type":"evm"}],"pagination":{"current_page":1,"per_page":100}}`, "")
	f.Add(400, "application/json; charset=utf-8", `{"success":false,"message":"see https://rpc.example/v2/secret-key","errors":[{"field":"a","message":"b"}]}`, "5")
	f.Add(503, "text/html", "<html>", "Fri, 31 Dec 1999 23:59:59 GMT")
	f.Fuzz(func(t *testing.T, status int, contentType, body, header string) {
		if status < 100 || status > 599 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			c, _ := scripted(t, []client.Option{client.WithMaxResponseBytes(1000)},
				respond(status, contentType, body, "ETag", header, "Retry-After", header, "X-Request-Id", header))
			created, createErr := c.Create(t.Context(), evm("a"))
			_, listErr := c.List(t.Context(), relayer.ListQuery{Page: 1, PerPage: 100})
			deleteErr := c.Delete(t.Context(), "a", relayer.IfRevision(1))
			if createErr == nil && (created == nil || created.ID == "") {
				t.Errorf("created %v", created)
			}
			for _, err := range []error{createErr, listErr, deleteErr} {
				if err == nil {
					continue
				}
				// A list of problems is as long as the response.
				if len(err.Error()) > 5000 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
				wantNoSecret(t, "the error", err.Error())
			}
		})
	})
}

// FuzzWatch follows an arbitrary stream, after which the token is rejected.
func FuzzWatch(f *testing.F) {
	f.Add(": comment\n\n" + heartbeat + resync + "id: 1\nevent: updated\ndata: {\"change\":{\"revision\":1},\"relayer\":{\"id\":\"a\",\"network_type\":\"evm\"}}\n\n")
	f.Add("id: a\x00\nevent: resync\ndata\r\ndata:\r\n\r\nevent: deleted\ndata: {}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		synctest.Test(t, func(t *testing.T) {
			c, _ := scripted(t, []client.Option{client.WithMaxResponseBytes(1000)},
				respond(200, "text/event-stream", stream), fail(401, "Unauthorized"))
			var last error
			for change, err := range c.Watch(t.Context(), relayer.WatchQuery{After: "p0"}) {
				if last = err; err == nil && (change.Relayer == nil || change.Relayer.ID == "" || change.Kind == "") {
					t.Errorf("%v", change)
				}
			}
			if last == nil {
				t.Error("the last item is no error")
			}
		})
	})
}
