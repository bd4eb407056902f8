package limits_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/internal/limits"
)

func TestCheckImport(t *testing.T) {
	const maxBytes = 10
	valid := relayer.Record{ID: "a", Revision: 1}
	for name, c := range map[string]struct {
		change func(*relayer.Record)
		field  string // blamed, or "valid"
	}{
		"shortest":         {func(*relayer.Record) {}, "valid"},
		"longest ID":       {func(r *relayer.Record) { r.ID = strings.Repeat("a", relayer.MaxIDLength) }, "valid"},
		"longest claim":    {func(r *relayer.Record) { r.Claim = strings.Repeat("a", relayer.MaxClaimLength) }, "valid"},
		"largest revision": {func(r *relayer.Record) { r.Revision = relayer.MaxRevision }, "valid"},
		"most bytes":       {func(r *relayer.Record) { r.Document, r.Private = make([]byte, 4), make([]byte, 6) }, "valid"},

		"no ID":          {func(r *relayer.Record) { r.ID = "" }, "id"},
		"long ID":        {func(r *relayer.Record) { r.ID = strings.Repeat("a", relayer.MaxIDLength+1) }, "id"},
		"long claim":     {func(r *relayer.Record) { r.Claim = strings.Repeat("a", relayer.MaxClaimLength+1) }, "claim"},
		"no revision":    {func(r *relayer.Record) { r.Revision = 0 }, "revision"},
		"large revision": {func(r *relayer.Record) { r.Revision = relayer.MaxRevision + 1 }, "revision"},
		"large document": {func(r *relayer.Record) { r.Document = make([]byte, 11) }, ""},
		"large private":  {func(r *relayer.Record) { r.Private = make([]byte, 11) }, ""},
		"large together": {func(r *relayer.Record) { r.Document, r.Private = make([]byte, 5), make([]byte, 6) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec := valid
			c.change(&rec)
			err := limits.CheckImport(rec, maxBytes)
			var invalid *relayer.ValidationError
			if (err == nil) != (c.field == "valid") || err != nil && (!errors.As(err, &invalid) || invalid.Fields[0].Field != c.field) {
				t.Errorf("error %v, want a problem of %q", err, c.field)
			}
			if c.field != "revision" && (limits.Check(rec, maxBytes) == nil) != (err == nil) {
				t.Error("Check and CheckImport differ")
			}
		})
	}
}

// The revision given to a create or an update is not that of the record to store.
func TestCheck_IgnoresRevision(t *testing.T) {
	if err := limits.Check(relayer.Record{ID: "a"}, 0); err != nil {
		t.Error(err)
	}
}
