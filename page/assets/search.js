// The search: words, and terms in the notation of selectors such as network=sepolia|holesky.
// Every term must hold, for any of its values. The words are a part of the name or the ID.

export const keys = ['id', 'network', 'network_type', 'signer_id', 'notification_id', 'paused', 'system_disabled', 'search', 'label.KEY'];
export const historyKeys = ['actor', 'action', 'since', 'until'];
const reordering = /[\u202a-\u202e\u2066-\u2069]/g;
const encode = (value) => value.replace(/[%,|=\s]/g, encodeURIComponent).replace(reordering, encodeURIComponent);

// What is not an escape stays.
const decode = (value) => new URLSearchParams('=' + value.replaceAll('+', '%2B').replaceAll('&', '%26')).get('');

// Returns the filters of the API that a text describes, or a problem. Keys without search permit no
// words.
export function parse(text, known = keys) {
  const filters = new URLSearchParams();
  const words = [];
  for (const token of text.split(/\s+/)) {
    if (!token.includes('=') && known === keys) {
      words.push(token);
      continue;
    }
    for (const term of token.split(',').filter((part) => part !== '')) {
      const [, name, values] = /^([^=]*)=?(.*)$/.exec(term);
      if (!known.includes(name.replace(/^label\..+/, 'label.KEY'))) return { filters, problem: (name || '=') + ' is not a key. Keys are ' + known.slice(0, -1).join(', ') + ' and ' + known.at(-1) + '.' };
      for (const value of values.split('|')) filters.append(name, decode(value));
    }
  }
  const search = words.join(' ').trim();
  if (search) filters.append('search', search);
  return { filters };
}

// Returns the text of filters.
export function print(filters) {
  const words = filters.getAll('search').length === 1 && !/=|^\s|\s$|\s\s|[^ -~]/.test(filters.get('search'));
  const byName = Map.groupBy([...filters], ([name]) => name);
  return [...byName].map(([name, values]) => (name === 'search' && words ? filters.get(name) : name + '=' + values.map(([, value]) => encode(value)).join('|'))).join(' ');
}

// Returns a text with another term instead of those of the same name.
export function withTerm(text, name, value) {
  const { filters } = parse(text);
  filters.set(name, value);
  return print(filters);
}

// A relayer has one state: what the system has disabled is not also counted as paused. Without a prototype
// no other text is a key.
export const states = {
  __proto__: null,
  disabled: [['system_disabled', 'true']],
  paused: [['system_disabled', 'false'], ['paused', 'true']],
  active: [['system_disabled', 'false'], ['paused', 'false']],
};

// Returns the filters with conditions that must hold too, or undefined if nothing can match.
export function within(filters, conditions) {
  const narrowed = new URLSearchParams(filters);
  for (const [name, value] of conditions) {
    if (filters.has(name) && !filters.getAll(name).includes(value)) return undefined;
    narrowed.set(name, value);
  }
  return narrowed;
}

// The values that the page has seen are suggested for the last term of the text.
const seen = new Set();
export function forgetSuggestions() { seen.clear(); }

export function noteValues({ network, network_type: type, signer_id: signer, labels = {} }) {
  const terms = [['network', network], ['network_type', type], ['signer_id', signer], ...Object.entries(labels).map(([key, value]) => ['label.' + key, value])];
  for (const [name, value] of terms) if (seen.size < 2000) seen.add(name + '=' + encode(value));
}

// Returns texts with another last term. The browser shows those that match what is entered.
export function suggestions(text) {
  const before = /^.*?(?=\S*$)/s.exec(text)[0].replace(reordering, encodeURIComponent);
  return [...keys.slice(0, -2).map((key) => key + '='), ...[...seen].sort()].slice(0, 200).map((term) => before + term);
}
