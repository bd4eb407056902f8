package rpcguard_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/go-relayer/relayer/rpcguard"
)

// A host checks a URL when a client sets it, and each address when it connects.
func Example() {
	policy := rpcguard.Policy{PublicOnly: true, AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}}
	for _, url := range []string{"https://rpc.example.com/v2/KEY", "http://10.1.2.3:8545", "http://geth:8545", "http://2130706433:8545"} {
		fmt.Println(url, policy.Check(url))
	}

	dialer := &net.Dialer{Control: policy.DialControl}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	_, err := client.Get("http://localhost:8545")
	fmt.Println(errors.Is(err, rpcguard.ErrRefused))
	// Output:
	// https://rpc.example.com/v2/KEY <nil>
	// http://10.1.2.3:8545 <nil>
	// http://geth:8545 must point at a public address
	// http://2130706433:8545 must point at a public address
	// true
}
