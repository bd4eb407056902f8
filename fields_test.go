package relayer_test

import (
	"regexp"
	"testing"
)

// A kind is what a field holds. Its wrong values are all JSON values that it
// must refuse.
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

// field says what is known of a field of the request beside its path.
type field struct {
	kind     kind
	required bool
}

var anyIndex = regexp.MustCompile(`\[\d+\]`)

// fields are all fields of all requests, by path without the indexes. Those
// that differ from network to network have the network in front.
var fields = map[string]field{
	"id":                       {kind: identifier},
	"name":                     {nonEmptyText, true},
	"network":                  {nonEmptyText, true},
	"network_type":             {choice, true},
	"paused":                   {boolean, true},
	"signer_id":                {nonEmptyText, true},
	"notification_id":          {kind: nonEmptyText},
	"custom_rpc_urls":          {kind: list},
	"custom_rpc_urls[]":        {kind: object},
	"custom_rpc_urls[].url":    {urlText, true},
	"custom_rpc_urls[].weight": {kind: weight},
	"policies":                 {kind: object},

	"evm policies.eip1559_pricing":       {kind: boolean},
	"evm policies.gas_limit_estimation":  {kind: boolean},
	"evm policies.gas_price_cap":         {kind: amount},
	"evm policies.include_revert_data":   {kind: boolean},
	"evm policies.min_balance":           {kind: amount},
	"evm policies.private_transactions":  {kind: boolean},
	"evm policies.whitelist_receivers":   {kind: list},
	"evm policies.whitelist_receivers[]": {kind: text},

	"solana policies.allowed_accounts":                                            {kind: list},
	"solana policies.allowed_accounts[]":                                          {kind: text},
	"solana policies.allowed_programs":                                            {kind: list},
	"solana policies.allowed_programs[]":                                          {kind: text},
	"solana policies.allowed_tokens":                                              {kind: list},
	"solana policies.allowed_tokens[]":                                            {kind: object},
	"solana policies.allowed_tokens[].mint":                                       {nonEmptyText, true},
	"solana policies.allowed_tokens[].decimals":                                   {kind: uint8Number},
	"solana policies.allowed_tokens[].symbol":                                     {kind: text},
	"solana policies.allowed_tokens[].max_allowed_fee":                            {kind: uint64Number},
	"solana policies.allowed_tokens[].swap_config":                                {kind: object},
	"solana policies.allowed_tokens[].swap_config.slippage_percentage":            {kind: number},
	"solana policies.allowed_tokens[].swap_config.min_amount":                     {kind: uint64Number},
	"solana policies.allowed_tokens[].swap_config.max_amount":                     {kind: uint64Number},
	"solana policies.allowed_tokens[].swap_config.retain_min_amount":              {kind: uint64Number},
	"solana policies.disallowed_accounts":                                         {kind: list},
	"solana policies.fee_margin_percentage":                                       {kind: number},
	"solana policies.fee_payment_strategy":                                        {kind: choice},
	"solana policies.max_allowed_fee_lamports":                                    {kind: int64Number},
	"solana policies.max_signatures":                                              {kind: int32Number},
	"solana policies.max_tx_data_size":                                            {kind: int32Number},
	"solana policies.min_balance":                                                 {kind: int64Number},
	"solana policies.swap_config":                                                 {kind: object},
	"solana policies.swap_config.strategy":                                        {kind: choice},
	"solana policies.swap_config.cron_schedule":                                   {kind: text},
	"solana policies.swap_config.min_balance_threshold":                           {kind: uint64Number},
	"solana policies.swap_config.jupiter_swap_options":                            {kind: object},
	"solana policies.swap_config.jupiter_swap_options.priority_fee_max_lamports":  {kind: uint64Number},
	"solana policies.swap_config.jupiter_swap_options.priority_level":             {kind: choice},
	"solana policies.swap_config.jupiter_swap_options.dynamic_compute_unit_limit": {kind: boolean},

	"stellar policies.allowed_tokens":                                      {kind: list},
	"stellar policies.allowed_tokens[]":                                    {kind: object},
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
	"stellar policies.allowed_tokens[].max_allowed_fee":                    {kind: uint64Number},
	"stellar policies.allowed_tokens[].swap_config":                        {kind: object},
	"stellar policies.allowed_tokens[].swap_config.slippage_percentage":    {kind: number},
	"stellar policies.allowed_tokens[].swap_config.min_amount":             {kind: uint64Number},
	"stellar policies.allowed_tokens[].swap_config.max_amount":             {kind: uint64Number},
	"stellar policies.allowed_tokens[].swap_config.retain_min_amount":      {kind: uint64Number},
	"stellar policies.concurrent_transactions":                             {kind: boolean},
	"stellar policies.fee_margin_percentage":                               {kind: number},
	"stellar policies.fee_payment_strategy":                                {kind: choice},
	"stellar policies.max_fee":                                             {kind: int32Number},
	"stellar policies.min_balance":                                         {kind: int64Number},
	"stellar policies.slippage_percentage":                                 {kind: number},
	"stellar policies.swap_config":                                         {kind: object},
	"stellar policies.swap_config.strategies":                              {kind: list},
	"stellar policies.swap_config.strategies[]":                            {kind: choice},
	"stellar policies.swap_config.cron_schedule":                           {kind: text},
	"stellar policies.swap_config.min_balance_threshold":                   {kind: uint64Number},
	"stellar policies.timeout_seconds":                                     {kind: int64Number},
}

// fieldAt returns what is known of the field at a path of a full request.
func fieldAt(t testing.TB, full fullRelayer, path string) field {
	t.Helper()
	general := anyIndex.ReplaceAllString(path, "[]")
	if known, ok := fields[general]; ok {
		return known
	}
	known, ok := fields[string(full.networkType)+" "+general]
	if !ok {
		t.Fatalf("nothing is known of %s %s", full.networkType, general)
	}
	return known
}

// TestFullRequestsHoldEveryField makes sure that the tests built on both tables
// leave nothing out.
func TestFullRequestsHoldEveryField(t *testing.T) {
	met := make(map[string]bool)
	for _, full := range fullRelayers {
		for _, path := range pathsOf(t, full.request) {
			general := anyIndex.ReplaceAllString(path, "[]")
			fieldAt(t, full, path)
			met[general] = true
			met[string(full.networkType)+" "+general] = true
		}
	}
	for name := range fields {
		if !met[name] {
			t.Errorf("no full request holds %s", name)
		}
	}
}
