package relayer

import (
	"reflect"
	"slices"
	"strings"

	"github.com/go-relayer/relayer/internal/chain"
)

// knownNetworkType is what this version of the package has of a network type.
type knownNetworkType struct {
	name      NetworkType
	newPolicy func() Policy

	// addressProblem returns why a relayer cannot have the address, or "".
	addressProblem func(address string) string
}

// networkTypes is the table of the network types.
var networkTypes = []knownNetworkType{
	{EVM, func() Policy { return new(EVMPolicy) }, chain.EVMAddressProblem},
	{Solana, func() Policy { return new(SolanaPolicy) }, chain.SolanaAddressProblem},
	{Stellar, func() Policy { return new(StellarPolicy) }, chain.StellarAccountProblem},
}

// NetworkTypes returns the network types that this version of the package has. Later versions
// may have more.
func NetworkTypes() []NetworkType {
	names := make([]NetworkType, 0, len(networkTypes))
	for _, t := range networkTypes {
		names = append(names, t.name)
	}
	return names
}

// networkTypeProblem returns why the text is no known network type, or "".
func networkTypeProblem(text string) string {
	if newPolicy(NetworkType(text)) != nil {
		return ""
	}
	return "must be one of " + networkTypeList()
}

func networkTypeList() string {
	var names []string
	for _, name := range NetworkTypes() {
		names = append(names, string(name))
	}
	return strings.Join(names, ", ")
}

// newPolicy returns an empty policy of the network type, or nil if the type is unknown.
func newPolicy(name NetworkType) Policy {
	i := slices.IndexFunc(networkTypes, func(t knownNetworkType) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return networkTypes[i].newPolicy()
}

// isKnown reports whether the policy is that of a type of the table. A type of another package
// implements Policy if it embeds one; its own fields would be lost.
func isKnown(policy Policy) bool {
	return slices.ContainsFunc(networkTypes, func(t knownNetworkType) bool { return reflect.TypeOf(t.newPolicy()) == reflect.TypeOf(policy) })
}

// networkAddressProblem returns why a relayer of the network type cannot have the address, or
// "".
func networkAddressProblem(address string, name NetworkType) string {
	for _, t := range networkTypes {
		if t.name == name {
			return t.addressProblem(address)
		}
	}
	return ""
}

// checkOuterSpaces reports a name that looks like another one.
func checkOuterSpaces(found *problems, field, name string) {
	if strings.TrimSpace(name) != name {
		found.Add(field, "must not begin or end with a space")
	}
}
