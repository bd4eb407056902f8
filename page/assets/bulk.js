// Pauses or resumes the relayers that the filters select, or those that the user has paused
// before. The page first reads and shows them all. A pause is sent without a condition. A
// resume is sent under the revision that was read, so that a relayer that another client has
// changed since stays as it is, and is reported.

import { principal } from './access.js';
import { call, callOne, etagOf, explain, Refusal, withChanges } from './api.js';
import { byId, make, newID, onSubmit, say, write } from './dom.js';
import { describe } from './filters.js';
import { writeJSON } from './json.js';
import { localTime } from './reach.js';
import { reasonField } from './reason.js';
import { forgetPaused, pausedBy, rememberPaused } from './remembered.js';
import { inSentence, nameInSentence, sentenceOf } from './view.js';
import { sleep } from './watch.js';

const dialog = byId('bulk-dialog');

const reason = reasonField(dialog.querySelector('.foot'));

let work; // what the dialog does

export const isChanging = () => dialog.open && work.isChanging;

export function closeBulk() { dialog.close(); }

const countOf = (number) => number + (number === 1 ? ' relayer' : ' relayers');

// Sends a request again if the server asks to wait: a bulk change may exceed its rate.
async function patiently(request, signal) {
  for (let wait = 1; ; wait = Math.min(2 * wait, 30)) {
    try {
      return await request();
    } catch (error) {
      if (error.status !== 429 && error.status !== 503) throw error;
      await sleep(1000 * (Number(error.wait) || wait), signal);
      signal.throwIfAborted();
    }
  }
}

const pageSize = 100;

// Reads the relayers that the filters select, with their last changes. A walk by cursors has
// all that exist meanwhile, whatever is created and deleted.
async function readSelected(filters, signal) {
  const rows = [];
  for (let after = ''; after !== undefined;) {
    const query = new URLSearchParams([...filters, ['after', after], ['per_page', pageSize], withChanges]);
    const { data, changes, next, pagination } = await patiently(() => call('?' + query, { signal }), signal);
    rows.push(...data.map((relayer, index) => ({ relayer, change: changes[index] })));
    showProgress('Read', rows.length, Number(pagination.total_items.text));
    after = next;
  }
  return rows;
}

// Reads the relayers of a list of IDs, without those that were deleted.
async function readIDs(ids, signal) {
  const rows = [];
  for (let start = 0; start < ids.length; start += pageSize) {
    rows.push(...await readSelected(ids.slice(start, start + pageSize).map((id) => ['id', id]), signal));
  }
  return rows;
}

function showProgress(text, done, total) {
  byId('bulk-progress').hidden = false;
  byId('bulk-bar').max = total;
  byId('bulk-bar').value = done;
  write('bulk-done', text + ' ' + done + ' of ' + total);
}

// Shows a step of the work. Without a text for the confirmation there is nothing to confirm.
function showStep(text, names, confirm, cancel) {
  for (const id of ['progress', 'choice', 'by-reason', 'before']) byId('bulk-' + id).hidden = true;
  write('bulk-text', text);
  reason.element.hidden = !confirm;
  showNames(names.map((name) => make('li', {}, name)));
  byId('bulk-confirm').hidden = !confirm;
  byId('bulk-confirm').disabled = false;
  write('bulk-confirm', confirm);
  write('bulk-cancel', cancel);
}

function showNames(items) {
  byId('bulk-names').hidden = items.length === 0;
  byId('bulk-names').replaceChildren(...items);
}

const titleOf = ({ relayer }) => nameInSentence(relayer) + ' (' + relayer.id + ')';

// Opens the dialog for the relayers that the filters select, or for those of a list of IDs.
async function openFor(paused, title, read, about) {
  const mine = { stop: new AbortController(), paused, verb: paused ? 'Pause' : 'Resume', done: paused ? 'paused' : 'resumed', about };
  work?.stop.abort();
  work = mine;
  write('bulk-title', title);
  showStep('', [], '', 'Cancel');
  dialog.showModal();
  try {
    const selected = await read(mine.stop.signal);
    mine.stop.signal.throwIfAborted();
    mine.before = selected.filter(({ relayer }) => relayer.paused === paused);
    mine.rows = selected.filter(({ relayer }) => relayer.paused !== paused);
    forgetPaused(principal(), selected.filter(({ relayer }) => !relayer.paused).map(({ relayer }) => relayer.id));
    showRemembered();
    showSelected(mine, selected.length);
  } catch (error) {
    if (mine.stop.signal.aborted || error.name === 'AbortError') return;
    if (!(error instanceof Refusal)) throw error;
    showStep('Nothing was changed. ' + explain(error, 'list relayers'), [], '', 'Close');
  }
}

