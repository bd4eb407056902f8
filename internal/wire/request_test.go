package wire_test

import (
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

func TestCheckPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		policy  any
		isOther bool
	}{
		"none":           {nil, false},
		"a nil pointer":  {(*relayer.EVMPolicy)(nil), false},
		"nil unknown":    {(*relayer.UnknownPolicy)(nil), false},
		"a patch":        {[]byte(`{"min_balance":1}`), false},
		"the same type":  {new(relayer.SolanaPolicy), false},
		"another type":   {new(relayer.EVMPolicy), true},
		"a type of none": {new(relayer.UnknownPolicy), true},
	} {
		if err := wire.CheckPolicy(c.policy, relayer.Solana); (err != nil) != c.isOther {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
