package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// fileName is the name of the store's file on the disk.
const fileName = "relayers.db"

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of what the disk does")

// series is a number of rounds on one disk. In each round, children write to a store
// until the power is cut. The next round continues with the result.
type series struct {
	t *testing.T

	// What a control breaks.
	lies         []kind // the disk reports success for these syncs and stores nothing
	dropsRewrite bool   // the disk does so when the store writes both headers again

	// isFresh makes every round begin with the initial disk.
	isFresh bool

	// initial is the disk of the first round, and of each round after damage.
	initial image

	// scenario runs the children of a round.
	scenario func(*round)

	stored   image // the disk after the last power cut
	known    *known
	tally    damageTally
	children int
}

// damageTally counts the operations of a series and the damage that it found.
type damageTally struct {
	rounds, halfWrites, failedReopens, failedChecks, crashes int

	acknowledged, uncertain, lost int // operations
	wrong                         int // records and changes that differ from what was written, or are missing
	kept, dropped, torn           int // unsynced sectors
}

func (c damageTally) String() string {
	return fmt.Sprintf("%d power cuts; %d operations acknowledged, %d of unknown outcome; %d unsynced sectors kept (%d torn), %d dropped; "+
		"%d lost, %d wrong, %d half writes, %d failed reopens, %d failed checks, %d crashes (seed %d)",
		c.rounds, c.acknowledged, c.uncertain, c.kept, c.torn, c.dropped,
		c.lost, c.wrong, c.halfWrites, c.failedReopens, c.failedChecks, c.crashes, *seed)
}

// damage returns the number of faults of the store.
func (c damageTally) damage() int {
	return c.lost + c.wrong + c.halfWrites + c.failedReopens + c.failedChecks + c.crashes
}

// newSeries returns a series that begins with an empty store.
func newSeries(t *testing.T, scenario func(*round)) *series {
	t.Helper()
	directory := t.TempDir()
	store, err := bolt.Open(t.Context(), filepath.Join(directory, fileName))
	must(t, err, store.Close())
	initial, err := loadImage(directory)
	must(t, err)
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
// acknowledged. With a new file they are short, so that there are more of them.
func (s *series) wantNothingLost() {
	s.t.Helper()
	count := *rounds
	if s.isFresh {
		count *= 5
	}
	// A few cuts can all come before the first acknowledgement.
	for s.tally.rounds < count || s.tally.acknowledged == 0 && s.tally.rounds < maxRounds {
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
func (s *series) wantCaught(damage func(damageTally) int) {
	s.t.Helper()
	for damage(s.tally) == 0 && s.tally.rounds < maxRounds {
		s.run()
	}
	s.t.Log(s.tally)
	if damage(s.tally) == 0 {
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
	must(s.t, r.mount.unmount())
	cut := newPowerCut(random)
	s.stored = r.disk.afterCut(cut)
	s.tally.kept += cut.kept
	s.tally.dropped += cut.dropped
	s.tally.torn += cut.torn
	if !s.examine(cut) {
		s.restart()
	}
}

func (s *series) restart() { s.stored, s.known = s.initial, newKnown() }

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
		Round:    r.children,
		location: location{Store: boltStore, Path: filepath.Join(r.mount.directory, fileName)},
		MayFail:  true,
	}
	for _, e := range r.known.versions.Ended(ledger.Unknown) {
		given.Avoid = append(given.Avoid, e.Keys...)
	}
	r.mu.Lock()
	r.process = child.Start(r.t, given)
	r.mu.Unlock()
	late := time.AfterFunc(patienceToWrite, r.kill)
	killed, err := child.Follow(r.process, func(e event) {
		switch e.Step {
		case opening:
		case ready:
			onReady()
		default:
			r.known.note(e)
		}
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
	r.known.versions.Interrupt()
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
	s.tally.acknowledged += len(s.known.versions.Ended(ledger.Done))
	s.tally.uncertain += len(s.known.versions.Ended(ledger.Unknown))
	directory := s.t.TempDir()
	defer os.RemoveAll(directory)
	must(s.t, s.stored.save(directory))
	p := child.Start(s.t, task{
		Work:       examines,
		location:   location{Store: boltStore, Path: filepath.Join(directory, fileName)},
		TornHeader: cut.tornHeader,
		After:      s.known.revision,
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
	s.stored, err = loadImage(directory)
	must(s.t, err)
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
		found, _, _ := s.known.compare(f.Left)
		s.tally.lost += len(found.Lost)
		s.tally.halfWrites += len(found.Halves) + len(found.Unexpected)
		s.tally.wrong += len(found.wrong)
		if !found.isEmpty() {
			s.report("%v", found)
		}
	}
	if f.Error != "" {
		s.report("%s: %s", f.Step, f.Error)
	}
}

func (s *series) report(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("power cut %d: %s", s.tally.rounds, fmt.Sprintf(format, args...))
}
