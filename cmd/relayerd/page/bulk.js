// Pauses or resumes every relayer that the filters select. The page first reads and shows
// them all. Each change is sent under the revision that was read, so that a relayer that
// another client has changed since stays as it is, and is reported.

import { call, explain, pathOf, Refusal } from './api.js';
import { byId, make, onSubmit, say } from './dom.js';
import { describe } from './filters.js';
import { writeJSON } from './json.js';
import { nameInSentence } from './view.js';
import { sleep } from './watch.js';

const dialog = byId('bulk-dialog');

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

// Reads the relayers that the filters select, and whether they are exactly those of one
// moment. If the list changes between two pages, one can be missing.
async function readAll(filters, signal) {
  const found = new Map();
  const totals = new Set();
  for (let [page, pages] = [1, 1]; page <= pages; page++) {
    const query = new URLSearchParams([...filters, ['page', page], ['per_page', pageSize], ['revisions', 'true']]);
    const { data, pagination, revisions } = await patiently('?' + query, { signal }, signal);
    const total = Number(pagination.total_items.text);
    totals.add(total);
    pages = Math.ceil(total / pageSize);
    data.forEach((relayer, index) => found.set(relayer.id, { relayer, etag: '"' + revisions[index].text + '"' }));
    showProgress('Read', found.size, total);
  }
  return { selected: [...found.values()], isExact: totals.size === 1 && totals.has(found.size) };
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
  byId('bulk-progress').hidden = true;
  byId('bulk-text').textContent = text;
  byId('bulk-names').hidden = names.length === 0;
  byId('bulk-names').replaceChildren(...names.map((name) => make('li', {}, name)));
  byId('bulk-confirm').hidden = !confirm;
  byId('bulk-confirm').textContent = confirm;
  byId('bulk-cancel').textContent = cancel;
}

const titleOf = ({ relayer }) => nameInSentence(relayer) + ' (' + relayer.id + ')';

// Opens the dialog for the relayers that the filters select.
export async function openBulk(filters, paused) {
  const mine = { stop: new AbortController(), body: writeJSON({ paused }), verb: paused ? 'Pause' : 'Resume', done: paused ? 'paused' : 'resumed' };
  work?.stop.abort();
  work = mine;
  byId('bulk-title').textContent = mine.verb + ' all';
  showStep('', [], '', 'Cancel');
  dialog.showModal();
  try {
    const { selected, isExact } = await readSelected(filters, mine.stop.signal);
    mine.stop.signal.throwIfAborted();
    mine.selected = selected.filter(({ relayer }) => relayer.paused !== paused);
    showSelected(mine, filters, selected.length, isExact);
  } catch (error) {
    if (mine.stop.signal.aborted || error.name === 'AbortError') return;
    if (!(error instanceof Refusal)) throw error;
    showStep('Nothing was changed. ' + explain(error, 'list relayers'), [], '', 'Close');
  }
}

function showSelected({ verb, done, selected }, filters, total, isExact) {
  const parts = [filters.size > 0 ? countOf(total) + (total === 1 ? ' matches ' : ' match ') + describe(filters) + '.' : 'No filter is set: this is every relayer that you can see.'];
  if (total > selected.length) parts.push((total - selected.length) + ' of ' + total + ' already ' + done + '.');
  if (!isExact) parts.push('The list changed while it was read, so that some may be missing.');
  if (selected.length === 0) {
    showStep('Nothing to ' + verb.toLowerCase() + '. ' + parts.join(' '), [], '', 'Close');
    return;
  }
  byId('bulk-title').textContent = verb + ' ' + countOf(selected.length) + '?';
  showStep(parts.join(' '), selected.map(titleOf), verb + ' ' + countOf(selected.length), 'Cancel');
  byId('bulk-cancel').focus();
}

function reasonOf(error, id) {
  if (error.status === 412) return 'another client has changed it since';
  if (error.isUnknown()) return 'it is not known whether it was changed';
  return error.errors[0]?.message ?? explain(error, 'change relayers', id);
}

// Without the server or the token every other change would fail too.
const isFatal = ({ status }) => status === 0 || status === 401;

// Changes the selected relayers one after the other. A request that was sent is not
// canceled, because its outcome would be unknown.
async function changeAll({ stop, body, verb, selected }) {
  const failures = [];
  let changed = 0;
  for (const one of selected) {
    if (stop.signal.aborted || !dialog.open) break; // the event of its close is late
    showProgress(verb, changed + failures.length, selected.length);
    try {
      await patiently(pathOf(one.relayer.id), { method: 'PATCH', body, etag: one.etag }, stop.signal);
      changed++;
    } catch (error) {
      if (error.name === 'AbortError') break; // stopped, or signed out
      if (!(error instanceof Refusal)) throw error;
      failures.push(titleOf(one) + ': ' + reasonOf(error, one.relayer.id));
      if (isFatal(error)) break;
    }
  }
  return { changed, failures };
}

onSubmit(byId('bulk-form'), async () => {
  const mine = work;
  if (mine.isChanging || !mine.selected) return;
  mine.isChanging = true;
  byId('bulk-confirm').hidden = true;
  byId('bulk-cancel').textContent = 'Stop';
  byId('bulk-cancel').focus();
  const { changed, failures } = await changeAll(mine);
  mine.isChanging = false;
  const rest = mine.selected.length - changed - failures.length;
  mine.selected = undefined;
  const parts = [countOf(changed) + ' ' + mine.done];
  if (failures.length > 0) parts.push(failures.length + ' not ' + mine.done);
  if (rest > 0) parts.push(rest + ' not tried');
  const result = parts.join(', ') + '.';
  if (work !== mine || !dialog.open) {
    say(result);
    return;
  }
  byId('bulk-title').textContent = failures.length + rest > 0 ? 'Not every relayer is ' + mine.done : 'Done';
  showStep(result, failures, '', 'Close');
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
