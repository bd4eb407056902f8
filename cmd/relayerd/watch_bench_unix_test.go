//go:build unix

package main

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// BenchmarkWatch patches relayers while clients follow the changes over HTTP. It reports
// the time on a processor that one more client needs for each change, with the client,
// and the memory of its stream, without the client.
func BenchmarkWatch(b *testing.B) {
	watchers, relayers := 500, 1_000
	if testing.Short() {
		watchers = 10
	}
	ids := seedIDs(relayers)
	address := serveMemory(b, config{}, ids, benchDefinition)
	patch := func(buffer []byte, random *rand.Rand) []byte {
		body := `{"name":"Sepolia relayer ` + strconv.Itoa(random.IntN(1e9)) + `"}`
		return appendRequest(buffer, "PATCH", "/"+ids[random.IntN(len(ids))], body)
	}
	writers := connect(b, address, patch)
	const patches = 4 * benchClients
	spend := func() float64 {
		start := processTime(b)
		writers.load(b, patches, patch)
		return float64(processTime(b) - start)
	}
	var alone, followed []float64
	for range 20 {
		alone = append(alone, spend())
	}

	before := heapBytes()
	received := make(chan int, watchers)
	for range watchers {
		watch(b, address, patches, received)
	}
	perWatcher := float64(heapBytes()-before)/float64(watchers) - clientBuffer
	for b.Loop() {
		start := processTime(b)
		writers.load(b, patches, patch)
		for range watchers {
			<-received
		}
		followed = append(followed, float64(processTime(b)-start))
	}
	b.ReportMetric((median(followed)-median(alone))/patches/float64(watchers)/1000, "µs/delivery")
	b.ReportMetric(median(alone)/patches/1000, "µs/patch")
	b.ReportMetric(perWatcher/1024, "KiB/watcher")
	b.ReportMetric(0, "ns/op")
}

// watch follows the changes until the benchmark ends. It sends to received after every
// group of changes.
func watch(b *testing.B, address string, group int, received chan<- int) {
	one := dial(b, address)
	request := appendRequest(nil, "GET", ":watch", "")
	if _, err := one.Write(request); err != nil {
		b.Fatal(err)
	}
	for {
		line, err := one.reader.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if bytes.HasPrefix(line, []byte("event: resync")) {
			break
		}
	}
	go func() {
		for changes := 0; ; {
			line, err := one.reader.ReadSlice('\n')
			if err != nil {
				return
			}
			if bytes.HasPrefix(line, []byte("event: updated")) {
				if changes++; changes%group == 0 {
					received <- changes
				}
			}
		}
	}()
}

// heapBytes returns the size of the live heap and the stacks.
func heapBytes() int64 {
	var stats runtime.MemStats
	time.Sleep(100 * time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}
