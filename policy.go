package relayer

import (
	"encoding/json"
	"fmt"
)

// Policy restricts what a relayer does. It is one of [*EVMPolicy], [*SolanaPolicy] and
// [*StellarPolicy], or an [*UnknownPolicy] if a newer version of this package stored the
// relayer. A type switch over policies therefore needs a default.
//
// Every field of a policy is optional. Nil means not set, which is different from zero,
// false and an empty list. A literal for a pointer field is new(value), as in
// MinBalance: new(int64(0)).
type Policy interface {
	// NetworkType returns the network type whose relayers have this type of policy.
	NetworkType() NetworkType

	checkNetworkRules(*problems)
}

// EVMPolicy is the policy of a relayer on an [EVM] network.
type EVMPolicy struct {
	// EIP1559Pricing enables EIP-1559 pricing.
	EIP1559Pricing *bool `json:"eip1559_pricing,omitempty"`

	// GasLimitEstimation enables estimation of the gas limit.
	GasLimitEstimation *bool `json:"gas_limit_estimation,omitempty"`

	// GasPriceCap is the maximum gas price in wei.
	GasPriceCap *Amount `json:"gas_price_cap,omitempty"`

	// IncludeRevertData includes revert data in errors.
	IncludeRevertData *bool `json:"include_revert_data,omitempty"`

	// MinBalance is the balance in wei below which the relayer stops.
	MinBalance *Amount `json:"min_balance,omitempty"`

	// PrivateTransactions keeps transactions out of the public mempool.
	PrivateTransactions *bool `json:"private_transactions,omitempty"`

	// WhitelistReceivers are the only permitted receivers of transactions.
	WhitelistReceivers []string `json:"whitelist_receivers,omitzero" validate:"dive,text"`
}

// NetworkType returns [EVM].
func (*EVMPolicy) NetworkType() NetworkType { return EVM }

// Format prints the JSON form of the policy, for every verb.
func (p EVMPolicy) Format(state fmt.State, _ rune) { printJSON(state, p) }

// UnknownPolicy is the policy of a relayer whose network type this version of the package
// does not have. A newer version, or another server, created the relayer. It can be read,
// listed, paused, disabled and deleted, and its other fields can be changed. A relayer
// with an UnknownPolicy cannot be created, and the policy cannot be changed.
type UnknownPolicy struct {
	// Type is the network type of the relayer.
	Type NetworkType

	// Raw is the JSON of the policy.
	Raw json.RawMessage
}

// NetworkType returns Type.
func (p *UnknownPolicy) NetworkType() NetworkType { return p.Type }

// MarshalJSON returns Raw, or an empty object if Raw is empty.
func (p UnknownPolicy) MarshalJSON() ([]byte, error) {
	if len(p.Raw) == 0 {
		return []byte("{}"), nil
	}
	return p.Raw, nil
}

// Format prints Raw, for every verb.
func (p UnknownPolicy) Format(state fmt.State, _ rune) { printJSON(state, p) }

func (*UnknownPolicy) checkNetworkRules(*problems) {}

// FeePaymentStrategy selects who pays the fees of a relayer's transactions.
type FeePaymentStrategy string

// The fee payment strategies.
const (
	// FeePaidByUser requires a fee payment to the relayer in the transaction.
	FeePaidByUser FeePaymentStrategy = "user"

	// FeePaidByRelayer makes the relayer pay all transaction fees.
	FeePaidByRelayer FeePaymentStrategy = "relayer"
)

// SolanaPolicy is the policy of a relayer on a [Solana] network. Amounts are in
// lamports.
type SolanaPolicy struct {
	// AllowedAccounts are the only accounts a transaction may touch.
	AllowedAccounts []string `json:"allowed_accounts,omitzero" validate:"dive,text"`

	// AllowedPrograms are the only programs a transaction may call.
	AllowedPrograms []string `json:"allowed_programs,omitzero" validate:"dive,text"`

	// AllowedTokens are the only tokens to transfer or to pay fees in.
	AllowedTokens []SolanaAllowedToken `json:"allowed_tokens,omitzero" validate:"dive"`

	// DisallowedAccounts are accounts no transaction may touch.
	DisallowedAccounts []string `json:"disallowed_accounts,omitzero" validate:"dive,text"`

	// FeeMarginPercentage is added to an estimated fee, in percent.
	FeeMarginPercentage *float64 `json:"fee_margin_percentage,omitempty" validate:"omitnil,finite"`

	// FeePaymentStrategy selects who pays the fees. A stored relayer always has one:
	// left out it is [FeePaidByUser].
	FeePaymentStrategy *FeePaymentStrategy `json:"fee_payment_strategy,omitempty" validate:"omitnil,oneof=user relayer"`

	// MaxAllowedFeeLamports is the highest fee of a transaction, 0 or more.
	MaxAllowedFeeLamports *int64 `json:"max_allowed_fee_lamports,omitempty" validate:"omitnil,gte=0"`

	// MaxSignatures is the highest number of signatures, 0 or more.
	MaxSignatures *int32 `json:"max_signatures,omitempty" validate:"omitnil,gte=0"`

	// MaxTxDataSize is the largest transaction in bytes, 0 or more.
	MaxTxDataSize *int32 `json:"max_tx_data_size,omitempty" validate:"omitnil,gte=0"`

	// MinBalance is the balance in lamports below which the relayer stops, 0 or
	// more.
	MinBalance *int64 `json:"min_balance,omitempty" validate:"omitnil,gte=0"`

	// SwapConfig configures the swap of collected tokens for SOL.
	SwapConfig *SolanaSwapConfig `json:"swap_config,omitempty"`
}

