// The filters of the list. They are parameters of the API and of the fragment of the URL,
// so that a filtered list can be shared and the back button works. A filter with several
// values matches any of them.

import { byId, make, write } from './dom.js';
import { parseTerms, parseValues, printTerms, printValues } from './selector.js';

const states = {
  active: [['paused', 'false'], ['system_disabled', 'false']],
  paused: [['paused', 'true']],
  disabled: [['system_disabled', 'true']],
};

const inputs = { search: 'filter-search', network: 'filter-network', signer_id: 'filter-signer' };

export const isOfState = (name) => name === 'paused' || name === 'system_disabled';

const isFilter = (name) => name.startsWith('label.') || isOfState(name) || name in inputs || ['network_type', 'notification_id', 'id'].includes(name);

export const filtersOf = (asked) => new URLSearchParams([...asked].filter(([name]) => isFilter(name)));

function stateOf(filters) {
  const given = [...filters].filter(([name]) => isOfState(name)).sort().toString();
  return Object.keys(states).find((state) => states[state].toString() === given) ?? '';
}

const textOf = (filters, name) => (name === 'search' ? filters.getAll(name).join(', ') : printValues(filters.getAll(name)));

const printed = (filter) => printTerms([filter]);

export const describe = (filters) => printTerms([...filters]);

// Returns the filters with another state.
export const withState = (filters, state) => new URLSearchParams([...[...filters].filter(([name]) => !isOfState(name)), ...(states[state] ?? [])]);

// Returns the filters with another one instead of those of the same name.
export function withFilter(filters, name, value) {
  const others = [...filters].filter(([candidate]) => candidate !== name);
  return new URLSearchParams([...others, [name, value]]);
}

// Shows the filters. Each one without a control is a chip: a link to the list without it.
export function showFilters(filters, linkTo) {
  for (const [name, id] of Object.entries(inputs)) byId(id).value = textOf(filters, name);
  const state = stateOf(filters);
  byId('filter-state').value = state;
  byId('filter-label').value = '';
  const all = [...filters];
  const chips = all.filter(([name]) => !(name in inputs) && !(state && isOfState(name)));
  byId('filter-chips').replaceChildren(...chips.map((filter) => {
    const others = new URLSearchParams(all.filter((other) => other !== filter));
    return make('a', { class: 'chip', href: linkTo(others), 'aria-label': 'Remove the filter ' + printed(filter) }, printed(filter) + ' ×');
  }));
  byId('filter-clear').hidden = all.length === 0;
  byId('filter-clear').href = linkTo(new URLSearchParams());
}

export function showFilterErrors(problems) {
  write('filter-wrong', problems.map(({ field, message }) => field + ' ' + message).join('; '));
  for (const [name, id] of [...Object.entries(inputs), ['label', 'filter-label']]) {
    byId(id).toggleAttribute('aria-invalid', false);
    if (problems.some(({ field }) => field.split('.')[0] === name)) byId(id).setAttribute('aria-invalid', 'true');
  }
}

// Divides problems of the API into those of filters and others.
export const dividedProblems = (problems) => Object.values({ filters: [], others: [], ...Object.groupBy(problems, ({ field }) => (field && isFilter(field) ? 'filters' : 'others')) });

// Returns the filters with the labels of a text in place of those with the same keys, or
// undefined if it shows an error.
function withLabels(filters, text) {
  if (!text) return filters;
  const terms = parseTerms(text)?.map(([name, value]) => [isFilter(name) ? name : 'label.' + name, value]);
  if (terms) return new URLSearchParams([...[...filters].filter(([name]) => !terms.some(([given]) => given === name)), ...terms]);
  showFilterErrors([{ field: 'label', message: 'must have terms such as label.team=payments|risk, separated by commas' }]);
  byId('filter-label').focus();
  return undefined;
}

// Returns the filters that the form describes, or undefined if it shows an error.
export function enteredFilters(before) {
  let filters = new URLSearchParams(before);
  for (const [name, id] of Object.entries(inputs)) {
    const text = byId(id).value.trim();
    if (text === textOf(before, name)) continue;
    filters.delete(name);
    const values = name === 'search' ? [text] : parseValues(text);
    for (const value of values) if (value) filters.append(name, value);
  }
  const state = byId('filter-state').value;
  if (state !== stateOf(before)) filters = withState(filters, state);
  return withLabels(filters, byId('filter-label').value.trim());
}