// The reason of a pause makes its relayers a set that can be resumed elsewhere.
export function openBulk(filters, paused) {
  reason.fill(paused ? 'Bulk pause ' + localTime(new Date()).slice(0, -3) : '');
  const about = (total) => (filters.size > 0 ? countOf(total) + (total === 1 ? ' matches ' : ' match ') + describe(filters) + '.' : 'No filter is set: this is every relayer that you can see.');
  return openFor(paused, (paused ? 'Pause' : 'Resume') + ' all', (signal) => readSelected(filters, signal), about);
}

const openIDs = (paused, title, ids, about) => openFor(paused, title, (signal) => readIDs(ids, signal), about);

// Opens the dialog for the relayers that the user has paused with bulk actions.
export function resumeMine() {
  reason.fill('');
  const ids = [...pausedBy(principal()).keys()];
  const about = (total) => 'You paused ' + countOf(ids.length) + (ids.length > total ? ', of which ' + (ids.length - total) + ' cannot be read any more.' : '.');
  return openIDs(false, 'Resume what you paused', ids, about);
}

export function showRemembered() {
  const count = pausedBy(principal()).size;
  byId('resume-mine').hidden = count === 0;
  write('resume-mine', 'Resume what I paused (' + count + ')…');
}

function showSelected({ verb, done, rows, before, about, paused }, total) {
  const pauses = paused ? new Map() : pausedBy(principal());
  const names = rows.map((row) => choiceOf(row, paused, pauses));
  const left = rows.filter(({ input }) => !input.checked).length;
  const parts = [about(total)];
  if (before.length > 0) parts.push(before.length + ' of ' + total + ' already ' + done + '.');
  if (left > 0) parts.push(left + ' not selected: changed since you paused ' + (left === 1 ? 'it.' : 'them.'));
  if (rows.length === 0) {
    showStep('Nothing to ' + verb.toLowerCase() + '. ' + parts.join(' '), [], '', 'Close');
    return;
  }
  showStep(parts.join(' '), [], verb, 'Cancel');
  showNames(names);
  byId('bulk-choice').hidden = false;
  byId('bulk-mine').hidden = pauses.size === 0;
  if (!paused) showReasons(rows);
  byId('bulk-before').hidden = before.length === 0;
  write(byId('bulk-before').firstElementChild, 'Already ' + done + ' (' + before.length + ')');
  byId('bulk-before').lastElementChild.replaceChildren(...before.map((row) => make('li', {}, titleOf(row))));
  showChosen();
  byId('bulk-cancel').focus();
}

const isPauseBy = (name, { action, actor }) => action === 'pause' && actor === name;

// Returns a row that the user can select. It is the user's if nobody has changed the relayer
// since the pause. What others have changed or paused again must not be resumed by mistake.
function choiceOf(row, paused, pauses) {
  const { relayer: { id }, change } = row;
  const isRemembered = pauses.has(id);
  row.isMine = isRemembered && (pauses.get(id) === '' ? isPauseBy(principal(), change) : pauses.get(id) === change.revision.text);
  row.input = make('input', { type: 'checkbox' });
  row.input.checked = row.isMine || !isRemembered;
  const label = make('label', {}, [row.input, titleOf(row)]);
  return make('li', {}, paused ? [label] : [label, lastChangeOf(row, pauses, isRemembered)]);
}

// Returns the last change of a paused relayer, which describes its checkbox.
function lastChangeOf({ change, isMine, input }, pauses, isRemembered) {
  const isOther = pauses.size > 0 && !isMine && !isPauseBy(principal(), change);
  const tag = isRemembered && !isMine ? 'changed since: ' : isOther ? 'not paused by you: ' : '';
  const id = newID('change');
  input.setAttribute('aria-describedby', id);
  return make('span', { class: 'tag', id }, ' – ' + tag + (change.time ? sentenceOf(change) : 'last change unknown'));
}

const reasonOfPause = ({ change }) => (change.action === 'pause' ? change.reason : undefined);

// Shows the reasons of the pauses, so that a set that was paused elsewhere can be selected.
function showReasons(rows) {
  const sets = Map.groupBy(rows.filter(reasonOfPause), reasonOfPause);
  byId('bulk-by-reason').hidden = sets.size === 0;
  const options = [...sets].map(([value, { length }]) => make('option', { value }, inSentence(value) + ' (' + length + ')'));
  byId('bulk-reason').replaceChildren(make('option', { value: '' }, 'Choose one'), ...options);
}

