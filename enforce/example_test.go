package enforce_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/enforce"
)

// An engine refuses a transaction on an EVM network, and sends the violations to its client.
func Example_evm() {
	r := &relayer.Relayer{ID: "treasury", NetworkType: relayer.EVM, Policy: &relayer.EVMPolicy{
		GasPriceCap:        new(relayer.Gwei(50)),
		MinBalance:         new(relayer.Ether(1)),
		WhitelistReceivers: []string{"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"},
	}}
	// gas limit × maximum fee per gas, and no value
	cost := relayer.Gwei(21000 * 60)
	err := enforce.Check(r, enforce.EVM{
		To:           "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		MaxFeePerGas: new(relayer.Gwei(60)),
		GasLimit:     21000,
		Cost:         &cost,
		Balance:      new(relayer.Ether(2)),
	})
	if refused, ok := errors.AsType[*enforce.Error](err); ok {
		text, _ := json.MarshalIndent(refused.Violations, "", "  ")
		fmt.Println(string(text))
	}
	// Output:
	// [
	//   {
	//     "field": "policies.gas_price_cap",
	//     "code": "above_maximum",
	//     "value": "60000000000",
	//     "limit": "50000000000"
	//   },
	//   {
	//     "field": "policies.whitelist_receivers",
	//     "code": "not_listed",
	//     "value": "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
	//   }
	// ]
}

// A user pays the fee of a transaction on Solana in a token.
func Example_solana() {
	const (
		feePayer = "8ZU4Uj4pGHKX1MQsbcVDWsYmMpLRz3Wxfz2ZB7gGkGvE"
		program  = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
		usdc     = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkZwyTDt1v"
	)
	r := &relayer.Relayer{ID: "swaps", NetworkType: relayer.Solana, Policy: &relayer.SolanaPolicy{
		AllowedPrograms:    []string{program},
		AllowedTokens:      []relayer.SolanaAllowedToken{{Mint: usdc, MaxAllowedFee: new(uint64(20000))}},
		FeePaymentStrategy: new(relayer.FeePaidByUser),
		MaxSignatures:      new(int32(2)),
	}}
	tx := enforce.Solana{
		Accounts:   []string{feePayer, program},
		Programs:   []string{program},
		Tokens:     []string{usdc},
		Signatures: 2,
		Payments:   []enforce.Payment{{Asset: usdc, Amount: 15000, Required: new(uint64(15000))}},
	}
	fmt.Println(enforce.Check(r, tx))
	tx.Payments[0].Amount = 14999
	fmt.Println(enforce.Check(r, tx))
	// Output:
	// <nil>
	// enforce: relayer swaps must not send the transaction: policies.fee_payment_strategy below_minimum 14999, limit 15000
}

// The description of a transaction on Stellar lacks a value that the policy limits.
func Example_stellar() {
	r := &relayer.Relayer{ID: "payouts", NetworkType: relayer.Stellar, Paused: true, Policy: &relayer.StellarPolicy{
		MaxFee:     new(int32(1000)),
		MinBalance: new(int64(10_000_000)), // 1 XLM
	}}
	fmt.Println(enforce.Check(r, enforce.Stellar{Fee: new(uint64(1000)), Cost: new(uint64(1000))}))
	r.Paused = false
	fmt.Println(enforce.Check(r, enforce.Stellar{Fee: new(uint64(1000)), Cost: new(uint64(1000)), Balance: new(uint64(10_001_000))}))
	// Output:
	// enforce: relayer payouts must not send the transaction: paused paused true; policies.min_balance unknown, limit 10000000
	// <nil>
}
