package relayer

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// NetworkType is the type of a blockchain network. It determines the type of a
// relayer's [Policy].
type NetworkType string

// The network types.
const (
	EVM     NetworkType = "evm"
	Solana  NetworkType = "solana"
	Stellar NetworkType = "stellar"
)

// Policy restricts what a relayer does. It is one of [*EVMPolicy], [*SolanaPolicy] and
// [*StellarPolicy], or an [*UnknownPolicy] if a newer version of this package stored the
// relayer. A type switch over policies therefore needs a default.
//
// The registry checks and stores policies. The relaying engine enforces them: before it signs
// a transaction, it compares the transaction with every set field that limits transactions. Package
// enforce does that. Limits are inclusive: a value equal to a limit is permitted.
//
// Every field of a policy is optional. Nil means not set, which is different from zero,
// false and an empty list. A field that is not set limits nothing, and leaves a choice to the
// engine, except that on [Solana] users pay the fees. A literal for a pointer field is new(value)
// with a value of its type, as in new(false) and new(int64(5)).
//
// Other packages must not implement it: later versions may add methods.
type Policy interface {
	// NetworkType returns the network type whose relayers have this type of policy.
	NetworkType() NetworkType

	isPolicy()
}

// isNil reports whether there is no policy, or a nil pointer to one.
func isNil(policy Policy) bool {
	v := reflect.ValueOf(policy)
	return policy == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// EVMPolicy is the policy of a relayer on an [EVM] network. Amounts are in wei.
type EVMPolicy struct {
	// EIP1559Pricing selects the fees of transactions that name none: true for EIP-1559 (a
	// maximum fee and a priority fee), false for a legacy gas price.
	EIP1559Pricing *bool `json:"eip1559_pricing,omitempty"`

	// GasLimitEstimation permits the engine to estimate the gas limit of a transaction that
	// has none. If it is false, the engine refuses such a transaction.
	GasLimitEstimation *bool `json:"gas_limit_estimation,omitempty"`

	// GasPriceCap is the maximum gas price in wei per gas. The engine refuses a transaction
	// with a higher gas price or, with EIP-1559, a higher maximum fee per gas. The priority fee
	// is not compared.
	GasPriceCap *Amount `json:"gas_price_cap,omitempty" validate:"-"`

	// IncludeRevertData adds the revert data of a transaction to the errors that the engine
	// returns.
	IncludeRevertData *bool `json:"include_revert_data,omitempty"`

	// MinBalance is the balance in wei that the relayer must have after a transaction, at the
	// highest cost of the transaction: its value, its gas limit times its maximum fee per gas, its
	// blob gas times its maximum fee per blob gas, and the fee of layer 1. The engine refuses a
	// transaction that would leave less.
	MinBalance *Amount `json:"min_balance,omitempty" validate:"-"`

	// PrivateTransactions keeps transactions out of the public mempool: the engine refuses to
	// send them to a public endpoint.
	PrivateTransactions *bool `json:"private_transactions,omitempty"`

	// WhitelistReceivers are the only addresses that transactions may go to, compared without
	// letter case. Empty permits none. If it is set, no transaction may create a contract. The zero
	// address and the address of the relayer need an entry like any other. With [WithNetworkRules]
	// each is an address of 20 bytes, and one in mixed case has the right checksum (EIP-55).
	WhitelistReceivers []string `json:"whitelist_receivers,omitzero" validate:"list,dive,text" network:"list,dive,evm_address"`
}

// NetworkType returns [EVM].
func (*EVMPolicy) NetworkType() NetworkType { return EVM }

// Format prints the JSON form of the policy for every verb except %p, %T and %w.
func (p EVMPolicy) Format(state fmt.State, _ rune) { strictjson.Print(state, p) }

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

// Format prints Raw as JSON for every verb except %p, %T and %w.
func (p UnknownPolicy) Format(state fmt.State, _ rune) { strictjson.Print(state, p) }

func (*UnknownPolicy) isPolicy() {}
func (*EVMPolicy) isPolicy()     {}
func (*SolanaPolicy) isPolicy()  {}
func (*StellarPolicy) isPolicy() {}

// FeePaymentStrategy selects who pays the fees of a relayer's transactions.
type FeePaymentStrategy string

// The fee payment strategies.
const (
	// FeePaidByUser requires a fee payment to the relayer in the transaction.
	FeePaidByUser FeePaymentStrategy = "user"

	// FeePaidByRelayer makes the relayer pay all transaction fees.
	FeePaidByRelayer FeePaymentStrategy = "relayer"
)

// SolanaPolicy is the policy of a relayer on a [Solana] network. Amounts are in lamports.
type SolanaPolicy struct {
	// AllowedAccounts are the only accounts that a transaction may name, including fee payer,
	// signers, programs and accounts of lookup tables. Empty permits none. With
	// [WithNetworkRules] each is base58 of 32 bytes.
	AllowedAccounts []string `json:"allowed_accounts,omitzero" validate:"list,dive,text" network:"list,dive,solana_address"`

	// AllowedPrograms are the only programs that a transaction may call. Empty permits none.
	// The engine compares the programs of inner instructions too if it has simulated the
	// transaction. With [WithNetworkRules] each is base58 of 32 bytes.
	AllowedPrograms []string `json:"allowed_programs,omitzero" validate:"list,dive,text" network:"list,dive,solana_address"`

	// AllowedTokens are the only tokens that a transaction may transfer or use to pay the
	// relayer. Empty permits every token. SOL needs no entry.
	AllowedTokens []SolanaAllowedToken `json:"allowed_tokens,omitzero" validate:"list,dive" network:"list,dive"`

	// DisallowedAccounts are accounts that no transaction may name, even if they are in
	// AllowedAccounts. With [WithNetworkRules] each is base58 of 32 bytes, and AllowedAccounts has
	// no entries if this list has some.
	DisallowedAccounts []string `json:"disallowed_accounts,omitzero" validate:"list,dive,text" network:"list,excludes=AllowedAccounts,dive,solana_address"`

	// FeeMarginPercentage is what the engine adds to an estimated fee, in percent of it. With
	// [WithNetworkRules] it is 0 or more.
	FeeMarginPercentage *float64 `json:"fee_margin_percentage,omitempty" validate:"omitnil,finite" network:"omitnil,gte=0"`

	// FeePaymentStrategy selects who pays the fees. With [FeePaidByUser], a transaction must pay
	// its fee with the margin, or more, in one payment to the relayer. With [FeePaidByRelayer],
	// the relayer pays. A stored relayer always has one; the default is [FeePaidByUser].
	FeePaymentStrategy *FeePaymentStrategy `json:"fee_payment_strategy,omitempty" validate:"omitnil,oneof=user relayer"`

	// MaxAllowedFeeLamports is the maximum fee of a transaction, in lamports, without a margin.
	MaxAllowedFeeLamports *int64 `json:"max_allowed_fee_lamports,omitempty" validate:"omitnil,gte=0"`

	// MaxSignatures is the maximum number of signatures that a transaction requires.
	MaxSignatures *int32 `json:"max_signatures,omitempty" validate:"omitnil,gte=0"`

	// MaxTxDataSize is the maximum size of a transaction with its signatures, in bytes.
	MaxTxDataSize *int32 `json:"max_tx_data_size,omitempty" validate:"omitnil,gte=0"`

	// MinBalance is the balance in lamports that the relayer must have after a transaction, at
	// the highest cost of the transaction. The engine refuses a transaction that would leave
	// less.
	MinBalance *int64 `json:"min_balance,omitempty" validate:"omitnil,gte=0"`

	// SwapConfig says when the engine swaps collected tokens for SOL. With [WithNetworkRules]
	// it requires FeePaymentStrategy to be [FeePaidByUser].
	SwapConfig *SolanaSwapConfig `json:"swap_config,omitempty" network:"omitnil,solana_swap"`
}

// NetworkType returns [Solana].
func (*SolanaPolicy) NetworkType() NetworkType { return Solana }

// Format prints the JSON form of the policy for every verb except %p, %T and %w.
func (p SolanaPolicy) Format(state fmt.State, _ rune) { strictjson.Print(state, p) }

// SolanaAllowedToken is one token of [SolanaPolicy.AllowedTokens].
type SolanaAllowedToken struct {
	// Mint is the mint account of the token. Required. With [WithNetworkRules] it is base58 of
	// 32 bytes.
	Mint string `json:"mint" validate:"required,text" network:"solana_address"`

	// Decimals is the number of decimal places of the token.
	Decimals *uint8 `json:"decimals,omitempty"`

	// Symbol is the display name of the token. It limits nothing.
	Symbol *string `json:"symbol,omitempty" validate:"omitnil,text"`

	// MaxAllowedFee is the maximum payment of a fee in this token, in the smallest unit of the
	// token.
	MaxAllowedFee *uint64 `json:"max_allowed_fee,omitempty"`

	// SwapConfig limits the swaps of this token.
	SwapConfig *TokenSwapConfig `json:"swap_config,omitempty"`
}

// TokenSwapConfig configures the swap of one token for the native token of the network.
// Amounts are in the token's smallest unit.
type TokenSwapConfig struct {
	// SlippagePercentage is the maximum slippage of a swap, in percent. With
	// [WithNetworkRules] it is from 0 to 100.
	SlippagePercentage *float64 `json:"slippage_percentage,omitempty" validate:"omitnil,finite" network:"omitnil,percentage"`

	// MinAmount is the minimum amount of one swap. The engine does not swap less.
	MinAmount *uint64 `json:"min_amount,omitempty"`

	// MaxAmount is the maximum amount of one swap.
	MaxAmount *uint64 `json:"max_amount,omitempty"`

	// RetainMinAmount is the minimum amount that the relayer keeps after a swap.
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
	// Strategy is the exchange to swap on. [SwapNone] swaps nothing.
	Strategy *SolanaSwapStrategy `json:"strategy,omitempty" validate:"omitnil,oneof=jupiter-swap jupiter-ultra noop"`

	// CronSchedule is the cron expression of the swaps. With [WithNetworkRules] it has at most
	// 256 characters and 5, 6 (seconds first) or 7 fields (and years last), without the operators
	// L, W and #, or is @yearly, @monthly, @weekly, @daily or @hourly.
	CronSchedule *string `json:"cron_schedule,omitempty" validate:"omitnil,text" network:"omitnil,cron_schedule"`

	// MinBalanceThreshold is the balance in lamports below which the engine swaps.
	MinBalanceThreshold *uint64 `json:"min_balance_threshold,omitempty"`

	// JupiterSwapOptions are options of [SwapJupiter]. [WithNetworkRules] permits them only with
	// this Strategy.
	JupiterSwapOptions *JupiterSwapOptions `json:"jupiter_swap_options,omitempty" network:"omitnil,jupiter"`
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
	// PriorityFeeMaxLamports is the maximum priority fee of a swap, in lamports.
	// [WithNetworkRules] requires both this and PriorityLevel, or neither.
	PriorityFeeMaxLamports *uint64 `json:"priority_fee_max_lamports,omitempty" network:"with_level"`

	// PriorityLevel is the level of the priority fee of a swap.
	PriorityLevel *JupiterPriorityLevel `json:"priority_level,omitempty" validate:"omitnil,oneof=medium high veryHigh" network:"with_fee"`

	// DynamicComputeUnitLimit lets the exchange estimate the compute unit limit of a swap.
	DynamicComputeUnitLimit *bool `json:"dynamic_compute_unit_limit,omitempty"`
}

// StellarPolicy is the policy of a relayer on a [Stellar] network. Amounts are in stroops.
type StellarPolicy struct {
	// AllowedTokens are the only assets that a transaction may pay the relayer in. Empty permits
	// every asset. XLM needs an entry like any other asset. Other payments are not limited.
	AllowedTokens []StellarAllowedToken `json:"allowed_tokens,omitzero" validate:"list,dive" network:"list,dive"`

	// ConcurrentTransactions permits the engine to send a transaction before the previous one
	// is confirmed. If it is false, transactions are sent one after another.
	ConcurrentTransactions *bool `json:"concurrent_transactions,omitempty"`

	// FeeMarginPercentage is what the engine adds to an estimated fee, in percent of it. With
	// [WithNetworkRules] it is 0 or more.
	FeeMarginPercentage *float64 `json:"fee_margin_percentage,omitempty" validate:"omitnil,finite" network:"omitnil,gte=0"`

	// FeePaymentStrategy selects who pays the fees. With [FeePaidByUser], a transaction must
	// pay its fee with the margin, or more, in one payment to the relayer. With
	// [FeePaidByRelayer], the relayer pays, as without a strategy.
	FeePaymentStrategy *FeePaymentStrategy `json:"fee_payment_strategy,omitempty" validate:"omitnil,oneof=user relayer"`

	// MaxFee is the maximum fee in stroops that the relayer bids, for the whole transaction or
	// its fee bump.
	MaxFee *int32 `json:"max_fee,omitempty" validate:"omitnil,gte=0"`

	// MinBalance is the balance in stroops that the relayer must have after a transaction, at the
	// highest cost of the transaction. The engine refuses a transaction that would leave less.
	MinBalance *int64 `json:"min_balance,omitempty" validate:"omitnil,gte=0"`

	// SlippagePercentage is the maximum slippage of the conversion of a fee, in percent. With
	// [WithNetworkRules] it is from 0 to 100.
	SlippagePercentage *float64 `json:"slippage_percentage,omitempty" validate:"omitnil,finite" network:"omitnil,percentage"`

	// SwapConfig says when the engine swaps collected assets for XLM. With [WithNetworkRules]
	// it requires FeePaymentStrategy to be [FeePaidByUser].
	SwapConfig *StellarSwapConfig `json:"swap_config,omitempty" network:"omitnil,stellar_swap"`

	// TimeoutSeconds is the time after which the engine gives a transaction up, in seconds.
	TimeoutSeconds *int64 `json:"timeout_seconds,omitempty" validate:"omitnil,gte=0"`
}

// NetworkType returns [Stellar].
func (*StellarPolicy) NetworkType() NetworkType { return Stellar }

// Format prints the JSON form of the policy for every verb except %p, %T and %w.
func (p StellarPolicy) Format(state fmt.State, _ rune) { strictjson.Print(state, p) }

// StellarAllowedToken is one asset of [StellarPolicy.AllowedTokens].
type StellarAllowedToken struct {
	// Asset is "native" or "XLM" (the same), "CODE:ISSUER", or a contract ID. An asset and its
	// contract differ. Required. With [WithNetworkRules] it is one of these forms, with valid
	// checksums.
	Asset string `json:"asset" validate:"required,text" network:"stellar_asset"`

	// Metadata describes the asset. It limits nothing.
	Metadata *StellarTokenMetadata `json:"metadata,omitempty"`

	// MaxAllowedFee is the maximum payment of a fee in this asset, in the smallest unit of the
	// asset.
	MaxAllowedFee *uint64 `json:"max_allowed_fee,omitempty"`

	// SwapConfig limits the swaps of this asset.
	SwapConfig *TokenSwapConfig `json:"swap_config,omitempty"`
}

// StellarTokenMetadata describes a Stellar asset.
type StellarTokenMetadata struct {
	// Kind is the kind of the asset.
	Kind *StellarTokenKind `json:"kind,omitempty"`

	// Decimals is the number of decimal places of the asset.
	Decimals *uint32 `json:"decimals,omitempty"`

	// CanonicalAssetID is the canonical name of the asset.
	CanonicalAssetID *string `json:"canonical_asset_id,omitempty" validate:"omitnil,text"`
}

// StellarTokenKind is a classic asset, a contract token, Unknown or, with all fields nil, the
// native asset. As JSON it is {"classic":…}, {"contract":…}, Unknown or "native".
type StellarTokenKind struct {
	// Classic is set for an asset issued by an account.
	Classic *StellarClassicAsset `json:"classic,omitempty"`

	// Contract is set for a token of a Soroban contract.
	Contract *StellarContractToken `json:"contract,omitempty" validate:"excluded_with=Classic"`

	// Unknown is the JSON of a kind that this version of the package does not have. It is read from
	// a newer version, or from another server, and a Manager does not accept it in a write.
	Unknown json.RawMessage `json:"-" validate:"isdefault"`
}

// StellarClassicAsset is an asset issued by an account. Both fields are required.
type StellarClassicAsset struct {
	// Code is the code of the asset. With [WithNetworkRules] it is 1 to 12 letters and digits.
	Code string `json:"code" validate:"required,text" network:"stellar_code"`

	// Issuer is the account that issues the asset. With [WithNetworkRules] it is G and 55
	// characters, with a valid checksum.
	Issuer string `json:"issuer" validate:"required,text" network:"stellar_account"`
}

// StellarContractToken is a token of a Soroban contract.
type StellarContractToken struct {
	// ContractID is the ID of the contract. Required. With [WithNetworkRules] it is C and 55
	// characters, with a valid checksum.
	ContractID string `json:"contract_id" validate:"required,text" network:"stellar_contract"`
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
	// Strategies are the exchanges to swap on, in order of preference. [WithNetworkRules]
	// requires at least one.
	Strategies []StellarSwapStrategy `json:"strategies,omitzero" validate:"list,dive,oneof=order-book soroswap" network:"min=1"`

	// CronSchedule is the cron expression of the swaps. With [WithNetworkRules] it has at most
	// 256 characters and 5, 6 (seconds first) or 7 fields (and years last), without the operators
	// L, W and #, or is @yearly, @monthly, @weekly, @daily or @hourly.
	CronSchedule *string `json:"cron_schedule,omitempty" validate:"omitnil,text" network:"omitnil,cron_schedule"`

	// MinBalanceThreshold is the balance in stroops below which the engine swaps.
	MinBalanceThreshold *uint64 `json:"min_balance_threshold,omitempty"`
}
