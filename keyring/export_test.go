package keyring

var ErrFormat = errFormat
