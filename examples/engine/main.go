// Command engine shows what a relaying engine asks the registry: for each transaction on its
// standard input it prints whether the relayer may send it, and the first ten rules that refuse
// it. It has no chain and signs nothing. The registry is a server; the engine keeps a current
// view of it in memory, so no transaction waits for a request.
//
//	go run ./cmd/relayerd serve --db relayers.db # in another terminal; create "sepolia-1" as README.md does
//	export API_KEY=…                             # the token of that server
//	echo '{"relayer":"sepolia-1","evm":{"to":"0x01","maxFeePerGas":30000000000}}' |
//	    go run ./examples/engine
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/enforce"
	"github.com/go-relayer/relayer/mirror"
)

// job is a transaction to relay, of one network type. A real engine decodes the transaction and
// fills in what the chain says: balances, fees and lookup tables.
type job struct {
	Relayer string
	EVM     *enforce.EVM
	Solana  *enforce.Solana
	Stellar *enforce.Stellar
}

func main() {
	url := flag.String("url", "http://127.0.0.1:8080", "URL of the registry")
	flag.Parse()
	registry, err := client.New(*url, client.WithToken(os.Getenv("API_KEY")))
	if err == nil {
		err = run(context.Background(), registry, os.Stdin, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, registry relayer.Registry, jobs io.Reader, decisions io.Writer) error {
	view, err := mirror.Open(ctx, registry, relayer.Selector{})
	if err != nil {
		return err
	}
	defer view.Close()
	lines := bufio.NewScanner(jobs)
	lines.Buffer(nil, math.MaxInt) // a long job must not end the engine
	for lines.Scan() && ctx.Err() == nil {
		var j job
		err := json.Unmarshal(lines.Bytes(), &j)
		if err == nil {
			err = check(ctx, view, j)
		}
		decision := "accepted"
		if err != nil {
			decision = "refused: " + err.Error()
		}
		if _, err := fmt.Fprintf(decisions, "%q: %s\n", j.Relayer, decision); err != nil {
			return err
		}
	}
	return lines.Err()
}

// check returns why the relayer must not send the transaction, or nil.
func check(ctx context.Context, view *mirror.Mirror, j job) error {
	// The view may lack newer pauses. Its age is read before Get.
	if age := time.Since(view.CaughtUp()); age > 30*time.Second {
		return fmt.Errorf("the view of the registry is %v old", age.Round(time.Second))
	}
	r, err := view.Get(ctx, j.Relayer)
	switch {
	case err != nil:
		return err
	case j.EVM != nil && j.Solana == nil && j.Stellar == nil:
		return enforce.Check(r, j.EVM)
	case j.EVM == nil && j.Solana != nil && j.Stellar == nil:
		return enforce.Check(r, j.Solana)
	case j.EVM == nil && j.Solana == nil && j.Stellar != nil:
		return enforce.Check(r, j.Stellar)
	}
	return errors.New("a job needs one transaction")
}
