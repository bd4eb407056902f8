// The list of relayers: first what is disabled, then what is paused, then the rest. The fragment
// of the URL has the search, the state and the page, so that a link shows the same list.

import { openBulk } from './actions.js';
import { call, may, Refusal, textOfProblems } from './api.js';
import { byId, make, update, write } from './dom.js';
import { noteValues, parse, print, states, within, withTerm } from './search.js';
import { shortTime } from './time.js';
import { countOf, inSentence, rowOf } from './view.js';

const mostRows = 50;
let shown = new URLSearchParams(); // what the list was asked for
const shownText = () => shown.get('q') ?? '';

// Returns the fragment of the shown list with changes.
export function fragmentOf(changes) {
  const fragment = new URLSearchParams({ page: 1, q: shownText(), state: shown.get('state') ?? '', ...changes });
  for (const name of ['q', 'state']) if (!fragment.get(name)) fragment.delete(name);
  return '#' + fragment;
}

const linkToLabel = (key, value) => fragmentOf({ q: withTerm(shownText(), 'label.' + key, value) });

// Reading.

async function readPart(filters, page, size, signal) {
  if (!filters) return { rows: [], total: 0, size };
  const start = page === 1 ? ['after', ''] : ['page', page]; // only a list with after has a position
  const { data, changes, pagination, position } = await call('?' + new URLSearchParams([['changes', 'true'], start, ['per_page', size], ...filters]), { signal });
  const [lowered, total] = [pagination.per_page, pagination.total_items].map((literal) => Number(literal.text));
  data.forEach(noteValues);
  return { rows: data.map((relayer, index) => ({ relayer, change: changes[index] })), total, size: lowered, position };
}

// Reads a page of the list: parts of the lists of each state, which the API has in creation order.
async function readList(asked, signal) {
  const { filters, problem } = parse(asked.get('q') ?? '');
  if (problem) throw new Refusal({ status: 400, errors: [{ message: problem }] });
  const page = Math.max(1, Number.parseInt(asked.get('page'), 10) || 1);
  const isShown = (state) => !(asked.get('state') in states) || asked.get('state') === state;
  const readStates = () => Promise.all([
    readPart(within(filters, [['paused', 'false']]), 1, 0, signal),
    ...Object.entries(states).map(async ([state, conditions]) => {
      const narrowed = within(filters, conditions);
      return { state, narrowed, ...await readPart(narrowed, 1, isShown(state) ? mostRows : 0, signal) };
    }),
  ]);
  let read = await readStates();
  // A relayer that changes its state between these reads can be in none of them. Their positions differ
  // then, not only in the mark of their filters, which follows the ~.
  const isTorn = () => new Set(read.filter(({ position }) => position).map(({ position }) => position.split('~')[0])).size > 1;
  for (let reads = 1; reads < 3 && isTorn(); reads++) read = await readStates();
  const [unpaused, ...parts] = read;
  const chosen = parts.filter(({ state }) => isShown(state));
  const size = Math.min(...chosen.map((part) => part.size));
  const rows = new Map();
  let offset = (page - 1) * size; // in the list of a state
  for (const { narrowed, rows: first, total } of chosen) {
    const end = Math.min(offset + size - rows.size, total);
    for (let number = Math.floor(offset / size) + 1; (number - 1) * size < end; number++) {
      const part = number === 1 ? first : (await readPart(narrowed, number, size, signal)).rows;
      const skipped = (number - 1) * size;
      for (const row of part.slice(Math.max(0, offset - skipped), end - skipped)) rows.set(row.relayer.id, row);
    }
    offset = Math.max(0, offset - total);
  }
  const totals = Object.fromEntries(parts.map(({ state, total }) => [state, total]));
  return { filters, data: [...rows.values()], page, size, totals, unpaused: unpaused.total, total: chosen.reduce((sum, part) => sum + part.total, 0) };
}

// Showing.

const linkToPage = (id, title, page) => make('a', { id, class: 'button', role: 'link', ...(page ? { href: fragmentOf({ page }) } : { 'aria-disabled': 'true' }) }, title);

function rangeOf({ page, size, total, data }) {
  if (total === 0) return shownText() || shown.get('state') ? 'No relayer matches.' : 'There are no relayers yet. A relayer sends transactions on one network with one signer.';
  if (data.length === 0) return 'Page ' + page + ' is empty. There ' + (total === 1 ? 'is ' : 'are ') + countOf(total) + '.';
  const first = (page - 1) * size + 1;
  return first + '–' + (first + data.length - 1) + ' of ' + countOf(total);
}

