// Package rpcguard checks the URLs of RPC endpoints that others configure, and the addresses
// that are dialed for them, against server-side request forgery. It needs no registry.
package rpcguard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/mask"
)

// ErrRefused reports that a [Policy] does not permit a connection to an address.
var ErrRefused = errors.New("RPC address refused")

// Policy restricts the URLs of RPC endpoints, and the addresses that a host connects to for them.
// The zero value permits every valid URL except URLs of cloud metadata services and of the
// unspecified address, which no policy can permit.
//
// It is enforced at two points, and a host that accepts URLs from untrusted clients needs
// both. [Policy.Check] rejects a URL when it is written; relayer.WithRPCPolicy does so in a
// registry. [Policy.DialControl] rejects an address when it is dialed, after name resolution.
//
// A policy is safe for concurrent use if its slices are not modified.
type Policy struct {
	// AllowedHosts is an allowlist of host names: a name such as rpc.example.com, or
	// *.example.com for every name below example.com, at any depth, but not for
	// example.com itself. Nil allows every name and every address; an empty list allows
	// only AllowedAddresses.
	//
	// Letter case, trailing dots and Unicode compatibility forms do not matter. The Unicode form
	// of an international name and its xn-- form are different names: list both if both may be
	// used. Addresses belong in AllowedAddresses.
	AllowedHosts []string

	// PublicOnly rejects every address that is not part of the public internet: loopback,
	// private, unique local, link-local, shared (carrier-grade NAT), multicast, broadcast, and
	// addresses reserved for documentation, benchmarks or the future. It also rejects such an
	// IPv4 address in 6to4, Teredo or 64:ff9b::/96.
	//
	// Unless AllowedHosts has them, it also rejects names that are private by convention: names
	// without a dot, home.arpa, and names that end with .localhost, .localdomain, .localdomain4,
	// .localdomain6, .local, .internal, .lan, .home.arpa or .svc. Other names are not resolved by
	// Check: DialControl checks their addresses.
	PublicOnly bool

	// AllowedAddresses are addresses that a URL may have as its host in addition to
	// AllowedHosts, and that are exempt from PublicOnly. A prefix of IPv4 includes the
	// mapped IPv6 form, and no other IPv6 address.
	AllowedAddresses []netip.Prefix

	// RefuseUserInfo rejects URLs with user information, as in
	// https://user:password@rpc.example.com.
	RefuseUserInfo bool
}

// Validate returns an error if AllowedHosts contains an invalid name, or AllowedAddresses an
// invalid or IPv4-mapped IPv6 prefix. Such an entry permits nothing.
func (p Policy) Validate() error {
	for _, host := range p.AllowedHosts {
		name := mask.FoldHost(host)
		if len(readAddresses(name)) > 0 {
			return fmt.Errorf("rpcguard: allowed host %q is an address, which belongs in AllowedAddresses", mask.Text(host))
		}
		if !isName(strings.TrimPrefix(name, "*.")) {
			return fmt.Errorf("rpcguard: allowed host %q must be a name such as rpc.example.com or *.example.com", mask.Text(host))
		}
	}
	for _, prefix := range p.AllowedAddresses {
		if !prefix.IsValid() {
			return errors.New("rpcguard: an allowed address is not a valid prefix")
		}
		if prefix.Addr().Is4In6() {
			return fmt.Errorf("rpcguard: allowed address %s must be written as IPv4", prefix)
		}
	}
	return nil
}

// Check returns an error if text is not an absolute http, https, ws or wss URL, or if the
// policy does not permit it. The error says what the URL must be, for the sender of the URL,
// and quotes nothing of it.
func (p Policy) Check(text string) error {
	parsed, problem := parse(text)
	if problem == "" {
		problem = p.urlProblem(parsed)
	}
	if problem != "" {
		return errors.New(problem)
	}
	return nil
}

func parse(text string) (parsed *url.URL, problem string) {
	const message = "must be an absolute http, https, ws or wss URL with a host"
	if text == "" {
		return nil, "must not be empty"
	}
	if !utf8.ValidString(text) {
		return nil, "must be UTF-8"
	}
	if strings.ContainsFunc(text, isControlOrSpace) {
		return nil, "must not contain spaces or control characters"
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Opaque != "" || parsed.Hostname() == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, parsed.Scheme) {
		return nil, message
	}
	if port := parsed.Port(); port != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return nil, "must have a port from 1 to 65535"
		}
	}
	return parsed, ""
}