// NetworkType returns [Solana].
func (*SolanaPolicy) NetworkType() NetworkType { return Solana }

// Format prints the JSON form of the policy, for every verb.
func (p SolanaPolicy) Format(state fmt.State, _ rune) { printJSON(state, p) }

// SolanaAllowedToken is one token of [SolanaPolicy.AllowedTokens].
type SolanaAllowedToken struct {
	// Mint is the token's mint account. Required.
	Mint string `json:"mint" validate:"required,text"`

	// Decimals is the number of decimal places of the token, 0 to 255.
	Decimals *uint8 `json:"decimals,omitempty"`

	// Symbol is the display name of the token.
	Symbol *string `json:"symbol,omitempty" validate:"omitnil,text"`

	// MaxAllowedFee is the highest fee in the token's smallest unit.
	MaxAllowedFee *uint64 `json:"max_allowed_fee,omitempty"`

	// SwapConfig configures the swap of this token.
	SwapConfig *TokenSwapConfig `json:"swap_config,omitempty"`
}

// TokenSwapConfig configures the swap of one token for the native token of the network.
// Amounts are in the token's smallest unit.
type TokenSwapConfig struct {
	// SlippagePercentage is the slippage accepted, in percent.
	SlippagePercentage *float64 `json:"slippage_percentage,omitempty" validate:"omitnil,finite"`

	// MinAmount is the least amount to swap.
	MinAmount *uint64 `json:"min_amount,omitempty"`

	// MaxAmount is the largest amount to swap at once.
	MaxAmount *uint64 `json:"max_amount,omitempty"`

	// RetainMinAmount is the amount to keep after a swap.
	RetainMinAmount *uint64 `json:"retain_min_amount,omitempty"`
}

// SolanaSwapStrategy is the exchange that [SolanaSwapConfig] swaps on.
type SolanaSwapStrategy string

// The Solana swap strategies.
const (
	SwapJupiter      SolanaSwapStrategy = "jupiter-swap"
	SwapJupiterUltra SolanaSwapStrategy = "jupiter-ultra"
	SwapNone         SolanaSwapStrategy = "noop"
)

// SolanaSwapConfig configures the swaps of a Solana relayer.
type SolanaSwapConfig struct {
	// Strategy is the exchange to swap on.
	Strategy *SolanaSwapStrategy `json:"strategy,omitempty" validate:"omitnil,oneof=jupiter-swap jupiter-ultra noop"`

	// CronSchedule is the cron expression of the swaps.
	CronSchedule *string `json:"cron_schedule,omitempty" validate:"omitnil,text"`

	// MinBalanceThreshold is the balance in lamports below which to swap.
	MinBalanceThreshold *uint64 `json:"min_balance_threshold,omitempty"`

	// JupiterSwapOptions fine-tune [SwapJupiter].
	JupiterSwapOptions *JupiterSwapOptions `json:"jupiter_swap_options,omitempty"`
}

// JupiterPriorityLevel is the level of the priority fee.
type JupiterPriorityLevel string

// The Jupiter priority levels.
const (
	PriorityMedium   JupiterPriorityLevel = "medium"
	PriorityHigh     JupiterPriorityLevel = "high"
	PriorityVeryHigh JupiterPriorityLevel = "veryHigh"
)

// JupiterSwapOptions are the options of the [SwapJupiter] strategy.
type JupiterSwapOptions struct {
	// PriorityFeeMaxLamports is the highest priority fee, in lamports.
	PriorityFeeMaxLamports *uint64 `json:"priority_fee_max_lamports,omitempty"`

	// PriorityLevel is the level of the priority fee.
	PriorityLevel *JupiterPriorityLevel `json:"priority_level,omitempty" validate:"omitnil,oneof=medium high veryHigh"`

	// DynamicComputeUnitLimit enables estimation of the compute unit limit.
	DynamicComputeUnitLimit *bool `json:"dynamic_compute_unit_limit,omitempty"`
}

