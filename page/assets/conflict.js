// The differences between three revisions of a relayer: the one that the user started
// from, the current one, and the one that the user wants.

import { make } from './dom.js';
import { fieldsOn, titleOf } from './fields.js';
import { applyPatch, isSame, leavesOf } from './json.js';
import { valueOf } from './view.js';

const changedBy = { both: 'both', other: 'another client', you: 'you' };

function authorOf(base, current, yours) {
  if (isSame(base, current)) return isSame(base, yours) ? undefined : 'you';
  return isSame(base, yours) ? 'other' : 'both';
}

// Returns the fields that differ. Without changes, as for a delete, only the current
// revision can differ.
function differences(base, current, changes) {
  const [was, is, wanted] = [base, current, applyPatch(base, changes)].map((relayer) => leavesOf(relayer));
  const paths = new Set([...was.keys(), ...is.keys(), ...wanted.keys()]);
  return [...paths].flatMap((path) => {
    const values = [was, is, wanted].map((leaves) => leaves.get(path));
    const author = authorOf(...values);
    return author ? [{ path, values, author }] : [];
  });
}

// The current relayer can have another network than the one that the user started from,
// if it was deleted and created again.
function rowOf({ path, values, author }, titles, base, current) {
  const title = fieldsOn(path, base.network_type).map(titleOf).join(', ');
  const shown = values.map((value, index) => {
    const { network, network_type: type } = index === 1 ? current : base;
    return valueOf(value, fieldsOn(path, type).at(-1), network);
  });
  if (author === 'other') shown[2] = make('span', { class: 'quiet' }, 'Not changed by you');
  const note = author ? [make('span', { class: 'author' }, 'Changed by ' + changedBy[author])] : [];
  const cells = titles.map((name, index) => make('td', { role: 'cell', 'data-title': name }, [shown[index]]));
  return make('tr', { role: 'row', class: author ?? '' }, [
    make('th', { role: 'rowheader', scope: 'row' }, [make('span', { class: 'name' }, title), ...note]),
    ...cells,
  ]);
}

// Returns a table of the differences, or a text if there are none.
export function conflictTable(base, current, changes) {
  const found = differences(base, current, changes ?? {});
  if (found.length === 0) return make('p', {}, 'Every field has the value again that you started from.');
  const titles = ['Value you started from', 'Current value', ...(changes ? ['Your value'] : [])];
  return tableOf('conflict-title', titles, found.map((row) => rowOf(row, titles, base, current)));
}

function tableOf(heading, titles, rows) {
  const heads = ['Field', ...titles].map((title) => make('th', { role: 'columnheader', scope: 'col' }, title));
  return make('table', { role: 'table', class: 'stacked', 'aria-labelledby': heading }, [
    make('thead', { role: 'rowgroup' }, [make('tr', { role: 'row' }, heads)]),
    make('tbody', { role: 'rowgroup' }, rows),
  ]);
}

// Returns a table of the fields that a change of the past has changed.
export function changeTable(before, after) {
  const titles = ['Before', 'After'];
  const found = differences(before, after, {});
  if (found.length === 0) return make('p', {}, 'No field that is visible here has changed.');
  return tableOf('change-title', titles, found.map(({ path, values }) => rowOf({ path, values }, titles, before, after)));
}
