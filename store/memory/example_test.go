package memory_test

import (
	"context"
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

func Example() {
	ctx := context.Background()
	store := memory.New()
	if _, err := store.Create(ctx, relayer.Record{ID: "sepolia", Document: []byte(`{"id":"sepolia"}`)}); err != nil {
		fmt.Println(err)
		return
	}
	page, err := store.List(ctx, relayer.StoreQuery{Limit: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(page.Total, string(page.Records[0].Document))
	// Output: 1 {"id":"sepolia"}
}
