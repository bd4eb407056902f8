package relayer

// Action is what a caller does to relayers. It names operations in metrics, logs and access
// rules. Later versions may add actions: code that permits actions must refuse those that it
// does not know.
type Action string

// The actions.
const (
	ActionCreate  Action = "create"
	ActionGet     Action = "get"
	ActionList    Action = "list"
	ActionWatch   Action = "watch"
	ActionUpdate  Action = "update"
	ActionPause   Action = "pause"
	ActionResume  Action = "resume"
	ActionDisable Action = "disable"
	ActionEnable  Action = "enable"
	ActionDelete  Action = "delete"

	// ActionReveal reads full RPC URLs. See [Manager.RPCURLs].
	ActionReveal Action = "reveal"
)

// IsWrite reports whether the action changes relayers. It is true for an unknown action, and
// false for [ActionReveal], which not every reader should have.
func (a Action) IsWrite() bool {
	return a != ActionGet && a != ActionList && a != ActionWatch && a != ActionReveal
}
