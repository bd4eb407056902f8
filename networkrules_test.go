package relayer

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const (
	wrappedSOL = "So11111111111111111111111111111111111111112"
	solanaUSDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkZwyTDt1v"

	sep23Account  = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"
	sep23Contract = "CA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUWDA"
)

// networkProblems returns problems as "path message".
func networkProblems(policy Policy) (all []string) {
	var found problems
	checkRules(networkRules(), policy, "policies.", ruleMessage, &found)
	for _, problem := range found.All() {
		all = append(all, strings.TrimPrefix(problem.Field, "policies.")+" "+problem.Message)
	}
	return all
}

func TestNetworkRules(t *testing.T) {
	const (
		right     = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
		notSolana = " must be a Solana address: base58 of 32 bytes"
		exclusive = "disallowed_accounts must not be set together with allowed_accounts"
		margin    = "fee_margin_percentage must be 0 or more"
		percent   = " must be from 0 to 100"
		ofToken   = "allowed_tokens[0].swap_config.slippage_percentage" + percent
		schedule  = "swap_config.cron_schedule must be a cron expression of 5, 6 or 7 fields, such as */5 * * * *"
		notUser   = "swap_config must not be set unless fee_payment_strategy is user"
		options   = "swap_config.jupiter_swap_options"
		notSwap   = options + " must not be set unless strategy is jupiter-swap"
		noChoice  = "swap_config.strategies must name at least one strategy"
	)
	good, empty, below, above := []string{wrappedSOL, solanaUSDC}, []string{}, -math.SmallestNonzeroFloat64, math.Nextafter(100, 101)
	user, payer, choice := new(FeePaidByUser), new(FeePaidByRelayer), []StellarSwapStrategy{SwapSoroswap}
	slips := func(slippage float64) Policy {
		return &SolanaPolicy{AllowedTokens: []SolanaAllowedToken{{Mint: wrappedSOL, SwapConfig: &TokenSwapConfig{SlippagePercentage: &slippage}}}}
	}
	jupiter := func(strategy *SolanaSwapStrategy, options *JupiterSwapOptions) Policy {
		return &SolanaPolicy{SwapConfig: &SolanaSwapConfig{Strategy: strategy, JupiterSwapOptions: options}}
	}
	kind := func(kind *StellarTokenKind) *StellarTokenMetadata { return &StellarTokenMetadata{Kind: kind} }
	for _, c := range []struct {
		policy Policy
		want   []string
	}{
		{&EVMPolicy{}, nil},
		{&EVMPolicy{WhitelistReceivers: []string{"", right, "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}}, []string{
			"whitelist_receivers[0] must be an address: 0x and 40 hex digits",
			"whitelist_receivers[2] must have a correct EIP-55 checksum or be all lower case",
		}},

		{&SolanaPolicy{}, nil},
		{&SolanaPolicy{AllowedAccounts: good, AllowedPrograms: good, AllowedTokens: []SolanaAllowedToken{{Mint: wrappedSOL}, {Mint: solanaUSDC}}}, nil},
		{&SolanaPolicy{
			AllowedAccounts: []string{wrappedSOL, "x"}, AllowedPrograms: []string{"x", wrappedSOL, ""},
			AllowedTokens: []SolanaAllowedToken{{Mint: solanaUSDC}, {Mint: sep23Account}},
		}, []string{"allowed_accounts[1]" + notSolana, "allowed_programs[0]" + notSolana, "allowed_programs[2]" + notSolana, "allowed_tokens[1].mint" + notSolana}},
		{&SolanaPolicy{DisallowedAccounts: []string{wrappedSOL, "x"}}, []string{"disallowed_accounts[1]" + notSolana}},
		{&SolanaPolicy{AllowedAccounts: good, DisallowedAccounts: empty}, nil},
		{&SolanaPolicy{AllowedAccounts: empty, DisallowedAccounts: good}, nil},
		// The problem of the list hides the problem of its element.
		{&SolanaPolicy{AllowedAccounts: good, DisallowedAccounts: []string{"x"}}, []string{exclusive}},

		{&SolanaPolicy{FeeMarginPercentage: new(0.0)}, nil},
		{&SolanaPolicy{FeeMarginPercentage: new(250.5)}, nil},
		{&SolanaPolicy{FeeMarginPercentage: &below}, []string{margin}},
		{&SolanaPolicy{FeeMarginPercentage: new(math.NaN())}, []string{margin}},
		{&SolanaPolicy{AllowedTokens: []SolanaAllowedToken{{Mint: wrappedSOL, SwapConfig: &TokenSwapConfig{}}}}, nil},
		{slips(0), nil},
		{slips(100), nil},
		{slips(below), []string{ofToken}},
		{slips(above), []string{ofToken}},
		{slips(math.NaN()), []string{ofToken}},

		{&SolanaPolicy{SwapConfig: &SolanaSwapConfig{}}, nil}, // user is the default
		{&SolanaPolicy{FeePaymentStrategy: user, SwapConfig: &SolanaSwapConfig{CronSchedule: new("0 */6 * * *")}}, nil},
		{&SolanaPolicy{FeePaymentStrategy: payer}, nil},
		{&SolanaPolicy{FeePaymentStrategy: payer, SwapConfig: &SolanaSwapConfig{}}, []string{notUser}},
		{&SolanaPolicy{SwapConfig: &SolanaSwapConfig{CronSchedule: new("")}}, []string{schedule}},
		{&SolanaPolicy{SwapConfig: &SolanaSwapConfig{
			Strategy: new(SwapJupiter), CronSchedule: new("60 * * * *"), JupiterSwapOptions: &JupiterSwapOptions{PriorityLevel: new(PriorityHigh)},
		}}, []string{schedule, options + ".priority_fee_max_lamports must be set if priority_level is set"}},
		// The problem of the object hides the problems of its members.
		{&SolanaPolicy{FeePaymentStrategy: payer, SwapConfig: &SolanaSwapConfig{CronSchedule: new("")}}, []string{notUser}},
		{jupiter(new(SwapJupiterUltra), nil), nil},
		{jupiter(new(SwapJupiter), &JupiterSwapOptions{DynamicComputeUnitLimit: new(true)}), nil},
		{jupiter(new(SwapJupiterUltra), &JupiterSwapOptions{}), []string{notSwap}},
		{jupiter(new(SwapNone), &JupiterSwapOptions{}), []string{notSwap}},
		{jupiter(nil, &JupiterSwapOptions{}), []string{notSwap}},
		{jupiter(new(SwapJupiter), &JupiterSwapOptions{PriorityFeeMaxLamports: new(uint64(0)), PriorityLevel: new(PriorityMedium)}), nil},
		{jupiter(new(SwapJupiter), &JupiterSwapOptions{PriorityFeeMaxLamports: new(uint64(0))}), []string{options + ".priority_level must be set if priority_fee_max_lamports is set"}},

		{&StellarPolicy{}, nil},
		{&StellarPolicy{AllowedTokens: []StellarAllowedToken{
			{Asset: "native", Metadata: kind(&StellarTokenKind{})}, {Asset: "XLM", Metadata: kind(nil)},
			{Asset: "USDC:" + sep23Account, Metadata: kind(&StellarTokenKind{Classic: &StellarClassicAsset{Code: "USDC", Issuer: sep23Account}})},
			{Asset: sep23Contract, Metadata: kind(&StellarTokenKind{Contract: &StellarContractToken{ContractID: sep23Contract}})},
		}}, nil},
		{&StellarPolicy{AllowedTokens: []StellarAllowedToken{
			{Asset: "native"}, {Asset: "", Metadata: kind(&StellarTokenKind{Classic: &StellarClassicAsset{Code: "US-DC", Issuer: sep23Contract}})},
			{Asset: "USDC:" + sep23Contract, Metadata: kind(&StellarTokenKind{Contract: &StellarContractToken{ContractID: sep23Account}})},
		}}, []string{
			"allowed_tokens[1].asset must be native, XLM, CODE:ISSUER or a valid contract ID: C and 55 characters",
			"allowed_tokens[1].metadata.kind.classic.code must be 1 to 12 ASCII letters and digits",
			"allowed_tokens[1].metadata.kind.classic.issuer must be a valid Stellar account: G and 55 characters",
			"allowed_tokens[2].asset must have a valid Stellar account after the colon: G and 55 characters",
			"allowed_tokens[2].metadata.kind.contract.contract_id must be a valid Stellar contract ID: C and 55 characters",
		}},
		{&StellarPolicy{FeeMarginPercentage: new(250.5), SlippagePercentage: new(100.0)}, nil},
		{&StellarPolicy{FeeMarginPercentage: &below, SlippagePercentage: &above}, []string{margin, "slippage_percentage" + percent}},
		{&StellarPolicy{AllowedTokens: []StellarAllowedToken{{Asset: "XLM", SwapConfig: &TokenSwapConfig{SlippagePercentage: &above}}}}, []string{ofToken}},
		{&StellarPolicy{FeePaymentStrategy: user, SwapConfig: &StellarSwapConfig{Strategies: choice, CronSchedule: new("@daily")}}, nil},
		{&StellarPolicy{FeePaymentStrategy: payer}, nil},
		{&StellarPolicy{FeePaymentStrategy: payer, SwapConfig: &StellarSwapConfig{Strategies: choice}}, []string{notUser}},
		{&StellarPolicy{SwapConfig: &StellarSwapConfig{Strategies: choice}}, []string{notUser}}, // there is no default
		{&StellarPolicy{FeePaymentStrategy: user, SwapConfig: &StellarSwapConfig{}}, []string{noChoice}},
		{&StellarPolicy{FeePaymentStrategy: user, SwapConfig: &StellarSwapConfig{Strategies: []StellarSwapStrategy{}, CronSchedule: new("* * * *")}}, []string{noChoice, schedule}},
	} {
		if got := networkProblems(c.policy); !slices.Equal(got, c.want) {
			t.Errorf("%v\ngot  %q\nwant %q", c.policy, got, c.want)
		}
	}
}

// everywhere returns policies with one text in every field that has a rule.
func everywhere(text string, percentage float64) []Policy {
	texts := []string{text, text}
	swap := &TokenSwapConfig{SlippagePercentage: &percentage}
	return []Policy{
		&EVMPolicy{WhitelistReceivers: texts},
		&SolanaPolicy{
			AllowedAccounts:     texts,
			AllowedPrograms:     texts,
			AllowedTokens:       []SolanaAllowedToken{{Mint: text, SwapConfig: swap}},
			DisallowedAccounts:  texts,
			FeeMarginPercentage: &percentage,
			FeePaymentStrategy:  (*FeePaymentStrategy)(&text),
			SwapConfig: &SolanaSwapConfig{
				Strategy:           (*SolanaSwapStrategy)(&text),
				CronSchedule:       &text,
				JupiterSwapOptions: &JupiterSwapOptions{PriorityLevel: (*JupiterPriorityLevel)(&text)},
			},
		},
		&StellarPolicy{
			AllowedTokens: []StellarAllowedToken{{
				Asset: text,
				Metadata: &StellarTokenMetadata{Kind: &StellarTokenKind{
					Classic:  &StellarClassicAsset{Code: text, Issuer: text},
					Contract: &StellarContractToken{ContractID: text},
				}},
				SwapConfig: swap,
			}},
			FeeMarginPercentage: &percentage,
			FeePaymentStrategy:  (*FeePaymentStrategy)(&text),
			SlippagePercentage:  &percentage,
			SwapConfig:          &StellarSwapConfig{CronSchedule: &text},
		},
	}
}

// A mebibyte takes base58 many seconds, so the rules reject long texts before they read them.
func TestNetworkRules_HugeInput(t *testing.T) {
	const size = 1 << 20
	for _, piece := range []string{"z", "1", "A", "0x", "*/1,", "0-59,", "1-", "* ", "\n", "ſ", "A:"} {
		for _, policy := range everywhere(strings.Repeat(piece, size/len(piece)), 1) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			found := networkProblems(policy)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; found == nil || allocated > size/2 { // the race detector needs some of it
				t.Errorf("%q repeated in %T: %d problems with %d bytes allocated", piece, policy, len(found), allocated)
			}
		}
	}
}
