package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// target holds the flags of the server that a command uses.
type target struct {
	server       string
	insecureHTTP bool
	caFile       string
	apiKey       string
	options      []client.Option
	transport    *http.Transport // set by open
}

func (t *target) addFlags(command *cobra.Command) {
	command.Long += "\n\nThe environment variable API_KEY is the bearer token of --server."
	flags := command.Flags()
	flags.StringVar(&t.server, "server", "", "`URL` of a server")
	flags.BoolVar(&t.insecureHTTP, "insecure-http", false, "permit an http URL of a host that is not local: anyone on the network path can read the token and the RPC URLs")
	flags.StringVar(&t.caFile, "ca-file", "", "PEM `file` of the authority of the server's certificate, if it is not a public one")
}

// open connects to nothing yet.
func (t *target) open() (*client.Client, error) {
	if t.apiKey == "" {
		return nil, errors.New("API_KEY is not set: --server needs the token of the server")
	}
	t.transport = http.DefaultTransport.(*http.Transport).Clone()
	t.transport.MaxIdleConnsPerHost = 16 // as many as a plan makes changes at once
	t.transport.ResponseHeaderTimeout = backupTimeout
	if err := t.trustAuthority(); err != nil {
		return nil, err
	}
	options := append(t.options, client.WithToken(t.apiKey), client.WithHTTPClient(&http.Client{Transport: t.transport}))
	if t.insecureHTTP {
		options = append(options, client.WithInsecureHTTP())
	}
	server, err := client.New(t.server, options...)
	if err != nil {
		return nil, fmt.Errorf("--server: %s", serverProblem.Replace(err.Error()))
	}
	return server, nil
}

// serverProblem changes an error of the client into one of the command.
var serverProblem = strings.NewReplacer("client: the token", "the token in API_KEY", "client: ", "", "see WithInsecureHTTP", "use --insecure-http to permit http")

// selection holds the flags of a server, and of the relayers that a command is limited to.
type selection struct {
	target
	terms string
}

func (s *selection) addFlags(command *cobra.Command) {
	s.target.addFlags(command)
	_ = command.MarkFlagRequired("server")
	command.Flags().StringVar(&s.terms, "selector", "", "limit the command to the relayers with these `terms`, such as network=sepolia,label.team=payments|risk")
}

func (s *selection) open() (server *client.Client, selector relayer.Selector, err error) {
	if selector, err = relayer.ParseSelector(s.terms); err != nil {
		return nil, selector, fmt.Errorf("--selector: %s", strings.TrimPrefix(err.Error(), relayer.ErrInvalid.Error()+": "))
	}
	server, err = s.target.open()
	return server, selector, err
}

// trustAuthority makes the transport trust the authority of --ca-file too.
func (t *target) trustAuthority() error {
	if t.caFile == "" {
		return nil
	}
	text, err := readFile("--ca-file", t.caFile, "name an existing PEM file")
	if err != nil {
		return err
	}
	systems, _ := x509.SystemCertPool()
	authorities := cmp.Or(systems, x509.NewCertPool())
	if !authorities.AppendCertsFromPEM(text) {
		return fmt.Errorf("--ca-file: %s contains no certificate in PEM format", t.caFile)
	}
	t.transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	return nil
}

// download writes a backup of the server to a new file next to path, and returns the path of that file.
func (t *target) download(ctx context.Context, path string) (string, error) {
	if _, err := t.open(); err != nil { // checks the flags
		return "", err
	}
	// The URL is valid: open has parsed it.
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(t.server, "/")+backupPath, nil)
	request.Header.Set("Authorization", "Bearer "+t.apiKey)
	// A redirect could send the token to another server: RoundTrip follows no redirect.
	response, err := t.transport.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("--server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		advice := "see the log of the server"
		if response.StatusCode == http.StatusBadRequest {
			advice = useHTTPS
		} else if response.StatusCode < http.StatusInternalServerError {
			advice = "the token in API_KEY needs the role backup, and the server a database file; with PostgreSQL, use pg_dump for a backup, and --db to remove a key"
		}
		return "", fmt.Errorf("--server: status %s: %s", response.Status, advice)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".unfinished-*")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, response.Body)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", fmt.Errorf("the backup is incomplete: %w", err)
	}
	return file.Name(), nil
}

// orDatabase opens a database if no server is named.
func (t *target) orDatabase(ctx context.Context, db database) (registry relayer.Registry, closeDatabase func(), err error) {
	if t.server != "" {
		registry, err = t.open()
		return registry, func() {}, err
	}
	store, err := db.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	registry, err = relayer.New(store)
	return registry, func() { _ = store.Close() }, err // nothing was written
}

// bulkTimeout bounds an attempt to change all relayers of a selection. The server has no such
// limit.
const bulkTimeout = 5 * time.Minute

// newBulkCommands returns the commands pause and resume, which change all relayers of a selection.
func newBulkCommands(apiKey string) []*cobra.Command {
	pause := &cobra.Command{Use: "pause", Short: "Pause all relayers of a selection",
		Example: "  relayerd pause --server https://registry.internal --selector network=sepolia --reason 'incident 42'",
		Long: `Pause pauses every relayer that --selector selects, by one request, and prints the ID of the
request, with which resume resumes what it has paused.`}
	resume := &cobra.Command{Use: "resume", Short: "Resume all relayers of a selection, or what a request has paused",
		Example: "  relayerd resume --server https://registry.internal --paused-by 9f3k2d",
		Long: `Resume resumes every relayer that --selector selects. With --paused-by it resumes only those
that this request has paused: others, and those that were paused again since, stay paused.`}
	s, reason, pausedBy, all := selection{target: target{apiKey: apiKey, options: []client.Option{client.WithTimeout(bulkTimeout)}}}, "", "", false
	for _, command := range []*cobra.Command{pause, resume} {
		done, change := "paused", (*client.Client).PauseAll
		if command == resume {
			done, change = "resumed", (*client.Client).ResumeAll
		}
		command.RunE = func(command *cobra.Command, _ []string) error {
			server, selector, err := s.open()
			if err != nil {
				return err
			}
			options := []relayer.WriteOption{relayer.Reason(reason)}
			if pausedBy != "" {
				options = append(options, relayer.PausedBy(pausedBy))
			}
			if s.terms == "" && !all && pausedBy == "" {
				return errors.New("--selector is required: name the relayers, such as with network=sepolia, or use --all")
			}
			if s.terms == "" {
				options = append(options, relayer.AllRelayers())
			}
			result, err := change(server, command.Context(), selector, options...)
			if errors.Is(err, relayer.ErrOutcomeUnknown) {
				return fmt.Errorf("request %s may have %s relayers: %w", result.RequestID, done, err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s %s, %d unchanged, request %s\n",
				done, relayers(result.Changed), result.Unchanged, printable(result.RequestID))
			for _, id := range slices.Sorted(maps.Keys(result.Failed)) {
				err = errors.Join(err, fmt.Errorf("%s: %w", id, result.Failed[id]))
			}
			return err
		}
		s.addFlags(command)
		command.Flags().StringVar(&reason, "reason", "", "`text` to store with each change, at most 256 characters")
		command.Flags().BoolVar(&all, "all", false, "select all relayers, without --selector")
		command.MarkFlagsMutuallyExclusive("all", "selector")
	}
	resume.Flags().StringVar(&pausedBy, "paused-by", "", "`ID` of the request whose pauses are undone, as pause prints it")
	return []*cobra.Command{pause, resume}
}
