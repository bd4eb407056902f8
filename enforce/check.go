package enforce

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
)

// Check returns nil if the relayer may send the transaction, and otherwise an [*Error] with the
// violations. It refuses a nil relayer and a nil transaction. It changes neither argument.
//
// It cannot see how old the relayer is: for every transaction, get the relayer from a current
// view of the registry, such as that of package mirror.
func Check(r *relayer.Relayer, tx Transaction) error {
	if r == nil {
		return &Error{Violations: []Violation{{Field: "id", Code: Unknown}}}
	}
	var found violations
	if r.Paused {
		found.add("paused", Paused, "true", "")
	}
	if r.SystemDisabled {
		found.add("system_disabled", Disabled, string(cmp.Or(r.DisabledReason, &relayer.DisabledReason{}).Type), "")
	}
	switch tx := tx.(type) { // a method of tx would move it to the heap
	case EVM:
		found.evm(r, &tx)
	case *EVM:
		found.evm(r, tx)
	case Solana:
		found.solana(r, &tx)
	case *Solana:
		found.solana(r, tx)
	case Stellar:
		found.stellar(r, &tx)
	case *Stellar:
		found.stellar(r, tx)
	default:
		found.add("network_type", Unknown, "", "")
	}
	if len(found) == 0 {
		return nil
	}
	return &Error{printable(r.ID), found}
}

func (v *violations) evm(r *relayer.Relayer, tx *EVM) {
	p, ok := policyOf[relayer.EVMPolicy](v, r, relayer.EVM, tx != nil)
	if !ok {
		return
	}
	if isSet(p.GasLimitEstimation, false) && tx.GasLimit == 0 {
		v.add("policies.gas_limit_estimation", Missing, "", "")
	}
	atMost(v, "policies.gas_price_cap", p.GasPriceCap, tx.MaxFeePerGas)
	atLeast(v, "policies.min_balance", p.MinBalance, tx.Balance, tx.Cost)
	if isSet(p.PrivateTransactions, true) && !tx.Private {
		v.add("policies.private_transactions", Missing, "", "")
	}
	isReceiver := func(entry string) bool { return tx.To != "" && strings.EqualFold(entry, tx.To) }
	if p.WhitelistReceivers != nil && !slices.ContainsFunc(p.WhitelistReceivers, isReceiver) {
		v.add("policies.whitelist_receivers", NotListed, tx.To, "")
	}
}

// The programs that transfer tokens.
var tokenPrograms = []string{"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"}

// mayTransfer reports whether the transaction can transfer tokens. A program can call only programs
// that are accounts of the message.
func (tx *Solana) mayTransfer() bool {
	isIncomplete := len(tx.Programs) == 0 || len(tx.Accounts) == 0 || tx.Unresolved
	return isIncomplete || slices.ContainsFunc(tokenPrograms, func(program string) bool {
		return slices.Contains(tx.Programs, program) || slices.Contains(tx.Accounts, program)
	})
}

func (v *violations) solana(r *relayer.Relayer, tx *Solana) {
	p, ok := policyOf[relayer.SolanaPolicy](v, r, relayer.Solana, tx != nil)
	if !ok {
		return
	}
	v.members("policies.allowed_accounts", p.AllowedAccounts, tx.Accounts, !tx.Unresolved, NotListed)
	v.members("policies.allowed_programs", p.AllowedPrograms, tx.Programs, true, NotListed)
	token := func(i int) (string, *uint64) { return p.AllowedTokens[i].Mint, p.AllowedTokens[i].MaxAllowedFee }
	if len(p.AllowedTokens) > 0 && tx.Tokens == nil && tx.mayTransfer() {
		v.add("policies.allowed_tokens", Unknown, "", "")
	}
	for _, mint := range tx.Tokens {
		v.token(len(p.AllowedTokens), token, mint, 0, mint == Native)
	}
	for _, payment := range tx.Payments {
		v.token(len(p.AllowedTokens), token, payment.Asset, payment.Amount, payment.Asset == Native)
	}
	v.members("policies.disallowed_accounts", p.DisallowedAccounts, tx.Accounts, !tx.Unresolved, Listed)
	v.payment(p.FeePaymentStrategy, relayer.FeePaidByUser, tx.Payments, func(mint string) string { return mint })
	atMost(v, "policies.max_allowed_fee_lamports", limit(p.MaxAllowedFeeLamports), (*units)(tx.Fee))
	atMost(v, "policies.max_signatures", limit(p.MaxSignatures), given(tx.Signatures))
	atMost(v, "policies.max_tx_data_size", limit(p.MaxTxDataSize), given(tx.Size))
	atLeast(v, "policies.min_balance", limit(p.MinBalance), (*units)(tx.Balance), (*units)(tx.Cost))
}

func (v *violations) stellar(r *relayer.Relayer, tx *Stellar) {
	p, ok := policyOf[relayer.StellarPolicy](v, r, relayer.Stellar, tx != nil)
	if !ok {
		return
	}
	token := func(i int) (string, *uint64) {
		return stellarAsset(p.AllowedTokens[i].Asset), p.AllowedTokens[i].MaxAllowedFee
	}
	for _, payment := range tx.Payments {
		v.token(len(p.AllowedTokens), token, stellarAsset(payment.Asset), payment.Amount, false)
	}
	v.payment(p.FeePaymentStrategy, relayer.FeePaidByRelayer, tx.Payments, stellarAsset)
	atMost(v, "policies.max_fee", limit(p.MaxFee), (*units)(tx.Fee))
	atLeast(v, "policies.min_balance", limit(p.MinBalance), (*units)(tx.Balance), (*units)(tx.Cost))
}

