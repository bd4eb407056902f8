package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMetricsAddress_SeparatePort(t *testing.T) {
	server := start(t, token, "--db", "memory", "--metrics-addr", "127.0.0.1:0")
	found := regexp.MustCompile(`msg="serving metrics" address=(\S+)`).FindStringSubmatch(server.output.String())
	if found == nil {
		t.Fatalf("no address of the metrics: %s", server.output)
	}
	metrics := &process{t: t, url: "http://" + found[1]}
	if status, body := metrics.do("GET", "/metrics", ""); status != http.StatusOK || !strings.Contains(body, "relayer_operations_total") {
		t.Errorf("metrics returned %d: %s", status, body)
	}
	for _, path := range []string{"/", collection, "/healthz/live"} {
		if status, body := metrics.do("GET", path, ""); status != http.StatusNotFound {
			t.Errorf("%s on the port of the metrics returned %d: %s", path, status, body)
		}
	}
	server.expectStatus("GET", "/metrics", token, "", http.StatusNotFound)
	server.expectStatus("GET", "/metrics", "wrong", "", http.StatusUnauthorized)
	server.expectStatus("GET", collection, token, "", http.StatusOK)

	expectFailedStart(t, "address already in use (choose another address with --metrics-addr)", "--db", "memory", "--metrics-addr", found[1])
	server.stop()
	expectFailedStart(t, "--metrics-addr must be host:port", "--db", "memory", "--metrics-addr", "u:"+password+"@h/d")
}

func TestLogFormat_JSON(t *testing.T) {
	command, log := serverCommand(token, "--addr", "127.0.0.1:0", "--db", "memory", "--log-format", "json"), new(output)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	for range 1500 {
		if strings.Contains(log.String(), `"msg":"serving"`) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("after SIGTERM: error %v", err)
	}
	var messages []string
	for line := range strings.Lines(log.String()) {
		var record struct {
			Level, Msg string
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level != "INFO" {
			t.Errorf("line %q, error %v", line, err)
		}
		messages = append(messages, record.Msg)
	}
	if strings.Join(messages, ",") != "serving,stopping,stopped" {
		t.Errorf("messages %q", messages)
	}
	expectFailedStart(t, "--log-format must be text or json", "--db", "memory", "--log-format", "xml")
}
