package otel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/observertest"
)

func TestObserver_HostileIDs(t *testing.T) {
	got := newTelemetry(t)
	manager := newManager(t, relayer.WithObserver(got.observe))
	for _, id := range observertest.HostileIDs(10_000) {
		manager.Get(context.Background(), id)
	}
	if points := got.points(t); len(points) != 1 {
		t.Errorf("%d series, want 1", len(points))
	}
	for _, span := range got.spans.GetSpans() {
		if span.Name != "relayer.get" {
			t.Errorf("span name is %q, want relayer.get", span.Name)
		}
		for key, text := range textsOf(span.Attributes) {
			if len(text) > relayer.MaxIDLength {
				t.Errorf("%s has %d bytes", key, len(text))
			}
		}
	}
	if secret := observertest.FindSecret(got.exported(t)); secret != "" {
		t.Errorf("%q is exported", secret)
	}
}

// The observer exports the IDs that the Manager accepts, and no others.
func TestObserver_ExportedIDs(t *testing.T) {
	ids := []string{"", "a", "A_z-09", "-", strings.Repeat("a", 64), strings.Repeat("a", 65), "é", "ａ", "a\n", "\xff"}
	for char := range 256 {
		ids = append(ids, string([]byte{byte(char)}))
	}
	for _, id := range ids {
		t.Run(fmt.Sprintf("%.20q", id), func(t *testing.T) {
			_, err := newManager(t).Create(context.Background(), observertest.Request(id))
			// Create accepts an empty ID and generates one.
			want := err == nil && id != ""

			got := newTelemetry(t)
			got.observe(context.Background(), relayer.Operation{Kind: relayer.OperationGet, ID: id})
			exported, ok := textsOf(got.span(t).Attributes)["relayer.id"]
			if ok != want || ok && exported != id {
				t.Errorf("exported ID is %q, %v; want present: %v", exported, ok, want)
			}
		})
	}
}
