package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// BenchmarkStartup starts the program on a file of relayers. It measures the time to the first response of a list, and the resident memory
// then and after every relayer was read. The pages of a mapped file count as resident,
// but the system can drop them; anonymous memory is what the program needs.
func BenchmarkStartup(b *testing.B) {
	sizes := []int{1_000, 100_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			seed := filepath.Join(b.TempDir(), "seed.db")
			writeSeed(b, seed, size)
			var took, started, read, anonymous []float64
			for b.Loop() {
				begun := time.Now()
				server := start(b, token, "--db", seed, "--rate", "0")
				server.expect("GET", collection, token, "", http.StatusOK)
				took = append(took, float64(time.Since(begun).Milliseconds()))
				started = append(started, residentMiB(b, server, "VmRSS"))
				for page := 1; page <= size/100; page++ {
					server.expect("GET", fmt.Sprintf("%s?per_page=100&page=%d", collection, page), token, "", http.StatusOK)
				}
				read = append(read, residentMiB(b, server, "VmRSS"))
				anonymous = append(anonymous, residentMiB(b, server, "RssAnon"))
				server.stop()
			}
			b.ReportMetric(median(took), "ms/first-response")
			b.ReportMetric(median(started), "MiB-started")
			b.ReportMetric(median(read), "MiB-all-read")
			b.ReportMetric(median(anonymous), "MiB-anonymous")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// residentMiB returns a field of the status of a process.
func residentMiB(b *testing.B, server *process, field string) float64 {
	b.Helper()
	status := mustGet(os.ReadFile(fmt.Sprintf("/proc/%d/status", server.command.Process.Pid)))(b)
	found := regexp.MustCompile(`(?m)^` + field + `:\s+(\d+) kB$`).FindSubmatch(status)
	if found == nil {
		b.Fatalf("no field %s: %s", field, status)
	}
	kib := mustGet(strconv.Atoi(string(found[1])))(b)
	return float64(kib) / 1024
}
