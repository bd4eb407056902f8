package powerloss

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

var (
	rounds = flag.Int("powerloss.rounds", 3, "power cuts of each test")
	seed   = flag.Uint64("powerloss.seed", uint64(time.Now().UnixNano()), "seed of all random choices")
)

func TestMain(m *testing.M) {
	child.Main(carryOut)
	goleak.VerifyTestMain(m)
}

// carryOut does the work of a child.
func carryOut(t task) error {
	switch t.Work {
	case probing:
		return probe(t.Path)
	case examining:
		examine(t)
		return nil
	}
	return write(t)
}

// series is a number of rounds on one disk. In each round, children write to a store
// until the power is cut. The next round continues with the result.
type series struct {
	t *testing.T

	// What a control breaks.
	early        bool   // the store acknowledges creates before it commits them
	lies         []kind // the disk reports success for these syncs and stores nothing
	dropsRewrite bool   // the disk does so when the store writes both headers again

	// isFresh makes every round begin with the initial disk.
	isFresh bool

	// initial is the disk of the first round, and of each round after damage.
	initial image

	// scenario runs the children of a round.
	scenario func(*round)

	stored   image               // the disk after the last power cut
	expected *ledger.Ledger[int] // versions by ID
	revision uint64              // of the last change that was compared
	tally    tally
	children int
}

// tally counts the operations of a series and the damage that it found.
type tally struct {
	rounds, halfWrites, failedReopens, failedChecks, crashes int

	acknowledged, uncertain, lost int // operations
	history                       int // changes that the history has not, or should not have
	kept, dropped, torn           int // unsynced sectors
}

func (c tally) String() string {
	return fmt.Sprintf("%d power cuts; %d operations acknowledged, %d of unknown outcome; %d unsynced sectors kept (%d torn), %d dropped; "+
		"%d lost, %d wrong in the history, %d half writes, %d failed reopens, %d failed checks, %d crashes (seed %d)",
		c.rounds, c.acknowledged, c.uncertain, c.kept, c.torn, c.dropped,
		c.lost, c.history, c.halfWrites, c.failedReopens, c.failedChecks, c.crashes, *seed)
}

// damage returns the number of faults of the store.
func (c tally) damage() int {
	return c.lost + c.history + c.halfWrites + c.failedReopens + c.failedChecks + c.crashes
}

// newSeries returns a series that begins with an empty store.
func newSeries(t *testing.T, scenario func(*round)) *series {
	t.Helper()
	directory := t.TempDir()
	store, err := bolt.Open(t.Context(), filepath.Join(directory, fileName))
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
	s := &series{t: t, scenario: scenario, initial: initial}
	s.restart()
	return s
}

// newCreationSeries returns a series of which each round begins with an empty
// disk.
func newCreationSeries(t *testing.T, scenario func(*round)) *series {
	return &series{t: t, scenario: scenario, isFresh: true}
}

// maxRounds bounds the rounds of a series that waits for an event.
const maxRounds = 200

// wantNothingLost runs the rounds of the command line, and more until one operation is
// acknowledged.
func (s *series) wantNothingLost() {
	s.t.Helper()
	// A few cuts can all come before the first acknowledgement.
	for s.tally.rounds < *rounds || s.tally.acknowledged == 0 && s.tally.rounds < maxRounds {
		s.run()
	}
	s.t.Log(s.tally)
	if s.tally.damage() > 0 {
		s.t.Error("a power cut damaged the store")
	}
	if s.tally.acknowledged == 0 {
		s.t.Error("no operation was acknowledged")
	}
}

// wantCaught runs rounds until one finds damage.
func (s *series) wantCaught() {
	s.t.Helper()
	s.runUntil(func() bool { return s.tally.damage() > 0 })
}

// wantLossCaught runs rounds until one finds an acknowledged operation lost.
func (s *series) wantLossCaught() {
	s.t.Helper()
	s.runUntil(func() bool { return s.tally.lost > 0 })
}

