// Package enforce decides whether a relayer may send a transaction, by the switches and the
// policy of the relayer. An engine describes the transaction as an [EVM], a [Solana] or a
// [Stellar], calls [Check] before it signs, and signs only if Check returns nil. Check has no
// state, calls no network and decodes no transaction: the engine gives the values.
//
// Check does not see whose money moves. An engine that signs for others must also refuse what
// takes from the relayer: transfers of SOL, XLM or tokens out of the accounts of the relayer, an
// unintended fee payer on Solana, and the relayer as the source of an operation on Stellar. A
// min_balance limits the loss of SOL and XLM if Cost includes it, and never of tokens. A version
// that does not have a field of a policy does not check it: upgrade the engines before you set a
// new field.
//
//	err := enforce.Check(r, enforce.EVM{To: to, MaxFeePerGas: &price, GasLimit: gas, Cost: &cost, Balance: &balance})
//
// # Rules
//
// Limits are inclusive: a value equal to a limit is permitted. A field of a policy that is not
// set (nil, in JSON null or absent) limits nothing; only fee_payment_strategy has a default. A
// relayer without a policy (nil) is checked as if no field is set: on Solana, users must pay.
//
// [Check] returns all violations, at most 1,000, in the order of this list. An indented line is
// checked together with the line above, in the order of the payments. A value that occurs twice
// is reported twice: an unlisted mint that is transferred and paid is two violations.
//
//	field                     code, and when the transaction is refused with it
//	id                        unknown if the relayer is nil. Nothing else is compared then
//	paused, system_disabled   paused or disabled, if the switch is on
//	network_type              unknown if the transaction is nil, or a nil pointer; unsupported
//	                          if the relayer is of none of the three types; wrong_network if
//	                          the transaction is of another. The policy is not compared then
//	policies                  unsupported if the policy is not one of network_type
//
//	EVM
//	gas_limit_estimation      missing if it is false and GasLimit is 0
//	gas_price_cap             above_maximum if MaxFeePerGas is above. The priority fee and
//	                          the price of blobs are not compared. An engine that lowers
//	                          prices does so before
//	min_balance               below_minimum if Balance minus Cost is below
//	private_transactions      missing if it is true and the transaction goes to a public endpoint
//	whitelist_receivers       not_listed if To is not in the list. Letter case is ignored. Any
//	                          list refuses the creation of a contract, and an empty list refuses
//	                          all. The zero address and the address of the relayer need an entry
//	                          like any other
//
//	Solana
//	allowed_accounts          not_listed for each account of the message that is not in the list.
//	                          An empty list refuses all. Text is compared exactly from here on
//	allowed_programs          not_listed for each program not in the list. An empty list refuses all
//	allowed_tokens            not_listed for each mint, first of Tokens, then of Payments, that is
//	                          not in the list. An empty list permits all. SOL needs no entry
//	  max_allowed_fee         above_maximum for each payment in this token that is above
//	disallowed_accounts       listed for each account of the message that is in the list, even
//	                          if it is in allowed_accounts too
//	fee_payment_strategy      with "user", the default, at least one payment must reach its own
//	                          Required; payments are not added up. Otherwise there is one violation:
//	                          missing without payments; unknown for the first payment without
//	                          Required; else below_minimum for the first payment. Any value other
//	                          than "user" and "relayer" is unsupported
//	max_allowed_fee_lamports  above_maximum if Fee is above
//	max_signatures            above_maximum if Signatures is above
//	max_tx_data_size          above_maximum if Size is above
//	min_balance               below_minimum if Balance minus Cost is below
//
//	Stellar
//	allowed_tokens            not_listed for each payment whose asset is not in the list. An empty
//	                          list permits all. Other payments are not limited. XLM needs an
//	                          entry, "native" or "XLM", which are the same
//	  max_allowed_fee         above_maximum for each payment in this asset that is above
//	fee_payment_strategy      as on Solana, but the default is "relayer"
//	max_fee                   above_maximum if Fee is above
//	min_balance               below_minimum if Balance minus Cost is below
//
// The code is unknown if the policy limits a value that the description lacks: a number, or a
// part of a list. Known values of a list are compared even then. A min_balance above 0 needs
// Balance and Cost. A Balance below it is below_minimum even without Cost.
//
// All other fields of a policy are settings of the engine, and are not compared: eip1559_pricing,
// include_revert_data, fee_margin_percentage, slippage_percentage, timeout_seconds,
// concurrent_transactions, swap_config; of a token decimals, symbol, metadata and swap_config.
package enforce
