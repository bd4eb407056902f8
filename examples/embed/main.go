// Command embed mounts the registry and its web page in an existing HTTP service with its own
// login. The user payments sees the relayers of its team. One worker runs for each active relayer.
//
//	go run ./examples/embed
//	curl -u ops:ops http://127.0.0.1:8081/registry/api/v1/relayers # the page: http://127.0.0.1:8081/admin/
package main

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"log"
	"net/http"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/mirror"
	"github.com/go-relayer/relayer/page"
	"github.com/go-relayer/relayer/store/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

// settings are what this service keeps with each relayer.
type settings struct {
	PollSeconds int `json:"poll_seconds" validate:"omitempty,gte=1,lte=60"`
}

func run(ctx context.Context) error {
	treasury := relayer.CreateRequest{ID: "treasury", Name: "Treasury", Network: "sepolia", NetworkType: relayer.EVM,
		SignerID: "treasury-key", Policy: &relayer.EVMPolicy{GasPriceCap: new(relayer.Gwei(50))}, Labels: map[string]string{"team": "payments"},
		Settings: []byte(`{"poll_seconds":5}`)}
	manager, err := relayer.New(memory.New(), relayer.WithSettings[settings]())
	if err == nil {
		_, err = manager.Create(ctx, treasury)
	}
	if err != nil {
		return err
	}
	service, err := newService(manager)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: service, ReadHeaderTimeout: 5 * time.Second}
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { defer stop(); served <- server.ListenAndServe() }()
	err = superviseWorkers(ctx, manager, logWork)
	_ = server.Close()
	if failure := <-served; !errors.Is(failure, http.ErrServerClosed) {
		return failure
	}
	return cmp.Or(err, http.ErrServerClosed)
}

// newService returns the mux of the service, with the registry mounted.
func newService(manager *relayer.Manager) (http.Handler, error) {
	api, err := httpapi.New(manager, httpapi.TrustHost(), httpapi.WithAuthorizer(authorize))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	// Browsers send the login with requests of other sites too.
	mux.Handle("/registry/", http.NewCrossOriginProtection().Handler(requireLogin(http.StripPrefix("/registry", api))))
	mux.Handle("/admin/", requireLogin(http.StripPrefix("/admin", page.Handler("/registry/api/v1", page.TrustHost()))))
	return mux, err
}

// users have the relayers that each user may see and change. The password is the name.
var users = map[string]httpapi.Decision{
	"ops":      httpapi.Allow(relayer.Selector{}),
	"payments": httpapi.Allow(relayer.Selector{}.Where("label.team", "payments")),
}

func authorize(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	return users[access.Actor.ID], nil
}

// requireLogin is the middleware of the service. WithActor passes the user to the registry.
func requireLogin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if _, ok := users[user]; !ok || subtle.ConstantTimeCompare([]byte(password), []byte(user)) == 0 {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "login required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(relayer.WithActor(r.Context(), relayer.Actor{ID: user})))
	})
}

// work relays for one state of a relayer until ctx is done, each time only if isCurrent.
type work func(ctx context.Context, r *relayer.Relayer, isCurrent func() bool)

// superviseWorkers runs a worker for each active relayer until ctx is done. The next worker of
// a relayer waits for the previous one, because both would use the same nonces.
func superviseWorkers(ctx context.Context, registry relayer.Registry, do work) error {
	view, err := mirror.Open(ctx, registry, relayer.Selector{})
	if err != nil {
		return err
	}
	defer view.Close()
	var running sync.WaitGroup
	defer running.Wait()
	stops, nonces := make(map[string]context.CancelFunc), make(map[string]*sync.Mutex)
	for change := range view.Changes(ctx) {
		r := cmp.Or(change.After, change.Before)
		if nonces[r.ID] == nil { // it stays: the ID of a deleted relayer may be used again
			nonces[r.ID], stops[r.ID] = new(sync.Mutex), func() {}
		}
		stops[r.ID]()
		own, stop := context.WithCancel(ctx)
		stops[r.ID] = stop
		lock, isActive := nonces[r.ID], change.After != nil && !r.Paused && !r.SystemDisabled
		running.Go(func() {
			defer lock.Unlock()
			if lock.Lock(); isActive && own.Err() == nil {
				do(own, r, func() bool {
					isFresh := time.Since(view.CaughtUp()) < 30*time.Second // before Get: the state is not older then
					state, _ := view.Get(ctx, r.ID)
					return isFresh && state == r
				})
			}
		})
	}
	return nil
}

// logWork is a placeholder for code that relays transactions. A changed endpoint, header or setting
// of r starts it again, with the same lock of the nonces.
func logWork(ctx context.Context, r *relayer.Relayer, isCurrent func() bool) {
	own, err := relayer.SettingsOf[settings](r)
	log.Printf("relaying for %s at revision %d with %v, every %d s, error %v: %t", r.ID, r.Revision, r.CustomRPCURLs, own.PollSeconds, err, isCurrent())
	<-ctx.Done()
}