func (s *series) runUntil(isCaught func() bool) {
	s.t.Helper()
	for !isCaught() && s.tally.rounds < maxRounds {
		s.run()
	}
	s.t.Log(s.tally)
	if !isCaught() {
		s.t.Errorf("%d power cuts did not find the fault", maxRounds)
	}
}

// round is one power cut: its disk and the children that write to it.
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

func (s *series) restart() { s.stored, s.expected, s.revision = s.initial, ledger.New[int](), 0 }

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

// write starts a child that writes, calls onReady when its store is open, and
// returns when the child has been killed.
func (r *round) write(onReady func()) {
	r.t.Helper()
	r.children++
	given := task{
		Early:   r.early,
		Path:    filepath.Join(r.mount.directory, fileName),
		Seed:    r.random.Uint64(),
		Process: r.children,
		Avoid:   r.expected.Unsettled(),
	}
	r.mu.Lock()
	r.process = child.Start(r.t, given)
	r.mu.Unlock()
	late := time.AfterFunc(patienceToWrite, r.kill)
	killed, err := child.Follow(r.process, func(e event) {
		if e.Step == ready {
			onReady()
			return
		}
		r.expected.Note(e)
	})
	switch {
	case !late.Stop():
		r.t.Fatalf("power cut %d (seed %d): no fault within %v", r.tally.rounds, *seed, patienceToWrite)
	case err != nil && !killed: // it met what an earlier cut has damaged
		r.tally.crashes++
		r.report("%v", err)
	case err != nil || !killed:
		r.t.Fatalf("power cut %d (seed %d): the child was not killed: %v", r.tally.rounds, *seed, err)
	}
	r.expected.Interrupt()
}

func (r *round) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process.Kill()
}

// examine has a child open the store after the power cut, and adds its findings to
// the tally. It reports whether there is no damage.
func (s *series) examine(cut *powerCut) bool {
	s.t.Helper()
	before := s.tally
	s.tally.acknowledged += s.expected.Count(ledger.Done)
	s.tally.uncertain += s.expected.Count(ledger.Unknown)
	directory := s.t.TempDir()
	defer os.RemoveAll(directory)
	if err := s.stored.save(directory); err != nil {
		s.t.Fatal(err)
	}
	p := child.Start(s.t, task{
		Work:       examining,
		Path:       filepath.Join(directory, fileName),
		TornHeader: cut.tornHeader,
		After:      s.revision,
	})
	late := time.AfterFunc(patienceToExamine, p.Kill)
	killed, err := child.Follow(p, s.note)
	late.Stop()
	if killed {
		err = fmt.Errorf("the examination took longer than %v", patienceToExamine)
	}
	if err != nil {
		s.tally.failedReopens++
		s.report("%v", err)
	}
	if s.stored, err = loadImage(directory); err != nil {
		s.t.Fatal(err)
	}
	return s.tally.damage() == before.damage()
}

// note adds a finding to the tally.
func (s *series) note(f finding) {
	s.t.Helper()
	switch f.Step {
	case failedReopen:
		s.tally.failedReopens++
	case failedCheck:
		s.tally.failedChecks++
	case holds:
		found := s.expected.Compare(f.Held)
		s.tally.lost += len(found.Lost)
		s.tally.halfWrites += len(found.Halves) + len(found.Unexpected)
		if !found.IsEmpty() {
			s.report("%v", found)
		}
		s.compareHistory(f)
		s.expected.Adopt(f.Held)
	}
	if f.Error != "" {
		s.report("%s: %s", f.Step, f.Error)
	}
}

func (s *series) compareHistory(f finding) {
	s.t.Helper()
	s.revision = f.Revision
	if wrong := s.expected.CompareHistory(f.History, f.Held); len(wrong) > 0 {
		s.tally.history += len(wrong)
		s.report("wrong in the history: %v", wrong)
	}
}

func (s *series) report(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("power cut %d: %s", s.tally.rounds, fmt.Sprintf(format, args...))
}
