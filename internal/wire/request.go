package wire

import (
	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// RequestOf returns the request that creates a relayer.
func RequestOf(r *relayer.Relayer) (req relayer.CreateRequest) {
	strictjson.CopyFields(&req, r)
	return req
}
