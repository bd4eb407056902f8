// Command engine shows what a relaying engine asks the registry: for each job on its
// standard input it prints whether the relayer may relay it. It has no chain and signs
// nothing. The registry is a server; the engine keeps a current view of it in memory, so
// that no job waits for a request.
//
//	go run ./examples/server # in another terminal, with a relayer "treasury"
//	export API_KEY=…         # the token of that server
//	echo '{"relayer":"treasury","receiver":"0x01","gas_price":30000000000,"value":1}' |
//	    go run ./examples/engine
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/mirror"
)

// job is a transaction to relay.
type job struct {
	Relayer  string          `json:"relayer"`
	Receiver string          `json:"receiver"`
	GasPrice *relayer.Amount `json:"gas_price"` // in wei
	Value    relayer.Amount  `json:"value"`     // in wei
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

// maxAge is the age of the view from which on no job is accepted: a pause may be missing.
const maxAge = 30 * time.Second

func run(ctx context.Context, registry relayer.Registry, jobs io.Reader, decisions io.Writer) error {
	view, err := mirror.Open(ctx, registry, relayer.Selector{})
	if err != nil {
		return err
	}
	defer view.Close()
	lines := bufio.NewScanner(jobs)
	for lines.Scan() && ctx.Err() == nil {
		j, err := parse(lines.Bytes())
		if err == nil {
			err = check(ctx, view, j)
		}
		decision := "accepted"
		if err != nil {
			decision = "refused: " + err.Error()
		}
		if _, err := fmt.Fprintf(decisions, "%s: %s\n", j.Relayer, decision); err != nil {
			return err
		}
	}
	return lines.Err()
}

// parse returns the job of a line. A text that is not an ID could forge a decision.
func parse(line []byte) (j job, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&j); err != nil {
		return job{}, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return job{}, errors.New("the line must be one JSON object")
	}
	if !relayer.IsID(j.Relayer) {
		return job{}, errors.New("the relayer must be an ID")
	}
	return j, nil
}

// check returns why the relayer must not relay the job, or nil.
func check(ctx context.Context, view *mirror.Mirror, j job) error {
	if age := time.Since(view.CaughtUp()); age > maxAge {
		return fmt.Errorf("the view of the registry is %v old", age.Round(time.Second))
	}
	r, err := view.Get(ctx, j.Relayer)
	switch {
	case errors.Is(err, relayer.ErrNotFound):
		return errors.New("there is no such relayer")
	case err != nil:
		return err
	case r.Paused:
		return errors.New("the relayer is paused")
	case r.SystemDisabled:
		return fmt.Errorf("the relayer is disabled: %s", r.DisabledReason.Type)
	}
	switch policy := r.Policy.(type) {
	case *relayer.EVMPolicy:
		return checkEVM(policy, j)
	default:
		return fmt.Errorf("this engine does not relay on %s networks", r.NetworkType)
	}
}

func checkEVM(policy *relayer.EVMPolicy, j job) error {
	if j.Receiver == "" || j.GasPrice == nil {
		return errors.New("the receiver and the gas price are required")
	}
	isReceiver := func(permitted string) bool { return strings.EqualFold(permitted, j.Receiver) }
	if policy.WhitelistReceivers != nil && !slices.ContainsFunc(policy.WhitelistReceivers, isReceiver) {
		return errors.New("the receiver is not on the whitelist")
	}
	if policy.GasPriceCap != nil && j.GasPrice.Cmp(*policy.GasPriceCap) > 0 {
		return fmt.Errorf("the gas price is above the cap of %s wei", policy.GasPriceCap)
	}
	return nil
}
