package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
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
			writeSeed(b, seed, size, benchDefinition)
			benchmarkStartup(b, size, "--db", seed)
		})
	}
}

func benchmarkStartup(b *testing.B, size int, arguments ...string) {
	var took, started, read, anonymous []float64
	for b.Loop() {
		begun := time.Now()
		process, log := serverCommand(token, append(arguments, "--addr", "127.0.0.1:0", "--rate", "0")...), new(output)
		process.Stdout, process.Stderr = log, log
		if err := process.Start(); err != nil {
			b.Fatal(err)
		}
		url := "http://" + awaitAddress(b, log) + collection
		getOK(b, url)
		took = append(took, float64(time.Since(begun).Milliseconds()))
		started = append(started, residentMiB(b, process.Process.Pid, "VmRSS"))
		for page := 1; page <= size/100; page++ {
			getOK(b, fmt.Sprintf("%s?per_page=100&page=%d", url, page))
		}
		read = append(read, residentMiB(b, process.Process.Pid, "VmRSS"))
		anonymous = append(anonymous, residentMiB(b, process.Process.Pid, "RssAnon"))
		if err := process.Process.Signal(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		if err := process.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(median(took), "ms/first-response")
	b.ReportMetric(median(started), "MiB-started")
	b.ReportMetric(median(read), "MiB-all-read")
	b.ReportMetric(median(anonymous), "MiB-anonymous")
	b.ReportMetric(0, "ns/op")
}

func awaitAddress(b *testing.B, log *output) string {
	b.Helper()
	for range 120_000 {
		if found := listening.FindStringSubmatch(log.String()); found != nil {
			return found[1]
		}
		time.Sleep(time.Millisecond)
	}
	b.Fatalf("the server does not serve: %s", log)
	return ""
}

func getOK(b *testing.B, url string) {
	b.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil || response.StatusCode != http.StatusOK {
		b.Fatal(response.StatusCode, err)
	}
}

// residentMiB returns a field of the status of a process.
func residentMiB(b *testing.B, pid int, field string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte(field+":")); ok {
			kib, err := strconv.Atoi(string(bytes.Fields(value)[0]))
			if err != nil {
				b.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	b.Fatalf("no field %s: %s", field, status)
	return 0
}
