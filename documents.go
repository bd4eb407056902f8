package relayer

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Documents reads and writes relayers as JSON, for servers. A read returns the stored JSON, the
// form of responses, and does not check the relayer. RPC URLs are masked: see
// [Documents.WithFullURLs]. Documents is safe for concurrent use.
type Documents struct {
	manager *Manager
	reveal  Action // ActionReveal if reads have full RPC URLs
}

// Documents returns the operations of the Manager on JSON.
func (m *Manager) Documents() Documents { return Documents{manager: m} }

// WithFullURLs returns a view whose gets, lists and watches have full RPC URLs. Gets and lists are
// observed as [ActionReveal].
func (d Documents) WithFullURLs() Documents {
	d.reveal = ActionReveal
	return d
}

// Document is a relayer in JSON. Its bytes are shared with the store and must not be
// modified. In a history, JSON is nil if [Manager.History] returns a nil Relayer.
type Document struct {
	ID       string
	Revision uint64
	JSON     []byte

	// SealError is why the RPC URLs are masked in a view of [Documents.WithFullURLs]: an
	// error that matches [ErrSealed], or [ErrCorrupt] if the stored URLs are damaged. In a watch it
	// is another error if the store no longer has the URLs: a later change, which follows, has
	// replaced them. It is nil otherwise, and for a delete.
	SealError error

	note []byte
}

// LastChange is [Relayer.LastChange].
func (d Document) LastChange() ChangeInfo {
	return changeInfoOf(Record{Revision: d.Revision, Note: d.note})
}

func documentOf(rec *Record) Document {
	return Document{ID: rec.ID, Revision: rec.Revision, JSON: rec.Document, note: rec.Note}
}

// writtenDocument is the form of a record after a write.
func writtenDocument(_ context.Context, rec Record) (Document, error) { return documentOf(&rec), nil }

// Create is [Manager.Create] for a request in JSON, such as the body of an HTTP request:
// one strict JSON object with the members of [CreateRequest]. Problems of the JSON and of
// its values are returned together.
func (d Documents) Create(ctx context.Context, body []byte, options ...WriteOption) (Document, error) {
	read := func(found *problems) *Relayer { return decodeCreate(body, found) }
	return write(ctx, d.manager, ActionCreate, "", options, writtenDocument, d.manager.creation(read))
}

// Patch is [Manager.Patch] without decoding.
func (d Documents) Patch(ctx context.Context, id string, patch []byte, options ...WriteOption) (Document, error) {
	action, edit := d.manager.patched(patch)
	return write(ctx, d.manager, action, id, options, writtenDocument, edit)
}

// Disable is [Manager.Disable] for a reason in JSON, such as the body of an HTTP request: one
// strict JSON object with the members of [DisabledReason], whose texts must not contain NUL.
func (d Documents) Disable(ctx context.Context, id string, reason []byte, options ...WriteOption) (Document, error) {
	var decoded DisabledReason
	found := new(problems)
	if problem := strictjson.Check(reason); problem != "" {
		found.Add("", "the body "+problem)
	} else {
		newDecoder(found).Decode(reason, &decoded)
	}
	return write(ctx, d.manager, ActionDisable, id, options, writtenDocument, setDisabled(decoded, found))
}

// Enable is [Manager.Enable] without decoding.
func (d Documents) Enable(ctx context.Context, id string, options ...WriteOption) (Document, error) {
	return write(ctx, d.manager, ActionEnable, id, options, writtenDocument, setEnabled())
}

// Delete is [Manager.Delete], and returns the relayer as it was. The JSON of a damaged one may be
// missing or invalid.
func (d Documents) Delete(ctx context.Context, id string, options ...WriteOption) (Document, error) {
	return write(ctx, d.manager, ActionDelete, id, options, writtenDocument, noRecord)
}

// Get is [Manager.Get] without decoding.
func (d Documents) Get(ctx context.Context, id string) (Document, error) {
	return get(ctx, d.manager, cmp.Or(d.reveal, ActionGet), id, func(ctx context.Context, rec Record) (document Document, err error) {
		err = d.read(ctx, &rec, &document)
		return document, err
	})
}

// List is [Manager.List] without decoding. The page has [Page.Documents] in place of relayers.
func (d Documents) List(ctx context.Context, query ListQuery) (*Page, error) {
	return d.manager.list(ctx, cmp.Or(d.reveal, ActionList), query, d.reveal == "", func(ctx context.Context, records []Record, page *Page) (err error) {
		page.Documents = make([]Document, len(records))
		for i := 0; i < len(records) && err == nil; i++ {
			err = d.read(ctx, &records[i], &page.Documents[i])
		}
		return err
	})
}

// Watch is [Manager.Watch] without decoding. A change has [Change.Document] in place of the relayer
// and of Info.
func (d Documents) Watch(ctx context.Context, query WatchQuery) iter.Seq2[Change, error] {
	return watch(ctx, d.manager, query, func(c RecordChange, change *Change) (err error) {
		err = d.read(ctx, &c.Record, &change.Document)
		if len(c.Record.Private) == 0 && errors.Is(change.Document.SealError, ErrCorrupt) {
			change.Document.SealError = errSuperseded // a feed may have no other private part than the current one
		}
		if c.Kind == ChangeDeleted {
			change.Document.SealError = nil // its consumer does not use them
		}
		return err
	})
}

var errSuperseded = errors.New("relayer: a later change has replaced or deleted the RPC URLs")

// History is [Manager.History] without decoding, in the form of [Documents.Watch]. RPC URLs are
// always masked.
func (d Documents) History(ctx context.Context, query HistoryQuery) (changes []Change, next uint64, err error) {
	return history(ctx, d.manager, query, pastDocument)
}

func pastDocument(c RecordChange, past *Change) error {
	if c.Kind == ChangeDeleted {
		c.Record.Document = nil
	}
	if c.Record.Document != nil && !isObject(c.Record.Document) {
		return errNoObject
	}
	past.Document = documentOf(&c.Record)
	return nil
}

// read sets a document to the document of a stored record, with full RPC URLs if the view has
// them. They stay masked if they are sealed or damaged: one such relayer must not make a list
// fail.
func (d Documents) read(ctx context.Context, rec *Record, document *Document) error {
	*document = documentOf(rec)
	if d.reveal == "" || rec.Document == nil {
		return nil
	}
	opened, err := d.manager.opened(ctx, *rec)
	if err == nil {
		opened.Document, err = unmaskedDocument(opened)
	}
	switch {
	case err == nil:
		document.JSON = opened.Document
	case errors.Is(err, ErrSealed), errors.Is(err, ErrCorrupt):
		document.SealError, err = err, nil
	}
	return err
}

// unmaskedDocument returns the document of a record, whose private part is in clear, with
// its full URLs. It returns a [*CorruptError] if the two parts contradict each other.
func unmaskedDocument(rec Record) ([]byte, error) {
	shown, err := endpointsOf(rec.Document)
	if err != nil || !isObject(rec.Document) {
		return nil, corruptPart(rec, mismatch)
	}
	full, err := fullEndpoints(rec, shown)
	if err != nil {
		return nil, err
	}
	document := rec.Document
	if len(full) > 0 { // an empty list has no private part
		private, _ := strictjson.Members(rec.Private)
		document = strictjson.ReplaceMember(document, urlsMember, private[urlsMember])
	}
	// A writer without the key can add a member that other decoders accept in place of this one,
	// such as "Custom_RPC_URLs".
	if shown, err := endpointsOf(document); err != nil || !slices.EqualFunc(shown, full, RPCConfig.equals) {
		return nil, corruptPart(rec, mismatch)
	}
	return document, nil
}
