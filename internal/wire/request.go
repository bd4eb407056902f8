package wire

import (
	"fmt"
	"reflect"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// RequestOf returns the request that creates a relayer.
func RequestOf(r *relayer.Relayer) (req relayer.CreateRequest) {
	strictjson.CopyFields(&req, r)
	return req
}

// CheckPolicy returns a [*relayer.ValidationError] if policy is a [relayer.Policy] of another
// network type. The JSON of a request does not show it: MinBalance is in wei or in lamports.
func CheckPolicy(policy any, networkType relayer.NetworkType) error {
	given, ok := policy.(relayer.Policy)
	if value := reflect.ValueOf(given); !ok || value.Kind() == reflect.Pointer && value.IsNil() || given.NetworkType() == networkType {
		return nil
	}
	message := fmt.Sprintf("must be the policy of the network type, not that of %s", given.NetworkType())
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "policies", Message: message}}}
}
