package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

// twoTeams returns a registry with relayers of two teams.
func twoTeams(options ...relayer.Option) *relayer.Manager {
	manager, err := relayer.New(memory.New(), options...)
	if err != nil {
		log.Fatal(err)
	}
	for id, team := range map[string]string{"treasury": "payments", "oracle": "risk"} {
		_, err := manager.Create(context.Background(), relayer.CreateRequest{
			ID: id, Name: id, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer",
			Labels: map[string]string{"team": team},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	return manager
}

func ExampleParseSelector() {
	selector, err := relayer.ParseSelector("network=sepolia,label.team=payments|treasury")
	if err != nil {
		log.Fatal(err)
	}
	page, err := twoTeams().List(context.Background(), relayer.ListQuery{Selector: selector})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.Pagination.TotalItems, page.Relayers[0].ID)
	// Output: 1 treasury
}

func ExampleSelector_Where() {
	active := relayer.Selector{}.Where("paused", "false").Where("system_disabled", "false")
	fmt.Println(active.Where("network", "mainnet", "sepolia"))
	// Output: network=mainnet|sepolia,paused=false,system_disabled=false
}

// A team sees and changes only its own relayers.
func ExampleManager_Within() {
	ctx := context.Background()
	payments := twoTeams().Within(relayer.Selector{}.Where("label.team", "payments"))

	_, err := payments.Pause(ctx, "oracle")
	fmt.Println(errors.Is(err, relayer.ErrNotFound))
	_, err = payments.Patch(ctx, "treasury", patchtest.JSON(map[string]any{"labels": map[string]string{"team": "risk"}}))
	fmt.Println(err)
	// Output:
	// true
	// relayer: update treasury: invalid relayer: labels.team must be "payments", to which the access is limited
}

// A host that relays transactions refuses to delete a relayer that still has some.
func ExampleWithAdmission() {
	pending := map[string]int{"treasury": 3}
	manager := twoTeams(relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
		if o.Action != relayer.ActionDelete || pending[old.ID] == 0 {
			return nil
		}
		return relayer.Refuse(fmt.Sprintf("%d transactions are pending", pending[old.ID]))
	}))
	fmt.Println(manager.Delete(context.Background(), "treasury"))
	// Output: relayer: delete treasury: invalid relayer: 3 transactions are pending
}

// A dry run returns what the write would return.
func ExampleDryRun() {
	ctx := context.Background()
	manager := twoTeams()
	changed, err := manager.Patch(ctx, "treasury", patchtest.JSON(map[string]any{"name": "Treasury"}), relayer.DryRun())
	if err != nil {
		log.Fatal(err)
	}
	stored, err := manager.Get(ctx, "treasury")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(changed.Name, stored.Name)
	// Output: Treasury treasury
}

// An audit log has who changed what.
func ExampleWithObserver() {
	manager := twoTeams(relayer.WithObserver(func(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
		return ctx, func(err error) {
			if operation.Action.IsWrite() && operation.Action != relayer.ActionCreate {
				fmt.Println(operation.Actor.ID, operation.Action, operation.ID, operation.Changed, err)
			}
		}
	}))
	ctx := relayer.WithActor(context.Background(), relayer.Actor{ID: "ann"})
	if _, err := manager.Pause(ctx, "treasury"); err != nil {
		log.Fatal(err)
	}
	// Output: ann pause treasury [paused] <nil>
}
