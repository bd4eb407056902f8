// The list of relayers: first what is disabled, then what is paused, then the rest. The fragment
// of the URL has the search, the state and the page, so that a link shows the same list.

import { may } from './access.js';
import { openBulk } from './actions.js';
import { call, Refusal, textOfProblems, withChanges } from './api.js';
import { byId, make, morph, say, write } from './dom.js';
import { isSame } from './json.js';
import { noteValues, parse, print, states, within, withTerm } from './search.js';
import { shortTime } from './time.js';
import { deletedPill, inSentence, rowOf } from './view.js';

const mostRows = 50;

let shown = new URLSearchParams(); // what the list was asked for

const shownText = () => shown.get('q') ?? '';

// Notes what the next list is asked for. Later, the search keeps what the user enters.
export function ask(asked) {
  shown = new URLSearchParams(asked);
  byId('search').value = shownText();
}

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
  const { data, changes, pagination } = await call('?' + new URLSearchParams([['page', page], ['per_page', size], ...filters, withChanges]), { signal });
  const [lowered, total] = [pagination.per_page, pagination.total_items].map((literal) => Number(literal.text));
  data.forEach(noteValues);
  return { rows: data.map((relayer, index) => ({ relayer, change: changes[index] })), total, size: lowered };
}

// Reads a page of the list: parts of the lists of each state, which the API has in creation order.
export async function readList(asked, signal) {
  const { filters, problem } = parse(asked.get('q') ?? '');
  if (problem) throw new Refusal({ status: 400, errors: [{ message: problem }] });
  const page = Math.max(1, Number.parseInt(asked.get('page'), 10) || 1);
  const isShown = (state) => !(asked.get('state') in states) || asked.get('state') === state;
  const [unpaused, ...parts] = await Promise.all([
    readPart(within(filters, [['paused', 'false']]), 1, 0, signal),
    ...Object.entries(states).map(async ([state, conditions]) => {
      const narrowed = within(filters, conditions);
      return { state, narrowed, ...await readPart(narrowed, 1, isShown(state) ? mostRows : 0, signal) };
    }),
  ]);
  const chosen = parts.filter(({ state }) => isShown(state));
  const size = Math.min(...chosen.map((part) => part.size));
  const rows = new Map();
  let [start, left] = [(page - 1) * size, size];
  for (const { narrowed, rows: first, total } of chosen) {
    const end = Math.min(start + left, total);
    if (start < end) {
      const numbers = [...new Set([Math.floor(start / size) + 1, Math.floor((end - 1) / size) + 1])];
      const pages = await Promise.all(numbers.map((number) => (number === 1 ? { rows: first } : readPart(narrowed, number, size, signal))));
      const skipped = (numbers[0] - 1) * size;
      for (const row of pages.flatMap((part) => part.rows).slice(start - skipped, end - skipped)) rows.set(row.relayer.id, row);
      left -= end - start;
    }
    start = Math.max(0, start - total);
  }
  const totals = Object.fromEntries(parts.map(({ state, total }) => [state, total]));
  return { asked, filters, data: [...rows.values()], page, size, totals, unpaused: unpaused.total, total: chosen.reduce((sum, part) => sum + part.total, 0) };
}

// Showing.

function setLink(link, isThere, page) {
  if (isThere) {
    link.setAttribute('href', fragmentOf({ page }));
    link.removeAttribute('aria-disabled');
    return;
  }
  if (document.activeElement === link) byId('list-title').focus();
  link.removeAttribute('href');
  link.setAttribute('aria-disabled', 'true');
}

function rangeOf({ page, size, total, data, asked }) {
  if (total === 0) return asked.get('q') || asked.get('state') ? 'No relayer matches.' : '';
  if (data.length === 0) return 'Page ' + page + ' is empty. There ' + (total === 1 ? 'is 1 relayer.' : 'are ' + total + ' relayers.');
  const first = (page - 1) * size + 1;
  return first + '–' + (first + data.length - 1) + ' of ' + total + (total === 1 ? ' relayer' : ' relayers');
}

function showStates({ totals, asked }) {
  const all = Object.values(totals).reduce((sum, total) => sum + total, 0);
  const links = [['', 'All', all], ['active', 'Active', totals.active], ['paused', 'Paused', totals.paused], ['disabled', 'Disabled', totals.disabled]].map(([state, title, total]) => {
    const isCurrent = (asked.get('state') ?? '') === state;
    return make('a', { href: fragmentOf({ state }), class: total > 0 ? state : '', ...(isCurrent ? { 'aria-current': 'true' } : {}) }, [title + ' ', make('strong', {}, String(total))]);
  });
  morph(byId('states'), make('nav', { id: 'states', class: 'segments', 'aria-label': 'State' }, links));
}

// Returns the requests that paused at least two of the shown relayers, the latest first.
function pausesOf(rows) {
  const paused = rows.filter(({ change }) => change?.paused_by?.request_id);
  const sets = Object.values(Object.groupBy(paused, ({ change }) => change.paused_by.request_id)).filter((set) => set.length > 1);
  return sets.sort((a, b) => b[0].change.paused_by.time.localeCompare(a[0].change.paused_by.time)).slice(0, 3);
}

