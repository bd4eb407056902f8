package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/plan"
	"github.com/go-relayer/relayer/store/memory"
)

const (
	sealedPath = "https://a.example/" + secret
	sealedHost = "https://b.example/"

	otherKeyText = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY="

	keyText = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
)

// keysOf returns a keyring of one key.
func keysOf(t *testing.T, id, value string) keyring.Keyring {
	t.Helper()
	ring, err := keyring.Parse([]byte("relayer-keyring 1\nprimary " + id + "\nkey " + id + " " + value + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// sealedManagers returns Managers with and without the key of one store, in which the
// relayer "a" has two sealed URLs.
func sealedManagers(t *testing.T) (with, without *relayer.Manager) {
	t.Helper()
	store := memory.New()
	var err error
	if with, err = relayer.New(store, relayer.WithSealer(keysOf(t, "k", keyText))); err != nil {
		t.Fatal(err)
	}
	if without, err = relayer.New(store); err != nil {
		t.Fatal(err)
	}
	create(t, with, withURLs("a", sealedPath, sealedHost))
	return with, without
}

func TestNew_SealedURLs(t *testing.T) {
	with, without := sealedManagers(t)
	same := withURLs("a", sealedPath, sealedHost)
	renamed := same
	renamed.Name = "renamed"
	otherKey := withURLs("a", sealedPath+"2", sealedHost)
	otherHost := withURLs("a", sealedPath, "https://c.example/")
	for name, c := range map[string]struct {
		manager *relayer.Manager
		desired relayer.CreateRequest
		want    plan.Action
	}{
		"same, with the key":             {with, same, plan.Unchanged},
		"same, without the key":          {without, same, plan.Unchanged},
		"hidden part, with the key":      {with, otherKey, plan.Update},
		"hidden part, without the key":   {without, otherKey, plan.Unchanged},
		"visible part, with the key":     {with, otherHost, plan.Update},
		"visible part, without the key":  {without, otherHost, plan.Blocked}, // it cannot be written
		"another field, without the key": {without, renamed, plan.Update},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlan(t, c.manager, []relayer.CreateRequest{c.desired})
			// A wrapper has the same relayers.
			if wrapped := newPlan(t, struct{ relayer.Registry }{c.manager}, []relayer.CreateRequest{c.desired}); wrapped.String() != p.String() {
				t.Errorf("the plan of a wrapped Manager is\n%s\nand that of the Manager\n%s", wrapped, p)
			}
			if got := p.Entries()[0].Action; got != c.want {
				t.Errorf("the action is %s, want %s\n%v", got, c.want, p)
			}
			if strings.Contains(p.String(), secret) {
				t.Errorf("the plan has a secret:\n%v", p)
			}
		})
	}
}

// A plan with the wrong key must not claim that URLs are unchanged.
func TestNew_WrongKey(t *testing.T) {
	store := memory.New()
	with, err := relayer.New(store, relayer.WithSealer(keysOf(t, "k", keyText)))
	if err != nil {
		t.Fatal(err)
	}
	create(t, with, withURLs("a", sealedPath, sealedHost))
	for name, ring := range map[string]keyring.Keyring{
		"another value":          keysOf(t, "k", otherKeyText),
		"another name and value": keysOf(t, "other", otherKeyText),
	} {
		t.Run(name, func(t *testing.T) {
			wrong, err := relayer.New(store, relayer.WithSealer(ring))
			if err != nil {
				t.Fatal(err)
			}
			_, err = plan.New(t.Context(), wrong, []relayer.CreateRequest{withURLs("a", sealedPath, sealedHost)}, plan.Options{})
			if !errors.Is(err, relayer.ErrSealed) || !strings.Contains(err.Error(), "key k:") {
				t.Errorf("New returned %v, want an ErrSealed that names the key", err)
			}
			if _, err := plan.Export(t.Context(), wrong, relayer.Selector{}); !errors.Is(err, relayer.ErrSealed) {
				t.Errorf("Export returned %v, want an ErrSealed", err)
			}
		})
	}
}

func TestApply_WithoutKey(t *testing.T) {
	with, without := sealedManagers(t)
	renamed := withURLs("a", sealedPath, sealedHost)
	renamed.Name = "renamed"
	p := newPlan(t, without, []relayer.CreateRequest{renamed})
	if _, err := p.Apply(t.Context(), plan.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := with.Get(t.Context(), "a")
	if err != nil || r.Name != "renamed" || !slices.Equal(urlsOf(r), []string{sealedPath, sealedHost}) {
		t.Errorf("the relayer is named %q and has the URLs %q; error %v", r.Name, urlsOf(r), err)
	}
}

func TestExport_SealedURLs(t *testing.T) {
	with, without := sealedManagers(t)
	clear := newManager(t)
	create(t, clear, withURLs("a", sealedPath, sealedHost))
	if got, want := exported(t, with), exported(t, clear); got != want {
		t.Errorf("with the key, the file is\n%s\nwant\n%s", got, want)
	}
	file := exported(t, without)
	config, err := plan.Parse([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := newPlan(t, without, config.Relayers).Entries()[0].Action; got != plan.Unchanged {
		t.Errorf("a plan of the file has the action %s", got)
	}
	if strings.Contains(file, secret) {
		t.Errorf("the file has a secret:\n%s", file)
	}

	full, err := plan.ExportWithSecrets(t.Context(), with, relayer.Selector{})
	if err != nil || !strings.Contains(string(full), secret) {
		t.Errorf("with the key, the file with secrets is\n%s\nwith error %v", full, err)
	}
	if _, err := plan.ExportWithSecrets(t.Context(), without, relayer.Selector{}); !errors.Is(err, relayer.ErrSealed) {
		t.Errorf("without the key, the error is %v, want ErrSealed", err)
	}
}
