// How a relayer is shown.

import { humanAmount } from './amounts.js';
import { copyButton, isolated, make } from './dom.js';
import { policyFields, relayerFields, titleOf } from './fields.js';
import { Literal, isObject } from './json.js';
import { localTime } from './reach.js';

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

export function networkBadge({ network_type: type, network }) {
  return make('span', { class: 'network' }, [make('span', { class: 'badge ' + type }, type), line(network)]);
}

function statesOf(relayer) {
  const states = [];
  if (relayer.paused) states.push(['paused', 'Paused']);
  if (relayer.system_disabled) states.push(['disabled', 'Disabled: ' + (relayer.disabled_reason?.type ?? 'no reason given')]);
  return states.length > 0 ? states : [['active', 'Active']];
}

export const statusPills = (relayer) => make('span', { class: 'pills' }, statesOf(relayer).map(([state, text]) => make('span', { class: 'pill ' + state }, text)));

export const deletedPill = () => make('span', { class: 'pills' }, [make('span', { class: 'pill gone' }, 'Deleted')]);

export const unknownPill = () => make('span', { class: 'pills' }, [make('span', { class: 'pill gone' }, 'Unknown')]);

function shortened(address) {
  return address.length > 16 ? address.slice(0, 8) + '…' + address.slice(-6) : address;
}

function copyable(text, what, shown = [mono(text)]) {
  return make('span', { class: 'copyable' }, [make('span', { class: 'lines' }, shown), copyButton(what, text)]);
}

const mono = (text) => make('span', { class: 'mono' }, text);

const cell = (title, content) => make('td', { role: 'cell', 'data-title': title }, content);

const linkToLabel = (key, value) => '#' + new URLSearchParams({ ['label.' + key]: value });

function labelChip(key, value, link) {
  const text = key + '=' + value;
  return make('a', { class: 'chip', href: link(key, value), title: 'Show the relayers with ' + text }, text);
}

const allLabels = ({ labels }) => make('span', { class: 'chips' }, Object.entries(labels).map(([key, value]) => labelChip(key, value, linkToLabel)));

// A row has room for two labels, and on a wide screen for six.
function labelsOf({ labels = {} }, link) {
  const chips = Object.entries(labels).map(([key, value]) => labelChip(key, value, link));
  const more = (shown, where) => (chips.length > shown ? [make('span', { class: 'quiet ' + where }, '+' + (chips.length - shown))] : []);
  return make('span', { class: 'chips' }, [...chips.slice(0, 6), ...more(2, 'on-narrow'), ...more(6, 'on-wide')]);
}

function signerOf({ signer_id: signer, address }, name) {
  return address ? copyable(address, 'address of ' + name, [line(signer), mono(shortened(address))]) : line(signer);
}

// Returns who made a change and what it was, when and why.
export function sentenceOf({ time, actor, action, reason }) {
  const who = actor ? ' by ' + inSentence(actor) : '';
  return (action ?? 'change') + who + ', ' + localTime(new Date(time)) + (reason ? '. Reason: ' + reason : '');
}

// Returns who made the last change, when and why, which may be unknown.
function lineOf(change) {
  if (!change?.time) return [];
  const { actor, time, reason } = change;
  const text = (actor ? inSentence(actor) + ', ' : '') + localTime(new Date(time)).slice(0, -3) + (reason ? ': ' + reason : '');
  return [make('span', { class: 'changed', title: 'Last change: ' + sentenceOf(change) }, text)];
}

export function rowOf(relayer, change, link) {
  const { id } = relayer;
  const name = nameInSentence(relayer);
  const open = make('a', { class: 'name', href: '#relayer=' + encodeURIComponent(id), title: nameOf(relayer) }, nameOf(relayer));
  return make('tr', { role: 'row', 'data-id': id }, [
    make('th', { role: 'rowheader', scope: 'row' }, [copyable(id, 'ID of ' + name, [open, mono(id)])]),
    cell('Network', [networkBadge(relayer)]),
    cell('Status', [statusPills(relayer), ...lineOf(change)]),
    cell('Signer', [signerOf(relayer, name)]),
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
    const field = fields.find((candidate) => candidate.name === name) ?? { name };
    return [make('dt', {}, titleOf(field)), make('dd', {}, [valueOf(value, field, network)])];
  });
  return make('dl', {}, parts);
}

const rowOfDetails = (title, content) => [make('dt', {}, title), make('dd', {}, [content])];

function detailsOf(relayer) {
  const field = (name) => relayerFields.find((candidate) => candidate.name === name);
  const parts = [
    rowOfDetails('ID', copyable(relayer.id, 'ID')),
    rowOfDetails('Network', networkBadge(relayer)),
    rowOfDetails('Address', relayer.address ? copyable(relayer.address, 'address') : quiet('None')),
    rowOfDetails('Signer ID', make('span', {}, relayer.signer_id)),
    rowOfDetails('Notification ID', valueOf(relayer.notification_id)),
    rowOfDetails('Labels', relayer.labels ? allLabels(relayer) : quiet('None')),
    rowOfDetails('Custom RPC URLs', valueOf(relayer.custom_rpc_urls, field('custom_rpc_urls'))),
  ];
  const { disabled_reason: reason } = relayer;
  if (reason) parts.push(rowOfDetails('Disabled because of', make('span', {}, reason.type + (reason.details ? ': ' + reason.details : ''))));
  return make('dl', {}, parts.flat());
}

const card = (title, content) => make('div', { class: 'card' }, [make('h2', {}, title), content]);

export function cardsOf(relayer) {
  const { policies, network, network_type: type } = relayer;
  const isSet = Object.keys(policies).length > 0;
  return make('div', { id: 'one-cards', class: 'cards' }, [
    card('Details', detailsOf(relayer)),
    card('Policy', isSet ? membersOf(policies, policyFields[type], network) : make('p', { class: 'quiet' }, 'No policy field is set.')),
  ]);
}
