// The actions: pause, resume, enable, disable and delete of a relayer, and pause and resume of
// those that filters select. One dialog asks for the reason. A pause, a disable and an enable are
// emergency switches without a condition. A resume and a delete send the ETag of the revision
// that the user saw.

import { attempt, call, callOne, explain, newRequestID, scope } from './api.js';
import { byId, make, onSubmit, say, write } from './dom.js';
import { writeJSON } from './json.js';
import { noteChanged, noteDeleted, noteGone, refreshSoon } from './main.js';
import { countOf, inSentence, nameInSentence, sentenceOf } from './view.js';

const dialog = byId('act-dialog');
let action; // what the dialog does
export const lineOf = (id) => byId(id).value.replace(/\p{Cc}/gu, ' ').trim();

// Opens the dialog. begin has what differs between actions; send returns whether all is done. Each attempt
// to do it has the same request ID.
function open(begin) {
  action = { requestID: newRequestID(), text: '', names: [], label: '', list: '', ...begin };
  write('act-title', action.title);
  write('act-text', action.text);
  showNames(action.names);
  byId('act-field').hidden = !action.label;
  write('act-label', action.label);
  byId('act-input').setAttribute('list', action.list);
  byId('act-input').value = byId('act-reason').value = '';
  write('act-confirm', action.verb);
  byId('act-confirm').className = action.isDanger ? 'danger' : 'main';
  refuse('');
  dialog.showModal();
  byId(action.label ? 'act-input' : 'act-reason').focus();
}

function showNames(names) {
  byId('act-names').hidden = names.length === 0;
  byId('act-names').replaceChildren(...names.map((name) => make('li', {}, name)));
}

function refuse(text, isInvalid = false) {
  write('act-wrong', text);
  byId('act-input').ariaInvalid = isInvalid ? 'true' : null;
  if (isInvalid) byId('act-input').focus();
}

// The user may have closed the dialog, or opened that of another action, before a response arrives.
const isOpen = (mine) => dialog.open && action === mine;

// Shows why an action had no effect: in the dialog or, if the user has closed it, in the status.
function fail(mine, text) {
  if (isOpen(mine)) refuse(text);
  else say(text);
}

onSubmit(byId('act-form'), async () => {
  const mine = action;
  const problem = action.check?.(lineOf('act-input'));
  refuse(problem || '', Boolean(problem));
  if (mine.isSending || problem) return;
  mine.isSending = true;
  const send = async () => {
    if (!await mine.send(lineOf('act-reason'), lineOf('act-input')) || !isOpen(mine)) return;
    dialog.close();
    if (!mine.base) byId('status').focus(); // the button that had the focus may offer something else now
  };
  await attempt(send, (refusal) => explainFailure(mine, refusal)).finally(() => { mine.isSending = false; });
});

async function explainFailure(mine, refusal) {
  if (refusal.status === 404 && mine.base) {
    if (action === mine) dialog.close();
    return noteGone(mine.base.id);
  }
  if (refusal.status === 412) return attempt(() => showConflict(mine), (problem) => explainFailure(mine, problem));
  fail(mine, (refusal.isUnknown() ? 'It is not known whether this took effect: ' : 'Not ' + mine.done + ': ') + explain(refusal, mine.doing));
  return refusal.isUnknown() && refreshSoon();
}

const noteDone = (mine, result) => noteChanged(result, nameInSentence(result.data) + ' is ' + mine.done);

// Shows who has changed the relayer meanwhile. The next confirmation is for its current revision. The
// change may be of an earlier attempt, whose response was lost.
async function showConflict(mine) {
  const current = await callOne(mine.base.id);
  if (current.change.request_id === mine.requestID) {
    if (isOpen(mine)) dialog.close();
    noteDone(mine, current);
    return;
  }
  mine.etag = current.etag;
  noteChanged(current);
  fail(mine, 'Another client changed this relayer since you saw it: ' + sentenceOf(current.change) + '. Not ' + mine.done + '. Confirm again for the current revision.');
}

