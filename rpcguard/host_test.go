package rpcguard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/rpcguard"
)

// spellings returns the notations of inet_aton for an IPv4 address, and the IPv6
// addresses that lead to it.
func spellings(a, b, c, d uint32) []string {
	return []string{
		fmt.Sprintf("%d.%d.%d.%d", a, b, c, d), fmt.Sprintf("%d.%d.%d.%d.", a, b, c, d),
		fmt.Sprintf("%d.%d.%d", a, b, c<<8|d), fmt.Sprintf("%d.%d", a, b<<16|c<<8|d), fmt.Sprintf("%d", a<<24|b<<16|c<<8|d), fmt.Sprintf("%d.", a<<24|b<<16|c<<8|d),
		fmt.Sprintf("%#x.%#x.%#x.%#x", a, b, c, d), fmt.Sprintf("%#X.%d.%#x.%d", a, b, c, d), fmt.Sprintf("%#x", a<<24|b<<16|c<<8|d), fmt.Sprintf("%#X", a<<24|b<<16|c<<8|d), fmt.Sprintf("0x000000%x", a<<24|b<<16|c<<8|d),
		fmt.Sprintf("0%o.0%o.0%o.0%o", a, b, c, d), fmt.Sprintf("000%o.%d.0%o.%#x", a, b, c, d), fmt.Sprintf("0%o", a<<24|b<<16|c<<8|d), fmt.Sprintf("0%o.%#x", a, b<<16|c<<8|d),
		fmt.Sprintf("[::ffff:%d.%d.%d.%d]", a, b, c, d), fmt.Sprintf("[::FFFF:%x:%x]", a<<8|b, c<<8|d), fmt.Sprintf("[0:0:0:0:0:ffff:%x:%x]", a<<8|b, c<<8|d), fmt.Sprintf("[::ffff:%x:%x%%25eth0]", a<<8|b, c<<8|d),
		fmt.Sprintf("[64:ff9b::%x:%x]", a<<8|b, c<<8|d), fmt.Sprintf("[64:ff9b::%d.%d.%d.%d]", a, b, c, d), fmt.Sprintf("[64:ff9b:1::%x:%x]", a<<8|b, c<<8|d),
		fmt.Sprintf("[2002:%x:%x::]", a<<8|b, c<<8|d), fmt.Sprintf("[2002:%x:%x::1]", a<<8|b, c<<8|d), fmt.Sprintf("[::ffff:0:%x:%x]", a<<8|b, c<<8|d),
	}
}

