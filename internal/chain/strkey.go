package chain

import (
	"encoding/base32"
	"encoding/binary"
)

// The version bytes of SEP-23: the kind in the upper five bits, the algorithm,
// which is always 0, in the lower three.
const (
	accountVersion  = 6 << 3
	contractVersion = 2 << 3
)

// A strkey of these kinds is a version byte, 32 bytes and a checksum of two
// bytes. They fill 56 base32 characters exactly, so that every strkey has only
// one text.
const (
	strkeyLength      = 35
	strkeyTextLength  = 56
	strkeyPayloadSize = strkeyLength - 2
)

var strkeyEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// isStrkey checks the length after decoding as well, because encoding/base32
// skips line breaks.
func isStrkey(text string, version byte) bool {
	if len(text) != strkeyTextLength {
		return false
	}
	raw, err := strkeyEncoding.DecodeString(text)
	if err != nil || len(raw) != strkeyLength || raw[0] != version {
		return false
	}
	return binary.LittleEndian.Uint16(raw[strkeyPayloadSize:]) == crc16XModem(raw[:strkeyPayloadSize])
}

func crc16XModem(data []byte) uint16 {
	const polynomial = 0x1021
	var crc uint16
	for _, b := range data {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= polynomial
			}
		}
	}
	return crc
}
