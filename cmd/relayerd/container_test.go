package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is a line of a Dockerfile, after its continuation lines are joined.
type instruction struct {
	name, arguments string
}

func dockerfile(t *testing.T) []instruction {
	t.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(fileContent(t, "../../Dockerfile")), "")
	var instructions []instruction
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if name, arguments, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			instructions = append(instructions, instruction{name, strings.TrimSpace(arguments)})
		}
	}
	return instructions
}

// soleArguments returns the arguments of an instruction that must occur once in the last stage.
func soleArguments(t *testing.T, name string) string {
	t.Helper()
	var found []string
	for _, each := range dockerfile(t) {
		switch each.name {
		case "FROM":
			found = nil
		case name:
			found = append(found, each.arguments)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s occurs %d times", name, len(found))
	}
	return found[0]
}

// commandOf decodes the form of a command that needs no shell.
func commandOf(t *testing.T, arguments string) []string {
	t.Helper()
	var command []string
	if err := json.Unmarshal([]byte(arguments), &command); err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	return command
}

// containerCommand returns the arguments of relayerd when the image is run.
func containerCommand(t *testing.T) []string { return commandOf(t, soleArguments(t, "CMD")) }

// imageEnvironment returns the variables of the image, each of which is a flag of serve.
func imageEnvironment(t *testing.T) []string { return strings.Fields(soleArguments(t, "ENV")) }

// imageValue returns the value that the image has for a flag of serve.
func imageValue(t *testing.T, name string) string {
	t.Helper()
	command, _, err := newRootCommand("").Find([]string{"serve"})
	if err != nil || command.Flag(name) == nil {
		t.Fatalf("serve has no flag %s, error %v", name, err)
	}
	for _, variable := range imageEnvironment(t) {
		if value, ok := strings.CutPrefix(variable, "RELAYERD_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="); ok {
			return value
		}
	}
	t.Fatalf("the image does not set --%s", name)
	return ""
}

func healthcheckCommand(t *testing.T) []string {
	_, command, ok := strings.Cut(soleArguments(t, "HEALTHCHECK"), " CMD ")
	if !ok {
		t.Fatal("HEALTHCHECK has no command")
	}
	return commandOf(t, command)
}

// buildCommand returns the environment and the arguments of go build.
func buildCommand(t *testing.T) (environment, arguments []string) {
	t.Helper()
	for _, each := range dockerfile(t) {
		setup, build, ok := strings.Cut(each.arguments, " go build ")
		if each.name != "RUN" || !ok {
			continue
		}
		environment = slices.DeleteFunc(strings.Fields(setup), func(field string) bool { return strings.HasPrefix(field, "--mount=") })
		return environment, append([]string{"build"}, strings.Fields(build)...)
	}
	t.Fatal("no instruction runs go build")
	return nil, nil
}

func TestDockerfile_Build(t *testing.T) {
	t.Parallel()
	environment, arguments := buildCommand(t)
	if !slices.Equal(environment, []string{"CGO_ENABLED=0"}) || !slices.Contains(arguments, "-trimpath") {
		t.Errorf("build command %q %q", environment, arguments)
	}
	var stages []string
	for _, each := range dockerfile(t) {
		if each.name == "FROM" {
			stages = append(stages, each.arguments)
		}
		if each.name == "ARG" || each.name == "ENV" && !regexp.MustCompile(`^RELAYERD_ADDR=:\d+ RELAYERD_METRICS_ADDR=:\d+ RELAYERD_DB=/\S+$`).MatchString(each.arguments) {
			t.Errorf("%s %s could store a secret in the image", each.name, each.arguments)
		}
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(fileContent(t, "go.mod"))
	if want := []string{"golang:" + string(version[1]) + " AS build", "scratch"}; !slices.Equal(stages, want) {
		t.Errorf("stages %q, want %q", stages, want)
	}
}

func TestDockerfile_Commands(t *testing.T) {
	t.Parallel()
	entry, health := commandOf(t, soleArguments(t, "ENTRYPOINT")), healthcheckCommand(t)
	if !slices.Equal(entry, []string{"/relayerd"}) || health[0] != entry[0] {
		t.Errorf("entry point %q, health check %q", entry, health)
	}
	expectCommandExists(t, containerCommand(t))
	expectCommandExists(t, health[1:])
	_, port, _ := strings.Cut(imageValue(t, "addr"), ":")
	_, checked, _ := strings.Cut(flagValue(t, health[1:], "addr"), ":")
	_, metricsPort, _ := strings.Cut(imageValue(t, "metrics-addr"), ":")
	if exposed := soleArguments(t, "EXPOSE"); exposed != port+" "+metricsPort || port == metricsPort || checked != port {
		t.Errorf("serve uses the ports %s and %s, the image exposes %s, and the health check uses %s", port, metricsPort, exposed, checked)
	}
}

// flagValue returns the value of a flag in the arguments of a command.
func flagValue(t *testing.T, args []string, name string) string {
	t.Helper()
	command, flags, err := newRootCommand("").Find(args)
	if err == nil {
		err = command.ParseFlags(flags)
	}
	must(t, err)
	return command.Flags().Lookup(name).Value.String()
}

// The server runs without privileges, and can write to its volumes only.
func TestDockerfile_User(t *testing.T) {
	t.Parallel()
	user, volume := soleArguments(t, "USER"), soleArguments(t, "VOLUME")
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		t.Errorf("USER %s is not numeric, or is root", user)
	}
	if directory := filepath.Dir(imageValue(t, "db")); directory != volume {
		t.Errorf("the database is in %s, and the volume is %s", directory, volume)
	}
	// A new volume has the owner of the directory that it covers.
	for _, directory := range []string{volume, "/backups"} {
		copied := instruction{"COPY", "--from=build --chown=" + user + " " + directory + " " + directory}
		if !slices.Contains(dockerfile(t), copied) {
			t.Errorf("the user does not own %s", directory)
		}
	}
}
