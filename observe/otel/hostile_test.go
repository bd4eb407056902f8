package otel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/drive"
)

func TestHostileIDs(t *testing.T) {
	got := newTelemetry(t)
	manager := newManager(t, relayer.WithObserver(got.observe))
	for _, id := range drive.HostileIDs(10_000) {
		manager.Get(context.Background(), id)
	}
	if points := got.points(t); len(points) != 1 {
		t.Errorf("%d series, want 1", len(points))
	}
	for _, span := range got.spans.GetSpans() {
		if span.Name != "relayer.get" {
			t.Errorf("span is named %q", span.Name)
		}
		for key, text := range textsOf(span.Attributes) {
			if len(text) > relayer.MaxIDLength {
				t.Errorf("%s has %d bytes", key, len(text))
			}
		}
	}
	if secret := drive.Leak(got.exported(t)); secret != "" {
		t.Errorf("%q is exported", secret)
	}
}

// The ids that are exported are those that a relayer can have, as the Manager
// has it.
func TestExportedIDs(t *testing.T) {
	ids := []string{"", "a", "A_z-09", "-", strings.Repeat("a", 64), strings.Repeat("a", 65), "é", "ａ", "a\n", "\xff"}
	for char := range 256 {
		ids = append(ids, string([]byte{byte(char)}))
	}
	for _, id := range ids {
		t.Run(fmt.Sprintf("%.20q", id), func(t *testing.T) {
			_, err := newManager(t).Create(context.Background(), drive.Request(id))
			// One that is left out is made, and so is valid in a create only.
			want := err == nil && id != ""

			got := newTelemetry(t)
			got.observe(context.Background(), relayer.Operation{Kind: relayer.OperationGet, ID: id})
			exported, is := textsOf(got.span(t).Attributes)["relayer.id"]
			if is != want || is && exported != id {
				t.Errorf("exported is %q, %v; want %v", exported, is, want)
			}
		})
	}
}
