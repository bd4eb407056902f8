// Package properties checks with random relayers that secrets are masked wherever a
// relayer is shown, that a plan makes any registry equal to any configuration, and that fewer
// rules of a policy permit more.
package properties

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
	"github.com/go-relayer/relayer/store/memory"
)

// Few IDs and values, so that two random contents have relayers and fields in common.
var planIDs = []string{"a", "b", "c", "d", "e"}

func drawConfig(t *rapid.T, label string) []relayer.CreateRequest {
	ids := rapid.SliceOfDistinct(rapid.SampledFrom(planIDs), rapid.ID[string]).Draw(t, label+" IDs")
	var requests []relayer.CreateRequest
	for _, id := range ids {
		requests = append(requests, drawDesired(t, label+" "+id, id))
	}
	return requests
}

func drawDesired(t *rapid.T, label, id string) relayer.CreateRequest {
	req := relayer.CreateRequest{
		ID:             id,
		Name:           rapid.SampledFrom([]string{"n", "m", "é ${X}\n"}).Draw(t, label+" name"),
		Network:        rapid.SampledFrom([]string{"x", "x", "x", "y"}).Draw(t, label+" network"),
		NetworkType:    networkTypeOf(t, label, id),
		Paused:         rapid.Bool().Draw(t, label+" paused"),
		SignerID:       "s",
		NotificationID: rapid.SampledFrom([]string{"", "alerts", "pages"}).Draw(t, label+" notification"),
		CustomRPCURLs:  rapid.SliceOfN(rapid.Custom(drawEndpoint), 0, 3).Draw(t, label+" endpoints"),
	}
	req.Labels = rapid.SampledFrom([]map[string]string{nil, {}, {"team": "x"}, {"team": "x", "a.b/c": ""}, {"team": "y"}}).Draw(t, label+" labels")
	if rapid.IntRange(0, 4).Draw(t, label+" has policies") > 0 {
		req.Policy = drawPolicy(t, req.NetworkType)
	}
	return req
}

// networkTypeOf is mostly a function of the ID, because it cannot change.
func networkTypeOf(t *rapid.T, label, id string) relayer.NetworkType {
	types := []relayer.NetworkType{relayer.EVM, relayer.Solana, relayer.Stellar}
	if rapid.IntRange(0, 9).Draw(t, label+" other type") == 0 {
		return rapid.SampledFrom(types).Draw(t, label+" type")
	}
	return types[int(id[0])%len(types)]
}

func drawEndpoint(t *rapid.T) relayer.RPCConfig {
	return relayer.RPCConfig{
		URL:    relayer.RPCURL(rapid.SampledFrom([]string{"https://a.example/1", "https://a.example/2", "https://u:p@a.example/2", "wss://b.example", "https://b.example/?k=1"}).Draw(t, "url")),
		Weight: rapid.Ptr(rapid.SampledFrom([]float64{0, 0.5, 100}), true).Draw(t, "weight"),
	}
}

