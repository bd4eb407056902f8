package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

func TestMoreInFlightThanAllowed(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	resolve := func(context.Context, string, relayer.NetworkType, string) (string, error) {
		entered <- struct{}{}
		<-leave
		return "0x0", nil
	}
	s := serveAs(t, httpapi.Tokens(validToken), []relayer.Option{relayer.WithAddressResolver(resolve)}, httpapi.WithMaxInFlight(2))
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			if got := s.do("POST", collection, minimal("")); got.status != http.StatusCreated {
				t.Errorf("a request that was let in answered %d", got.status)
			}
		})
		<-entered
	}
	for _, got := range []reply{
		s.do("GET", collection, ""),
		s.do("GET", collection, "", with("Authorization")),
		s.do("POST", collection, minimal("")),
	} {
		expectFailure(t, got, http.StatusServiceUnavailable, "Service Unavailable")
		if got.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
		}
	}
	close(leave)
	waiting.Wait()
	for range 10 { // room is given back, by requests that fail too
		s.do("GET", collection+"/nobody", "")
		s.do("GET", collection, "", with("Authorization"))
	}
	if got := s.do("GET", collection, ""); got.status != http.StatusOK {
		t.Errorf("afterwards answered %d", got.status)
	}
}

func TestPanicsGiveTheirRoomBack(t *testing.T) {
	resolve := func(context.Context, string, relayer.NetworkType, string) (string, error) { panic("broke") }
	s := serveAs(t, httpapi.Tokens(validToken), []relayer.Option{relayer.WithAddressResolver(resolve)}, httpapi.WithMaxInFlight(1))
	for range 5 {
		if got := s.do("POST", collection, minimal("")); got.status != http.StatusInternalServerError {
			t.Errorf("answered %d", got.status)
		}
	}
	if strings.Count(s.log.String(), "broke") == 0 {
		t.Error("nothing was logged")
	}
}
