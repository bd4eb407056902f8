// What the list of relayers does not show: how many are in each state, which values of the
// filters no relayer has, and the values that the user can choose.

import { call, Refusal } from './api.js';
import { byId, make, morph, write } from './dom.js';
import { isOfState, withState } from './filters.js';
import { printTerms, printValues } from './selector.js';
import { inSentence } from './view.js';

async function totalOf(filters, signal) {
  const { pagination } = await call('?' + new URLSearchParams([...filters, ['per_page', 0]]), { signal });
  return Number(pagination.total_items.text);
}

// The facts are an addition: without them the list is complete.
export async function quietly(act) {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof Refusal) && error.name !== 'AbortError') throw error;
  }
}

// Shows the numbers of relayers by state, each a link to the list of these.
export async function showCounts(filters, linkTo, signal) {
  const states = ['active', 'paused', 'disabled'];
  const totals = await Promise.all(states.map((state) => totalOf(withState(filters, state), signal)));
  const links = states.map((state, index) => make('a', { href: linkTo(withState(filters, state)), class: 'count ' + state }, totals[index] + ' ' + state));
  morph(byId('counts'), make('p', { id: 'counts', class: 'counts', 'aria-label': 'Relayers by state' }, links));
}

const checkedValues = 20;

// Says which values of the filters exist in no relayer.
export const showAbsent = (filters, signal) => quietly(async () => {
  write('filter-absent', '');
  const checked = [...filters].filter(([name]) => name !== 'search' && !isOfState(name)).slice(0, checkedValues);
  const totals = await Promise.all(checked.map((filter) => totalOf([filter], signal)));
  const absent = checked.filter((_, index) => totals[index] === 0).map((filter) => inSentence(printTerms([filter])));
  if (absent.length > 0) write('filter-absent', 'No relayer has ' + absent.join(' or ') + '.');
});

// The suggestions of the filters are the values of the first relayers.
const [suggestedPages, pageSize, longestList] = [20, 100, 200];
const values = { network: new Set(), signer: new Set(), label: new Set() };
let isSuggested = false;

export function forgetSuggestions() {
  isSuggested = false;
  for (const [name, set] of Object.entries(values)) {
    set.clear();
    byId('known-' + name).replaceChildren();
  }
}

export function noteValues({ network, signer_id: signer, labels = {} }) {
  values.network.add(printValues([network]));
  values.signer.add(printValues([signer]));
  for (const label of Object.entries(labels)) values.label.add(printTerms([['label.' + label[0], label[1]]]));
}

function showValues() {
  for (const [name, set] of Object.entries(values)) {
    byId('known-' + name).replaceChildren(...[...set].sort().slice(0, longestList).map((value) => make('option', { value })));
  }
}

// Shows the values to suggest when the user turns to the filters. It reads them once: then
// noteValues adds those of the change feed.
export const suggest = () => quietly(async () => {
  showValues();
  if (isSuggested) return;
  isSuggested = true;
  try {
    for (let [page, after] = [0, '']; page < suggestedPages && after !== undefined; page++) {
      const { data, next } = await call('?' + new URLSearchParams({ after, per_page: pageSize }));
      data.forEach(noteValues);
      showValues();
      after = next;
    }
  } catch (error) {
    isSuggested = false;
    throw error;
  }
});
