package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-relayer/relayer/httpapi"
)

// BenchmarkReads measures the handler without a network, for a caller without and with a
// scope. The scope selects a tenth of 10,000 relayers; with -short there are 1,000.
func BenchmarkReads(b *testing.B) {
	total := 10_000
	if testing.Short() {
		total = 1000
	}
	manager := managerOn(b, nil)
	for i := range total {
		team := "others"
		if i%10 == 0 {
			team = "payments"
		}
		must(manager.Documents().Create(b.Context(), []byte(scopedBody(fmt.Sprint("r-", i), team))))(b)
	}
	inScope := func(context.Context, httpapi.Access) (httpapi.Decision, error) { return httpapi.Allow(payments), nil }
	for name, options := range map[string][]httpapi.Option{
		"all":   {httpapi.WithRateLimit(0, 0)},
		"scope": {httpapi.WithRateLimit(0, 0), httpapi.WithAuthorizer(inScope)},
	} {
		handler := apiOn(b, manager, validTokens, options...)
		for request, path := range map[string]string{"get": collection + "/r-10", "list=10": collection, "list=100": collection + "?per_page=100"} {
			b.Run(request+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.Header.Set("Authorization", "Bearer "+validToken)
				w := &statusWriter{header: make(http.Header)}
				for b.Loop() {
					clear(w.header)
					if handler.ServeHTTP(w, r); w.status != http.StatusOK {
						b.Fatalf("returned %d", w.status)
					}
				}
			})
		}
	}
}
