package relayer

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	wrappedSOL = "So11111111111111111111111111111111111111112"
	solanaUSDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkZwyTDt1v"

	sep23Account  = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"
	sep23Contract = "CA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUWDA"
)

func networkProblems(policy Policy) []fieldProblem {
	var found problems
	policy.checkNetworkRules(&found)
	var all []fieldProblem
	for _, problem := range found.All() {
		all = append(all, fieldProblem{problem.Field, problem.Message})
	}
	return all
}

type fieldProblem struct{ field, message string }

type networkRuleCase struct {
	name   string
	policy Policy
	want   []fieldProblem
}

func runNetworkRuleCases(t *testing.T, cases []networkRuleCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := networkProblems(c.policy); !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

func TestNetworkRules_EVM(t *testing.T) {
	const right = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
	runNetworkRuleCases(t, []networkRuleCase{
		{"nothing set", &EVMPolicy{}, nil},
		{"empty list", &EVMPolicy{WhitelistReceivers: []string{}}, nil},
		{"right address", &EVMPolicy{WhitelistReceivers: []string{right}}, nil},
		{
			"every wrong address is named",
			&EVMPolicy{WhitelistReceivers: []string{"", right, "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}},
			[]fieldProblem{
				{"policies.whitelist_receivers[0]", "must be an address: 0x and 40 hex digits"},
				{"policies.whitelist_receivers[2]", "must have a correct EIP-55 checksum or be all lower case"},
			},
		},
	})
}

func TestNetworkRules_SolanaAddresses(t *testing.T) {
	const message = "must be a Solana address: base58 of 32 bytes"
	good := []string{wrappedSOL, solanaUSDC}
	runNetworkRuleCases(t, []networkRuleCase{
		{"nothing set", &SolanaPolicy{}, nil},
		{"right ones", &SolanaPolicy{
			AllowedAccounts: good,
			AllowedPrograms: good,
			AllowedTokens:   []SolanaAllowedToken{{Mint: wrappedSOL}, {Mint: solanaUSDC}},
		}, nil},
		{"right disallowed ones", &SolanaPolicy{DisallowedAccounts: good}, nil},
		{
			"wrong ones are named in the order of the fields",
			&SolanaPolicy{
				AllowedAccounts: []string{wrappedSOL, "x"},
				AllowedPrograms: []string{"x", wrappedSOL, ""},
				AllowedTokens:   []SolanaAllowedToken{{Mint: solanaUSDC}, {Mint: sep23Account}},
			},
			[]fieldProblem{
				{"policies.allowed_accounts[1]", message},
				{"policies.allowed_programs[0]", message},
				{"policies.allowed_programs[2]", message},
				{"policies.allowed_tokens[1].mint", message},
			},
		},
		{
			"wrong disallowed one",
			&SolanaPolicy{DisallowedAccounts: []string{wrappedSOL, "x"}},
			[]fieldProblem{{"policies.disallowed_accounts[1]", message}},
		},
	})
}

func TestNetworkRules_SolanaAllowedAndDisallowed(t *testing.T) {
	accounts, empty := []string{wrappedSOL}, []string{}
	runNetworkRuleCases(t, []networkRuleCase{
		{"allowed only", &SolanaPolicy{AllowedAccounts: accounts, DisallowedAccounts: empty}, nil},
		{"disallowed only", &SolanaPolicy{AllowedAccounts: empty, DisallowedAccounts: accounts}, nil},
		{"both empty", &SolanaPolicy{AllowedAccounts: empty, DisallowedAccounts: empty}, nil},
		{
			"both",
			&SolanaPolicy{AllowedAccounts: accounts, DisallowedAccounts: accounts},
			[]fieldProblem{{"policies.disallowed_accounts", "must not be set together with allowed_accounts"}},
		},
		{
			"both: the problem of the list hides that of its element",
			&SolanaPolicy{AllowedAccounts: accounts, DisallowedAccounts: []string{"x"}},
			[]fieldProblem{{"policies.disallowed_accounts", "must not be set together with allowed_accounts"}},
		},
	})
}

func TestNetworkRules_SolanaPercentages(t *testing.T) {
	token := func(slippage float64) []SolanaAllowedToken {
		return []SolanaAllowedToken{{Mint: wrappedSOL, SwapConfig: &TokenSwapConfig{SlippagePercentage: &slippage}}}
	}
	margin := []fieldProblem{{"policies.fee_margin_percentage", "must be 0 or more"}}
	slippage := []fieldProblem{{"policies.allowed_tokens[0].swap_config.slippage_percentage", "must be from 0 to 100"}}
	runNetworkRuleCases(t, []networkRuleCase{
		{"margin 0", &SolanaPolicy{FeeMarginPercentage: new(0.0)}, nil},
		{"margin above 100", &SolanaPolicy{FeeMarginPercentage: new(250.5)}, nil},
		{"margin below 0", &SolanaPolicy{FeeMarginPercentage: new(-math.SmallestNonzeroFloat64)}, margin},
		{"margin not a number", &SolanaPolicy{FeeMarginPercentage: new(math.NaN())}, margin},
		{"token without slippage", &SolanaPolicy{
			AllowedTokens: []SolanaAllowedToken{{Mint: wrappedSOL, SwapConfig: &TokenSwapConfig{}}},
		}, nil},
		{"slippage 0", &SolanaPolicy{AllowedTokens: token(0)}, nil},
		{"slippage 100", &SolanaPolicy{AllowedTokens: token(100)}, nil},
		{"slippage below 0", &SolanaPolicy{AllowedTokens: token(-math.SmallestNonzeroFloat64)}, slippage},
		{"slippage above 100", &SolanaPolicy{AllowedTokens: token(math.Nextafter(100, 101))}, slippage},
		{"slippage not a number", &SolanaPolicy{AllowedTokens: token(math.NaN())}, slippage},
	})
}

func TestNetworkRules_SolanaSwapConfig(t *testing.T) {
	const schedule = "must be a cron expression of 5, 6 or 7 fields, such as */5 * * * *"
	runNetworkRuleCases(t, []networkRuleCase{
		{"user is the default", &SolanaPolicy{SwapConfig: &SolanaSwapConfig{}}, nil},
		{"user", &SolanaPolicy{FeePaymentStrategy: new(FeePaidByUser), SwapConfig: &SolanaSwapConfig{}}, nil},
		{"relayer without a swap", &SolanaPolicy{FeePaymentStrategy: new(FeePaidByRelayer)}, nil},
		{
			"relayer",
			&SolanaPolicy{FeePaymentStrategy: new(FeePaidByRelayer), SwapConfig: &SolanaSwapConfig{}},
			[]fieldProblem{{"policies.swap_config", "must not be set unless fee_payment_strategy is user"}},
		},
		{"right schedule", &SolanaPolicy{SwapConfig: &SolanaSwapConfig{CronSchedule: new("0 */6 * * *")}}, nil},
		{
			"empty schedule",
			&SolanaPolicy{SwapConfig: &SolanaSwapConfig{CronSchedule: new("")}},
			[]fieldProblem{{"policies.swap_config.cron_schedule", schedule}},
		},
		{
			"every problem at once",
			&SolanaPolicy{FeePaymentStrategy: new(FeePaidByRelayer), SwapConfig: &SolanaSwapConfig{
				CronSchedule:       new("60 * * * *"),
				JupiterSwapOptions: &JupiterSwapOptions{PriorityLevel: new(PriorityHigh)},
			}},
			[]fieldProblem{
				{"policies.swap_config.cron_schedule", schedule},
				{"policies.swap_config.jupiter_swap_options.priority_fee_max_lamports", "must be set if priority_level is set"},
				{"policies.swap_config.jupiter_swap_options", "must not be set unless strategy is jupiter-swap"},
				{"policies.swap_config", "must not be set unless fee_payment_strategy is user"},
			},
		},
	})
}

func TestNetworkRules_JupiterSwapOptions(t *testing.T) {
	policy := func(strategy *SolanaSwapStrategy, options *JupiterSwapOptions) Policy {
		return &SolanaPolicy{SwapConfig: &SolanaSwapConfig{Strategy: strategy, JupiterSwapOptions: options}}
	}
	otherStrategy := []fieldProblem{{"policies.swap_config.jupiter_swap_options", "must not be set unless strategy is jupiter-swap"}}
	runNetworkRuleCases(t, []networkRuleCase{
		{"no options", policy(new(SwapJupiterUltra), nil), nil},
		{"jupiter-swap", policy(new(SwapJupiter), &JupiterSwapOptions{}), nil},
		{"jupiter-ultra", policy(new(SwapJupiterUltra), &JupiterSwapOptions{}), otherStrategy},
		{"noop", policy(new(SwapNone), &JupiterSwapOptions{}), otherStrategy},
		{"no strategy", policy(nil, &JupiterSwapOptions{}), otherStrategy},
		{"other option alone", policy(new(SwapJupiter), &JupiterSwapOptions{DynamicComputeUnitLimit: new(true)}), nil},
		{"both of priority", policy(new(SwapJupiter), &JupiterSwapOptions{
			PriorityFeeMaxLamports: new(uint64(0)), PriorityLevel: new(PriorityMedium),
		}), nil},
		{
			"fee without level",
			policy(new(SwapJupiter), &JupiterSwapOptions{PriorityFeeMaxLamports: new(uint64(0))}),
			[]fieldProblem{{"policies.swap_config.jupiter_swap_options.priority_level", "must be set if priority_fee_max_lamports is set"}},
		},
		{
			"level without fee",
			policy(new(SwapJupiter), &JupiterSwapOptions{PriorityLevel: new(PriorityVeryHigh)}),
			[]fieldProblem{{"policies.swap_config.jupiter_swap_options.priority_fee_max_lamports", "must be set if priority_level is set"}},
		},
	})
}

func TestNetworkRules_StellarTokens(t *testing.T) {
	kind := func(kind *StellarTokenKind) *StellarTokenMetadata { return &StellarTokenMetadata{Kind: kind} }
	runNetworkRuleCases(t, []networkRuleCase{
		{"nothing set", &StellarPolicy{}, nil},
		{"right ones", &StellarPolicy{AllowedTokens: []StellarAllowedToken{
			{Asset: "native", Metadata: kind(&StellarTokenKind{})},
			{Asset: "XLM"},
			{Asset: "USDC:" + sep23Account, Metadata: kind(&StellarTokenKind{
				Classic: &StellarClassicAsset{Code: "USDC", Issuer: sep23Account},
			})},
			{Asset: sep23Contract, Metadata: kind(&StellarTokenKind{
				Contract: &StellarContractToken{ContractID: sep23Contract},
			})},
			{Asset: "native", Metadata: kind(nil)},
		}}, nil},
		{
			"wrong ones are named in the order of the fields",
			&StellarPolicy{AllowedTokens: []StellarAllowedToken{
				{Asset: "native"},
				{Asset: "", Metadata: kind(&StellarTokenKind{
					Classic: &StellarClassicAsset{Code: "US-DC", Issuer: sep23Contract},
				})},
				{Asset: "USDC:" + sep23Contract, Metadata: kind(&StellarTokenKind{
					Contract: &StellarContractToken{ContractID: sep23Account},
				})},
				{Asset: ":" + sep23Account},
			}},
			[]fieldProblem{
				{"policies.allowed_tokens[1].asset", "must be native, XLM, CODE:ISSUER or a valid contract ID: C and 55 characters"},
				{"policies.allowed_tokens[1].metadata.kind.classic.code", "must be 1 to 12 ASCII letters and digits"},
				{"policies.allowed_tokens[1].metadata.kind.classic.issuer", "must be a valid Stellar account: G and 55 characters"},
				{"policies.allowed_tokens[2].asset", "must have a valid Stellar account after the colon: G and 55 characters"},
				{"policies.allowed_tokens[2].metadata.kind.contract.contract_id", "must be a valid Stellar contract ID: C and 55 characters"},
				{"policies.allowed_tokens[3].asset", "must have a code of 1 to 12 ASCII letters and digits before the colon"},
			},
		},
	})
}

func TestNetworkRules_StellarPercentages(t *testing.T) {
	token := func(slippage float64) []StellarAllowedToken {
		return []StellarAllowedToken{{Asset: "native", SwapConfig: &TokenSwapConfig{SlippagePercentage: &slippage}}}
	}
	margin := []fieldProblem{{"policies.fee_margin_percentage", "must be 0 or more"}}
	slippage := []fieldProblem{{"policies.slippage_percentage", "must be from 0 to 100"}}
	ofToken := []fieldProblem{{"policies.allowed_tokens[0].swap_config.slippage_percentage", "must be from 0 to 100"}}
	below, above := -math.SmallestNonzeroFloat64, math.Nextafter(100, 101)
	runNetworkRuleCases(t, []networkRuleCase{
		{"margin 0", &StellarPolicy{FeeMarginPercentage: new(0.0)}, nil},
		{"margin above 100", &StellarPolicy{FeeMarginPercentage: new(250.5)}, nil},
		{"margin below 0", &StellarPolicy{FeeMarginPercentage: &below}, margin},
		{"slippage 0", &StellarPolicy{SlippagePercentage: new(0.0)}, nil},
		{"slippage 100", &StellarPolicy{SlippagePercentage: new(100.0)}, nil},
		{"slippage below 0", &StellarPolicy{SlippagePercentage: &below}, slippage},
		{"slippage above 100", &StellarPolicy{SlippagePercentage: &above}, slippage},
		{"slippage not a number", &StellarPolicy{SlippagePercentage: new(math.NaN())}, slippage},
		{"token slippage 0", &StellarPolicy{AllowedTokens: token(0)}, nil},
		{"token slippage 100", &StellarPolicy{AllowedTokens: token(100)}, nil},
		{"token slippage below 0", &StellarPolicy{AllowedTokens: token(below)}, ofToken},
		{"token slippage above 100", &StellarPolicy{AllowedTokens: token(above)}, ofToken},
	})
}

func TestNetworkRules_StellarSwapConfig(t *testing.T) {
	const notUser = "must not be set unless fee_payment_strategy is user"
	user, payer := new(FeePaidByUser), new(FeePaidByRelayer)
	strategies := []StellarSwapStrategy{SwapSoroswap}
	runNetworkRuleCases(t, []networkRuleCase{
		{"user", &StellarPolicy{FeePaymentStrategy: user, SwapConfig: &StellarSwapConfig{Strategies: strategies}}, nil},
		{"relayer without a swap", &StellarPolicy{FeePaymentStrategy: payer}, nil},
		{
			"relayer",
			&StellarPolicy{FeePaymentStrategy: payer, SwapConfig: &StellarSwapConfig{Strategies: strategies}},
			[]fieldProblem{{"policies.swap_config", notUser}},
		},
		{
			"there is no default",
			&StellarPolicy{SwapConfig: &StellarSwapConfig{Strategies: strategies}},
			[]fieldProblem{{"policies.swap_config", notUser}},
		},
		{
			"no strategies",
			&StellarPolicy{FeePaymentStrategy: user, SwapConfig: &StellarSwapConfig{}},
			[]fieldProblem{{"policies.swap_config.strategies", "must name at least one strategy"}},
		},
		{
			"every problem at once",
			&StellarPolicy{FeePaymentStrategy: payer, SwapConfig: &StellarSwapConfig{
				Strategies: []StellarSwapStrategy{}, CronSchedule: new("* * * *"),
			}},
			[]fieldProblem{
				{"policies.swap_config.strategies", "must name at least one strategy"},
				{"policies.swap_config.cron_schedule", "must be a cron expression of 5, 6 or 7 fields, such as */5 * * * *"},
				{"policies.swap_config", notUser},
			},
		},
		{"right schedule", &StellarPolicy{FeePaymentStrategy: user, SwapConfig: &StellarSwapConfig{
			Strategies: strategies, CronSchedule: new("@daily"),
		}}, nil},
	})
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

// Decoding a mebibyte with base58 takes many seconds. The limit is far below that, and
// far above the time that the rules need on a slow machine.
func TestNetworkRules_HugeInput(t *testing.T) {
	const size = 1 << 20
	for _, piece := range []string{"z", "1", "A", "0x", "*/1,", "0-59,", "1-", "* ", "\n", "ſ", "A:"} {
		start := time.Now()
		for _, policy := range everywhere(strings.Repeat(piece, size/len(piece)), 1) {
			if len(networkProblems(policy)) == 0 {
				t.Errorf("%q repeated is accepted by %T", piece, policy)
			}
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%q repeated took %v", piece, took)
		}
	}
}

func FuzzNetworkRules(f *testing.F) {
	for _, seed := range []string{
		"", "native", "USDC:" + sep23Account, sep23Contract, wrappedSOL, solanaUSDC, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "user",
		"*/5 * * * *", "0 30 9,12,15 1,15 MAY-AUG MON,WED,FRI 2018/2", "@daily", "60 * * * *",
	} {
		f.Add(seed, 50.0)
	}
	f.Add("TZ=UTC * * * * *", math.Inf(-1))
	f.Add(strings.Repeat("0-59/1,", 1000), math.NaN())
	f.Fuzz(func(t *testing.T, text string, percentage float64) {
		for _, policy := range everywhere(text, percentage) {
			found := networkProblems(policy)
			checkFoundProblems(t, found)
			if again := networkProblems(policy); !slices.Equal(again, found) {
				t.Errorf("%T: first %v, then %v", policy, found, again)
			}
		}
	})
}

// checkFoundProblems fails unless the size and form of the problems are independent of
// the input.
func checkFoundProblems(t *testing.T, found []fieldProblem) {
	t.Helper()
	const mostFieldsInOnePolicy = 16
	if len(found) > mostFieldsInOnePolicy {
		t.Errorf("%d problems", len(found))
	}
	for _, problem := range found {
		if !strings.HasPrefix(problem.field, "policies.") || len(problem.field) > 80 {
			t.Errorf("path %q", problem.field)
		}
		if !strings.HasPrefix(problem.message, "must ") || len(problem.message) > 80 {
			t.Errorf("message %q", problem.message)
		}
	}
}
