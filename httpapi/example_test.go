package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// request sends a request with a token to a handler and prints the response.
func request(handler http.Handler, token, path string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
}

// newRegistry returns a registry with one relayer of each of two teams.
func newRegistry() *relayer.Manager {
	manager, err := relayer.New(memory.New())
	if err != nil {
		panic(err)
	}
	for _, team := range []string{"payments", "risk"} {
		if _, err := manager.Create(context.Background(), relayer.CreateRequest{
			ID: team + "-1", Name: "Relayer of " + team, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s",
			Labels: map[string]string{"team": team},
		}); err != nil {
			panic(err)
		}
	}
	return manager
}

func ExampleNew() {
	authenticate, err := httpapi.Tokens(map[string][]string{"alice": {"0f4cdd2c1e1f4cc1a8f7"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := httpapi.New(newRegistry(), authenticate)
	if err != nil {
		fmt.Println(err)
		return
	}
	request(handler, "0f4cdd2c1e1f4cc1a8f7", "/api/v1/relayers/risk-1")
	request(handler, "another", "/api/v1/relayers/risk-1")
	// Output:
	// 200 {"success":true,"data":{"id":"risk-1","name":"Relayer of risk","network":"sepolia","network_type":"evm","address":"","paused":false,"system_disabled":false,"signer_id":"s","policies":{},"labels":{"team":"risk"}}}
	// 401 {"success":false,"data":null,"message":"Unauthorized"}
}

// A host with sessions in cookies has its own Authenticator.
func ExampleAuthenticator() {
	sessions := map[string]string{"7d1c": "alice"} // users by session
	login := func(r *http.Request) (relayer.Actor, error) {
		cookie, err := r.Cookie("session")
		if err != nil {
			return relayer.Actor{}, httpapi.ErrUnauthorized
		}
		user, ok := sessions[cookie.Value]
		if !ok {
			return relayer.Actor{}, httpapi.ErrUnauthorized
		}
		return relayer.Actor{ID: user}, nil
	}
	handler, err := httpapi.New(newRegistry(), login)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/access", nil)
	r.AddCookie(&http.Cookie{Name: "session", Value: "7d1c"})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	// Output: 200 {"success":true,"data":{"principal":"alice","actions":["list","create","watch","pause","resume","get","update","delete"],"selector":""}}
}

// The dashboard may read everything, and the payments team may do everything with its own
// relayers.
func ExampleWithAuthorizer() {
	authenticate, err := httpapi.Tokens(map[string][]string{
		"dashboard": {"dashboard-0123456789"},
		"payments":  {"payments-0123456789"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	payments := relayer.Selector{}.Where("label.team", "payments")
	authorize := func(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
		switch access.Actor.ID {
		case "dashboard":
			switch access.Action {
			case relayer.ActionGet, relayer.ActionList, relayer.ActionWatch:
				return httpapi.Allow(relayer.Selector{}), nil
			}
		case "payments":
			switch access.Action {
			case relayer.ActionGet, relayer.ActionList, relayer.ActionWatch, relayer.ActionCreate, relayer.ActionUpdate, relayer.ActionPause, relayer.ActionResume, relayer.ActionDelete:
				return httpapi.Allow(payments), nil
			}
		}
		return httpapi.Decision{}, nil // refuses, also actions of later versions
	}
	handler, err := httpapi.New(newRegistry(), authenticate, httpapi.WithAuthorizer(authorize))
	if err != nil {
		fmt.Println(err)
		return
	}
	request(handler, "dashboard-0123456789", "/api/v1/access")
	request(handler, "payments-0123456789", "/api/v1/access")
	request(handler, "payments-0123456789", "/api/v1/relayers/risk-1")
	// Output:
	// 200 {"success":true,"data":{"principal":"dashboard","actions":["list","watch","get"],"selector":""}}
	// 200 {"success":true,"data":{"principal":"payments","actions":["list","create","watch","pause","resume","get","update","delete"],"selector":"label.team=payments"}}
	// 404 {"success":false,"data":null,"message":"Relayer with ID risk-1 not found"}
}
