// The changes of the past: of one relayer, or of all.

import { may } from './access.js';
import { call, callOne, explain, pathOf, Refusal } from './api.js';
import { changeTable } from './conflict.js';
import { byId, make, say, write } from './dom.js';
import { fieldsOn, titleOf } from './fields.js';
import { localTime } from './reach.js';
import { inSentence } from './view.js';

const dialog = byId('change-dialog');

// What the restore of a version opens. main.js sets it.
export const restore = {};

const cell = (title, content) => make('td', { role: 'cell', 'data-title': title }, content);

// Returns the fields that a change has changed, and what became of the switch: a change of
// several fields can be a pause.
function fieldsOf({ changed = [], relayer }) {
  const titles = changed.map((path) => fieldsOn(path, relayer.network_type).map(titleOf).join(', '));
  return titles.map((title, index) => (changed[index] === 'paused' ? title + ': ' + (relayer.paused ? 'Yes' : 'No') : title)).join('; ');
}

// Calls show with the cause if a request fails.
async function explained(act, show) {
  try {
    await act();
  } catch (error) {
    if (error instanceof Refusal) show(error.status === 404 ? 'No history is stored.' : explain(error, 'read the history'), error);
    else if (error.name !== 'AbortError') throw error;
  }
}

// Returns the change before another one, if it is still stored and the user may see it.
async function before(id, { revision }) {
  const { data } = await call(pathOf(id) + '/history?' + new URLSearchParams({ before: revision.text, per_page: 1 }));
  return data[0]?.relayer ?? undefined;
}

let opened; // the change in the dialog: an ID, a version, and its revision

async function open(id, entry) {
  const { relayer, revision } = entry;
  const old = await before(id, entry);
  const isDelete = entry.action === 'delete';
  const version = relayer ?? (isDelete ? old : undefined);
  opened = { id, version, revision };
  write('change-title', 'Revision ' + revision.text + ' of ' + inSentence(id));
  const texts = [
    ...(isDelete ? ['The relayer was deleted. Its RPC URLs are not in the history: they must be entered again.'] : []),
    ...(!relayer && !isDelete ? ['After this change the relayer is outside of what this token may see.'] : []),
    ...(entry.reason ? ['Reason: ' + entry.reason] : []),
  ];
  write('change-text', texts.join(' '));
  const differences = relayer && old ? changeTable(old, relayer) : make('p', {}, relayer && entry.action === 'create' ? 'The relayer was created.' : '');
  byId('change-table').replaceChildren(differences);
  byId('change-masked').hidden = !entry.changed?.includes('custom_rpc_urls');
  byId('change-restore').hidden = !version || !(may('update') || may('create'));
  write('change-restore', relayer ? 'Restore this version' : 'Create it again');
  dialog.showModal();
}

// Opens the editor with the version as a draft, or the form of a new relayer if the relayer
// was deleted.
byId('change-restore').addEventListener('click', () => explained(async () => {
  const { id, version, revision } = opened;
  const current = await callOne(id).catch((error) => {
    if (error.status !== 404) throw error;
  });
  dialog.close();
  if (current) restore.edit(current, version, revision.text);
  else restore.create(version);
}, (text) => write('change-text', text)));

byId('change-close').addEventListener('click', () => dialog.close());

function rowOf(entry, id, hasNames) {
  const { time, actor = '', action = '', reason = '', revision } = entry;
  const details = make('button', { type: 'button', 'aria-label': 'Details of revision ' + revision.text }, 'Details');
  details.addEventListener('click', () => explained(() => open(id, entry), say));
  return make('tr', { role: 'row', 'data-revision': revision.text }, [
    make('th', { role: 'rowheader', scope: 'row' }, time ? localTime(new Date(time)) : 'Unknown'),
    ...(hasNames ? [cell('Relayer', [make('a', { href: '#relayer=' + encodeURIComponent(id) }, id)])] : []),
    cell('Who', actor),
    cell('Action', action),
    cell('Fields', fieldsOf(entry)),
    cell('Reason', reason),
    cell('', [details]),
  ]);
}

// A search examines a part of the history. The page asks again this often for a full page.
const attempts = 10;
const pageSize = 20;

// Shows the changes of a relayer, or those of all that the filters select.
export function showHistory(holder, { id, filters = [] }, signal) {
  const hasNames = id === undefined;
  const titles = ['Time', ...(hasNames ? ['Relayer'] : []), 'Who', 'Action', 'Fields', 'Reason', 'Change'];
  const rows = make('tbody', { role: 'rowgroup' });
  const older = make('button', { type: 'button' });
  const note = make('p', { class: 'quiet', role: 'status' });
  const heads = titles.map((title) => make('th', { role: 'columnheader', scope: 'col' }, title));
  const table = make('table', { role: 'table', class: 'stacked', 'aria-label': 'Changes' }, [make('thead', { role: 'rowgroup' }, [make('tr', { role: 'row' }, heads)]), rows]);
  let next;
  const show = (text, more = '') => {
    table.hidden = rows.children.length === 0;
    write(note, text);
    older.hidden = !more;
    write(older, more);
    if (!holder.contains(table)) holder.replaceChildren(table, note, older);
  };
  const read = async () => {
    const wanted = rows.children.length + pageSize;
    for (let attempt = 0; attempt < attempts && rows.children.length < wanted; attempt++) {
      const query = new URLSearchParams([...filters, ['per_page', wanted - rows.children.length], ...(next ? [['before', next]] : [])]);
      const page = await call((hasNames ? ':history' : pathOf(id) + '/history') + '?' + query, { signal });
      rows.append(...page.data.map((entry) => rowOf(entry, entry.id ?? id, hasNames)));
      next = page.next;
      if (!next) break;
    }
    show(rows.children.length > 0 ? '' : (next ? 'No change found yet.' : 'No change matches.'), next && 'Older changes');
  };
  const readOrExplain = () => explained(read, (text, { status }) => show(text, status === 404 ? '' : 'Try again'));
  older.addEventListener('click', readOrExplain);
  return readOrExplain();
}