byId('act-cancel').addEventListener('click', () => dialog.close());

// Actions of one relayer.

function openOne({ data, etag }, begin, request) {
  open({
    base: data, etag, doing: 'change this relayer', ...begin,
    title: begin.verb + ' ' + nameInSentence(data) + '?',
    async send(reason, fault) {
      const { below, ...rest } = request(this.etag, fault, reason);
      const result = await callOne(data.id, { ...rest, reason, requestID: this.requestID }, below);
      if (this.isDanger) noteDeleted(data.id, nameInSentence(data) + ' was deleted');
      else noteDone(this, result);
      return true;
    },
  });
}

export const actions = {
  pause: (one) => openOne(one, { verb: 'Pause', done: 'paused' }, () => ({ method: 'PATCH', body: '{"paused":true}' })),
  resume: (one) => openOne(one, { verb: 'Resume', done: 'resumed' }, (etag) => ({ method: 'PATCH', body: '{"paused":false}', etag })),
  enable: (one) => openOne(one, { verb: 'Enable', done: 'enabled' }, () => ({ method: 'DELETE', below: '/disabled_reason' })),
  disable: (one) => openOne(one, { verb: 'Disable', done: 'disabled', label: 'Fault *', list: 'known-faults', check: (fault) => fault === '' && 'Enter a fault, such as BalanceCheckFailed', text: 'It stays disabled until it is enabled, even if it is resumed.' },
    (_, type, details) => ({ method: 'PUT', below: '/disabled_reason', body: writeJSON(details ? { type, details } : { type }) })),
  delete: (one) => openOne(one, { verb: 'Delete', done: 'deleted', doing: 'delete this relayer', label: 'Type the ID to confirm *', check: (id) => id !== one.data.id && 'This is not the ID of the relayer', isDanger: true, text: 'It can be created again from its history, but without its RPC URLs and their headers. Its ID is ' + one.data.id + '.' },
    (etag) => ({ method: 'DELETE', etag })),
};

// Opens the dialog for the relayers that filters select. The server changes them all in one
// request, which is harmless to repeat.
export function openBulk({ action: name, filters, about, text, rows, count }) {
  const [verb, done] = name === 'pause' ? ['Pause', 'paused'] : ['Resume', 'resumed'];
  const names = rows.slice(0, count).map(({ relayer }) => nameInSentence(relayer) + ' (' + relayer.id + ')');
  if (count > names.length) names.push('and ' + (count - names.length) + ' more');
  const within = scope(name);
  const limit = within && within !== scope('list') ? ' Only relayers with ' + inSentence(within) + ' are changed.' : '';
  open({
    verb, done, names, title: verb + ' ' + countOf(count) + '?', doing: name + ' relayers',
    text: (text ?? (about ? 'Selected by ' + inSentence(about) + '.' : 'Nothing is filtered: these are all that you can see.')) + limit,
    async send(reason) {
      const query = new URLSearchParams(filters);
      if (!about) query.set('all', 'true');
      const { data } = await call(':' + name + '?' + query, { method: 'POST', reason, requestID: this.requestID, patience: 300000 });
      const [changed, unchanged] = [data.changed, data.unchanged].map((literal) => Number(literal.text));
      const notice = countOf(changed) + ' ' + done + (unchanged > 0 && !query.has('paused_by') ? ', ' + unchanged + ' already' : '');
      refreshSoon();
      if (data.failed.length === 0) {
        say(notice);
        return true;
      }
      if (isOpen(this)) {
        write('act-title', data.failed.length + ' not ' + done);
        showNames(data.failed.map(({ id, message }) => id + ': ' + message));
      }
      fail(this, notice + ', ' + data.failed.length + ' not ' + done + (isOpen(this) ? '. Confirm to try again.' : ''));
      return false;
    },
  });
}
