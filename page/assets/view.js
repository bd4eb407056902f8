// How a relayer is shown.

import { humanAmount } from './amounts.js';
import { isolated, make } from './dom.js';
import { relayerFields, titleOf } from './fields.js';
import { Literal, isObject } from './json.js';
import { withTerm } from './search.js';
import { localTime, timeOf } from './time.js';

const quiet = (text) => make('span', { class: 'quiet' }, text);

// A link or a heading must not be invisible.
export function nameOf({ name }) {
  const isBlank = /^[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]*$/u.test(name);
  return isBlank ? '(blank name)' : name;
}

// Returns the beginning of a text that is too long. An isolate that it cuts ends with it.
export function shortened(text, most) {
  const cut = [...text].slice(0, most).join('');
  if (cut === text) return text;
  return cut + (cut.lastIndexOf('\u2068') > cut.lastIndexOf('\u2069') ? '…\u2069' : '…');
}

// Returns a text as a part of a sentence: short, and isolated if it may be written from right
// to left.
export function inSentence(text) {
  const short = shortened(text, 60);
  return /^[ -~]*…?$/.test(short) ? short : isolated(short);
}

export const linkTo = (id) => '#relayer=' + encodeURIComponent(id);
export const countOf = (number) => number + (number === 1 ? ' relayer' : ' relayers');
export const nameInSentence = (relayer) => inSentence(nameOf(relayer));

// A text that a column may cut off.
const line = (text) => make('span', { title: text }, text);

// A relayer that is both paused and disabled has both pills, the one that counts first.
export function statusPills({ paused, system_disabled: disabled }) {
  const states = [...(disabled ? ['disabled'] : []), ...(paused ? ['paused'] : [])];
  const pills = (states.length > 0 ? states : ['active']).map((state) => make('span', { class: 'pill ' + state }, state[0].toUpperCase() + state.slice(1)));
  return make('span', { class: 'pills' }, pills);
}

// Returns who paused a relayer or why it is disabled, and when; nothing if it is active.
export function causeOf({ paused, system_disabled: disabled, disabled_reason: fault }, change) {
  const parts = [];
  if (disabled) parts.push((fault?.type ?? 'no reason given') + (fault?.details ? ': ' + fault.details : ''), change?.action === 'disable' && change.time && timeOf(change.time));
  const { actor, time, reason } = change?.paused_by ?? {};
  if (paused) parts.push(actor && inSentence(actor), time && timeOf(time), reason);
  const shown = parts.filter(Boolean).flatMap((part, index) => (index > 0 ? [' · ', part] : [part]));
  return make('span', { class: 'cause quiet' }, shown);
}

const mono = (text) => make('span', { class: 'mono' }, text);
const cell = (title, content) => make('td', { role: 'cell', 'data-title': title }, content);
const linkToLabel = (key, value) => '#' + new URLSearchParams({ page: 1, q: withTerm('', 'label.' + key, value) });

function labelChip(key, value, link) {
  const text = key + '=' + value;
  return make('a', { class: 'chip', href: link(key, value), title: 'Show the relayers with ' + text }, text);
}

// Returns the labels as links to a search. A row of the list has room for two.
function labelsOf(labels = {}, link = linkToLabel, most = Infinity) {
  const chips = Object.entries(labels).map(([key, value]) => labelChip(key, value, link));
  const rest = Object.entries(labels).slice(most).map((pair) => pair.join('=')).join(', ');
  return make('span', { class: 'chips' }, [...chips.slice(0, most), ...(rest ? [make('span', { class: 'quiet', title: rest }, '+' + (chips.length - most))] : [])]);
}

// Returns who made a change and what it was, when and why.
export function sentenceOf({ time, actor, action, reason }) {
  const who = actor ? ' by ' + inSentence(actor) : '';
  return (action ?? 'change') + who + (time ? ', ' + localTime(new Date(time)) : '') + (reason ? '. Reason: ' + reason : '');
}

export function rowOf(relayer, change, link) {
  const { id } = relayer;
  const open = make('a', { class: 'name', href: linkTo(id), title: nameOf(relayer) }, nameOf(relayer));
  return make('tr', { role: 'row', 'data-id': id }, [
    make('th', { role: 'rowheader', scope: 'row' }, [open, ' ', make('span', { class: 'mono quiet', title: id }, id)]),
    cell('Status', [statusPills(relayer), ' ', causeOf(relayer, change)]),
    cell('Network', [make('span', { class: 'network' }, [make('span', { class: 'badge' }, relayer.network_type), line(relayer.network)])]),
    cell('Signer', [line(relayer.signer_id)]),
    cell('Labels', [labelsOf(relayer.labels, link, 2)]),
  ]);
}

// Strings in lists are addresses and assets.
const elementOf = (element, field) => (typeof element === 'string' ? mono(element) : valueOf(element, field));

function valueOf(value, field) {
  if (value instanceof Literal) {
    const human = humanAmount(value.text, field?.unit);
    const unit = field?.unit ? quiet(' ' + field.unit) : '';
    return make('span', { class: 'amount' }, [make('span', { class: 'exact' }, value.text), unit, ...(human ? [' ', make('span', { class: 'human' }, '= ' + human)] : [])]);
  }
  if (Array.isArray(value)) {
    return value.length > 0 ? make('ul', {}, value.map((element) => make('li', {}, [elementOf(element, field)]))) : quiet('Empty list');
  }
  if (field?.name === 'labels') return labelsOf(value);
  if (isObject(value)) return membersOf(value, field?.fields);
  if (typeof value === 'boolean') return make('span', {}, value ? 'Yes' : 'No');
  if (value === '' || value === null) return quiet('Empty');
  return ['id', 'address'].includes(field?.name) ? mono(value) : make('span', {}, value);
}

function membersOf(object, fields = []) {
  const parts = Object.entries(object).flatMap(([name, value]) => {
    const field = fields.find((candidate) => candidate.name === name) ?? { title: name };
    return [make('dt', {}, titleOf(field)), make('dd', {}, [valueOf(value, field)])];
  });
  return make('dl', {}, parts);
}

const card = (title, content) => make('div', { class: 'card' }, [make('h2', {}, title), content]);

// The heading has the name and the state.
const above = ['name', 'paused', 'system_disabled', 'disabled_reason', 'policies'];

export function cardsOf(relayer) {
  const { policies, network_type: type } = relayer;
  const fields = [...relayerFields(type), { name: 'address' }];
  const details = Object.fromEntries(Object.entries(relayer).filter(([name]) => !above.includes(name)));
  const policy = fields.find(({ name }) => name === 'policies');
  const isSet = Object.keys(policies).length > 0;
  return [
    card('Details', membersOf(details, fields)),
    card('Policy', isSet ? valueOf(policies, policy) : make('p', { class: 'quiet' }, 'No policy field is set.')),
  ];
}
