package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/plan"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
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
	return must(keyring.Parse([]byte("relayer-keyring 1\nprimary " + id + "\nkey " + id + " " + value + "\n")))(t)
}

func sealedManager(t *testing.T, db relayer.Store, keys sealed.Keys) *relayer.Manager {
	t.Helper()
	return must(relayer.New(must(sealed.New(db, keys))(t)))(t)
}

// sealedManagers returns Managers with the key of one store, without it and with another one.
// The relayer "a" in the store has two sealed URLs.
func sealedManagers(t *testing.T) (with, without, wrong *relayer.Manager) {
	t.Helper()
	store := memory.New()
	with, wrong = sealedManager(t, store, keysOf(t, "k", keyText)), sealedManager(t, store, keysOf(t, "k", otherKeyText))
	without = must(relayer.New(store))(t)
	create(t, with, withURLs("a", sealedPath, sealedHost))
	return with, without, wrong
}

// Without the key a plan does not claim that URLs are unchanged.
func TestNew_SealedURLs(t *testing.T) {
	_, without, wrong := sealedManagers(t)
	same := withURLs("a", sealedPath, sealedHost)
	renamed := parse(t, exported(t, without)).Relayers[0]
	renamed.Name = "renamed"
	otherKey := withURLs("a", sealedPath+"2", sealedHost)
	otherHost := withURLs("a", sealedPath, "https://c.example/")
	for name, c := range map[string]struct {
		manager *relayer.Manager
		desired relayer.CreateRequest
		want    plan.Action
	}{
		"same, without the key":          {without, same, plan.Blocked},
		"same, with the wrong key":       {wrong, same, plan.Update}, // it replaces what cannot be opened
		"hidden part, without the key":   {without, otherKey, plan.Blocked},
		"visible part, without the key":  {without, otherHost, plan.Blocked},
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

func TestApply_WithoutKey(t *testing.T) {
	with, without, _ := sealedManagers(t)
	renamed := parse(t, exported(t, with)).Relayers
	renamed[0].Name = "renamed"
	mustApply(t, newPlan(t, without, renamed))
	r, err := with.RPCURLs(t.Context(), "a")
	if name := get(t, with, "a").Name; err != nil || name != "renamed" || !slices.Equal(texts(r), []string{sealedPath, sealedHost}) {
		t.Errorf("the relayer is named %q and has the URLs %q; error %v", name, texts(r), err)
	}
}

func TestExport_SealedURLs(t *testing.T) {
	with, without, _ := sealedManagers(t)
	file := exported(t, without)
	if got := exported(t, with); got != file {
		t.Errorf("with the key, the file is\n%s\nwant\n%s", got, file)
	}
	config := must(plan.Parse([]byte(file), nil))(t)
	if got := newPlan(t, without, config.Relayers).Entries()[0].Action; got != plan.Unchanged {
		t.Errorf("a plan of the file has the action %s", got)
	}
	if strings.Contains(file, secret) {
		t.Errorf("the file has a secret:\n%s", file)
	}
}
