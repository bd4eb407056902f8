// What a change has changed, in words such as gas price cap 32 → 200 gwei.

import { humanAmount } from './amounts.js';
import { isolated } from './dom.js';
import { fieldsOn, titleOf } from './fields.js';
import { isSame, leavesOf, Literal, writeJSON } from './json.js';

const lower = (title) => (/^[A-Z][a-z]/.test(title) ? title[0].toLowerCase() + title.slice(1) : title);

function textOf(value, unit) {
  if (value === undefined) return 'not set';
  if (value instanceof Literal) return humanAmount(value.text, unit) || value.text + (unit ? ' ' + unit : '');
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return isolated(typeof value === 'string' ? value || 'empty' : writeJSON(value));
}

const isList = (value) => value === undefined || Array.isArray(value);

// Returns the difference of two lists as what was added and what was removed.
function listDifference(from = [], to = []) {
  const [before, after] = [from, to].map((list) => new Set(list.map((entry) => (typeof entry === 'string' ? entry : writeJSON(entry)))));
  const parts = [[after.difference(before), '+ '], [before.difference(after), '− ']].flatMap(([texts, sign]) => [...texts].map((text) => sign + isolated(text)));
  return parts.join(', ') || 'a part that is not visible here';
}

function inWords(path, from, to, relayer, isKnown) {
  const fields = fieldsOn(path, relayer.network_type);
  const title = fields.map(titleOf).map(lower).join(' ').replace(/^policy /, '');
  if (path === 'paused') return to ? 'paused' : 'resumed';
  if (path === 'system_disabled') return to ? 'disabled' : 'enabled';
  const { unit } = fields.at(-1);
  const [before, after] = [from, to].map((value) => textOf(value, unit));
  if (!isKnown) return title + ' → ' + (Array.isArray(to) ? listDifference([], to) : after);
  if (isList(from) && isList(to) && (from?.length || to?.length)) return title + ' ' + listDifference(from, to);
  const suffix = / \S+$/.exec(after)?.[0];
  return title + ' ' + (to instanceof Literal && suffix && before.endsWith(suffix) ? before.slice(0, -suffix.length) : before) + ' → ' + after;
}

// Returns the differences between two versions of a relayer, or if there is no earlier one those
// of the given paths.
export function differences(before, after, paths = []) {
  const [was, is] = [before ?? {}, after].map((relayer) => leavesOf(relayer));
  const changed = before ? [...new Set([...was.keys(), ...is.keys()])].filter((path) => !isSame(was.get(path), is.get(path))) : [...is.keys()].filter((path) => paths.some((given) => path === given || path.startsWith(given + '.')));
  const hidden = paths.filter((path) => path === 'custom_rpc_urls' && !changed.includes(path) && is.has(path));
  return [...changed, ...hidden].filter((path) => path !== 'disabled_reason.details').map((path) => inWords(path, was.get(path), is.get(path), after, before !== undefined));
}
