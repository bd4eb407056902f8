package storetest

import (
	"testing"

	"github.com/go-relayer/relayer"
)

type durableCase struct {
	name string
	run  func(t *testing.T, open opener)
}

var durableCases = []durableCase{
	{"reopened empty", reopenedEmpty},
	{"reopened with data", reopenedWithData},
	{"reopened repeatedly", reopenedOften},
	{"revisions are never reused after reopening", revisionsAfterReopening},
	{"sequences are never reused after reopening", sequencesAfterReopening},
	{"imports after reopening", importsAfterReopening},
	{"watch resumes after reopening", watchAcrossReopening},
}

func reopenedEmpty(t *testing.T, open opener) {
	closeStore(t, open(t))
	store := openUntilEnd(t, open)
	wantPage(t, store, 0, 10, nil)
	mustCreate(t, store, sample("one"))
}

func reopenedWithData(t *testing.T, open opener) {
	store := open(t)
	all := createMany(t, store, 30)
	for i := range all {
		if i%3 == 0 {
			all[i].Claim = "claim of " + all[i].ID
			all[i] = mustUpdate(t, store, all[i])
		}
	}
	mustDelete(t, store, all[6])
	mustDelete(t, store, all[29])
	left := append(append([]relayer.Record(nil), all[:6]...), all[7:29]...)
	closeStore(t, store)

	store = openUntilEnd(t, open)
	wantEveryPage(t, store, left)
	for _, want := range left {
		wantSame(t, "Get", mustGet(t, store, want.ID), want)
	}
	wantAbsent(t, store, all[6].ID)
	_, err := store.Create(t.Context(), sample(left[0].ID))
	wantError(t, "Create of a taken ID", err, relayer.ErrExists)
	_, err = store.Create(t.Context(), claiming("new", left[3].Claim))
	wantError(t, "Create with a held claim", err, relayer.ErrClaimed)
	left = append(left, mustCreate(t, store, claiming("new", all[6].Claim)))
	wantEveryPage(t, store, left)
}

func reopenedOften(t *testing.T, open opener) {
	var all []relayer.Record
	for i := range 8 {
		store := open(t)
		wantPage(t, store, 0, 100, all)
		all = append(all, mustCreate(t, store, sample(numbered(2*i))), mustCreate(t, store, sample(numbered(2*i+1))))
		mustDelete(t, store, all[i/2])
		all = append(all[:i/2:i/2], all[i/2+1:]...)
		wantPage(t, store, 0, 100, all)
		closeStore(t, store)
	}
}

func revisionsAfterReopening(t *testing.T, open opener) {
	last := uint64(0)
	for range 4 {
		store := open(t)
		rec := mustCreate(t, store, sample("one"))
		if rec.Revision <= last {
			t.Fatalf("revision %d after %d", rec.Revision, last)
		}
		rec = mustUpdate(t, store, rec)
		last = rec.Revision
		mustDelete(t, store, rec)
		closeStore(t, store)
	}
}
