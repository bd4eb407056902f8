package drive

import (
	"context"

	"github.com/go-relayer/relayer"
)

// Call is one call of a Manager that its observers are told of.
type Call struct {
	Name string
	Kind relayer.OperationKind
	Do   func(ctx context.Context, m *relayer.Manager) error
}

// Calls returns a call for every method of a Manager that observers are told
// of.
func Calls() []Call {
	// A change that depends on no revision is applied anew after a conflict,
	// many times over.
	first := relayer.IfRevision(1)

	return []Call{
		{"Create", relayer.OperationCreate, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.Create(ctx, Request(Absent))
			return err
		}},
		{"CreateDocument", relayer.OperationCreate, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.CreateDocument(ctx, []byte(`{"id":"`+Absent+`","name":"Sepolia","network":"sepolia","network_type":"evm","paused":false,"signer_id":"local-signer"}`))
			return err
		}},
		{"Get", relayer.OperationGet, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.Get(ctx, ID)
			return err
		}},
		{"AppendDocument", relayer.OperationGet, func(ctx context.Context, m *relayer.Manager) error {
			_, _, err := m.AppendDocument(ctx, nil, ID)
			return err
		}},
		{"List", relayer.OperationList, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.List(ctx, 1, 10)
			return err
		}},
		{"AppendDocuments", relayer.OperationList, func(ctx context.Context, m *relayer.Manager) error {
			_, _, err := m.AppendDocuments(ctx, nil, 1, 10)
			return err
		}},
		{"All", relayer.OperationList, func(ctx context.Context, m *relayer.Manager) error {
			for _, err := range m.All(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"Update", relayer.OperationUpdate, func(ctx context.Context, m *relayer.Manager) error {
			rename := func(r *relayer.Relayer) error {
				r.Name = "Vault"
				return nil
			}
			_, err := m.Update(ctx, ID, rename, first)
			return err
		}},
		{"PatchDocument", relayer.OperationUpdate, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.PatchDocument(ctx, ID, []byte(`{"name":"Vault"}`), first)
			return err
		}},
		{"Pause", relayer.OperationPause, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.Pause(ctx, ID, first)
			return err
		}},
		{"Resume", relayer.OperationResume, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.Resume(ctx, ID, first)
			return err
		}},
		{"Disable", relayer.OperationDisable, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.Disable(ctx, ID, relayer.DisabledReason{Type: relayer.NonceSyncFailed}, first)
			return err
		}},
		{"Enable", relayer.OperationEnable, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.Enable(ctx, ID, first)
			return err
		}},
		{"Delete", relayer.OperationDelete, func(ctx context.Context, m *relayer.Manager) error {
			return m.Delete(ctx, ID, first)
		}},
	}
}
