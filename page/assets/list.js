// The list of relayers: its pages, its order and its rows. The fragment of the URL names
// all of it, so that a link shows the same list.

import { call, withChanges } from './api.js';
import { byId, make, morph, say, write } from './dom.js';
import { dividedProblems, filtersOf, showFilterErrors, showFilters, withFilter } from './filters.js';
import { isSame } from './json.js';
import { deletedPill, rowOf } from './view.js';

let shown = new URLSearchParams(); // what the shown list was asked for

export const shownFilters = () => filtersOf(shown);

// Returns the fragment of the shown list with changes, and with other filters if they are
// given.
export function fragmentOf(changes, filters = shownFilters()) {
  const asked = new URLSearchParams(['page', 'per_page', 'order'].flatMap((name) => (shown.has(name) ? [[name, shown.get(name)]] : [])));
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') asked.delete(name);
    else asked.set(name, value);
  }
  return '#' + new URLSearchParams([...asked, ...filters]);
}

export const linkTo = (filters) => fragmentOf({ page: 1 }, filters);

const linkToLabel = (key, value) => linkTo(withFilter(shownFilters(), 'label.' + key, value));

// Reading.

async function readPage(page, perPage, filters, signal) {
  const query = new URLSearchParams([['page', page], ['per_page', perPage], ...filters, withChanges]);
  const { data, changes, pagination } = await call('?' + query, { signal });
  const [current, size, total] = [pagination.current_page, pagination.per_page, pagination.total_items].map((literal) => Number(literal.text));
  return { data: data.map((relayer, index) => ({ relayer, change: changes[index] })), page: current, perPage: size, total };
}

// Reads a page of the reversed list. The API lists the oldest first, so that the page is
// a part of one or two pages of the API, counted from the end.
async function readNewest(page, perPage, filters, signal, attempts = 3) {
  const asked = await readPage(page, perPage, filters, signal);
  const { total, perPage: size } = asked;
  const end = total - (asked.page - 1) * size;
  if (size === 0 || end <= 0) return { ...asked, data: [] };
  const start = Math.max(end - size, 0);
  const [first, last] = [start, end - 1].map((index) => Math.floor(index / size) + 1);
  const parts = await Promise.all([...new Set([first, last])].map((number) => (number === asked.page ? asked : readPage(number, size, filters, signal))));
  if (attempts > 1 && parts.some((part) => part.total !== total)) return readNewest(page, perPage, filters, signal, attempts - 1);
  const skipped = (first - 1) * size;
  return { ...asked, data: parts.flatMap((part) => part.data).slice(start - skipped, end - skipped).reverse() };
}

export async function readList(asked, signal) {
  const read = asked.get('order') === 'newest' ? readNewest : readPage;
  return { asked, ...await read(asked.get('page') || '1', asked.get('per_page') || '10', filtersOf(asked), signal) };
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

function rangeOf(page, perPage, total, count, isFiltered) {
  const all = (total === 1 ? '1 relayer' : total + ' relayers') + (isFiltered ? ' selected' : '');
  if (total === 0) return isFiltered ? 'No relayer matches the filters.' : 'There are no relayers yet.';
  if (perPage === 0) return 'There are ' + all + '.';
  if (count === 0) return 'Page ' + page + ' is empty. There are ' + all + '.';
  const first = (page - 1) * perPage + 1;
  return first + '–' + (first + count - 1) + ' of ' + all;
}

function choosePerPage(perPage) {
  const select = byId('per-page');
  if (![...select.options].some((option) => option.value === String(perPage))) select.append(make('option', {}, String(perPage)));
  select.value = perPage;
}

function showPagerErrors(problems) {
  write('pager-wrong', problems.map(({ field, message }) => (field === 'per_page' ? 'Rows' : 'Page') + ' ' + message).join('; '));
  for (const [id, name] of [['page', 'page'], ['per-page', 'per_page']]) {
    byId(id).toggleAttribute('aria-invalid', false);
    if (problems.some(({ field }) => field === name)) byId(id).setAttribute('aria-invalid', 'true');
  }
}

function showErrors(problems) {
  const [ofFilters, others] = dividedProblems(problems);
  showFilterErrors(ofFilters);
  showPagerErrors(others);
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

function showPage({ asked, data, page, perPage, total }) {
  const pages = perPage > 0 ? Math.ceil(total / perPage) : 0;
  shown = new URLSearchParams(asked);
  shown.set('page', page);
  const isFiltered = shownFilters().size > 0;
  setRows(data);
  byId('list-note').hidden = true;
  byId('empty').hidden = total > 0 || isFiltered;
  byId('filter-form').hidden = total === 0 && !isFiltered;
  byId('list-table').hidden = data.length === 0;
  for (const id of ['order-pair', 'counts', 'pause-all', 'resume-all', 'pager']) byId(id).hidden = total === 0;
  write('pause-all', 'Pause all ' + total + '…');
  write('resume-all', 'Resume all ' + total + '…');
  write('range', rangeOf(page, perPage, total, data.length, isFiltered));
  write('page-count', 'of ' + Math.max(pages, 1));
  setLink(byId('previous'), page > 1 && pages > 0, Math.min(page - 1, pages));
  setLink(byId('next'), page < pages, page + 1);
}

export function setList(list) {
  showPage(list);
  showFilters(shownFilters(), linkTo);
  const isNewest = list.asked.get('order') === 'newest';
  byId('order').value = isNewest ? 'newest' : '';
  byId('newest').hidden = isNewest && list.page === 1;
  byId('newest').href = fragmentOf({ page: 1, order: 'newest' });
  byId('page').value = list.page;
  choosePerPage(list.perPage);
  showErrors([]);
}

// Shows that the list has no page as it was asked for.
export function setInvalidList(asked, problems) {
  setList({ asked, data: [], page: asked.get('page') || 1, perPage: 10, total: 1 });
  write('range', '');
  for (const id of ['counts', 'pause-all', 'resume-all']) byId(id).hidden = true;
  showErrors(problems);
}

// Changes by other clients.

const rowWith = (id) => [...byId('rows').children].find((row) => row.dataset.id === id);

export function updateRow(relayer, change) {
  const row = rowWith(relayer.id);
  if (row) morph(row, rowOf(relayer, change, linkToLabel));
}

export function markDeleted(id) { rowWith(id)?.querySelector('.pills').replaceWith(deletedPill()); }

function noteList() {
  if (!byId('list-note').hidden) return;
  byId('list-note').hidden = false;
  say('The list may have changed', true);
}

// Rows neither move nor disappear while the focus is in one. The forms keep what the user
// has entered.
export function updateList(list) {
  if (byId('rows').contains(document.activeElement) && !hasSameRows(list.data)) noteList();
  else showPage(list);
}