func drawPolicy(t *rapid.T, networkType relayer.NetworkType) relayer.Policy {
	boolean, percentage := rapid.Ptr(rapid.Bool(), true), rapid.Ptr(rapid.SampledFrom([]float64{0, 0.1, 1e21}), true)
	count, long := rapid.Ptr(rapid.SampledFrom([]int32{0, 7}), true), rapid.Ptr(rapid.SampledFrom([]int64{0, 1 << 62}), true)
	quantity := rapid.Ptr(rapid.SampledFrom([]uint64{0, 1<<64 - 1}), true)
	texts := rapid.Custom(func(t *rapid.T) []string {
		return rapid.SampledFrom([][]string{nil, {}, {"a"}, {"a", "b"}, {"b", "a"}}).Draw(t, "texts")
	})
	strategy := rapid.Ptr(rapid.SampledFrom([]relayer.FeePaymentStrategy{relayer.FeePaidByUser, relayer.FeePaidByRelayer}), true)
	schedule := rapid.Ptr(rapid.SampledFrom([]string{"", "* * * * *"}), true)
	tokenSwap := rapid.Ptr(rapid.Custom(func(t *rapid.T) relayer.TokenSwapConfig {
		return relayer.TokenSwapConfig{SlippagePercentage: percentage.Draw(t, "slippage"), MinAmount: quantity.Draw(t, "minimum")}
	}), true)
	switch networkType {
	case relayer.EVM:
		amount := rapid.Ptr(rapid.Custom(drawAmount), true)
		return &relayer.EVMPolicy{
			EIP1559Pricing: boolean.Draw(t, "pricing"), GasPriceCap: amount.Draw(t, "cap"),
			MinBalance: amount.Draw(t, "minimum"), WhitelistReceivers: texts.Draw(t, "receivers"),
		}
	case relayer.Solana:
		return &relayer.SolanaPolicy{
			AllowedAccounts: texts.Draw(t, "accounts"), FeePaymentStrategy: strategy.Draw(t, "strategy"), FeeMarginPercentage: percentage.Draw(t, "margin"),
			MaxSignatures: count.Draw(t, "signatures"), MinBalance: long.Draw(t, "minimum"),
			AllowedTokens: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) relayer.SolanaAllowedToken {
				return relayer.SolanaAllowedToken{Mint: "m", MaxAllowedFee: quantity.Draw(t, "fee"), SwapConfig: tokenSwap.Draw(t, "swap")}
			}), 0, 2).Draw(t, "tokens"),
			SwapConfig: rapid.Ptr(rapid.Custom(func(t *rapid.T) relayer.SolanaSwapConfig {
				return relayer.SolanaSwapConfig{
					CronSchedule: schedule.Draw(t, "schedule"), MinBalanceThreshold: quantity.Draw(t, "threshold"),
					JupiterSwapOptions: rapid.Ptr(rapid.Custom(func(t *rapid.T) relayer.JupiterSwapOptions {
						return relayer.JupiterSwapOptions{PriorityFeeMaxLamports: quantity.Draw(t, "fee"), DynamicComputeUnitLimit: boolean.Draw(t, "limit")}
					}), true).Draw(t, "options"),
				}
			}), true).Draw(t, "swap"),
		}
	default:
		return &relayer.StellarPolicy{
			ConcurrentTransactions: boolean.Draw(t, "concurrent"), FeePaymentStrategy: strategy.Draw(t, "strategy"), MaxFee: count.Draw(t, "fee"),
			AllowedTokens: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) relayer.StellarAllowedToken {
				kind := rapid.SampledFrom([]*relayer.StellarTokenKind{nil, {}, {Contract: &relayer.StellarContractToken{ContractID: "C1"}}}).Draw(t, "kind")
				return relayer.StellarAllowedToken{Asset: "native", Metadata: &relayer.StellarTokenMetadata{Kind: kind}, SwapConfig: tokenSwap.Draw(t, "swap")}
			}), 0, 2).Draw(t, "tokens"),
			SwapConfig: rapid.Ptr(rapid.Custom(func(t *rapid.T) relayer.StellarSwapConfig {
				return relayer.StellarSwapConfig{CronSchedule: schedule.Draw(t, "schedule"), Strategies: rapid.SampledFrom([][]relayer.StellarSwapStrategy{nil, {}, {relayer.SwapSoroswap}}).Draw(t, "strategies")}
			}), true).Draw(t, "swap"),
		}
	}
}

func drawAmount(t *rapid.T) relayer.Amount {
	return relayer.MustParseAmount(rapid.SampledFrom([]string{"0", "1e21", "115792089237316195423570985008687907853269984665640564039457584007913129639935"}).Draw(t, "amount"))
}

// must returns the first result of a call, or a function that fails the test with its error.
func must[T any](value T, err error) func(t *rapid.T) T {
	return func(t *rapid.T) T {
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

var errInterrupted = errors.New("interrupted")

// interrupted is a store that fails in one call, before or after its effect.
type interrupted struct {
	relayer.Store
	remaining atomic.Int64 // calls until the failure; negative for none
	isAfter   bool         // the failure follows the effect
}

func interruptible[T any](s *interrupted, run func() (T, error)) (result T, err error) {
	if s.remaining.Add(-1) != -1 {
		return run()
	}
	if s.isAfter {
		result, _ = run()
		return result, fmt.Errorf("%w: %w", relayer.ErrOutcomeUnknown, errInterrupted)
	}
	return result, fmt.Errorf("%w: %w", relayer.ErrUnavailable, errInterrupted)
}

func (s *interrupted) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return interruptible(s, func() (relayer.Record, error) { return s.Store.Create(ctx, rec) })
}

func (s *interrupted) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return interruptible(s, func() (relayer.Record, error) { return s.Store.Update(ctx, rec) })
}

func (s *interrupted) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	_, err := interruptible(s, func() (any, error) { return nil, s.Store.Delete(ctx, id, revision, note) })
	return err
}

func (s *interrupted) Get(ctx context.Context, id string) (relayer.Record, error) {
	return interruptible(s, func() (relayer.Record, error) { return s.Store.Get(ctx, id) })
}

func (s *interrupted) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	return interruptible(s, func() (relayer.Listing, error) { return s.Store.List(ctx, query) })
}

// maskedRegistry shows a registry as a client of a server does.
type maskedRegistry struct{ relayer.Registry }

func (r maskedRegistry) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		for got, err := range r.Registry.All(ctx, selector) {
			if got != nil {
				for i, endpoint := range got.CustomRPCURLs {
					got.CustomRPCURLs[i].URL = relayer.RPCURL(endpoint.URL.String())
				}
			}
			if !yield(got, err) {
				return
			}
		}
	}
}

// contentOf returns all relayers by ID.
func contentOf(t *rapid.T, manager *relayer.Manager) map[string]relayer.Relayer {
	content := make(map[string]relayer.Relayer)
	for read, err := range manager.All(context.Background(), relayer.Selector{}) {
		r := must(read, err)(t)
		if len(r.CustomRPCURLs) == 0 {
			r.CustomRPCURLs = nil // an empty list is none
		}
		content[r.ID] = *r
	}
	return content
}

