package relayerotel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

func TestObserver_HostileIDs(t *testing.T) {
	got := newTelemetry(t)
	manager := newManager(t, relayer.WithObserver(got.observe))
	for i := range 1000 {
		for _, form := range []string{"absent-%d", "%d " + secret, strings.Repeat("x", 4096) + "%d", "\xff\xfe%d"} {
			manager.Get(context.Background(), fmt.Sprintf(form, i))
		}
	}
	manager.Documents().Create(context.Background(), []byte(`{"id":"`+secret+`"}`))
	if points := got.points(t); len(points) != 2 {
		t.Errorf("%d series, want 2", len(points))
	}
	for _, span := range got.spans.GetSpans() {
		if span.Name != "relayer.get" && span.Name != "relayer.create" {
			t.Errorf("span name is %q, want relayer.get or relayer.create", span.Name)
		}
		for key, text := range textsOf(span.Attributes) {
			if len(text) > 64 {
				t.Errorf("%s has %d bytes", key, len(text))
			}
		}
	}
	if strings.Contains(got.exported(t), "hunter2") {
		t.Error("a secret is exported")
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
			_, err := newManager(t).Create(context.Background(), request(id))
			// Create accepts an empty ID and generates one.
			want := err == nil && id != ""

			got := newTelemetry(t)
			got.run(relayer.Operation{Action: relayer.ActionGet, ID: id}, nil)
			exported, ok := textsOf(got.span(t).Attributes)["relayer.id"]
			if ok != want || ok && exported != id {
				t.Errorf("exported ID is %q, %v; want present: %v", exported, ok, want)
			}
		})
	}
}
