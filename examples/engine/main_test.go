package main

import (
	"context"
	"io"
	"iter"
	"strconv"
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
		{ID: "sol", NetworkType: relayer.Solana, Policy: &relayer.SolanaPolicy{
			FeePaymentStrategy: new(relayer.FeePaidByRelayer), MaxSignatures: new(int32(1)),
		}},
		{ID: "xlm", NetworkType: relayer.Stellar, Policy: &relayer.StellarPolicy{MaxFee: new(int32(100))}},
	} {
		req.Name, req.Network, req.SignerID = req.ID, "network", "signer"
		if _, err := registry.Create(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := registry.Disable(t.Context(), "failing", relayer.DisabledReason{Type: relayer.RPCValidationFailed}); err != nil {
		t.Fatal(err)
	}
	const refused = ": refused: enforce: relayer ID must not send the transaction: "
	jobs := []struct{ job, id, want string }{
		{`{"relayer":"treasury","evm":{"to":"0xab","maxFeePerGas":50000000000}}`, "treasury", ": accepted"},
		{`{"relayer":"treasury","evm":{"to":"0xab","maxFeePerGas":50000000001}}`, "treasury", refused + "policies.gas_price_cap above_maximum 50000000001, limit 50000000000"},
		{`{"relayer":"treasury","evm":{"to":"0xcd"}}`, "treasury", refused + "policies.gas_price_cap unknown, limit 50000000000; policies.whitelist_receivers not_listed 0xcd"},
		{`{"relayer":"treasury","solana":{}}`, "treasury", refused + "network_type wrong_network solana"},
		{`{"relayer":"treasury"}`, "treasury", ": refused: a job needs one transaction"},
		{`{"relayer":"open","evm":{},"solana":{}}`, "open", ": refused: a job needs one transaction"},
		{`{"relayer":"open","evm":{"to":"0xcd","maxFeePerGas":"999999999999999999999"}}`, "open", ": accepted"},
		{`{"relayer":"open","evm":{"to":"0x` + strings.Repeat("cd", 1<<20) + `"}}`, "open", ": accepted"},
		{`{"relayer":"paused","evm":{}}`, "paused", refused + "paused paused true"},
		{`{"relayer":"failing","evm":{}}`, "failing", refused + "system_disabled disabled RpcValidationFailed"},
		{`{"relayer":"sol","solana":{"signatures":1}}`, "sol", ": accepted"},
		{`{"relayer":"sol","solana":{"signatures":2}}`, "sol", refused + "policies.max_signatures above_maximum 2, limit 1"},
		{`{"relayer":"xlm","stellar":{"fee":100}}`, "xlm", ": accepted"},
		{`{"relayer":"xlm","stellar":{"fee":101}}`, "xlm", refused + "policies.max_fee above_maximum 101, limit 100"},
		{`{"relayer":"absent","evm":{}}`, "absent", `: refused: mirror: get "absent": relayer not found`},
		{`{"relayer":"open: accepted\nopen"}`, "open: accepted\nopen", `: refused: mirror: get "open: accepted\nopen": relayer not found`},
		{`{"relayer":"open"} {}`, "", ": refused: invalid character '{' after top-level value"},
		{`null`, "", `: refused: mirror: get "": relayer not found`},
	}
	var input, want strings.Builder
	for _, j := range jobs {
		input.WriteString(j.job + "\n")
		want.WriteString(strconv.Quote(j.id) + strings.Replace(j.want, "relayer ID", "relayer "+j.id, 1) + "\n")
	}
	input.WriteString("no JSON\n")
	var output strings.Builder
	if err := run(t.Context(), registry, strings.NewReader(input.String()), &output); err != nil {
		t.Fatal(err)
	}
	if got, isPrefix := strings.CutPrefix(output.String(), want.String()); !isPrefix || !strings.HasPrefix(got, `"": refused: `) {
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
				_, _ = io.WriteString(jobs, `{"relayer":"r","evm":{}}`+"\n")
				time.Sleep(20 * time.Second)
			}
		}()
		var output strings.Builder
		if err := run(t.Context(), silent{manager}, input, &output); err != nil {
			t.Fatal(err)
		}
		want := `"r": accepted` + "\n" + `"r": accepted` + "\n" + `"r": refused: the view of the registry is 40s old` + "\n"
		if output.String() != want {
			t.Errorf("decisions are\n%s\nwant\n%s", output.String(), want)
		}
	})
}
