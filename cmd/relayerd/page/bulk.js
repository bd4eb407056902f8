// Pauses or resumes the relayers that the filters select, or those that the user has paused
// before. The page first reads and shows them all. A pause is sent without a condition. A
// resume is sent under the revision that was read, so that a relayer that another client has
// changed since stays as it is, and is reported.

import { principal } from './access.js';
import { call, etagsOf, explain, pathOf, Refusal, withChanges } from './api.js';
import { byId, make, onSubmit, say } from './dom.js';
import { describe } from './filters.js';
import { writeJSON } from './json.js';
import { reasonField } from './reason.js';
import { forgetPaused, pausedBy, rememberPaused } from './remembered.js';
import { nameInSentence } from './view.js';
import { sleep } from './watch.js';

const dialog = byId('bulk-dialog');

const reason = reasonField(dialog.querySelector('.foot'));

let work; // what the dialog does

export const isChanging = () => dialog.open && work.isChanging;

export function closeBulk() { dialog.close(); }

const countOf = (number) => number + (number === 1 ? ' relayer' : ' relayers');

// Sends a request again if the server asks to wait: a bulk change may exceed its rate.
async function patiently(path, request, signal) {
  for (let wait = 1; ; wait = Math.min(2 * wait, 30)) {
    try {
      return await call(path, request);
    } catch (error) {
      if (error.status !== 429 && error.status !== 503) throw error;
      await sleep(1000 * (Number(error.wait) || wait), signal);
      signal.throwIfAborted();
    }
  }
}

const pageSize = 100;

// Reads a page of the relayers that the filters select, with their ETags.
async function readPage(filters, page, signal) {
  const query = new URLSearchParams([...filters, ['page', page], ['per_page', pageSize], withChanges]);
  const read = await patiently('?' + query, { signal }, signal);
  const etags = etagsOf(read);
  return { total: Number(read.pagination.total_items.text), rows: read.data.map((relayer, index) => ({ relayer, etag: etags[index] })) };
}

// Reads the relayers that the filters select, and whether they are exactly those of one
// moment. If the list changes between two pages, one can be missing.
async function readAll(filters, signal) {
  const found = new Map();
  const totals = new Set();
  for (let [page, pages] = [1, 1]; page <= pages; page++) {
    const { total, rows } = await readPage(filters, page, signal);
    totals.add(total);
    pages = Math.ceil(total / pageSize);
    for (const row of rows) found.set(row.relayer.id, row);
    showProgress('Read', found.size, total);
  }
  return { selected: [...found.values()], isExact: totals.size === 1 && totals.has(found.size) };
}

// Reads the relayers of a list of IDs, without those that were deleted.
async function readIDs(ids, signal) {
  const selected = [];
  for (let start = 0; start < ids.length; start += pageSize) {
    const { rows } = await readPage(ids.slice(start, start + pageSize).map((id) => ['id', id]), 1, signal);
    selected.push(...rows);
    showProgress('Read', start + rows.length, ids.length);
  }
  return { selected, isExact: true };
}

// Reads the relayers again if the list has changed meanwhile.
async function readSelected(filters, signal) {
  for (let attempts = 3; ; attempts--) {
    const read = await readAll(filters, signal);
    if (read.isExact || attempts === 1) return read;
  }
}

function showProgress(text, done, total) {
  byId('bulk-progress').hidden = false;
  byId('bulk-bar').max = total;
  byId('bulk-bar').value = done;
  byId('bulk-done').textContent = text + ' ' + done + ' of ' + total;
}

// Shows a step of the work. Without a text for the confirmation there is nothing to confirm.
function showStep(text, names, confirm, cancel) {
  byId('bulk-progress').hidden = byId('bulk-choice').hidden = byId('bulk-before').hidden = true;
  byId('bulk-text').textContent = text;
  reason.element.hidden = !confirm;
  showNames(names.map((name) => make('li', {}, name)));
  byId('bulk-confirm').hidden = !confirm;
  byId('bulk-confirm').disabled = false;
  byId('bulk-confirm').textContent = confirm;
  byId('bulk-cancel').textContent = cancel;
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
  byId('bulk-title').textContent = title;
  showStep('', [], '', 'Cancel');
  dialog.showModal();
  try {
    const { selected, isExact } = await read(mine.stop.signal);
    mine.stop.signal.throwIfAborted();
    mine.before = selected.filter(({ relayer }) => relayer.paused === paused);
    mine.rows = selected.filter(({ relayer }) => relayer.paused !== paused);
    if (!paused) forgetPaused(principal(), mine.before.map(({ relayer }) => relayer.id));
    showSelected(mine, selected.length, isExact);
  } catch (error) {
    if (mine.stop.signal.aborted || error.name === 'AbortError') return;
    if (!(error instanceof Refusal)) throw error;
    showStep('Nothing was changed. ' + explain(error, 'list relayers'), [], '', 'Close');
  }
}