function linksToStates({ totals }) {
  const all = Object.values(totals).reduce((sum, total) => sum + total, 0);
  return [['', 'All', all], ['active', 'Active', totals.active], ['paused', 'Paused', totals.paused], ['disabled', 'Disabled', totals.disabled]].map(([state, title, total]) => {
    const isCurrent = (shown.get('state') ?? '') === state;
    return make('a', { href: fragmentOf({ state }), class: total > 0 ? state : '', ...(isCurrent ? { 'aria-current': 'true' } : {}) }, [title + ' ', make('strong', {}, String(total))]);
  });
}

// Returns the requests that paused at least two of the shown relayers, the latest first.
function pausesOf(rows) {
  const paused = rows.filter(({ change }) => change?.paused_by?.request_id);
  const sets = Object.values(Object.groupBy(paused, ({ change }) => change.paused_by.request_id)).filter((set) => set.length > 1);
  return sets.sort((a, b) => new Date(b[0].change.paused_by.time) - new Date(a[0].change.paused_by.time)).slice(0, 3);
}

// Returns the buttons that change what the list has. Only what would have an effect is offered.
function offersOf({ filters, data, page, unpaused, total }) {
  const state = shown.get('state');
  const selected = within(filters, states[state] ?? []) ?? filters;
  const about = print(selected);
  const offers = [];
  const asked = String(shown);
  // A search that was typed and not entered is entered: the offer is for other relayers. While another
  // list loads, the offers of the previous one do nothing.
  const choose = (change) => {
    if (byId('search').value.trim() !== shownText().trim()) byId('search-form').requestSubmit();
    else if (String(shown) === asked) openBulk({ about, filters: selected, ...change });
  };
  // The key keeps a pressed button from becoming that of another action.
  const keyOf = ({ action, filters }) => action + (filters?.get('paused_by') ?? '');
  const offer = (title, change) => offers.push(make('button', { type: 'button', 'data-id': keyOf(change), onclick: () => choose(change) }, title + '…'));
  const count = state === 'active' ? total : state ? 0 : unpaused;
  if (may('pause') && count > 0) offer('Pause these ' + count, { action: 'pause', rows: data.filter(({ relayer }) => !relayer.paused), count });
  if (!may('resume')) return offers;
  const sets = pausesOf(data);
  const last = data.at(-1)?.relayer;
  // Other pages may have more: disabled and paused relayers come before the active ones.
  const isPart = page > 1 || total > data.length && (last.paused || last.system_disabled);
  for (const rows of sets) {
    const { time, actor, request_id: request } = rows[0].change.paused_by;
    const title = 'Resume what was paused at ' + shortTime(time) + (actor ? ' by ' + inSentence(actor) : '') + ' (' + rows.length + (isPart ? '+' : '') + ')';
    offer(title, { action: 'resume', filters: new URLSearchParams([...selected, ['paused_by', request]]), rows, count: rows.length, text: (isPart ? 'Those on other pages are resumed too. ' : '') + 'What was paused otherwise stays paused.' });
  }
  // If all are shown, these are resumed, and not what others pause while the dialog is open.
  const ids = data.length === total && { filters: new URLSearchParams(data.map(({ relayer }) => ['id', relayer.id])) };
  if (state === 'paused' && total > 1 && sets[0]?.length !== total) offer('Resume these ' + total, { action: 'resume', rows: data, count: total, ...ids });
  return offers;
}

function showPage(list) {
  const { data, page, size, total } = list;
  update('rows', data.map(({ relayer, change }) => rowOf(relayer, change, linkToLabel)));
  update('states', linksToStates(list));
  update('bulk', offersOf(list));
  byId('list-table').hidden = data.length === 0;
  const isPaged = total > size || page > 1;
  update('pager', [make('span', { id: 'range' }, rangeOf(list)), ...(isPaged ? [
    linkToPage('previous', 'Previous', Math.min(page - 1, Math.max(1, Math.ceil(total / size)))),
    linkToPage('next', 'Next', page * size < total && page + 1),
  ] : [])]);
}

const noList = { filters: new URLSearchParams(), data: [], page: 1, size: mostRows, totals: { disabled: 0, paused: 0, active: 0 }, unpaused: 0, total: 0 };

// Reads and shows the list. A search that the API refuses has none. Returns what is wrong with it.
export async function showList(asked, signal) {
  shown = new URLSearchParams(asked);
  let [list, problem] = [noList, ''];
  try {
    list = await readList(asked, signal);
  } catch (error) {
    if (!(error.errors?.length > 0)) throw error;
    problem = textOfProblems(error.errors);
  }
  showPage(list);
  return problem;
}
