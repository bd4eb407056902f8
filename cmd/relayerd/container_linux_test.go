package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// buildAsImage builds relayerd with the command of the Dockerfile.
func buildAsImage(t *testing.T, path string) {
	t.Helper()
	environment, arguments := buildCommand(t)
	output := slices.Index(arguments, "-o") + 1
	if output == 0 || arguments[output] != "/relayerd" {
		t.Fatalf("go %q does not write /relayerd", arguments)
	}
	arguments[output] = path
	command := exec.Command("go", arguments...)
	command.Dir = "../.."
	// The flags of the test, such as -race, are not those of the image.
	command.Env = append(append(os.Environ(), "GOFLAGS=-buildvcs=false"), environment...)
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go %q: %v: %s", arguments, err, text)
	}
}

// A binary that needs no loader and no library runs in an empty file system.
func expectStatic(t *testing.T, path string) {
	t.Helper()
	file := mustGet(elf.Open(path))(t)
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("libraries %q, error %v", libraries, err)
	}
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP {
			t.Error("the binary needs a loader")
		}
	}
}

// container is an empty directory with the binary and the volume of the image.
type container struct {
	root     string
	uid, gid uint32
}

func newContainer(t *testing.T) container {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	if testing.Short() {
		t.Skip("builds relayerd again")
	}
	c := container{root: t.TempDir()}
	mustGet(fmt.Sscanf(soleArguments(t, "USER"), "%d:%d", &c.uid, &c.gid))(t)
	buildAsImage(t, filepath.Join(c.root, "relayerd"))
	volume := filepath.Join(c.root, soleArguments(t, "VOLUME"))
	err := errors.Join(os.Chmod(c.root, 0o755), os.Mkdir(volume, 0o755), os.Chown(volume, int(c.uid), int(c.gid)))
	must(t, err)
	return c
}

// program returns a process of the binary in the container.
func (c container) program(apiKey string, args ...string) *exec.Cmd {
	return &exec.Cmd{
		Path: "/relayerd", Args: append([]string{"/relayerd"}, args...), Dir: "/", Env: []string{"API_KEY=" + apiKey},
		SysProcAttr: &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: c.uid, Gid: c.gid}},
	}
}

// The image has no loader, no library, no shell and no root user.
func TestContainer_EmptyFileSystem(t *testing.T) {
	t.Parallel()
	image := newContainer(t)
	data := filepath.Join(image.root, "data")
	own := func(path string) error { return errors.Join(os.Chown(path, 0, int(image.gid)), os.Chmod(path, 0o440)) }
	operator := machine{t: t, program: image.program, data: "/data", outside: data, own: own, printed: new(output)}
	expectStatic(t, filepath.Join(image.root, "relayerd"))
	if text := operator.run(token, "--version"); !regexp.MustCompile(`^relayerd version .*, built with go1\.\d+`).MatchString(text) {
		t.Errorf("version %q", text)
	}

	server := &process{t: t, command: image.program(token, containerCommand(t)...), output: new(output)}
	server.command.Env = slices.Concat(server.command.Env, imageEnvironment(t), []string{"RELAYERD_ADDR=127.0.0.1:0", "RELAYERD_METRICS_ADDR=127.0.0.1:0"})
	server.run()
	server.expect("GET", "/", "", "", http.StatusOK)
	server.expect("POST", collection, token, definition, http.StatusCreated)
	address := server.address()
	if text := operator.run(token, append(healthcheckCommand(t)[1:], "--addr", address)...); text != "ready\n" {
		t.Errorf("health check %q", text)
	}
	server.stop()
	if text, err := image.program(token, "healthcheck", "--addr", address).CombinedOutput(); err == nil {
		t.Errorf("the health check of a stopped server succeeded: %s", text)
	}

	database := imageValue(t, "db")
	if text := operator.run(token, "check", "--db", database); text != "no damage found in 1 relayer\n" {
		t.Errorf("check %q", text)
	}
	info, err := os.Stat(filepath.Join(image.root, database))
	if err != nil || info.Mode().Perm() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != image.uid {
		t.Errorf("database %v, error %v", info, err)
	}

	// The user can write to the volume only.
	text, err := image.program(token, "serve", "--addr", "127.0.0.1:0", "--db", "/relayers.db").CombinedOutput()
	if err == nil || !strings.Contains(string(text), "permission denied") {
		t.Errorf("error %v: %s", err, text)
	}
	expectFiles(t, image.root, "data", "relayerd")

	// The day of an operator, with files that are replaced by another user.
	must(t, os.Remove(filepath.Join(data, "relayers.db")))
	operator.day("")

	// A new file is in use once the user may read it.
	server = operator.start("memory")
	readable := operator.own
	operator.own = func(path string) error { return errors.Join(os.Chown(path, 0, 0), os.Chmod(path, 0o440)) }
	operator.replace("tokens", "alice "+newToken+" write")
	server.output.awaitText(t, `"file not reloaded: what was read before stays in use" flag=--tokens-file`, 1)
	must(t, readable(filepath.Join(data, "tokens")))
	server.output.awaitText(t, `"file reloaded" flag=--tokens-file`, 1)
	operator.stop(server)
}

