// Package enforce decides whether a relayer may send a transaction, by the switches and the
// policy of the relayer. An engine describes the transaction as an [EVM], a [Solana] or a
// [Stellar], calls [Check] before it signs, and signs only if Check returns nil. Check has no
// state, calls no network and decodes no transaction: the engine gives the values.
//
//	err := enforce.Check(r, enforce.EVM{To: to, MaxFeePerGas: &price, GasLimit: gas, Cost: &cost, Balance: &balance})
//
// # Rules
//
// Limits are inclusive: a value equal to a limit is permitted. A field of a policy that is not
// set (nil, in JSON null or absent) limits nothing; only fee_payment_strategy has a default.
// [Check] returns every violation: one for each value and rule, in the order of this list.
//
//	field                     the transaction is refused
//	paused, system_disabled   if it is true
//	network_type              if the transaction is of another type, or the type is not one
//	                          of the three. The policy is not compared then
//
//	EVM
//	gas_limit_estimation      if it is false and the transaction has no gas limit
//	gas_price_cap             if the maximum fee per gas, or the gas price of a legacy
//	                          transaction, is above. The priority fee is not compared. A
//	                          price is never lowered: an engine that lowers it does so before
//	min_balance               if the balance minus the cost is below
//	private_transactions      if it is true and the transaction goes to a public endpoint
//	whitelist_receivers       if the receiver is not in the list. An empty list permits no
//	                          receiver. Letter case has no meaning. Any list refuses the
//	                          creation of a contract. The zero address and the address of the
//	                          relayer need an entry like any other
//
//	Solana
//	allowed_accounts          if an account of the message is not in the list. An empty list
//	                          permits none. Text is compared exactly, as in all lists below
//	allowed_programs          if a program that it calls is not in the list. An empty list
//	                          permits none
//	allowed_tokens            if the mint of a transfer or of a payment to the relayer is not
//	                          in the list. An empty list permits every mint. SOL needs no entry
//	  max_allowed_fee         if a payment to the relayer in this token is above
//	disallowed_accounts       if an account of the message is in the list, even if it is in
//	                          allowed_accounts too
//	fee_payment_strategy      with "user", the default: if no payment to the relayer is at
//	                          least the required one. Payments are not added up, and the
//	                          violation shows the first
//	max_allowed_fee_lamports  if the fee, without a margin, is above
//	max_signatures            if it requires more signatures
//	max_tx_data_size          if it has more bytes
//	min_balance               if the balance minus the cost is below
//
//	Stellar
//	allowed_tokens            if the asset of a payment to the relayer is not in the list. An
//	                          empty list permits every asset. Other payments are not limited.
//	                          XLM needs an entry, "native" or "XLM", which are the same
//	  max_allowed_fee         if a payment to the relayer in this asset is above
//	fee_payment_strategy      as on Solana, but the default is "relayer"
//	max_fee                   if the fee that the relayer bids is above
//	min_balance               if the balance minus the cost is below
//
// A transaction is also refused, with the code [Unknown], if the policy limits a value that its
// description lacks. A min_balance of 0 needs no balance.
//
// All other fields of a policy are settings of the engine, and are not compared:
// eip1559_pricing, include_revert_data, fee_margin_percentage, slippage_percentage,
// timeout_seconds, concurrent_transactions, swap_config, and of a token decimals, symbol,
// metadata and swap_config.
package enforce
