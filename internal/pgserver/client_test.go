//go:build unix

package pgserver_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer/internal/pgserver"
)

// client speaks as much of PostgreSQL's protocol as a query of one value needs.
type client struct{ net.Conn }

func dial(socket string) (client, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return client{}, err
	}
	c := client{conn}
	startup := binary.BigEndian.AppendUint32(nil, 3<<16)
	startup = append(startup, "user\x00postgres\x00database\x00postgres\x00\x00"...)
	if err := c.send(startup); err != nil {
		return client{}, errors.Join(err, conn.Close())
	}
	if _, err := c.answer(); err != nil {
		return client{}, errors.Join(err, conn.Close())
	}
	return c, nil
}

func connect(t *testing.T, server *pgserver.Server) client {
	t.Helper()
	c, err := dial(server.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// send writes a message after its length, which counts itself.
func (c client) send(message []byte) error {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message)+4)), message...))
	return err
}

func (c client) ask(sql string) error {
	if _, err := c.Write([]byte{'Q'}); err != nil {
		return err
	}
	return c.send(append([]byte(sql), 0))
}

// query returns the first column of the rows, one on each line.
func (c client) query(sql string) (string, error) {
	if err := c.ask(sql); err != nil {
		return "", err
	}
	return c.answer()
}

// answer reads until the server is ready for the next query.
func (c client) answer() (string, error) {
	var rows []string
	var failed error
	for {
		kind, payload, err := c.receive()
		if err != nil {
			return "", errors.Join(failed, err)
		}
		switch kind {
		case 'R':
			if binary.BigEndian.Uint32(payload) != 0 {
				return "", errors.New("the server asks for a password")
			}
		case 'D':
			length := binary.BigEndian.Uint32(payload[2:])
			rows = append(rows, string(payload[6:6+length]))
		case 'E':
			failed = fmt.Errorf("server: %q", payload)
		case 'Z':
			return strings.Join(rows, "\n"), failed
		}
	}
}

func (c client) receive() (kind byte, payload []byte, err error) {
	var header [5]byte
	if _, err := io.ReadFull(c, header[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, binary.BigEndian.Uint32(header[1:])-4)
	_, err = io.ReadFull(c, payload)
	return header[0], payload, err
}

func (c client) want(t *testing.T, sql, want string) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.query(sql); got != want || err != nil {
		t.Fatalf("%s: %q, error %v, want %q", sql, got, err, want)
	}
}

// wantSilence asks, and takes any answer within a while for a failure.
func (c client) wantSilence(t *testing.T, while time.Duration) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(while)); err != nil {
		t.Fatal(err)
	}
	kind, _, err := c.receive()
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("message %q, error %v of a server that hangs", kind, err)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}
