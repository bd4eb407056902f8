package relayer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-relayer/relayer/internal/chain"
	"github.com/go-relayer/relayer/internal/cron"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// knownNetworkType is what this version of the package has of a network type.
type knownNetworkType struct {
	name      NetworkType
	newPolicy func() Policy

	// addressProblem returns why a relayer cannot have the address, or "".
	addressProblem func(address string) string
}

// networkTypes is the table of the network types.
var networkTypes = []knownNetworkType{
	{EVM, func() Policy { return new(EVMPolicy) }, chain.EVMAddressProblem},
	{Solana, func() Policy { return new(SolanaPolicy) }, solanaAddressProblem},
	{Stellar, func() Policy { return new(StellarPolicy) }, stellarAccountProblem},
}

// NetworkTypes returns the network types that this version of the package has. Later versions
// may have more.
func NetworkTypes() []NetworkType {
	names := make([]NetworkType, 0, len(networkTypes))
	for _, t := range networkTypes {
		names = append(names, t.name)
	}
	return names
}

// networkTypeProblem returns why the text is no known network type, or "".
func networkTypeProblem(text string) string {
	if newPolicy(NetworkType(text)) != nil {
		return ""
	}
	return "must be one of " + networkTypeList()
}

func networkTypeList() string {
	var names []string
	for _, name := range NetworkTypes() {
		names = append(names, string(name))
	}
	return strings.Join(names, ", ")
}

