package main

import (
	"context"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

func TestRun(t *testing.T) {
	registry, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []relayer.CreateRequest{
		{ID: "treasury", NetworkType: relayer.EVM, Policy: &relayer.EVMPolicy{
			GasPriceCap: new(relayer.Gwei(50)), WhitelistReceivers: []string{"0xAB"},
		}},
		{ID: "open", NetworkType: relayer.EVM},
		{ID: "paused", NetworkType: relayer.EVM, Paused: true},
		{ID: "failing", NetworkType: relayer.EVM},
		{ID: "sol", NetworkType: relayer.Solana},
	} {
		req.Name, req.Network, req.SignerID = req.ID, "network", "signer"
		if _, err := registry.Create(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := registry.Disable(t.Context(), "failing", relayer.DisabledReason{Type: relayer.RPCValidationFailed}); err != nil {
		t.Fatal(err)
	}
	jobs := []struct{ job, want string }{
		{`{"relayer":"treasury","receiver":"0xab","gas_price":50000000000,"value":1}`, "treasury: accepted"},
		{`{"relayer":"treasury","receiver":"0xab","gas_price":50000000001}`, "treasury: refused: the gas price is above the cap of 50000000000 wei"},
		{`{"relayer":"treasury","receiver":"0xcd","gas_price":1}`, "treasury: refused: the receiver is not on the whitelist"},
		{`{"relayer":"open","receiver":"0xcd","gas_price":"999999999999999999999"}`, "open: accepted"},
		{`{"relayer":"treasury","receiver":"0xab"}`, "treasury: refused: the receiver and the gas price are required"},
		{`{"relayer":"open","gas_price":1}`, "open: refused: the receiver and the gas price are required"},
		{`{"relayer":"paused"}`, "paused: refused: the relayer is paused"},
		{`{"relayer":"failing"}`, "failing: refused: the relayer is disabled: RpcValidationFailed"},
		{`{"relayer":"sol"}`, "sol: refused: this engine does not relay on solana networks"},
		{`{"relayer":"absent"}`, "absent: refused: there is no such relayer"},
		{`{"relayer":"open: accepted\nopen"}`, ": refused: the relayer must be an ID"},
		{`{"relayer":"open","gas_prise":1}`, `: refused: json: unknown field "gas_prise"`},
		{`{"relayer":"open"} {}`, ": refused: the line must be one JSON object"},
		{`null`, ": refused: the relayer must be an ID"},
	}
	var input, want strings.Builder
	for _, j := range jobs {
		input.WriteString(j.job + "\n")
		want.WriteString(j.want + "\n")
	}
	input.WriteString("no JSON\n")
	var output strings.Builder
	if err := run(t.Context(), registry, strings.NewReader(input.String()), &output); err != nil {
		t.Fatal(err)
	}
	if got, isPrefix := strings.CutPrefix(output.String(), want.String()); !isPrefix || !strings.HasPrefix(got, ": refused: ") {
		t.Errorf("decisions are\n%s\nwant\n%s", output.String(), want.String())
	}
}

// silent is a Manager whose watches yield nothing.
type silent struct{ *relayer.Manager }

func (s silent) Watch(ctx context.Context, _ relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	return func(func(relayer.Change, error) bool) { <-ctx.Done() }
}

// A view that the registry does not confirm becomes too old to accept jobs.
func TestRun_OldView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager, err := relayer.New(memory.New())
		if err != nil {
			t.Fatal(err)
		}
		_, err = manager.Create(t.Context(), relayer.CreateRequest{ID: "r", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		input, jobs := io.Pipe()
		go func() {
			defer jobs.Close()
			for range 3 {
				_, _ = io.WriteString(jobs, `{"relayer":"r","receiver":"0xab","gas_price":1}`+"\n")
				time.Sleep(20 * time.Second)
			}
		}()
		var output strings.Builder
		if err := run(t.Context(), silent{manager}, input, &output); err != nil {
			t.Fatal(err)
		}
		want := "r: accepted\nr: accepted\nr: refused: the view of the registry is 40s old\n"
		if output.String() != want {
			t.Errorf("decisions are\n%s\nwant\n%s", output.String(), want)
		}
	})
}
