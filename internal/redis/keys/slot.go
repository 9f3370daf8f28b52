package keys

import "strings"

// Slots is how many hash slots a cluster has.
const Slots = 16384

// Slot is the cluster's hash slot of a key: the CRC-16 (XMODEM) of its hash tag, if it has one, else of all of it.
// After the Redis Cluster specification.
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc % Slots)
}

// crcTable has the CRC of each byte, for the polynomial x^16 + x^12 + x^5 + 1.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