export function openBulk(filters, paused) {
  reason.fill('');
  const about = (total) => (filters.size > 0 ? countOf(total) + (total === 1 ? ' matches ' : ' match ') + describe(filters) + '.' : 'No filter is set: this is every relayer that you can see.');
  return openFor(paused, (paused ? 'Pause' : 'Resume') + ' all', (signal) => readSelected(filters, signal), about);
}

const openIDs = (paused, title, ids, about) => openFor(paused, title, (signal) => readIDs(ids, signal), about);

// Opens the dialog for the relayers that the user has paused with bulk actions.
export function resumeMine() {
  reason.fill('');
  const ids = pausedBy(principal());
  const about = (total) => 'You paused ' + countOf(ids.length) + (ids.length > total ? ', of which ' + (ids.length - total) + ' cannot be read any more.' : '.');
  return openIDs(false, 'Resume what you paused', ids, about);
}

export function showRemembered() {
  const count = pausedBy(principal()).length;
  byId('resume-mine').hidden = count === 0;
  byId('resume-mine').textContent = 'Resume what I paused (' + count + ')…';
}

function showSelected({ verb, done, rows, before, about, paused }, total, isExact) {
  const parts = [about(total)];
  if (before.length > 0) parts.push(before.length + ' of ' + total + ' already ' + done + '.');
  if (!isExact) parts.push('The list changed while it was read, so that some may be missing.');
  if (rows.length === 0) {
    showStep('Nothing to ' + verb.toLowerCase() + '. ' + parts.join(' '), [], '', 'Close');
    return;
  }
  showStep(parts.join(' '), [], verb, 'Cancel');
  const remembered = new Set(paused ? [] : pausedBy(principal()));
  showNames(rows.map((row) => choiceOf(row, remembered)));
  byId('bulk-choice').hidden = false;
  byId('bulk-mine').hidden = remembered.size === 0;
  byId('bulk-before').hidden = before.length === 0;
  byId('bulk-before').firstElementChild.textContent = 'Already ' + done + ' (' + before.length + ')';
  byId('bulk-before').lastElementChild.replaceChildren(...before.map((row) => make('li', {}, titleOf(row))));
  showChosen();
  byId('bulk-cancel').focus();
}

// Returns a row that the user can select. A paused one that the user has not paused may have
// been paused before the incident.
function choiceOf(row, remembered) {
  row.isMine = remembered.has(row.relayer.id);
  row.input = make('input', { type: 'checkbox' });
  row.input.checked = true;
  const tag = remembered.size > 0 && !row.isMine ? [make('span', { class: 'tag' }, ' – not paused by you')] : [];
  return make('li', {}, [make('label', {}, [row.input, titleOf(row), ...tag])]);
}

const chosenOf = ({ rows }) => rows.filter(({ input }) => input.checked);

function showChosen() {
  const count = chosenOf(work).length;
  byId('bulk-title').textContent = work.verb + ' ' + countOf(count) + '?';
  byId('bulk-confirm').textContent = work.verb + ' ' + countOf(count);
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

function reasonOf(error, id) {
  if (error.status === 412) return 'another client has changed it since';
  if (error.isUnknown()) return 'it is not known whether it was changed';
  return error.errors[0]?.message ?? explain(error, 'change relayers', id);
}

// Without the server or the token every other change would fail too.
const isFatal = ({ status }) => status === 0 || status === 401;

// A pause is an emergency switch: it needs no revision.
const requestOf = (paused, { etag }) => ({ method: 'PATCH', body: writeJSON({ paused }), etag: paused ? undefined : etag, reason: reason.text() });

// Changes the selected relayers one after the other. A request that was sent is not
// canceled, because its outcome would be unknown.
async function changeAll({ stop, paused, verb }, chosen) {
  const failures = [];
  const changed = [];
  for (const one of chosen) {
    if (stop.signal.aborted || !dialog.open) break; // the event of its close is late
    const { id } = one.relayer;
    showProgress(verb, changed.length + failures.length, chosen.length);
    try {
      await patiently(pathOf(id), requestOf(paused, one), stop.signal);
      changed.push(id);
    } catch (error) {
      if (error.name === 'AbortError') break; // stopped, or signed out
      if (!(error instanceof Refusal)) throw error;
      failures.push({ id, text: titleOf(one) + ': ' + reasonOf(error, id), canRetry: error.status !== 404 });
      if (isFatal(error)) break;
    }
    if (changed.length % 10 === 1) remember(paused, changed);
  }
  remember(paused, changed);
  return { changed, failures };
}

function remember(paused, ids) {
  if (paused) rememberPaused(principal(), ids);
  else forgetPaused(principal(), ids);
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
  byId('bulk-title').textContent = failures.length + rest.length > 0 ? 'Not every relayer is ' + mine.done : 'Done';
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