func isControlOrSpace(r rune) bool {
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r)
}

const (
	hostNotAllowed = "must have a host that is allowed here"
	notPublic      = "must point at a public address"
)

func (p Policy) urlProblem(parsed *url.URL) string {
	host := mask.FoldHost(parsed.Hostname())
	addresses := readAddresses(host)
	switch problem := hostProblem(host, addresses); {
	case problem != "":
		return problem
	case p.RefuseUserInfo && parsed.User != nil:
		return "must not contain user information"
	case p.AllowedHosts != nil && strings.ContainsAny(parsed.Hostname(), "\u200c\u200d"):
		// Folding removes joiners, like older clients. Newer clients keep them in scripts that
		// need them, and look up another name, which may have another owner.
		return hostNotAllowed
	case len(addresses) > 0:
		return p.literalsProblem(addresses)
	case p.AllowedHosts != nil && !p.allowsName(host):
		return hostNotAllowed
	case p.PublicOnly && (!isName(host) || p.AllowedHosts == nil && isPrivateName(host)):
		return notPublic
	}
	return ""
}

// literalsProblem checks every address as which a client may interpret the host. All must
// be permitted.
func (p Policy) literalsProblem(addresses []netip.Addr) string {
	for _, address := range addresses {
		if p.AllowedHosts != nil && !p.allowsAddress(address) {
			return hostNotAllowed
		}
		if problem := p.addressProblem(address); problem != "" {
			return problem
		}
	}
	return ""
}

func (p Policy) allowsName(name string) bool {
	return isName(name) && slices.ContainsFunc(p.AllowedHosts, func(allowed string) bool {
		allowed = mask.FoldHost(allowed)
		if parent, ok := strings.CutPrefix(allowed, "*."); ok {
			return strings.HasSuffix(name, "."+parent)
		}
		return name == allowed
	})
}

func (p Policy) allowsAddress(address netip.Addr) bool {
	return slices.ContainsFunc(p.AllowedAddresses, func(allowed netip.Prefix) bool { return allowed.Contains(address) })
}

// addressProblem returns why connections to an address, without a zone and not mapped, are
// not permitted, or "".
func (p Policy) addressProblem(address netip.Addr) string {
	if problem := dangerProblem(address); problem != "" {
		return problem
	}
	if p.PublicOnly && !isPublic(address) && !p.allowsAddress(address) {
		return notPublic
	}
	return ""
}

// DialControl is a Control function for the [net.Dialer] of the host code that connects to
// custom RPC URLs:
//
//	dialer := &net.Dialer{Control: policy.DialControl}
//	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
//
// It is called with each address after name resolution and before anything is sent, also for
// redirects. With PublicOnly it therefore stops DNS rebinding: a name that resolved to a public
// address when its URL was checked, and to a private one now. It returns an error that matches
// [ErrRefused] for
//
//   - cloud metadata services and the unspecified address;
//   - with PublicOnly, every address that is neither public nor in AllowedAddresses;
//   - everything that is not an IP address with a port, such as a Unix socket.
//
// If each address of a name fails, a Dialer returns the first error, wrapped.
//
// DialControl receives addresses, not names, so AllowedHosts has no effect on it. A name in
// AllowedHosts that resolves to a private address is rejected by PublicOnly, unless the
// address is in AllowedAddresses. Without PublicOnly, a redirect or the owner of a listed
// name can lead to private addresses: set PublicOnly if clients are not trusted.
//
// Behind a proxy the Dialer connects only to the proxy: leave http.Transport.Proxy nil, as above,
// or enforce the policy in the proxy. The error of an http.Client contains the URL, and the error
// that it wraps can contain the host: either can have an API key.
//
// It is safe for concurrent use, and does not use the connection, which may be nil.
func (p Policy) DialControl(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is not dialed by IP address and port", ErrRefused, network)
	}
	if problem := p.addressProblem(target.Addr().WithZone("").Unmap()); problem != "" {
		return fmt.Errorf("%w: %s", ErrRefused, problem)
	}
	return nil
}