// openTerminal returns a terminal and its other end, which reads the output.
func openTerminal(t *testing.T) (terminal, screen *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal available: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	must(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	number := mustGet(unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN))(t)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	return terminal, screen
}

func TestApply_Confirmation(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), newFile(t, publicConfig)
	refused := "relayerd: not confirmed: nothing was changed"
	// The confirmed answer comes last: after it there is no difference to ask about.
	for _, test := range []struct{ answer, want string }{
		{"\n", refused},
		{"y\n", refused},
		{"\x04", refused}, // end of input
		{"yes\n", "2 created, 0 updated, 0 deleted"},
	} {
		terminal, screen := openTerminal(t)
		command := program(token, "apply", "--server", url, "-f", file)
		var output bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = terminal, &output, &output
		mustGet(screen.WriteString(test.answer))(t)
		isApplied := command.Run() == nil
		if isApplied != (test.answer == "yes\n") || !strings.Contains(output.String(), "Make these changes? Type yes: ") || !strings.Contains(output.String(), test.want) {
			t.Errorf("answer %q: exit status %d, output %s", test.answer, command.ProcessState.ExitCode(), &output)
		}
		expectNoSecret(t, output.String())
	}
}

// A token is generated for a person at a terminal, and printed only there. Without a terminal, a
// server without a token does not start.
func TestServe_GeneratedToken(t *testing.T) {
	t.Parallel()
	terminal, screen := openTerminal(t)
	server := &process{t: t, command: serverCommand("", "--addr", "127.0.0.1:0", "--db", "memory"), output: new(output)}
	server.command.Stdout, server.command.Stderr = terminal, server.output
	must(t, server.command.Start())
	t.Cleanup(func() { _ = server.command.Process.Kill() })
	line, err := bufio.NewReader(screen).ReadString('\n')
	printed := regexp.MustCompile(`^API_KEY is not set. Open (http://\S+)/ with the token of this run: (\S+)\s+$`).FindStringSubmatch(line)
	if err != nil || printed == nil {
		t.Fatalf("printed %q, error %v: %s", line, err, server.output)
	}
	server.url = printed[1]
	server.output.awaitText(t, "msg=serving", 1)
	server.expect("GET", collection, printed[2], "", http.StatusOK)
	server.expect("GET", collection, "x", "", http.StatusUnauthorized)
	server.stop()
	if strings.Contains(server.output.String(), printed[2]) {
		t.Errorf("the token is in the log: %s", server.output)
	}
	expectFailureWith(t, "there is no token: set API_KEY, for example to the output of openssl rand -hex 16, or use --tokens-file", "", "serve", "--addr", "127.0.0.1:0", "--db", "memory")
}
