package observertest

import (
	"context"

	"github.com/go-relayer/relayer"
)

// Call is a call of a Manager method that is reported to observers.
type Call struct {
	Name string
	Kind relayer.OperationKind
	Do   func(ctx context.Context, m *relayer.Manager) error
}

// Calls returns one call for every Manager method that is reported to observers.
func Calls() []Call {
	// An unconditional change is retried many times after a conflict.
	first := relayer.IfRevision(1)

	return []Call{
		{"Create", relayer.OperationCreate, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.Create(ctx, Request(NewID))
			return err
		}},
		{"CreateDocument", relayer.OperationCreate, func(ctx context.Context, m *relayer.Manager) error {
			_, err := m.CreateDocument(ctx, []byte(`{"id":"`+NewID+`","name":"Sepolia","network":"sepolia","network_type":"evm","paused":false,"signer_id":"local-signer"}`))
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
