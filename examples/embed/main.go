// Command embed shows the registry inside a service that has an HTTP server, a
// mux and a login of its own: the API is mounted under /registry, behind the
// middleware that guards the rest of the service.
//
//	go run ./examples/embed
//	curl -u ops:ops http://127.0.0.1:8081/registry/api/v1/relayers
package main

import (
	"context"
	"crypto/subtle"
	"log"
	"net/http"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

func main() {
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	// The service's own code uses the registry in Go, without HTTP.
	_, err = manager.Create(context.Background(), relayer.CreateRequest{
		ID:          "treasury",
		Name:        "Treasury",
		Network:     "sepolia",
		NetworkType: relayer.EVM,
		SignerID:    "treasury-key",
		Policies:    &relayer.EVMPolicy{GasPriceCap: new(relayer.NewAmount(50_000_000_000))},
	})
	if err != nil {
		log.Fatal(err)
	}
	service, err := newService(manager)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		Addr:              "127.0.0.1:8081",
		Handler:           service,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	log.Print("serving on http://", server.Addr)
	log.Fatal(server.ListenAndServe())
}

// newService is the service's existing mux, with the registry mounted in it.
func newService(manager *relayer.Manager) (http.Handler, error) {
	registry, err := httpapi.New(manager, httpapi.TrustHost())
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello\n"))
	})
	mux.Handle("/registry/", requireLogin(http.StripPrefix("/registry", registry)))
	return mux, nil
}

// requireLogin is the service's own middleware. It tells the registry who is
// calling, so that each user has a rate of their own.
func requireLogin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(user+":"+password), []byte("ops:ops")) == 0 {
			w.Header().Set("WWW-Authenticate", `Basic realm="service"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(httpapi.WithPrincipal(r.Context(), user)))
	})
}
