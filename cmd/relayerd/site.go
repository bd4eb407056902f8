package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/page"
)

// site adds the web page, health checks, metrics and backups to the API.
func (s *server) site(ctx context.Context, api http.Handler) http.Handler {
	return newSite(ctx, api, s.store, map[string]http.Handler{
		"/":        page.Handler("api/v1", page.WithName(s.name)),
		"/metrics": s.publicMetrics(api),
		backupPath: s.download(api),
	})
}

// newSite adds handlers and health checks to the API. The page and the health checks need no token
// and show no relayer. The API handles every other path and method: a ServeMux would respond to
// some of them in plain text.
func newSite(ctx context.Context, api http.Handler, store relayer.Store, handlers map[string]http.Handler) http.Handler {
	handlers["/healthz/live"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeHealth(w, http.StatusOK, "live") })
	handlers[readinessPath] = readiness(ctx, store)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler := handlers[r.URL.Path]
		if strings.HasPrefix(r.URL.Path, "/assets/") {
			handler = handlers["/"]
		}
		if handler == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
			handler = api
		}
		handler.ServeHTTP(w, r)
	})
}

// readiness reports whether a load balancer should send requests here: not after
// ctx is done, and not while the store is unavailable. If the store can report
// that it takes writes, readiness requires it.
func readiness(ctx context.Context, store relayer.Store) http.Handler {
	ready := func(ctx context.Context) error {
		_, err := store.List(ctx, relayer.StoreQuery{})
		return err
	}
	if writable, ok := store.(interface{ Ready(context.Context) error }); ok {
		ready = writable.Ready
	}
	probe := &cached[error]{interval: probeInterval, timeout: probeTimeout, load: ready}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		err := probe.get(ctx)
		switch {
		case ctx.Err() != nil:
			writeHealth(w, http.StatusServiceUnavailable, "stopping")
		case err != nil:
			writeHealth(w, http.StatusServiceUnavailable, "store unavailable")
		default:
			writeHealth(w, http.StatusOK, "ready")
		}
	})
}

const (
	probeInterval = time.Second
	probeTimeout  = 3 * time.Second // shorter than that of a health check
)

func writeHealth(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}
