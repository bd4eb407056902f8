// The changes of the past, of one relayer or of all: what each changed, who made it, when and why.

import { may } from './access.js';
import { call, callOne, explain, pathOf, Refusal } from './api.js';
import { differences } from './differences.js';
import { make, say, write } from './dom.js';
import { timeOf } from './time.js';
import { inSentence } from './view.js';

// What the restore of a version opens. main.js sets it.
export const restore = {};

// Calls show with the cause if a request fails.
async function explained(act, show) {
  try {
    await act();
  } catch (error) {
    if (error instanceof Refusal) show(error.status === 404 ? 'No history is stored.' : explain(error, 'read the history'), error);
    else if (error.name !== 'AbortError') throw error;
  }
}

const past = { create: 'created', delete: 'deleted', pause: 'paused', resume: 'resumed', disable: 'disabled', enable: 'enabled', update: 'changed' };

// Returns what a change has changed, as a list of texts. before is the version before it, if it
// is known.
function textsOf({ action, relayer, changed = [] }, before) {
  if (action === 'disable' && relayer?.disabled_reason) return ['disabled: ' + inSentence(relayer.disabled_reason.type)];
  if (action !== 'update' || !relayer) return [past[action] ?? 'changed'];
  const found = differences(before, relayer, changed);
  return found.length > 0 ? found : ['changed'];
}

const shortest = 160;

// A long change unfolds.
function whatOf(texts) {
  const text = texts.join('; ');
  if (text.length <= shortest) return make('span', { class: 'what' }, text);
  const summary = make('summary', {}, [...text].slice(0, shortest - 60).join('') + '…');
  return make('details', { class: 'what' }, [summary, make('ul', {}, texts.map((part) => make('li', {}, part)))]);
}

// Opens the editor with a version, or the form of a new relayer if the relayer was deleted.
const openVersion = (id, version, revision) => explained(async () => {
  const current = await callOne(id).catch((error) => {
    if (error.status !== 404) throw error;
  });
  if (current) restore.edit(current, version, revision.text);
  else restore.create(version);
}, say);

// Returns the buttons of a change: the version after it can be restored, and a deleted relayer
// can be created again.
function buttonsOf(id, { action, relayer, revision }, before, isLatest) {
  const version = action === 'delete' ? before : relayer;
  if (!version || (isLatest && action !== 'delete') || !(may('update') || may('create'))) return [];
  const title = action === 'delete' ? 'Create it again' : 'Restore';
  const button = make('button', { type: 'button', class: 'plain', 'aria-label': title + (relayer ? ' revision ' + revision.text : '') }, title);
  button.addEventListener('click', () => openVersion(id, version, revision));
  return [button];
}

function rowOf(entry, id, hasNames, before, isLatest) {
  const { time, actor, reason, revision, action } = entry;
  const link = hasNames ? [make('a', { href: '#relayer=' + encodeURIComponent(id) }, id), ' '] : [];
  const outside = entry.relayer || action === 'delete' ? '' : ', after which this token may not see it';
  return make('li', { 'data-revision': revision.text }, [
    make('span', { class: 'text' }, [...link, whatOf(textsOf(entry, before)), ' ' + (actor ? 'by ' + inSentence(actor) : '') + outside + (reason ? ': ' + reason : '')]),
    make('span', { class: 'quiet' }, [...(hasNames ? [] : buttonsOf(id, entry, before, isLatest)), ' ', time ? timeOf(time) : 'Time unknown']),
  ]);
}

// Returns the version before a change, if it is still stored and the user may see it.
async function readBefore(id, { revision }, signal) {
  const { data } = await call(pathOf(id) + '/history?' + new URLSearchParams({ before: revision.text, per_page: 1 }), { signal });
  return data[0]?.relayer ?? undefined;
}

// A search examines a part of the history. The page asks again this often for a full page.
const attempts = 10;
const pageSize = 20;

// Shows the changes of a relayer, or those of all that the filters select.
export function showHistory(holder, { id, filters = [] }, signal) {
  const hasNames = id === undefined;
  const rows = make('ol', { class: 'history', 'aria-label': 'Changes' });
  const older = make('button', { type: 'button' });
  const note = make('p', { class: 'quiet', role: 'status' });
  const entries = [];
  let next; // the revision before which the next page ends
  let following; // the first change of the next page of one relayer
  const show = (text, more = '') => {
    rows.hidden = entries.length === 0;
    write(note, text);
    older.hidden = !more;
    write(older, more);
    if (!holder.contains(rows)) holder.replaceChildren(rows, note, older);
  };
  // The version before a change is that after the next older one, which may be on the next page.
  const showRow = async (entry, index) => {
    const about = entry.id ?? id;
    const older = entries.slice(index + 1).find((other) => (other.id ?? id) === about) ?? following;
    const isMissing = !older && hasNames && ['update', 'delete'].includes(entry.action);
    const before = isMissing ? await readBefore(about, entry, signal) : older?.relayer ?? undefined;
    return rowOf(entry, about, hasNames, before, index === 0);
  };
  const read = async () => {
    const wanted = entries.length + pageSize;
    for (let attempt = 0; attempt < attempts && entries.length < wanted; attempt++) {
      const size = wanted - entries.length;
      const query = new URLSearchParams([...filters, ['per_page', hasNames ? size : size + 1], ...(next ? [['before', next]] : [])]);
      const page = await call((hasNames ? ':history' : pathOf(id) + '/history') + '?' + query, { signal });
      entries.push(...page.data.slice(0, size));
      [next, following] = page.data.length > size ? [page.data[size - 1].revision.text, page.data[size]] : [page.next, undefined];
      if (!next) break;
    }
    const shown = rows.children.length;
    rows.append(...await Promise.all(entries.slice(shown).map((entry, index) => showRow(entry, shown + index))));
    show(entries.length > 0 ? '' : (next ? 'No change found yet.' : 'No change matches.'), next && 'Older changes');
  };
  const readOrExplain = () => explained(read, (text, { status }) => show(text, status === 404 ? '' : 'Try again'));
  older.addEventListener('click', readOrExplain);
  return readOrExplain();
}
