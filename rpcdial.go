package relayer

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrAddressRefused says that an [RPCPolicy] does not allow a connection to an
// address.
var ErrAddressRefused = errors.New("RPC address refused")

// DialControl is a Control function for the [net.Dialer] of whoever connects to
// custom RPC URLs:
//
//	dialer := &net.Dialer{Control: policy.DialControl}
//	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
//
// It sees each address after the name has been resolved and before anything is
// sent, for redirects too, so that a name that meant a public address while its
// URL was checked and means another one now does not get through. It returns an
// error that matches [ErrAddressRefused], and that a Dialer and an http.Client
// pass on wrapped, for cloud metadata services, for the unspecified address, with
// PublicOnly for every address that is not public and not in AllowedAddresses,
// and for what is no IP address with a port, such as a socket file.
//
// No names are known here, so that AllowedHosts plays no part: a name on that
// list that resolves to an address that is not public is refused, unless
// AllowedAddresses has it; and with AllowedHosts alone, a redirect, or the owner
// of a name on the list, can lead to private addresses. Policies for strangers
// set PublicOnly.
//
// Behind a proxy the Dialer sees the address of the proxy and nothing else: leave
// http.Transport.Proxy nil, as above, or have the proxy refuse. The error of an
// http.Client repeats the URL, with any API key in it; what it wraps does not.
//
// It works on a policy that was never given to a Manager, and is safe for
// concurrent use. It does not touch the connection, which may be nil.
func (p RPCPolicy) DialControl(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is not dialled by IP address and port", ErrAddressRefused, network)
	}
	if problem := p.addressProblem(target.Addr().WithZone("").Unmap()); problem != "" {
		return fmt.Errorf("%w: %s", ErrAddressRefused, problem)
	}
	return nil
}
