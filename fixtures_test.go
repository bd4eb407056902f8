package relayer_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// A kind is a type of field with the same valid values.
type kind int

const (
	text kind = iota
	nonEmptyText
	choice
	boolean
	number
	weight
	uint8Number
	uint32Number
	uint64Number
	int32Number
	int64Number
	amount
	list
	object
	union
	urlText
	identifier
)

// wrongValues are JSON values that a field of the kind must reject.
var wrongValues = map[kind][]string{
	text:         {`5`, `0.5`, `true`, `[]`, `["x"]`, `{}`},
	nonEmptyText: {`5`, `true`, `[]`, `{}`, `""`},
	choice:       {`5`, `true`, `[]`, `{}`, `"other"`, `""`},
	identifier:   {`5`, `true`, `[]`, `{}`, `""`, `"a b"`},
	urlText:      {`5`, `true`, `[]`, `{}`, `""`, `"rpc.example"`},
	boolean:      {`"true"`, `"false"`, `0`, `1`, `[]`, `{}`},
	list:         {`"x"`, `5`, `true`, `{}`, `{"0":"x"}`},
	object:       {`"x"`, `5`, `true`, `[]`, `[{}]`},
	union:        {`5`, `true`, `[]`, `"other"`, `{}`},
	number:       {`"1"`, `true`, `[]`, `{}`, `1e999`, `-1e999`},
	weight:       {`"1"`, `true`, `[]`, `{}`, `1e999`, `-1`, `-1e-9`, `100.0000001`, `101`},
	uint8Number:  wrongIntegers("255", "256"),
	uint32Number: wrongIntegers("4294967295", "4294967296"),
	uint64Number: wrongIntegers("18446744073709551615", "18446744073709551616"),
	int32Number:  wrongIntegers("2147483647", "2147483648"),
	int64Number:  wrongIntegers("9223372036854775807", "9223372036854775808"),
	amount:       slices.Concat(wrongIntegers(maxAmount, overMaxAmount)[1:], wrongDigits),
}

const (
	maxAmount     = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	overMaxAmount = "115792089237316195423570985008687907853269984665640564039457584007913129639936"
)

// wrongDigits are strings that are not an amount.
var wrongDigits = []string{
	`""`, `"-1"`, `"+1"`, `"1e18"`, `"1.0"`, `" 1"`, `"1 "`, `"0x10"`, `"1_000"`, `"1,000"`, `"５"`, `"NaN"`, `"null"`, `"1\u0000"`, `"\ud800"`, `"\"5\""`,
	`"` + overMaxAmount + `"`, `"1` + maxAmount + `"`, `"1` + strings.Repeat("0", 1000) + `"`,
}

// rightAmounts are the notations of integers, and strings of decimal digits.
func rightAmounts() map[string]string {
	amounts := rightIntegers(maxAmount)
	maps.Copy(amounts, map[string]string{
		`"0"`: "0", `"5"`: "5", `"\u0035"`: "5", `"100000000000"`: "100000000000", `"` + maxAmount + `"`: maxAmount,
		`"00"`: "0", `"007"`: "7", `"` + strings.Repeat("0", 322) + maxAmount + `"`: maxAmount,
	})
	return amounts
}

// wrongIntegers has the string first, because amounts may be strings.
func wrongIntegers(most, tooMuch string) []string {
	return []string{
		`"5"`, `true`, `[]`, `{}`,
		`-1`, `-1.0`, `-1e77`, `-` + most,
		`0.5`, `1e-1`, `-0.5`, most + `.5`, `123e-2`, `1e-999999999`, `1e-99999999999999999999`,
		tooMuch, tooMuch + `.0`, `1` + most, `1e78`, `1e999999999`, `1e99999999999999999999`,
	}
}

// rightIntegers maps notations of integers to their values.
func rightIntegers(most string) map[string]string {
	return map[string]string{
		"0": "0", "-0": "0", "-0.0": "0", "0.0": "0", "0e400": "0", "-0E-400": "0", "0.000e7": "0",
		"5": "5", "5.0": "5", "50e-1": "5", "5e0": "5", "0.5e1": "5", "0.05E+2": "5", "500000e-5": "5", "5.000000000000000000000": "5",
		most: most, most + ".0": most, most + "e0": most, most + "00e-2": most,
	}
}

