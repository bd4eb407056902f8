package bolt

import (
	"encoding/binary"
	"errors"

	"go.etcd.io/bbolt"
)

// The buckets of a file, and what they hold. A sequence is the number of a
// create, or of an imported record, counted from 0, and never used again: it
// stands for the place of a record in the creation order.
var (
	relayersBucket = []byte("relayers") // sequence -> record
	idsBucket      = []byte("ids")      // id -> sequence
	claimsBucket   = []byte("claims")   // claim -> sequence
	blocksBucket   = []byte("blocks")   // block number -> bitmap of its live sequences
	metaBucket     = []byte("meta")
)

var buckets = [][]byte{relayersBucket, idsBucket, claimsBucket, blocksBucket, metaBucket}

var (
	formatKey = []byte("format")
	stateKey  = []byte("state")
)

// The format entry is the magic followed by the version.
const (
	magic         = "go-relayer relayers"
	formatVersion = 1
)

func format() []byte {
	return binary.BigEndian.AppendUint32([]byte(magic), formatVersion)
}

// state is the part of a file that every write changes.
type state struct {
	total        uint64
	nextSequence uint64
	nextRevision uint64
}

const stateSize = 24

func (s state) encoded() []byte {
	value := make([]byte, 0, stateSize)
	value = binary.BigEndian.AppendUint64(value, s.total)
	value = binary.BigEndian.AppendUint64(value, s.nextSequence)
	return binary.BigEndian.AppendUint64(value, s.nextRevision)
}

func readState(tx *bbolt.Tx) (state, error) {
	value := tx.Bucket(metaBucket).Get(stateKey)
	if len(value) != stateSize {
		return state{}, errors.New("the state entry is missing")
	}
	return state{
		total:        binary.BigEndian.Uint64(value),
		nextSequence: binary.BigEndian.Uint64(value[8:]),
		nextRevision: binary.BigEndian.Uint64(value[16:]),
	}, nil
}

// numberSize is the length of a sequence or a block number as key or value.
const numberSize = 8

func numberKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, numberSize), number)
}

// layOut makes the buckets of an empty file.
func layOut(tx *bbolt.Tx) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(metaBucket)
	if err := meta.Put(formatKey, format()); err != nil {
		return err
	}
	return meta.Put(stateKey, state{nextRevision: 1}.encoded())
}
