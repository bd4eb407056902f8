//go:build !goexperiment.jsonv2

package relayer_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// A key of a map in JSON is a text as it is, unless encoding/json is that of version 2.
func TestRPCURL_KeyOfMap(t *testing.T) {
	encoded, err := json.Marshal(map[relayer.RPCURL]int{relayer.RPCURL(secretURL): 1})
	if err != nil || !strings.Contains(string(encoded), "PATHKEY") {
		t.Errorf("encoded as %s, error %v", encoded, err)
	}
}
