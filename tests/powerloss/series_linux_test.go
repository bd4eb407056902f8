package powerloss

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/tests/internal/child"
)

var (
	rounds = flag.Int("powerloss.rounds", 15, "power cuts of each test")
	seed   = flag.Uint64("powerloss.seed", uint64(time.Now().UnixNano()), "seed of all random choices")
)

func TestMain(m *testing.M) {
	child.Main(work)
	goleak.VerifyTestMain(m)
}

// work is what a child does.
func work(t task) error {
	if t.Store == mountProbe {
		return probe(t.Path)
	}
	return write(t)
}

// series is many rounds on one disk. In each round, children write to a store
// until the power is cut; the next round continues with what is left.
type series struct {
	t     *testing.T
	store string
	lies  bool // the disk reports success for a sync and stores nothing

	// isFresh makes every round begin with the initial disk.
	isFresh bool

	// initial is what the first round begins with, and each round after damage.
	initial image

	// scenario runs the children of a round.
	scenario func(*round)

	stored   image // what the last power cut left
	expected *model
	tally    tally
	children int
}

// tally counts what a series did and found.
type tally struct {
	rounds, halfWrites, failedReopens, failedChecks int

	acknowledged, uncertain, lost int // operations
	kept, dropped, torn           int // unsynced sectors
}

func (c tally) String() string {
	return fmt.Sprintf("%d power cuts; %d operations acknowledged, %d of unknown outcome; %d unsynced sectors kept (%d torn), %d dropped; "+
		"%d lost, %d half writes, %d failed reopens, %d failed checks (seed %d)",
		c.rounds, c.acknowledged, c.uncertain, c.kept, c.torn, c.dropped,
		c.lost, c.halfWrites, c.failedReopens, c.failedChecks, *seed)
}

func (c tally) isClean() bool {
	return c.lost+c.halfWrites+c.failedReopens+c.failedChecks == 0
}

