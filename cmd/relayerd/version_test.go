package main

import (
	"regexp"
	"runtime/debug"
	"testing"
)

func TestVersion_Command(t *testing.T) {
	t.Parallel()
	output, err := program("", "version").Output()
	if err != nil || !regexp.MustCompile(`^relayerd \S*.*, built with go1\.\d+\S*\n$`).Match(output) {
		t.Errorf("output %q, error %v", output, err)
	}
}

func TestVersion_BuildInfo(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}}
	for _, c := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, "relayerd v1.2.3, built with go1.26.0"},
		{[]debug.BuildSetting{{Key: "vcs.revision", Value: "0123abcd"}}, "relayerd v1.2.3 revision 0123abcd, built with go1.26.0"},
		{[]debug.BuildSetting{{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "true"}},
			"relayerd v1.2.3 revision 0123abcd (modified), built with go1.26.0"},
	} {
		info.Settings = c.settings
		if got := versionText(info); got != c.want {
			t.Errorf("version %q, want %q", got, c.want)
		}
	}
}
