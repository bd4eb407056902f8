package enforce

import "github.com/go-relayer/relayer"

// Transaction describes a transaction: an [EVM], a [Solana] or a [Stellar], or a pointer to one.
// [Check] refuses any other type.
type Transaction interface{ isTransaction() }

func (EVM) isTransaction()     {}
func (Solana) isTransaction()  {}
func (Stellar) isTransaction() {}

// EVM describes a transaction on an EVM network. Amounts are in wei; nil means unknown.
type EVM struct {
	// To is the receiver: 0x and 40 hex digits. It is empty for the creation of a contract.
	To string

	// MaxFeePerGas is the maximum fee per gas, or the gas price of a legacy transaction.
	MaxFeePerGas *relayer.Amount

	// GasLimit is the gas limit that the client gives. It is 0 if the engine estimates it.
	GasLimit uint64

	// Private is true if the transaction goes to a private endpoint only.
	Private bool

	// Balance is what the relayer has before the transaction, and Cost the most that the
	// transaction can take from it: its value, its gas limit times MaxFeePerGas, its blob gas times
	// its maximum fee per blob gas and, on a rollup, the fee of layer 1.
	Cost, Balance *relayer.Amount
}

// Solana describes a transaction on a Solana network. Amounts of SOL are in lamports; nil means unknown.
type Solana struct {
	// Accounts are all accounts of the message, each once, in base58: the fee payer, signers,
	// programs and those loaded from lookup tables. An empty list means unknown.
	Accounts []string

	// Unresolved is true if Accounts lacks the accounts of lookup tables.
	Unresolved bool

	// Programs are the programs that the instructions call. An engine that simulates adds
	// the programs of inner instructions. An empty list means unknown.
	Programs []string

	// Tokens are the mints of the tokens that the transaction transfers, including Payments. If
	// an instruction does not name the mint, the engine looks up the token account. Nil means
	// unknown, unless Programs and Accounts are complete and have no token program. An empty list
	// means that there are no transfers. TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA and
	// TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb are the token programs.
	Tokens []string

	// Signatures is the number of signatures that the message requires. 0 means unknown.
	Signatures int

	// Size is the size of the transaction with all its signatures, in bytes. 0 means unknown.
	Size int

	// Payments are the payments to the relayer, in tokens and SOL. Nil means that there are none.
	Payments []Payment

	// Fee is the fee that the network takes, without a margin.
	Fee *uint64

	// Balance is what the relayer has before the transaction, and Cost the most that the
	// transaction can take from it: the fee and transfers of the relayer. Payments do not
	// lower the cost.
	Cost, Balance *uint64
}

// Stellar describes a transaction on a Stellar network. Amounts of XLM are in stroops; nil means unknown.
type Stellar struct {
	// Fee is the fee that the relayer bids: the total of the outermost envelope, which is the fee
	// bump if there is one.
	Fee *uint64

	// Payments are the payments to the relayer. Nil means that there are none.
	Payments []Payment

	// Cost and Balance are as in [Solana].
	Cost, Balance *uint64
}

// Payment is a payment to the relayer for the fee of a transaction.
type Payment struct {
	// Asset is the mint on Solana, CODE:ISSUER or a contract ID on Stellar, and [Native] for SOL
	// and XLM. On Stellar it can be "XLM" too, which a violation shows as "native".
	Asset string

	// Amount is what the relayer receives at least, in the smallest unit of the asset: after a
	// transfer fee of the mint, and on Stellar the destMin of a strict send.
	Amount uint64

	// Required is what the relayer asks for the fee in this asset, with its margin, in the
	// same unit. Nil means unknown.
	Required *uint64
}

// Native is the [Payment.Asset] of SOL and XLM, and what a violation shows for it.
const Native = "native"