// policyOf returns the policy to compare with a transaction of a network type, or adds why
// there is none.
func policyOf[P any](v *violations, r *relayer.Relayer, network relayer.NetworkType, isGiven bool) (policy P, ok bool) {
	stored, isType := any(r.Policy).(*P)
	switch {
	case !isGiven:
		v.add("network_type", Unknown, "", "")
	case !slices.Contains([]relayer.NetworkType{relayer.EVM, relayer.Solana, relayer.Stellar}, r.NetworkType):
		v.add("network_type", Unsupported, string(r.NetworkType), "")
	case r.NetworkType != network:
		v.add("network_type", WrongNetwork, string(network), "")
	case !isType && r.Policy != nil:
		v.add("policies", Unsupported, "", "")
	default: // as in the registry, nil is a policy without a field
		return *cmp.Or(stored, &policy), true
	}
	return policy, false
}

func isSet(field *bool, value bool) bool { return field != nil && *field == value }

// members adds each value that is in the list, or is not, as the code says. Without values, or
// without all of them, it adds that they are unknown. A list that is not set limits nothing, and
// neither does an empty one of refused values.
func (v *violations) members(field string, list, values []string, areAll bool, code Code) {
	if list == nil || len(list) == 0 && code == Listed {
		return
	}
	for _, value := range values {
		if slices.Contains(list, value) == (code == Listed) {
			v.add(field, code, value, "")
		}
	}
	if len(values) == 0 || !areAll {
		v.add(field, Unknown, "", "")
	}
}

// token compares a transfer, or a payment of an amount, with the entries of allowed_tokens.
func (v *violations) token(entries int, entry func(int) (string, *uint64), asset string, amount uint64, isListed bool) {
	for i := range entries {
		name, maximum := entry(i)
		isListed = isListed || name == asset
		if name == asset && maximum != nil && amount > *maximum {
			v.add(fmt.Sprintf("policies.allowed_tokens[%d].max_allowed_fee", i), AboveMaximum, units(amount).String(), units(*maximum).String())
		}
	}
	if entries > 0 && !isListed {
		v.add("policies.allowed_tokens", NotListed, asset, "")
	}
}

// stellarAsset returns the same text for both names of XLM.
func stellarAsset(asset string) string {
	if asset == "XLM" {
		return Native
	}
	return asset
}

// payment requires a sufficient payment if users pay. The name of an asset is the one to show.
func (v *violations) payment(strategy *relayer.FeePaymentStrategy, byDefault relayer.FeePaymentStrategy, payments []Payment, name func(string) string) {
	const field = "policies.fee_payment_strategy"
	isEnough := func(p Payment) bool { return p.Required != nil && p.Amount >= *p.Required }
	unknown := slices.IndexFunc(payments, func(p Payment) bool { return p.Required == nil })
	switch chosen := *cmp.Or(strategy, &byDefault); {
	case chosen == relayer.FeePaidByRelayer:
	case chosen != relayer.FeePaidByUser:
		v.add(field, Unsupported, string(chosen), "")
	case len(payments) == 0:
		v.add(field, Missing, "", "")
	case slices.ContainsFunc(payments, isEnough):
	case unknown >= 0:
		v.add(field, Unknown, name(payments[unknown].Asset), "")
	default:
		v.add(field, BelowMinimum, units(payments[0].Amount).String(), units(*payments[0].Required).String())
	}
}

// number is an amount of wei, or a number of other units.
type number[N any] interface {
	Cmp(N) int
	Sub(N) (difference N, ok bool)
	String() string
}

// units are lamports, stroops, bytes, signatures, or those of a token.
type units uint64

func (u units) Cmp(other units) int           { return cmp.Compare(u, other) }
func (u units) Sub(other units) (units, bool) { return u - other, u >= other }
func (u units) String() string                { return strconv.FormatUint(uint64(u), 10) }

// limit converts a limit of a policy. A negative one, which no registry stores, is 0.
func limit[I int32 | int64](n *I) *units {
	if n == nil {
		return nil
	}
	return new(units(max(*n, 0)))
}

// given converts a number of a transaction, which cannot be 0.
func given(n int) *units {
	if n <= 0 {
		return nil
	}
	return new(units(n))
}

// atMost compares a value with a maximum. Nil is not set, or not known.
func atMost[N number[N]](v *violations, field string, maximum, value *N) {
	switch {
	case maximum == nil:
	case value == nil:
		v.add(field, Unknown, "", (*maximum).String())
	case (*value).Cmp(*maximum) > 0:
		v.add(field, AboveMaximum, (*value).String(), (*maximum).String())
	}
}

// atLeast compares the balance after a transaction with a minimum. Nil is not set, or not
// known. Without the cost, a balance that is already below the minimum is a violation too.
func atLeast[N number[N]](v *violations, field string, minimum, balance, cost *N) {
	if minimum == nil {
		return
	}
	var zero N
	before, spent := *cmp.Or(balance, &zero), *cmp.Or(cost, &zero)
	after, isCovered := before.Sub(spent)
	switch {
	case balance != nil && !isCovered:
		debt, _ := spent.Sub(before)
		v.add(field, BelowMinimum, "-"+debt.String(), (*minimum).String())
	case balance != nil && after.Cmp(*minimum) < 0:
		v.add(field, BelowMinimum, after.String(), (*minimum).String())
	case (balance == nil || cost == nil) && (*minimum).Cmp(zero) > 0:
		v.add(field, Unknown, "", (*minimum).String())
	}
}