// StellarPolicy is the policy of a relayer on a [Stellar] network. Amounts are
// in stroops.
type StellarPolicy struct {
	// AllowedTokens are the only assets to transfer or to pay fees in.
	AllowedTokens []StellarAllowedToken `json:"allowed_tokens,omitzero" validate:"dive"`

	// ConcurrentTransactions permits concurrent transactions.
	ConcurrentTransactions *bool `json:"concurrent_transactions,omitempty"`

	// FeeMarginPercentage is added to an estimated fee, in percent.
	FeeMarginPercentage *float64 `json:"fee_margin_percentage,omitempty" validate:"omitnil,finite"`

	// FeePaymentStrategy selects who pays the fees. It has no default.
	FeePaymentStrategy *FeePaymentStrategy `json:"fee_payment_strategy,omitempty" validate:"omitnil,oneof=user relayer"`

	// MaxFee is the highest fee of a transaction in stroops, 0 or more.
	MaxFee *int32 `json:"max_fee,omitempty" validate:"omitnil,gte=0"`

	// MinBalance is the balance in stroops below which the relayer stops, 0 or
	// more.
	MinBalance *int64 `json:"min_balance,omitempty" validate:"omitnil,gte=0"`

	// SlippagePercentage is the slippage accepted, in percent.
	SlippagePercentage *float64 `json:"slippage_percentage,omitempty" validate:"omitnil,finite"`

	// SwapConfig configures the swap of collected assets for XLM.
	SwapConfig *StellarSwapConfig `json:"swap_config,omitempty"`

	// TimeoutSeconds is how long a transaction may wait, in seconds, 0 or more.
	TimeoutSeconds *int64 `json:"timeout_seconds,omitempty" validate:"omitnil,gte=0"`
}

// NetworkType returns [Stellar].
func (*StellarPolicy) NetworkType() NetworkType { return Stellar }

// Format prints the JSON form of the policy, for every verb.
func (p StellarPolicy) Format(state fmt.State, _ rune) { printJSON(state, p) }

// StellarAllowedToken is one asset of [StellarPolicy.AllowedTokens].
type StellarAllowedToken struct {
	// Asset is "native" (or "XLM"), "CODE:ISSUER" or a contract ID. Required.
	Asset string `json:"asset" validate:"required,text"`

	// Metadata describes the asset.
	Metadata *StellarTokenMetadata `json:"metadata,omitempty"`

	// MaxAllowedFee is the highest fee in the asset's smallest unit.
	MaxAllowedFee *uint64 `json:"max_allowed_fee,omitempty"`

	// SwapConfig configures the swap of this asset.
	SwapConfig *TokenSwapConfig `json:"swap_config,omitempty"`
}

// StellarTokenMetadata describes a Stellar asset.
type StellarTokenMetadata struct {
	// Kind is the kind of the asset.
	Kind *StellarTokenKind `json:"kind,omitempty"`

	// Decimals is the number of decimal places of the asset.
	Decimals *uint32 `json:"decimals,omitempty"`

	// CanonicalAssetID is the asset's canonical name.
	CanonicalAssetID *string `json:"canonical_asset_id,omitempty" validate:"omitnil,text"`
}

// StellarTokenKind is one of three: a classic asset, a contract token or, with
// all fields nil, the native asset. As JSON it is {"classic":…},
// {"contract":…} or "native".
type StellarTokenKind struct {
	// Classic is set for an asset issued by an account.
	Classic *StellarClassicAsset `json:"classic,omitempty"`

	// Contract is set for a token of a Soroban contract.
	Contract *StellarContractToken `json:"contract,omitempty" validate:"excluded_with=Classic"`

	// Unknown is the JSON of a kind that this version of the package does not have. A newer
	// version, or another server, created the relayer. It cannot be created.
	Unknown json.RawMessage `json:"-" validate:"isdefault"`
}

// StellarClassicAsset is an asset issued by an account. Both fields are
// required.
type StellarClassicAsset struct {
	// Code is the asset's code.
	Code string `json:"code" validate:"required,text"`

	// Issuer is the account that issues it.
	Issuer string `json:"issuer" validate:"required,text"`
}

// StellarContractToken is a token of a Soroban contract.
type StellarContractToken struct {
	// ContractID is the contract's ID. Required.
	ContractID string `json:"contract_id" validate:"required,text"`
}

// StellarSwapStrategy is an exchange that [StellarSwapConfig] swaps on.
type StellarSwapStrategy string

// The Stellar swap strategies.
const (
	SwapOrderBook StellarSwapStrategy = "order-book"
	SwapSoroswap  StellarSwapStrategy = "soroswap"
)

// StellarSwapConfig configures the swaps of a Stellar relayer.
type StellarSwapConfig struct {
	// Strategies are the exchanges to swap on, in order of preference.
	Strategies []StellarSwapStrategy `json:"strategies,omitzero" validate:"dive,oneof=order-book soroswap"`

	// CronSchedule is the cron expression of the swaps.
	CronSchedule *string `json:"cron_schedule,omitempty" validate:"omitnil,text"`

	// MinBalanceThreshold is the balance in stroops below which to swap.
	MinBalanceThreshold *uint64 `json:"min_balance_threshold,omitempty"`
}