// rightValues maps values that a field of the kind accepts to their form in the
// document.
var rightValues = map[kind]map[string]string{
	uint8Number:  rightIntegers("255"),
	uint32Number: rightIntegers("4294967295"),
	uint64Number: rightIntegers("18446744073709551615"),
	int32Number:  rightIntegers("2147483647"),
	int64Number:  rightIntegers("9223372036854775807"),
	amount:       rightAmounts(),
	number:       {"0": "0", "-2.5": "-2.5", "1e21": "1e+21", "0.1": "0.1", "1.7976931348623157e308": "1.7976931348623157e+308", "1e-999": "0", "50e-1": "5"},
	weight:       {"0": "0", "100": "100", "0.1": "0.1", "100.0": "100", "1e2": "100", "99.99999999999999": "99.99999999999999"},
	boolean:      {"true": "true", "false": "false"},
	text:         {`""`: `""`, `" "`: `" "`, `"\u0041\ud83d\ude00\n\/"`: `"A😀\n/"`},
	nonEmptyText: {`" "`: `" "`, `"\u0041\ud83d\ude00\t\/"`: `"A😀\t/"`},
}

// field describes a field of a request.
type field struct {
	kind     kind
	required bool
}

var anyIndex = regexp.MustCompile(`\[\d+\]`)

// fields are all fields of all requests, by path without indexes. The path of a policy
// field of one network begins with the network.
var fields = map[string]field{
	"id":                        {kind: identifier},
	"name":                      {nonEmptyText, true},
	"network":                   {nonEmptyText, true},
	"network_type":              {choice, true},
	"paused":                    {boolean, true},
	"signer_id":                 {nonEmptyText, true},
	"notification_id":           {kind: nonEmptyText},
	"custom_rpc_urls":           {kind: list},
	"custom_rpc_urls[]":         {kind: object},
	"custom_rpc_urls[].url":     {urlText, true},
	"custom_rpc_urls[].weight":  {kind: weight},
	"custom_rpc_urls[].headers": {kind: object},
	"policies":                  {kind: object},
	"settings":                  {kind: object},

	"evm policies.eip1559_pricing":       {kind: boolean},
	"evm policies.gas_limit_estimation":  {kind: boolean},
	"evm policies.gas_price_cap":         {kind: amount},
	"evm policies.include_revert_data":   {kind: boolean},
	"evm policies.min_balance":           {kind: amount},
	"evm policies.private_transactions":  {kind: boolean},
	"evm policies.whitelist_receivers":   {kind: list},
	"evm policies.whitelist_receivers[]": {kind: text},

	"policies.allowed_tokens":                                   {kind: list},
	"policies.allowed_tokens[]":                                 {kind: object},
	"policies.allowed_tokens[].max_allowed_fee":                 {kind: uint64Number},
	"policies.allowed_tokens[].swap_config":                     {kind: object},
	"policies.allowed_tokens[].swap_config.slippage_percentage": {kind: number},
	"policies.allowed_tokens[].swap_config.min_amount":          {kind: uint64Number},
	"policies.allowed_tokens[].swap_config.max_amount":          {kind: uint64Number},
	"policies.allowed_tokens[].swap_config.retain_min_amount":   {kind: uint64Number},
	"policies.fee_margin_percentage":                            {kind: number},
	"policies.fee_payment_strategy":                             {kind: choice},
	"policies.min_balance":                                      {kind: int64Number},
	"policies.swap_config":                                      {kind: object},
	"policies.swap_config.cron_schedule":                        {kind: text},
	"policies.swap_config.min_balance_threshold":                {kind: uint64Number},

	"solana policies.allowed_accounts":                                            {kind: list},
	"solana policies.allowed_accounts[]":                                          {kind: text},
	"solana policies.allowed_programs":                                            {kind: list},
	"solana policies.allowed_programs[]":                                          {kind: text},
	"solana policies.allowed_tokens[].mint":                                       {nonEmptyText, true},
	"solana policies.allowed_tokens[].decimals":                                   {kind: uint8Number},
	"solana policies.allowed_tokens[].symbol":                                     {kind: text},
	"solana policies.disallowed_accounts":                                         {kind: list},
	"solana policies.max_allowed_fee_lamports":                                    {kind: int64Number},
	"solana policies.max_signatures":                                              {kind: int32Number},
	"solana policies.max_tx_data_size":                                            {kind: int32Number},
	"solana policies.swap_config.strategy":                                        {kind: choice},
	"solana policies.swap_config.jupiter_swap_options":                            {kind: object},
	"solana policies.swap_config.jupiter_swap_options.priority_fee_max_lamports":  {kind: uint64Number},
	"solana policies.swap_config.jupiter_swap_options.priority_level":             {kind: choice},
	"solana policies.swap_config.jupiter_swap_options.dynamic_compute_unit_limit": {kind: boolean},

	"stellar policies.allowed_tokens[].asset":                              {nonEmptyText, true},
	"stellar policies.allowed_tokens[].metadata":                           {kind: object},
	"stellar policies.allowed_tokens[].metadata.kind":                      {kind: union},
	"stellar policies.allowed_tokens[].metadata.kind.classic":              {kind: object},
	"stellar policies.allowed_tokens[].metadata.kind.classic.code":         {nonEmptyText, true},
	"stellar policies.allowed_tokens[].metadata.kind.classic.issuer":       {nonEmptyText, true},
	"stellar policies.allowed_tokens[].metadata.kind.contract":             {kind: object},
	"stellar policies.allowed_tokens[].metadata.kind.contract.contract_id": {nonEmptyText, true},
	"stellar policies.allowed_tokens[].metadata.decimals":                  {kind: uint32Number},
	"stellar policies.allowed_tokens[].metadata.canonical_asset_id":        {kind: text},
	"stellar policies.concurrent_transactions":                             {kind: boolean},
	"stellar policies.max_fee":                                             {kind: int32Number},
	"stellar policies.slippage_percentage":                                 {kind: number},
	"stellar policies.swap_config.strategies":                              {kind: list},
	"stellar policies.swap_config.strategies[]":                            {kind: choice},
	"stellar policies.timeout_seconds":                                     {kind: int64Number},
}

