package relayer_test

import (
	"reflect"
	"testing"

	"github.com/go-relayer/relayer"
)

func TestActor_Context(t *testing.T) {
	if actor, ok := relayer.ActorFrom(t.Context()); ok || !reflect.DeepEqual(actor, relayer.Actor{}) {
		t.Errorf("without an actor: %+v, %t", actor, ok)
	}
	ann := relayer.Actor{ID: "ann", RequestID: "1", Address: "192.0.2.1", Attributes: map[string][]string{"group": {"ops", "risk"}}}
	bob := relayer.Actor{ID: "bob"}
	outer := relayer.WithActor(t.Context(), ann)
	inner := relayer.WithActor(outer, bob)
	if actor, ok := relayer.ActorFrom(inner); !ok || !reflect.DeepEqual(actor, bob) {
		t.Errorf("inner: %+v, %t", actor, ok)
	}
	if actor, ok := relayer.ActorFrom(outer); !ok || !reflect.DeepEqual(actor, ann) {
		t.Errorf("outer: %+v, %t", actor, ok)
	}
}

// An action that this version does not know counts as a write.
func TestAction_IsWrite(t *testing.T) {
	reads := []relayer.Action{relayer.ActionGet, relayer.ActionList, relayer.ActionWatch, relayer.ActionReveal}
	for _, action := range reads {
		if action.IsWrite() {
			t.Errorf("%s is a write", action)
		}
	}
	writes := []relayer.Action{
		relayer.ActionCreate, relayer.ActionUpdate, relayer.ActionPause, relayer.ActionResume, relayer.ActionDisable, relayer.ActionEnable,
		relayer.ActionDelete, "unknown", "",
	}
	for _, action := range writes {
		if !action.IsWrite() {
			t.Errorf("%s is a read", action)
		}
	}
}