// Cloud metadata services and the unspecified address are rejected in every notation.
func TestCheck_DangerousHosts(t *testing.T) {
	hosts := map[string][]string{
		"cloud metadata": {
			"metadata", "METADATA", "metadata.", "metadata.google.internal", "Metadata.Google.Internal", "metadata.google.internal.", "metadata.google.internal..", "metadata.goog", "instance-data", "instance-data.ec2.internal",
			"[fd00:ec2::254]", "[FD00:EC2::254]", "[fd00:0ec2:0:0:0:0:0:0254]", "[fd00:ec2::254%25eth0]", "[fd00:ec2::0.0.2.84]", "[fd00:ec2::23]", "[fd20:ce::254]", "[fe80::a9fe:a9fe]", "[fe80::a9fe:a9fe%25eth0]",
			"[::169.254.169.254]", "[::a9fe:a9fe]", "168.63.129.16", "192.0.0.192", "169.254.170.2", "169.254.170.23", "169.254.0.23",
			"１６９.254.169.254", "169。254。169。254", "169．254．169．254", "169｡254.169.254", "①⑥⑨.②⑤④.①⑥⑨.②⑤④", "169.254.169.2\u00ad54", "169.254.169.25\u200d4", "169.254.169.254\ufe0f",
			"%EF%BC%91%EF%BC%96%EF%BC%99.254.169.254", "metadata.google。internal", "ｍetadata.google.internal", "ＭＥＴＡＤＡＴＡ", "𝟏𝟔𝟗.254.169.254", "meta\u00addata",
			"169\u034f.254.169.254", "m\u034fetadata.google.internal", "169.254.42.42", "[fd00:42::42]", "100.96.0.96", "metadata.tencentyun.com",
			"169.254.169.0254", "[64:ff9b:1:a9fe:a9:fe00::]", "[64:ff9b:1:12a9:fe:a9fe::]", "[64:ff9b:1:1234:a9:fea9:fe00::]",
		},
		"unspecified": {
			"0", "00", "0x0", "0X0", "0x", "0.0", "0x0.0", "000000000000", "[::]", "[0:0:0:0:0:0:0:0]", "[::0.0.0.0]", "[::%25eth0]", "０.0.0.0", "0。0", "⓪",
		},
	}
	hosts["cloud metadata"] = append(hosts["cloud metadata"], spellings(169, 254, 169, 254)...)
	hosts["cloud metadata"] = append(hosts["cloud metadata"], spellings(100, 100, 100, 200)...)
	hosts["unspecified"] = append(hosts["unspecified"], spellings(0, 0, 0, 0)...)
	for danger, hosts := range hosts {
		for _, host := range hosts {
			for _, form := range []string{"http://%s", "https://%s/latest/", "ws://user:pass@%s:80/x", "wss://%s:443?q"} {
				if message := problem(t, rpcguard.Policy{}, fmt.Sprintf(form, host)); !strings.Contains(message, danger) {
					t.Errorf("%s: message %q, want one of %s", fmt.Sprintf(form, host), message, danger)
				}
			}
		}
	}
}

// numericHosts look like IPv4 addresses and are not. A resolver that keeps the low 32
// bits of a number reads the first four as 169.254.169.254.
var numericHosts = []string{
	"7147006462", "0x1a9fea9fe", "425.254.169.254", "169.254.169.510", "4294967296", "0x100000000", "99999999999999999999", "0xfffffffffffffffff",
	"256.256.256.256", "256.254.169.254", "1.2.3.256", "1.2.65536", "1.16777216", "1.2.0x1000000", "256.1", "400.0", "1.2.3.4.5", "169.254.169.254.1", "0.0.0.0.0",
	"0178.0.0.1", "0169.0254.0169.0254", "169.254.0000169.254", "08", "1.09", "1.2.3.08", "0400.1", "a.1", "rpc.example.1", "rpc.0x", "rpc.0xff", "rpc.0", "eth_1.2", "-1.1", "1_0.1", "1..2", ".1", "1.-.2", "0xg.1", "a169.254.169.254", "127.0.0.1,8.8.8.8", "8.8.8.8&127.0.0.1",
	"7147006462.", "0X1A9FEA9FE", "256.256.256.256..", "７147006462", "２56。256。256。256", "①0000000000", "rpc.１", "42\u00ad94967296",
}

// A host whose last label is a number is an IPv4 address or invalid, as in the WHATWG
// URL standard. Clients disagree about the end of ambiguousHosts.
func TestCheck_InvalidHost(t *testing.T) {
	ambiguousHosts := []string{"169.254.169.254:80:80", "fd00:ec2::254", "127.0.0.1／.example", "169.254.169.254？.example", "169.254.169.254＃.example", "a＠169.254.169.254", "169.254.169.254：80", "a＼.example", "℀.example"}
	for i, host := range append(slices.Clone(numericHosts), ambiguousHosts...) {
		for _, form := range []string{"ws://%s/SECRET", "wss://user:SECRET@%s:8546/SECRET"} {
			if strings.HasPrefix(form, "wss") && i >= len(numericHosts) {
				continue // the port and the user would change what is ambiguous
			}
			if message := problem(t, rpcguard.Policy{}, fmt.Sprintf(form, host)); message != "must have a host that is a name or an address" {
				t.Errorf("%s: message %q", fmt.Sprintf(form, host), message)
			}
		}
	}
}
