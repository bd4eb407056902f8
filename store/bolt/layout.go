package bolt

import (
	"encoding/binary"
	"errors"

	"go.etcd.io/bbolt"
)

// The buckets of a file. A sequence number counts creates and imported records
// from 0 and is never reused: it is the position of a record in the creation
// order.
var (
	relayersBucket = []byte("relayers") // sequence -> record
	idsBucket      = []byte("ids")      // id -> sequence
	claimsBucket   = []byte("claims")   // claim -> sequence
	blocksBucket   = []byte("blocks")   // block number -> bitmap of the sequence numbers with a record
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

// state is the entry that every write changes.
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

func (s *snapshot) readState() (state, error) {
	value, err := s.meta.Get(stateKey)
	if err != nil {
		return state{}, err
	}
	if len(value) != stateSize {
		return state{}, errors.New("the state entry is missing")
	}
	return state{
		total:        binary.BigEndian.Uint64(value),
		nextSequence: binary.BigEndian.Uint64(value[8:]),
		nextRevision: binary.BigEndian.Uint64(value[16:]),
	}, nil
}

// numberSize is the length of a sequence number or a block number.
const numberSize = 8

func numberKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, numberSize), number)
}

// createBuckets creates the buckets of an empty file.
func createBuckets(tx *bbolt.Tx) error {
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
