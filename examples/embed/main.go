// Command embed mounts the registry in an existing HTTP service with its own
// login. The API is served under /registry, behind the same middleware as the
// rest of the service. The user ops may do everything, and the user payments sees and
// changes the relayers of its team. One worker runs for each active relayer.
//
//	go run ./examples/embed
//	curl -u ops:ops http://127.0.0.1:8081/registry/api/v1/relayers
//	curl -u payments:payments -X PATCH -H 'Content-Type: application/json' -d '{"paused":true}' \
//	    http://127.0.0.1:8081/registry/api/v1/relayers/treasury
package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	manager, err := relayer.New(memory.New())
	if err != nil {
		return err
	}
	// Code in the same process calls the Manager directly, without HTTP.
	_, err = manager.Create(ctx, relayer.CreateRequest{
		ID:          "treasury",
		Name:        "Treasury",
		Network:     "sepolia",
		NetworkType: relayer.EVM,
		SignerID:    "treasury-key",
		Policy:      &relayer.EVMPolicy{GasPriceCap: new(relayer.Gwei(50))},
		Labels:      map[string]string{"team": "payments"},
	})
	if err != nil {
		return err
	}
	service, err := newService(manager)
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr:              "127.0.0.1:8081",
		Handler:           service,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	ctx, stop := context.WithCancel(ctx)
	results := make(chan error, 2)
	go func() { results <- superviseWorkers(ctx, manager, logWork) }()
	go func() { results <- serve(server) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	log.Print("serving on http://", server.Addr)

	// The end of one stops the other.
	first := <-results
	stop()
	return errors.Join(first, <-results)
}

func serve(server *http.Server) error {
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newService returns the existing mux of the service, with the registry mounted.
func newService(manager *relayer.Manager) (http.Handler, error) {
	registry, err := httpapi.New(manager, httpapi.TrustHost(), httpapi.WithAuthorizer(authorize))
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

// users are the users of the service, with the relayers that each may see and change. The
// password is the name.
var users = map[string]relayer.Selector{
	"ops":      {},
	"payments": relayer.Selector{}.Where("label.team", "payments"),
}

// authorize permits every action within the relayers of the user.
func authorize(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	within, ok := users[access.Actor.ID]
	if !ok {
		return httpapi.Decision{}, nil
	}
	return httpapi.Allow(within), nil
}

// requireLogin is the existing middleware of the service. WithActor passes the user to the
// registry, which limits the request rate per user.
func requireLogin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if _, ok := users[user]; !ok || subtle.ConstantTimeCompare([]byte(password), []byte(user)) == 0 {
			w.Header().Set("WWW-Authenticate", `Basic realm="service"`)
			http.Error(w, "login required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(relayer.WithActor(r.Context(), relayer.Actor{ID: user})))
	})
}

// logWork is a placeholder for code that relays transactions. It runs for one
// revision of one relayer until ctx is done.
func logWork(ctx context.Context, r *relayer.Relayer) {
	log.Printf("relaying for %s at revision %d", r.ID, r.Revision)
	<-ctx.Done()
	log.Printf("stopped relaying for %s at revision %d", r.ID, r.Revision)
}
