// The client program of TestGoClient. It is compiled with a client that oapi-codegen
// generates. It fails unless every value that it sends is returned.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/oapi-codegen/nullable"

	"github.com/go-relayer/relayer"
)

var ctx = context.Background()

func main() {
	log.SetFlags(log.Lshortfile)
	client, err := NewClientWithResponses(os.Getenv("SERVER"), WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
		return nil
	}))
	must(err)
	createAndGet(client)
	list(client)
	head(client)
	patchAndDelete(client)
}

func must(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

func want(isRight bool, format string, values ...any) {
	if !isRight {
		log.Output(2, fmt.Sprintf(format, values...))
		os.Exit(1)
	}
}

// relayerOf returns the relayer of a file, which has every field of its policy.
func relayerOf[T any](file string) (request T) {
	text, err := os.ReadFile(file)
	must(err)
	must(json.Unmarshal(text, &request))
	return request
}

// createAndGet sends each policy and compares it with the policy of the response.
func createAndGet(client *ClientWithResponses) {
	evm := relayerOf[CreateEvmRelayerRequest]("evm.json")
	solana := relayerOf[CreateSolanaRelayerRequest]("solana.json")
	stellar := relayerOf[CreateStellarRelayerRequest]("stellar.json")
	var body CreateRelayerRequest

	must(body.FromCreateEvmRelayerRequest(evm))
	evmCreated, err := create(client, body, "evm").AsEvmRelayerResponse()
	must(err)
	same(evm.Policies, evmCreated.Policies)
	same(evm.Labels, evmCreated.Labels)
	endpoint := (*evmCreated.CustomRpcUrls)[0]
	want(endpoint.Url == "https://rpc.example/***" && endpoint.Weight == 33.3, "the endpoint is %+v", endpoint)

	must(body.FromCreateSolanaRelayerRequest(solana))
	solanaCreated, err := create(client, body, "solana").AsSolanaRelayerResponse()
	must(err)
	same(solana.Policies, solanaCreated.Policies)

	must(body.FromCreateStellarRelayerRequest(stellar))
	stellarCreated, err := create(client, body, "stellar").AsStellarRelayerResponse()
	must(err)
	same(stellar.Policies, stellarCreated.Policies)
	want(stellarCreated.Paused && !evmCreated.Paused, "paused is not as it was sent")
}

func create(client *ClientWithResponses, body CreateRelayerRequest, id string) RelayerResponse {
	created, err := client.CreateRelayerWithResponse(ctx, nil, body)
	must(err)
	want(created.JSON201 != nil, "create returned %s %s", created.Status(), created.Body)
	read, err := client.GetRelayerWithResponse(ctx, id, nil)
	must(err)
	want(read.JSON200 != nil, "get returned %s %s", read.Status(), read.Body)
	same(created.JSON201.Data, read.JSON200.Data)
	return read.JSON200.Data
}

// same compares the JSON forms. The generator sorts the fields of all types.
func same(sent, returned any) {
	a, err := json.Marshal(sent)
	must(err)
	b, err := json.Marshal(returned)
	must(err)
	want(string(a) == string(b), "sent     %s\nreturned %s", a, b)
}

func list(client *ClientWithResponses) {
	page, err := client.ListRelayersWithResponse(ctx, &ListRelayersParams{Network: &[]string{"sepolia", "mainnet"}, Page: new(int64(2)), PerPage: new(int64(1))})
	must(err)
	want(page.JSON200 != nil && len(page.JSON200.Data) == 1 && page.JSON200.Pagination.TotalItems == 2, "list returned %s %s", page.Status(), page.Body)
	last, err := page.JSON200.Data[0].ValueByDiscriminator()
	must(err)
	stellar, ok := last.(StellarRelayerResponse)
	want(ok && stellar.Id == "stellar", "the last relayer is %T %+v", last, last)
}

// head checks that the client does not parse a body that HEAD does not have.
func head(client *ClientWithResponses) {
	one, err := client.HeadRelayerWithResponse(ctx, "evm", nil)
	must(err)
	none, err := client.HeadRelayerWithResponse(ctx, "nobody", nil)
	must(err)
	all, err := client.HeadRelayersWithResponse(ctx, nil)
	must(err)
	changes, err := client.HeadWatchRelayersWithResponse(ctx, nil)
	must(err)
	want(one.StatusCode() == http.StatusOK && one.HTTPResponse.Header.Get("ETag") != "" && none.StatusCode() == http.StatusNotFound,
		"HEAD returned %s and %s", one.Status(), none.Status())
	want(all.StatusCode() == http.StatusOK && changes.StatusCode() == http.StatusOK,
		"HEAD of the collection returned %s and %s", all.Status(), changes.Status())
}

// patchAndDelete clears members, sets one, and omits the others.
func patchAndDelete(client *ClientWithResponses) {
	request := relayerOf[CreateEvmRelayerRequest]("evm.json")
	request.Id = nullable.NewNullableWithValue("patched")
	var body CreateRelayerRequest
	must(body.FromCreateEvmRelayerRequest(request))
	create(client, body, "patched")

	var policies UpdateRelayerRequest_Policies
	must(policies.FromRelayerEvmPolicy(RelayerEvmPolicy{GasPriceCap: nullable.NewNullNullable[WeiInput](), MinBalance: nullable.NewNullableWithValue(relayer.Gwei(7))}))
	patched, err := client.UpdateRelayerWithApplicationMergePatchPlusJSONBodyWithResponse(ctx, "patched", nil, UpdateRelayerRequest{
		Paused:         new(true),
		NotificationId: nullable.NewNullNullable[string](),
		Policies:       nullable.NewNullableWithValue(policies),
	})
	must(err)
	want(patched.JSON200 != nil, "patch returned %s %s", patched.Status(), patched.Body)
	got, err := patched.JSON200.Data.AsEvmRelayerResponse()
	must(err)
	want(got.Name == "EVM" && got.Paused && got.NotificationId == nil, "patched to %s", patched.Body)
	want(got.Policies.GasPriceCap == nil && *got.Policies.MinBalance == relayer.Gwei(7) && got.Policies.Eip1559Pricing != nil, "patched to %s", patched.Body)
	stale, err := client.DeleteRelayerWithResponse(ctx, "patched", &DeleteRelayerParams{IfMatch: new(`"0"`)})
	must(err)
	want(stale.JSON412 != nil, "a stale delete returned %s %s", stale.Status(), stale.Body)
	tag := patched.HTTPResponse.Header.Get("ETag")
	deleted, err := client.DeleteRelayerWithResponse(ctx, "patched", &DeleteRelayerParams{IfMatch: &tag})
	must(err)
	want(deleted.JSON200 != nil, "delete returned %s %s", deleted.Status(), deleted.Body)
}
