package relayer_test

import "github.com/go-relayer/relayer"

// fullRelayer is a request that sets everything there is to set on a network,
// and the document it makes.
type fullRelayer struct {
	networkType relayer.NetworkType
	request     string
	document    string
}

// fullRelayers name their members in any order and write their numbers as
// clients do; the documents have the order of the specification.
var fullRelayers = []fullRelayer{
	{relayer.EVM, `{
		"policies": {
			"whitelist_receivers": ["0xabc", "é<&> \u2713"],
			"private_transactions": false,
			"min_balance": 1e21,
			"include_revert_data": true,
			"gas_price_cap": 115792089237316195423570985008687907853269984665640564039457584007913129639935,
			"gas_limit_estimation": false,
			"eip1559_pricing": true
		},
		"custom_rpc_urls": [{"weight": 12.5, "url": "https://user:pass@eth.example:8545/v2/KEY?k=v#f"}, {"url": "wss://b.example"}],
		"notification_id": "alerts",
		"signer_id": "signer-1",
		"paused": true,
		"network_type": "evm",
		"network": "sepolia",
		"name": "Full",
		"id": "full-evm"
	}`, `{"id":"full-evm","name":"Full","network":"sepolia","network_type":"evm","address":"0xfeed","paused":true,"system_disabled":false,` +
		`"signer_id":"signer-1","notification_id":"alerts",` +
		`"custom_rpc_urls":[{"url":"https://eth.example:8545/***","weight":12.5},{"url":"wss://b.example","weight":100}],` +
		`"policies":{"eip1559_pricing":true,"gas_limit_estimation":false,` +
		`"gas_price_cap":115792089237316195423570985008687907853269984665640564039457584007913129639935,"include_revert_data":true,` +
		`"min_balance":1000000000000000000000,"private_transactions":false,"whitelist_receivers":["0xabc","é<&> ✓"]}}`},

	{relayer.Solana, `{
		"id": "full-solana",
		"name": "Full",
		"network": "devnet",
		"network_type": "solana",
		"paused": false,
		"signer_id": "signer-1",
		"notification_id": "alerts",
		"custom_rpc_urls": [{"url": "http://sol.example/", "weight": 0}],
		"policies": {
			"swap_config": {
				"jupiter_swap_options": {"dynamic_compute_unit_limit": false, "priority_level": "veryHigh", "priority_fee_max_lamports": 18446744073709551615},
				"min_balance_threshold": 0,
				"cron_schedule": "0 */6 * * *",
				"strategy": "jupiter-swap"
			},
			"min_balance": 9223372036854775807,
			"max_tx_data_size": 2147483647,
			"max_signatures": 0,
			"max_allowed_fee_lamports": 5.0,
			"fee_payment_strategy": "relayer",
			"fee_margin_percentage": 0.1,
			"disallowed_accounts": [],
			"allowed_tokens": [
				{"mint": "mint-1", "decimals": 255, "symbol": "", "max_allowed_fee": 7,
				 "swap_config": {"retain_min_amount": 3, "max_amount": 2, "min_amount": 1, "slippage_percentage": 0.5}},
				{"mint": "mint-2"}
			],
			"allowed_programs": ["p"],
			"allowed_accounts": ["a", "b"]
		}
	}`, `{"id":"full-solana","name":"Full","network":"devnet","network_type":"solana","address":"0xfeed","paused":false,"system_disabled":false,` +
		`"signer_id":"signer-1","notification_id":"alerts","custom_rpc_urls":[{"url":"http://sol.example/","weight":0}],` +
		`"policies":{"allowed_accounts":["a","b"],"allowed_programs":["p"],"allowed_tokens":[` +
		`{"mint":"mint-1","decimals":255,"symbol":"","max_allowed_fee":7,` +
		`"swap_config":{"slippage_percentage":0.5,"min_amount":1,"max_amount":2,"retain_min_amount":3}},{"mint":"mint-2"}],` +
		`"disallowed_accounts":[],"fee_margin_percentage":0.1,"fee_payment_strategy":"relayer","max_allowed_fee_lamports":5,"max_signatures":0,` +
		`"max_tx_data_size":2147483647,"min_balance":9223372036854775807,"swap_config":{"strategy":"jupiter-swap","cron_schedule":"0 */6 * * *",` +
		`"min_balance_threshold":0,"jupiter_swap_options":{"priority_fee_max_lamports":18446744073709551615,"priority_level":"veryHigh",` +
		`"dynamic_compute_unit_limit":false}}}}`},

	{relayer.Stellar, `{
		"id": "full-stellar",
		"name": "Full",
		"network": "testnet",
		"network_type": "stellar",
		"paused": false,
		"signer_id": "signer-1",
		"notification_id": "alerts",
		"custom_rpc_urls": [{"url": "ws://xlm.example:8000", "weight": 100}],
		"policies": {
			"timeout_seconds": 30,
			"swap_config": {"min_balance_threshold": 50e-1, "cron_schedule": "", "strategies": ["soroswap", "order-book"]},
			"slippage_percentage": 1.5,
			"min_balance": 0,
			"max_fee": 2147483647,
			"fee_payment_strategy": "user",
			"fee_margin_percentage": 10,
			"concurrent_transactions": true,
			"allowed_tokens": [
				{"asset": "native", "metadata": {"kind": "native", "decimals": 4294967295, "canonical_asset_id": "native"}, "max_allowed_fee": 18446744073709551615,
				 "swap_config": {"retain_min_amount": 0, "max_amount": 2, "min_amount": 1, "slippage_percentage": 0}},
				{"asset": "USDC:G1", "metadata": {"kind": {"classic": {"issuer": "G1", "code": "USDC"}}}},
				{"asset": "C1", "metadata": {"kind": {"contract": {"contract_id": "C1"}}}}
			]
		}
	}`, `{"id":"full-stellar","name":"Full","network":"testnet","network_type":"stellar","address":"0xfeed","paused":false,"system_disabled":false,` +
		`"signer_id":"signer-1","notification_id":"alerts","custom_rpc_urls":[{"url":"ws://xlm.example:8000","weight":100}],` +
		`"policies":{"allowed_tokens":[` +
		`{"asset":"native","metadata":{"kind":"native","decimals":4294967295,"canonical_asset_id":"native"},"max_allowed_fee":18446744073709551615,` +
		`"swap_config":{"slippage_percentage":0,"min_amount":1,"max_amount":2,"retain_min_amount":0}},` +
		`{"asset":"USDC:G1","metadata":{"kind":{"classic":{"code":"USDC","issuer":"G1"}}}},` +
		`{"asset":"C1","metadata":{"kind":{"contract":{"contract_id":"C1"}}}}],` +
		`"concurrent_transactions":true,"fee_margin_percentage":10,"fee_payment_strategy":"user","max_fee":2147483647,"min_balance":0,` +
		`"slippage_percentage":1.5,"swap_config":{"strategies":["soroswap","order-book"],"cron_schedule":"","min_balance_threshold":5},"timeout_seconds":30}}`},
}
