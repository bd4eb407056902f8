package main

import (
	"math"

	"github.com/oapi-codegen/nullable"

	"github.com/go-relayer/relayer"
)

// set returns a nullable member that has a value.
func set[T any](value T) nullable.Nullable[T] { return nullable.NewNullableWithValue(value) }

func mostWei() relayer.Amount {
	most, err := relayer.ParseAmount("115792089237316195423570985008687907853269984665640564039457584007913129639935")
	must(err)
	return most
}

// evmRelayer sets every field of the policy.
func evmRelayer() CreateEvmRelayerRequest {
	return CreateEvmRelayerRequest{
		Id: set("evm"), Name: "EVM", Network: "sepolia", NetworkType: CreateEvmRelayerRequestNetworkTypeEvm, SignerId: "signer",
		NotificationId: set("alerts"), Labels: set(Labels{"team": "payments"}),
		CustomRpcUrls: set([]RpcConfig{{Url: "https://rpc.example/v2/KEY", Weight: set(33.3)}}),
		Policies: set(RelayerEvmPolicy{
			Eip1559Pricing: set(false), GasLimitEstimation: set(true), GasPriceCap: set(mostWei()), IncludeRevertData: set(true),
			MinBalance: set(relayer.Amount{}), PrivateTransactions: set(false), WhitelistReceivers: set([]string{"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}),
		}),
	}
}

// solanaRelayer sets every field of the policy.
func solanaRelayer() CreateSolanaRelayerRequest {
	const account = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	return CreateSolanaRelayerRequest{
		Id: set("solana"), Name: "Solana", Network: "mainnet-beta", NetworkType: CreateSolanaRelayerRequestNetworkTypeSolana, SignerId: "signer",
		Policies: set(RelayerSolanaPolicy{
			AllowedAccounts: set([]string{account}), AllowedPrograms: set([]string{account}), DisallowedAccounts: set([]string{}),
			AllowedTokens: set([]SolanaAllowedTokensPolicy{{
				Mint: account, Decimals: set(uint8(math.MaxUint8)), Symbol: set("USDC"), MaxAllowedFee: set(uint64(math.MaxUint64)), SwapConfig: set(tokenSwap()),
			}}),
			FeeMarginPercentage: set(0.1), FeePaymentStrategy: set(User), MaxAllowedFeeLamports: set(int64(math.MaxInt64)),
			MaxSignatures: set(int32(math.MaxInt32)), MaxTxDataSize: set(int32(1232)), MinBalance: set(int64(1<<53 + 1)),
			SwapConfig: set(RelayerSolanaSwapConfig{
				Strategy: set(JupiterSwap), CronSchedule: set("0 */6 * * *"), MinBalanceThreshold: set(uint64(math.MaxUint64)),
				JupiterSwapOptions: set(JupiterSwapOptions{
					PriorityFeeMaxLamports: set(uint64(math.MaxUint64)), PriorityLevel: set(VeryHigh), DynamicComputeUnitLimit: set(false),
				}),
			}),
		}),
	}
}

// stellarRelayer sets every field of the policy, and has every kind of asset.
func stellarRelayer() CreateStellarRelayerRequest {
	const issuer = "GA5ZSEJYB37JRC5AVCIA5MOP4RHTM335X2KGX3IHOJAPP5RE34K4KZVN"
	var native, classic, contract StellarTokenKind
	must(native.FromStellarTokenKind0(StellarTokenKind0Native))
	must(classic.FromStellarTokenKind1(StellarTokenKind1{Classic: StellarClassicAsset{Code: "USDC", Issuer: issuer}}))
	must(contract.FromStellarTokenKind2(StellarTokenKind2{Contract: StellarContractToken{ContractId: "C"}}))
	var tokens []StellarAllowedTokensPolicy
	for _, kind := range []StellarTokenKind{native, classic, contract} {
		tokens = append(tokens, StellarAllowedTokensPolicy{
			Asset: "XLM", MaxAllowedFee: set(uint64(math.MaxUint64)), SwapConfig: set(tokenSwap()),
			Metadata: set(StellarTokenMetadata{Kind: set(kind), Decimals: set(uint32(math.MaxUint32)), CanonicalAssetId: set("id")}),
		})
	}
	return CreateStellarRelayerRequest{
		Id: set("stellar"), Name: "Stellar", Network: "mainnet", NetworkType: CreateStellarRelayerRequestNetworkTypeStellar, SignerId: "signer", Paused: true,
		Policies: set(RelayerStellarPolicy{
			AllowedTokens: set(tokens), ConcurrentTransactions: set(true), FeeMarginPercentage: set(2.5), FeePaymentStrategy: set(Relayer),
			MaxFee: set(int32(math.MaxInt32)), MinBalance: set(int64(math.MaxInt64)), SlippagePercentage: set(0.25), TimeoutSeconds: set(int64(30)),
			SwapConfig: set(RelayerStellarSwapConfig{
				Strategies: set([]StellarSwapStrategy{Soroswap, OrderBook}), CronSchedule: set("@daily"), MinBalanceThreshold: set(uint64(math.MaxUint64)),
			}),
		}),
	}
}

func tokenSwap() TokenSwapConfig {
	return TokenSwapConfig{
		SlippagePercentage: set(0.5), MinAmount: set(uint64(0)), MaxAmount: set(uint64(math.MaxUint64)), RetainMinAmount: set(uint64(1<<53 + 1)),
	}
}