// newPolicy returns an empty policy of the network type, or nil if the type is unknown.
func newPolicy(name NetworkType) Policy {
	i := slices.IndexFunc(networkTypes, func(t knownNetworkType) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return networkTypes[i].newPolicy()
}

// isKnown reports whether the policy is that of a type of the table. A type of another package
// implements Policy if it embeds one; its own fields would be lost.
func isKnown(policy Policy) bool {
	return slices.ContainsFunc(networkTypes, func(t knownNetworkType) bool { return reflect.TypeOf(t.newPolicy()) == reflect.TypeOf(policy) })
}

// networkAddressProblem returns why a relayer of the network type cannot have the address, or
// "".
func networkAddressProblem(address string, name NetworkType) string {
	for _, t := range networkTypes {
		if t.name == name {
			return t.addressProblem(address)
		}
	}
	return ""
}

const swapNeedsUser = "must not be set unless fee_payment_strategy is user"

// The rules of a list or an object are checked after those of its parts: a problem of the
// whole hides later problems of its parts.

func solanaAddressProblem(address string) string {
	if chain.IsSolanaAddress(address) {
		return ""
	}
	return "must be a Solana address: base58 of 32 bytes"
}

func stellarAccountProblem(account string) string {
	if chain.IsStellarAccount(account) {
		return ""
	}
	return "must be a valid Stellar account: G and 55 characters"
}

// checkOuterSpaces reports a name that looks like another one.
func checkOuterSpaces(found *problems, field, name string) {
	if strings.TrimSpace(name) != name {
		found.Add(field, "must not begin or end with a space")
	}
}

func (p *EVMPolicy) checkNetworkRules(found *problems) {
	for i, receiver := range p.WhitelistReceivers {
		if message := chain.EVMAddressProblem(receiver); message != "" {
			found.Add(fmt.Sprintf("policies.whitelist_receivers[%d]", i), message)
		}
	}
}

func (p *SolanaPolicy) checkNetworkRules(found *problems) {
	checkSolanaAddresses(found, "policies.allowed_accounts", p.AllowedAccounts)
	checkSolanaAddresses(found, "policies.allowed_programs", p.AllowedPrograms)
	for i, token := range p.AllowedTokens {
		path := fmt.Sprintf("policies.allowed_tokens[%d]", i)
		checkSolanaAddress(found, path+".mint", token.Mint)
		checkTokenSwap(found, path+".swap_config", token.SwapConfig)
	}
	checkSolanaAddresses(found, "policies.disallowed_accounts", p.DisallowedAccounts)
	if len(p.AllowedAccounts) > 0 && len(p.DisallowedAccounts) > 0 {
		found.Add("policies.disallowed_accounts", "must not be set together with allowed_accounts")
	}
	checkFeeMargin(found, p.FeeMarginPercentage)
	p.checkSwapConfig(found)
}

func (p *SolanaPolicy) checkSwapConfig(found *problems) {
	swap := p.SwapConfig
	if swap == nil {
		return
	}
	checkCronSchedule(found, swap.CronSchedule)
	swap.checkJupiterOptions(found, "policies.swap_config.jupiter_swap_options")
	if p.FeePaymentStrategy != nil && *p.FeePaymentStrategy != FeePaidByUser {
		found.Add("policies.swap_config", swapNeedsUser)
	}
}

func (c *SolanaSwapConfig) checkJupiterOptions(found *problems, path string) {
	if c.JupiterSwapOptions == nil {
		return
	}
	c.JupiterSwapOptions.checkPriority(found, path)
	if c.Strategy == nil || *c.Strategy != SwapJupiter {
		found.Add(path, "must not be set unless strategy is jupiter-swap")
	}
}

// checkPriority reports the missing field, because that is the one to add.
func (o *JupiterSwapOptions) checkPriority(found *problems, path string) {
	if o.PriorityFeeMaxLamports == nil && o.PriorityLevel != nil {
		found.Add(path+".priority_fee_max_lamports", "must be set if priority_level is set")
	}
	if o.PriorityFeeMaxLamports != nil && o.PriorityLevel == nil {
		found.Add(path+".priority_level", "must be set if priority_fee_max_lamports is set")
	}
}

func (p *StellarPolicy) checkNetworkRules(found *problems) {
	for i, token := range p.AllowedTokens {
		path := fmt.Sprintf("policies.allowed_tokens[%d]", i)
		if message := chain.StellarAssetProblem(token.Asset); message != "" {
			found.Add(path+".asset", message)
		}
		if token.Metadata != nil && token.Metadata.Kind != nil {
			token.Metadata.Kind.checkNetworkRules(found, path+".metadata.kind")
		}
		checkTokenSwap(found, path+".swap_config", token.SwapConfig)
	}
	checkFeeMargin(found, p.FeeMarginPercentage)
	checkSlippage(found, "policies.slippage_percentage", p.SlippagePercentage)
	p.checkSwapConfig(found)
}

func (p *StellarPolicy) checkSwapConfig(found *problems) {
	swap := p.SwapConfig
	if swap == nil {
		return
	}
	if len(swap.Strategies) == 0 {
		found.Add("policies.swap_config.strategies", "must name at least one strategy")
	}
	checkCronSchedule(found, swap.CronSchedule)
	if p.FeePaymentStrategy == nil || *p.FeePaymentStrategy != FeePaidByUser {
		found.Add("policies.swap_config", swapNeedsUser)
	}
}

func (k *StellarTokenKind) checkNetworkRules(found *problems, path string) {
	if k.Classic != nil {
		if !chain.IsStellarAssetCode(k.Classic.Code) {
			found.Add(path+".classic.code", "must be 1 to 12 ASCII letters and digits")
		}
		if problem := stellarAccountProblem(k.Classic.Issuer); problem != "" {
			found.Add(path+".classic.issuer", problem)
		}
	}
	if k.Contract != nil && !chain.IsStellarContract(k.Contract.ContractID) {
		found.Add(path+".contract.contract_id", "must be a valid Stellar contract ID: C and 55 characters")
	}
}

func checkSolanaAddresses(found *problems, path string, addresses []string) {
	for i, address := range addresses {
		checkSolanaAddress(found, fmt.Sprintf("%s[%d]", path, i), address)
	}
}

func checkSolanaAddress(found *problems, path, address string) {
	if problem := solanaAddressProblem(address); problem != "" {
		found.Add(path, problem)
	}
}

func checkTokenSwap(found *problems, path string, swap *TokenSwapConfig) {
	if swap != nil {
		checkSlippage(found, path+".slippage_percentage", swap.SlippagePercentage)
	}
}

// The comparisons in checkFeeMargin and checkSlippage state the valid range, so that NaN,
// for which every comparison is false, is rejected.

func checkFeeMargin(found *problems, percentage *float64) {
	if percentage != nil && !(*percentage >= 0) {
		found.Report("policies.fee_margin_percentage", strictjson.OutOfRange, "must be 0 or more")
	}
}

func checkSlippage(found *problems, path string, percentage *float64) {
	if percentage != nil && !(*percentage >= 0 && *percentage <= 100) {
		found.Report(path, strictjson.OutOfRange, "must be from 0 to 100")
	}
}

func checkCronSchedule(found *problems, schedule *string) {
	if schedule == nil {
		return
	}
	if message := cron.Problem(*schedule); message != "" {
		found.Add("policies.swap_config.cron_schedule", message)
	}
}
