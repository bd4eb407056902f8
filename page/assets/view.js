// How a relayer is shown.

import { humanAmount } from './amounts.js';
import { copyButton, isolated, make } from './dom.js';
import { policyFields, relayerFields, titleOf } from './fields.js';
import { Literal, isObject } from './json.js';
import { withTerm } from './search.js';
import { localTime, timeOf } from './time.js';

const quiet = (text) => make('span', { class: 'quiet' }, text);

// A link or a heading must not be invisible.
export function nameOf({ name }) {
  const isBlank = /^[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]*$/u.test(name);
  return isBlank ? '(blank name)' : name;
}

// Returns a text as a part of a sentence: short, and isolated if it may be written from right
// to left.
export function inSentence(text) {
  const characters = [...text];
  const short = characters.slice(0, 60).join('') + (characters.length > 60 ? '…' : '');
  return /^[ -~]*…?$/.test(short) ? short : isolated(short);
}

export const nameInSentence = (relayer) => inSentence(nameOf(relayer));

// A text that a column may cut off.
const line = (text) => make('span', { title: text }, text);

function networkBadge({ network_type: type, network }) {
  return make('span', { class: 'network' }, [make('span', { class: 'badge ' + type }, type), line(network)]);
}

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

const copyable = (text, what) => make('span', { class: 'copyable' }, [mono(text), copyButton(what, text)]);

const mono = (text) => make('span', { class: 'mono' }, text);

const cell = (title, content) => make('td', { role: 'cell', 'data-title': title }, content);

const linkToLabel = (key, value) => '#' + new URLSearchParams({ page: 1, q: withTerm('', 'label.' + key, value) });

function labelChip(key, value, link) {
  const text = key + '=' + value;
  return make('a', { class: 'chip', href: link(key, value), title: 'Show the relayers with ' + text }, text);
}

const allLabels = ({ labels }) => make('span', { class: 'chips' }, Object.entries(labels).map(([key, value]) => labelChip(key, value, linkToLabel)));

// A row has room for two labels.
function labelsOf({ labels = {} }, link) {
  const chips = Object.entries(labels).map(([key, value]) => labelChip(key, value, link));
  const rest = Object.entries(labels).slice(2).map(([key, value]) => key + '=' + value).join(', ');
  return make('span', { class: 'chips' }, [...chips.slice(0, 2), ...(rest ? [make('span', { class: 'quiet', title: rest }, '+' + (chips.length - 2))] : [])]);
}

// Returns who made a change and what it was, when and why.
export function sentenceOf({ time, actor, action, reason }) {
  const who = actor ? ' by ' + inSentence(actor) : '';
  return (action ?? 'change') + who + (time ? ', ' + localTime(new Date(time)) : '') + (reason ? '. Reason: ' + reason : '');
}

export function rowOf(relayer, change, link) {
  const { id } = relayer;
  const open = make('a', { class: 'name', href: '#relayer=' + encodeURIComponent(id), title: nameOf(relayer) }, nameOf(relayer));
  return make('tr', { role: 'row', 'data-id': id }, [
    make('th', { role: 'rowheader', scope: 'row' }, [open, ' ', make('span', { class: 'mono quiet', title: id }, id)]),
    cell('Status', [statusPills(relayer), ' ', causeOf(relayer, change)]),
    cell('Network', [networkBadge(relayer)]),
    cell('Signer', [line(relayer.signer_id)]),
    cell('Labels', [labelsOf(relayer, link)]),
  ]);
}

// Returns a value with its unit and, if there is one, the amount in a larger unit.
function amountOf(text, unit, network) {
  const parts = [make('span', { class: 'exact' }, text)];
  if (unit) parts.push(make('span', { class: 'unit' }, ' ' + unit));
  const human = humanAmount(text, unit, network);
  if (human) parts.push(' ', make('span', { class: 'human' }, '= ' + human));
  return make('span', { class: 'amount' }, parts);
}

// Strings in lists are addresses and assets.
const elementOf = (element, field, network) => (typeof element === 'string' ? make('span', { class: 'mono' }, element) : valueOf(element, field, network));

export function valueOf(value, field, network) {
  if (value === undefined) return quiet('Not set');
  if (value instanceof Literal) return amountOf(value.text, field?.unit, network);
  if (Array.isArray(value)) {
    return value.length > 0 ? make('ul', {}, value.map((element) => make('li', {}, [elementOf(element, field, network)]))) : quiet('Empty list');
  }
  if (isObject(value)) return membersOf(value, field?.fields, network);
  if (typeof value === 'boolean') return make('span', {}, value ? 'Yes' : 'No');
  return value === '' || value === null ? quiet('Empty') : make('span', {}, value);
}

function membersOf(object, fields = [], network) {
  const parts = Object.entries(object).flatMap(([name, value]) => {
    const field = fields.find((candidate) => candidate.name === name) ?? { title: name };
    return [make('dt', {}, titleOf(field)), make('dd', {}, [valueOf(value, field, network)])];
  });
  return make('dl', {}, parts);
}

const rowOfDetails = (title, content) => [make('dt', {}, title), make('dd', {}, [content])];

function detailsOf(relayer) {
  const field = (name) => relayerFields(relayer.network_type).find((candidate) => candidate.name === name);
  const parts = [
    rowOfDetails('ID', copyable(relayer.id, 'ID')),
    rowOfDetails('Network', networkBadge(relayer)),
    rowOfDetails('Address', relayer.address ? copyable(relayer.address, 'address') : quiet('None')),
    rowOfDetails('Signer ID', make('span', {}, relayer.signer_id)),
    rowOfDetails('Notification ID', valueOf(relayer.notification_id)),
    rowOfDetails('Labels', relayer.labels ? allLabels(relayer) : quiet('None')),
    rowOfDetails('Custom RPC URLs', valueOf(relayer.custom_rpc_urls, field('custom_rpc_urls'))),
  ];
  if (relayer.settings) parts.push(rowOfDetails('Settings', valueOf(relayer.settings)));
  return make('dl', {}, parts.flat());
}

const card = (title, content) => make('div', { class: 'card' }, [make('h2', {}, title), content]);

export function cardsOf(relayer) {
  const { policies, network, network_type: type } = relayer;
  const isSet = Object.keys(policies).length > 0;
  return [
    card('Details', detailsOf(relayer)),
    card('Policy', isSet ? membersOf(policies, policyFields(type), network) : make('p', { class: 'quiet' }, 'No policy field is set.')),
  ];
}