const chosenOf = ({ rows }) => rows.filter(({ input }) => input.checked);

function showChosen() {
  const count = chosenOf(work).length;
  write('bulk-title', work.verb + ' ' + countOf(count) + '?');
  write('bulk-confirm', work.verb + ' ' + countOf(count));
  byId('bulk-confirm').disabled = count === 0;
}

function choose(isChosen) {
  for (const row of work.rows) row.input.checked = isChosen(row);
  showChosen();
}

byId('bulk-names').addEventListener('change', showChosen);
byId('bulk-all').addEventListener('click', () => choose(() => true));
byId('bulk-none').addEventListener('click', () => choose(() => false));
byId('bulk-mine').addEventListener('click', () => choose(({ isMine }) => isMine));
byId('bulk-reason').addEventListener('change', ({ target: { value } }) => value && choose((row) => reasonOfPause(row) === value));

function causeOf(error, id) {
  if (error.status === 412) return 'another client has changed it since';
  if (error.isUnknown()) return 'it is not known whether it was changed';
  return error.errors[0]?.message ?? explain(error, 'change relayers', id);
}

// Without the server or the token every other change would fail too.
const isFatal = ({ status }) => status === 0 || status === 401;

// A pause is an emergency switch: it needs no revision.
const requestOf = (paused, { change }) => ({ method: 'PATCH', body: writeJSON({ paused }), etag: paused ? undefined : etagOf(change), reason: reason.text() });

// Changes the selected relayers one after the other. A request that was sent is not
// canceled, because its outcome would be unknown.
async function changeAll({ stop, paused, verb }, chosen) {
  const failures = [];
  const changed = [];
  const revisions = new Map();
  for (const one of chosen) {
    if (stop.signal.aborted || !dialog.open) break; // the event of its close is late
    const { id } = one.relayer;
    showProgress(verb, changed.length + failures.length, chosen.length);
    try {
      const { change } = await patiently(() => callOne(id, requestOf(paused, one)), stop.signal);
      changed.push(id);
      if (!paused || isPauseBy(principal(), change)) revisions.set(id, change.revision.text);
    } catch (error) {
      if (error.name === 'AbortError') break; // stopped, or signed out
      if (!(error instanceof Refusal)) throw error;
      failures.push({ id, text: titleOf(one) + ': ' + causeOf(error, id), canRetry: error.status !== 404 });
      if (paused && error.isUnknown()) revisions.set(id, '');
      if (isFatal(error)) break;
    }
    if (changed.length % 10 === 1) remember(paused, revisions);
  }
  remember(paused, revisions);
  return { changed, failures };
}

function remember(paused, revisions) {
  if (paused) rememberPaused(principal(), revisions);
  else forgetPaused(principal(), revisions.keys());
  showRemembered();
}

async function change(mine) {
  const chosen = chosenOf(mine);
  mine.rows = undefined;
  mine.isChanging = true;
  showStep('', [], '', 'Stop');
  byId('bulk-cancel').focus();
  const { changed, failures } = await changeAll(mine, chosen);
  mine.isChanging = false;
  const rest = chosen.slice(changed.length + failures.length);
  const parts = [countOf(changed.length) + ' ' + mine.done];
  if (failures.length > 0) parts.push(failures.length + ' not ' + mine.done);
  if (rest.length > 0) parts.push(rest.length + ' not tried');
  const result = parts.join(', ') + '.';
  if (work !== mine || !dialog.open) {
    say(result);
    return;
  }
  mine.retry = [...failures.filter(({ canRetry }) => canRetry).map(({ id }) => id), ...rest.map(({ relayer }) => relayer.id)];
  write('bulk-title', failures.length + rest.length > 0 ? 'Not every relayer is ' + mine.done : 'Done');
  showStep(result, failures.map(({ text }) => text), mine.retry.length > 0 ? 'Try ' + countOf(mine.retry.length) + ' again' : '', 'Close');
  byId('bulk-cancel').focus();
}

onSubmit(byId('bulk-form'), () => {
  if (work.isChanging) return;
  if (work.rows) change(work);
  else if (work.retry) openIDs(work.paused, work.verb + ' again', work.retry, (total) => countOf(total) + ' not ' + work.done + ' before.');
});

// While relayers are changed, the button stops before the next one.
byId('bulk-cancel').addEventListener('click', () => {
  if (work.isChanging) work.stop.abort();
  else dialog.close();
});

// The event is late: the dialog may be open again.
dialog.addEventListener('close', () => {
  if (!dialog.open) work.stop.abort();
});