func createConfig(t *rapid.T, manager *relayer.Manager, requests []relayer.CreateRequest) {
	for _, req := range requests {
		must(manager.Create(context.Background(), req))(t)
	}
}

// expectedContent returns the content after an apply of desired to stored. It is computed
// by creates in another registry, not by a comparison of fields.
func (s *scenario) expectedContent(t *rapid.T, stored map[string]relayer.Relayer) map[string]relayer.Relayer {
	other := must(relayer.New(memory.New()))(t)
	createConfig(t, other, s.desired)
	want := contentOf(t, other)
	isBlocked := false
	for id, after := range want {
		old, isStored := stored[id]
		if s.options.Selector.Matches(&after) && (!isStored || s.options.Selector.Matches(&old)) {
			continue
		}
		isBlocked = true
		if want[id] = old; !isStored {
			delete(want, id)
		}
	}
	for id, old := range stored {
		after, isListed := want[id]
		switch {
		case !isListed:
			continue
		case old.Network != after.Network || old.NetworkType != after.NetworkType || old.SignerID != after.SignerID:
			isBlocked = true
			after = old
		}
		after.SystemDisabled, after.DisabledReason = old.SystemDisabled, old.DisabledReason
		want[id] = after
	}
	for id, old := range stored {
		if _, isListed := want[id]; !isListed && (!s.options.Prune || isBlocked || !s.options.Selector.Matches(&old)) {
			want[id] = old
		}
	}
	return want
}

func expectContent(t *rapid.T, got, want map[string]relayer.Relayer) {
	for id, r := range got {
		r.Revision, r.LastChange = want[id].Revision, want[id].LastChange
		got[id] = r
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("content\n%v\nwant\n%v", got, want)
	}
}

// scenario is a random registry and a random configuration.
type scenario struct {
	store    *interrupted
	manager  *relayer.Manager
	registry relayer.Registry
	desired  []relayer.CreateRequest
	options  plan.Options
	want     map[string]relayer.Relayer
	isMasked bool
}

func drawScenario(t *rapid.T) *scenario {
	s := &scenario{store: &interrupted{Store: memory.New()}, desired: drawConfig(t, "desired")}
	s.store.remaining.Store(-1)
	s.manager = must(relayer.New(s.store))(t)
	s.registry = s.manager
	if s.isMasked = rapid.Bool().Draw(t, "masked"); s.isMasked {
		s.registry = maskedRegistry{s.manager}
	}
	s.options.Prune = rapid.Bool().Draw(t, "prune")
	s.options.MaxDeletes = 1000
	s.options.Selector = rapid.SampledFrom([]relayer.Selector{{}, {}, relayer.Selector{}.Where("label.team", "x")}).Draw(t, "selector")
	createConfig(t, s.manager, drawConfig(t, "stored"))
	for id := range contentOf(t, s.manager) {
		if rapid.IntRange(0, 3).Draw(t, id+" is disabled") > 0 {
			continue
		}
		must(s.manager.Disable(context.Background(), id, relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: id}))(t)
	}
	s.want = s.expectedContent(t, contentOf(t, s.manager))
	return s
}

// apply makes a plan and applies it. It returns the first error that is not the problem of
// a blocked entry.
func (s *scenario) apply(t *rapid.T) error {
	p, err := plan.New(context.Background(), s.registry, s.desired, s.options)
	if err != nil {
		return err
	}
	results, err := p.Apply(context.Background())
	for _, result := range results {
		if result.Err != nil {
			return result.Err
		}
	}
	if (err != nil) != (p.Err() != nil) {
		t.Fatalf("error %v, and of the plan %v", err, p.Err())
	}
	return nil
}

// TestPlan_AppliedPlanIsEmpty checks that an apply makes any registry equal to any
// configuration, and that a second plan has no changes.
func TestPlan_AppliedPlanIsEmpty(t *testing.T) { testAppliedPlanIsEmpty(t, 0, 0) }

// TestPlan_ResumesAfterInterruption checks that an apply that was interrupted any number
// of times, at any call to the store, ends like an uninterrupted one.
func TestPlan_ResumesAfterInterruption(t *testing.T) { testAppliedPlanIsEmpty(t, 1, 4) }

func testAppliedPlanIsEmpty(t *testing.T, least, most int) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		for range rapid.IntRange(least, most).Draw(t, "interruptions") {
			s.store.remaining.Store(rapid.Int64Range(0, 20).Draw(t, "calls"))
			s.store.isAfter = rapid.Bool().Draw(t, "after the effect")
			if err := s.apply(t); err != nil && !errors.Is(err, errInterrupted) {
				t.Fatal(err)
			}
		}
		s.store.remaining.Store(-1)
		if err := s.apply(t); err != nil {
			t.Fatal(err)
		}
		expectContent(t, contentOf(t, s.manager), s.want)
		again := must(plan.New(context.Background(), s.registry, s.desired, s.options))(t)
		for _, entry := range again.Entries() {
			// A blocked entry holds deletes back.
			if entry.Action == plan.Create || entry.Action == plan.Update || entry.Action == plan.Delete && again.Err() == nil {
				t.Fatalf("changes after an apply:\n%s", again)
			}
		}
	})
}