// newSeries returns a series that begins with an empty store.
func newSeries(t *testing.T, kind string, scenario func(*round)) *series {
	t.Helper()
	directory := t.TempDir()
	store, err := openSound(kind, filepath.Join(directory, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	initial, err := loadImage(directory)
	if err != nil {
		t.Fatal(err)
	}
	s := &series{t: t, store: kind, scenario: scenario, initial: initial}
	s.restart()
	return s
}

// newCreationSeries returns a series of which each round begins with an empty
// disk.
func newCreationSeries(t *testing.T, kind string) *series {
	return &series{t: t, store: kind, scenario: firstCreation, isFresh: true}
}

// wantNothingLost runs the rounds of the command line.
func (s *series) wantNothingLost() {
	s.t.Helper()
	for range *rounds {
		s.run()
	}
	s.t.Log(s.tally)
	if !s.tally.isClean() {
		s.t.Error("a power cut damaged the store")
	}
	if s.tally.acknowledged == 0 {
		s.t.Error("no operation was acknowledged")
	}
}

// wantCaught runs rounds until one finds damage.
func (s *series) wantCaught() {
	s.t.Helper()
	s.runUntil(func() bool { return !s.tally.isClean() })
}

// wantLossCaught runs rounds until one finds an acknowledged operation lost.
func (s *series) wantLossCaught() {
	s.t.Helper()
	s.runUntil(func() bool { return s.tally.lost > 0 })
}

func (s *series) runUntil(isCaught func() bool) {
	s.t.Helper()
	const most = 200
	for !isCaught() && s.tally.rounds < most {
		s.run()
	}
	s.t.Log(s.tally)
	if !isCaught() {
		s.t.Errorf("%d power cuts did not find the fault", most)
	}
}

// round is the children of one power cut, and their disk.
type round struct {
	*series
	random *rand.Rand
	disk   *disk
	mount  *mount

	mu      sync.Mutex
	process *child.Process
}

func (s *series) run() {
	s.t.Helper()
	random := rand.New(rand.NewPCG(*seed, uint64(s.tally.rounds)))
	s.tally.rounds++
	if s.isFresh {
		s.restart()
	}
	r := &round{series: s, random: random, disk: newDisk(s.stored, random)}
	r.disk.lies, r.disk.kill = s.lies, r.kill
	r.mount = mountOrSkip(s.t, r.disk)
	s.scenario(r)
	if err := r.mount.unmount(); err != nil {
		s.t.Fatal(err)
	}
	cut := newPowerCut(random)
	s.stored = r.disk.afterCut(cut)
	s.tally.kept += cut.kept
	s.tally.dropped += cut.dropped
	s.tally.torn += cut.torn
	if !s.examine(cut) {
		s.restart()
	}
}

func (s *series) restart() { s.stored, s.expected = s.initial, newModel() }

// mountOrSkip skips the test if a FUSE file system cannot be mounted. It fails the
// test if CI is set.
func mountOrSkip(t *testing.T, d *disk) *mount {
	t.Helper()
	m, err := mountDisk(d, t.TempDir())
	if err == nil {
		t.Cleanup(func() { _ = m.unmount() })
		return m
	}
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skipf("the disk is a FUSE file system, which needs /dev/fuse and either root or fusermount3: %v", err)
	return nil
}

// patience is how long a child may take until it is killed.
const patience = 30 * time.Second

// write starts a child, calls ready once the store is open, and returns when the
// child has been killed.
func (r *round) write(onReady func()) {
	r.t.Helper()
	r.children++
	given := task{
		Store:   r.store,
		Path:    filepath.Join(r.mount.directory, fileName),
		Seed:    r.random.Uint64(),
		Process: r.children,
		Avoid:   r.expected.unsettledIDs(),
	}
	r.mu.Lock()
	r.process = child.Start(r.t, given)
	r.mu.Unlock()
	late := time.AfterFunc(patience, r.kill)
	child.Follow(r.t, r.process, func(e event) {
		if e.Step == ready {
			onReady()
			return
		}
		r.expected.note(e)
	})
	if !late.Stop() {
		r.t.Fatalf("the child was not killed within %v (seed %d)", patience, *seed)
	}
	r.expected.processDied()
}

func (r *round) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process.Kill()
}

// examine opens what the power cut left, and compares it with what was
// acknowledged. It reports whether nothing is wrong.
func (s *series) examine(cut *powerCut) bool {
	s.t.Helper()
	before := s.tally
	s.tally.acknowledged += s.expected.acknowledged
	s.tally.uncertain += s.expected.uncertain
	s.expected.acknowledged, s.expected.uncertain = 0, 0
	directory := s.t.TempDir()
	if err := s.stored.save(directory); err != nil {
		s.t.Fatal(err)
	}
	if err := s.reopen(filepath.Join(directory, fileName), cut); err != nil {
		s.report("%v", err)
	}
	var err error
	if s.stored, err = loadImage(directory); err != nil {
		s.t.Fatal(err)
	}
	return s.tally.lost == before.lost && s.tally.halfWrites == before.halfWrites &&
		s.tally.failedReopens == before.failedReopens && s.tally.failedChecks == before.failedChecks
}

func (s *series) report(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("power cut %d: %s", s.tally.rounds, fmt.Sprintf(format, args...))
}

// reopen opens the store and adds what it finds to the tally.
func (s *series) reopen(path string, cut *powerCut) (err error) {
	defer s.countPanic(&err)()
	store, err := openSound(s.store, path)
	if err != nil {
		s.tally.failedReopens++
		return fmt.Errorf("reopen: %w", err)
	}
	defer store.Close()
	// Check reports a torn header until it is written again. The header is that of
	// a commit in flight, so that nothing acknowledged depends on it.
	var damage error
	if !cut.tornHeader {
		damage = s.check(store)
	}
	held, err := readVersions(s.t.Context(), store)
	if err != nil {
		s.tally.failedReopens++
		return errors.Join(damage, fmt.Errorf("read: %w", err))
	}
	found := s.expected.compare(held)
	s.tally.lost += len(found.lost)
	s.tally.halfWrites += len(found.halves) + len(found.unexpected)
	s.expected.adopt(held)
	if !found.isEmpty() || damage != nil {
		return errors.Join(damage, found)
	}
	if err := writeHeaders(s.t.Context(), store); err != nil {
		s.tally.failedReopens++
		return fmt.Errorf("write after the power cut: %w", err)
	}
	return s.check(store)
}

func (s *series) check(store checkedStore) error {
	err := store.Check(s.t.Context())
	if err != nil {
		s.tally.failedChecks++
		err = fmt.Errorf("check: %w", err)
	}
	return err
}

// writeHeaders commits twice, which writes both headers, and leaves no record.
func writeHeaders(ctx context.Context, store relayer.Store) error {
	rec, err := store.Create(ctx, relayer.Record{ID: "after-the-cut"})
	if err != nil {
		return err
	}
	return store.Delete(ctx, rec.ID, rec.Revision)
}

// countPanic counts a panic, and a fault in mapped memory, as a failed reopen.
func (s *series) countPanic(err *error) func() {
	faults := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(faults)
		if cause := recover(); cause != nil {
			s.tally.failedReopens++
			*err = fmt.Errorf("reopen: panic: %v", strings.TrimSpace(fmt.Sprint(cause)))
		}
	}
}