// Offers to change what the list has. Only what would have an effect is offered.
function showBulk({ filters, data, asked, unpaused, total }) {
  const state = asked.get('state');
  const selected = within(filters, states[state] ?? []) ?? filters;
  const about = print(selected);
  const offers = [];
  const offer = (id, title, change) => {
    const button = make('button', { type: 'button', id }, title + '…');
    button.addEventListener('click', () => openBulk({ title, about, ...change }));
    offers.push(button);
  };
  const count = state === 'active' ? total : state ? 0 : unpaused;
  if (may('pause') && count > 0) offer('pause-all', 'Pause these ' + count, { action: 'pause', filters: selected, rows: data.filter(({ relayer }) => !relayer.paused), count });
  if (!may('resume')) return showOffers(offers);
  const sets = pausesOf(data);
  const paused = data.filter(({ relayer }) => relayer.paused);
  const isPart = total > data.length && paused.length === data.length; // others may follow on the next page
  for (const [index, rows] of sets.entries()) {
    const { time, actor, request_id: request } = rows[0].change.paused_by;
    const title = 'Resume what was paused at ' + shortTime(time) + (actor ? ' by ' + inSentence(actor) : '') + ' (' + rows.length + (isPart ? '+' : '') + ')';
    offer('resume-' + index, title, { action: 'resume', filters: new URLSearchParams([...selected, ['paused_by', request]]), rows, count: rows.length });
  }
  if (state === 'paused' && total > 1 && sets[0]?.length !== total) offer('resume-all', 'Resume these ' + total, { action: 'resume', filters: selected, rows: data, count: total });
  return showOffers(offers);
}

// The buttons are replaced only if they differ: a click needs the same button for its whole time.
function showOffers(offers) {
  const texts = (buttons) => buttons.map((button) => button.textContent);
  const bulk = byId('bulk');
  if (!isSame(texts([...bulk.children]), texts(offers)) || !bulk.contains(document.activeElement)) bulk.replaceChildren(...offers);
}

const hasSameRows = (list) => isSame([...byId('rows').children].map((row) => row.dataset.id), list.map(({ relayer }) => relayer.id));

// Rows that are shown already stay the same elements. An element that is moved loses the
// focus.
function setRows(list) {
  const rows = byId('rows');
  const present = new Map([...rows.children].map((row) => [row.dataset.id, row]));
  const fresh = list.map(({ relayer, change }) => {
    const [old, row] = [present.get(relayer.id), rowOf(relayer, change, linkToLabel)];
    if (!old) return row;
    morph(old, row);
    return old;
  });
  if (!hasSameRows(list)) rows.replaceChildren(...fresh);
}

function showPage(list) {
  const { asked, data, page, size, total } = list;
  const isEmpty = Object.values(list.totals).every((count) => count === 0) && !asked.get('q');
  setRows(data);
  showStates(list);
  showBulk(list);
  byId('list-note').hidden = true;
  byId('empty').hidden = !isEmpty;
  for (const id of ['search-form', 'states', 'pager']) byId(id).hidden = isEmpty;
  byId('list-table').hidden = data.length === 0;
  write('range', rangeOf(list));
  for (const id of ['previous', 'next']) byId(id).hidden = total <= size && page === 1;
  setLink(byId('previous'), page > 1, Math.min(page - 1, Math.max(1, Math.ceil(total / size))));
  setLink(byId('next'), page * size < total, page + 1);
}

export function setList(list) {
  showPage(list);
  showProblem('');
}

export function showProblem(text) {
  write('search-wrong', text);
  byId('search').toggleAttribute('aria-invalid', false);
  if (text) byId('search').setAttribute('aria-invalid', 'true');
}

// Shows that the list has no page as it was asked for.
export function setInvalidList(asked, problems) {
  setList({ asked, filters: new URLSearchParams(), data: [], page: 1, size: mostRows, totals: { disabled: 0, paused: 0, active: 0 }, unpaused: 0, total: 0 });
  showProblem(textOfProblems(problems));
}

// Changes by other clients.

const rowWith = (id) => [...byId('rows').children].find((row) => row.dataset.id === id);

export function updateRow(relayer, change) {
  const row = rowWith(relayer.id);
  if (row) morph(row, rowOf(relayer, change, linkToLabel));
}

export function markDeleted(id) { rowWith(id)?.querySelector('.pills').replaceWith(deletedPill()); }

// Rows neither move nor disappear while the focus is in one. The search keeps what the user
// has entered.
export function updateList(list) {
  if (!byId('rows').contains(document.activeElement) || hasSameRows(list.data)) {
    showPage(list);
    return;
  }
  showStates(list);
  if (!byId('list-note').hidden) return;
  byId('list-note').hidden = false;
  say('The list may have changed', true);
}