// fieldAt returns the description of the field at a path of a full request.
func fieldAt(t testing.TB, full fullRelayer, path string) field {
	t.Helper()
	general := anyIndex.ReplaceAllString(path, "[]")
	for _, name := range []string{string(full.networkType) + " " + general, general} {
		if known, ok := fields[name]; ok {
			return known
		}
	}
	t.Fatalf("nothing is known of %s %s", full.networkType, general)
	return field{}
}

// The tests that use both tables must cover every field.
func TestFixtures_SetEveryField(t *testing.T) {
	met := make(map[string]bool)
	for _, full := range fullRelayers {
		for _, path := range pathsOf(t, full.request) {
			general := anyIndex.ReplaceAllString(path, "[]")
			fieldAt(t, full, path)
			met[general] = true
			met[string(full.networkType)+" "+general] = true
		}
	}
	for _, name := range relayer.NetworkTypes() {
		if !slices.ContainsFunc(fullRelayers, func(full fullRelayer) bool { return full.networkType == name }) {
			t.Errorf("no full request is of the network type %s", name)
		}
	}
	for name := range fields {
		if !met[name] {
			t.Errorf("no full request holds %s", name)
		}
	}
}

// fullRelayer is a request with every field of a network type, and its document.
type fullRelayer struct {
	networkType relayer.NetworkType
	request     string
	document    string
}

// fullRelayers have their members in any order and numbers in the notations of clients;
// the documents have the order of the specification.
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
		"custom_rpc_urls": [{"weight": 12.5, "url": "https://user:pass@eth.example:8545/v2/KEY?k=v#f"}, {"url": "wss://b.example", "headers": {}}],
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
		},
		"settings": {}
	}`, `{"id":"full-solana","name":"Full","network":"devnet","network_type":"solana","address":"0xfeed","paused":false,"system_disabled":false,` +
		`"signer_id":"signer-1","notification_id":"alerts","custom_rpc_urls":[{"url":"http://sol.example/","weight":0}],` +
		`"policies":{"allowed_accounts":["a","b"],"allowed_programs":["p"],"allowed_tokens":[` +
		`{"mint":"mint-1","decimals":255,"symbol":"","max_allowed_fee":7,` +
		`"swap_config":{"slippage_percentage":0.5,"min_amount":1,"max_amount":2,"retain_min_amount":3}},{"mint":"mint-2"}],` +
		`"disallowed_accounts":[],"fee_margin_percentage":0.1,"fee_payment_strategy":"relayer","max_allowed_fee_lamports":5,"max_signatures":0,` +
		`"max_tx_data_size":2147483647,"min_balance":9223372036854775807,"swap_config":{"strategy":"jupiter-swap","cron_schedule":"0 */6 * * *",` +
		`"min_balance_threshold":0,"jupiter_swap_options":{"priority_fee_max_lamports":18446744073709551615,"priority_level":"veryHigh",` +
		`"dynamic_compute_unit_limit":false}}},"settings":{}}`},

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
