// The changes of the past, of one relayer or of all: what each changed, who made it, when and why.

import { attempt, call, callOne, explain, may, pathOf } from './api.js';
import { differences } from './differences.js';
import { make, say, update } from './dom.js';
import { openWith } from './editor.js';
import { exactTime, timeOf } from './time.js';
import { inSentence, linkTo, shortened } from './view.js';

const past = { create: 'created', delete: 'deleted', pause: 'paused', resume: 'resumed', disable: 'disabled', enable: 'enabled', update: 'changed' };

// Returns what a change has changed, as a list of texts. before is the version before it, if it
// is known.
function textsOf({ action, relayer, changed = [] }, before) {
  if (action === 'disable' && relayer?.disabled_reason) return ['disabled: ' + inSentence(relayer.disabled_reason.type)];
  if (action !== 'update' || !relayer) return [past[action] ?? 'changed'];
  const found = differences(before, relayer, changed);
  return found.length > 0 ? found : ['changed'];
}

// A long change unfolds.
function whatOf(texts) {
  const text = texts.join('; ');
  if (text.length <= 160) return make('span', { class: 'what' }, text);
  const summary = make('summary', {}, shortened(text, 100));
  return make('details', { class: 'what' }, [summary, make('ul', {}, texts.map((part) => make('li', {}, part)))]);
}

// Returns a function that begins act only if the previous one has ended.
function oneAtATime(act) {
  let running;
  return (...given) => (running ??= act(...given).finally(() => { running = undefined; }));
}

// Opens the form of a relayer with a version, or that of a new one if it was deleted.
const openVersion = oneAtATime((id, version, revision, signal) => attempt(async () => {
  const current = await callOne(id, { signal });
  const note = 'The form has the values of revision ' + revision + '. RPC URLs and states stay as they are now. Save to restore the values.';
  if (current.data.network_type !== version.network_type) say('This version has another network type, which cannot be changed');
  else openWith(version, current, { note, reason: 'Restore revision ' + revision });
}, (refusal) => {
  if (refusal.status !== 404) say(explain(refusal, 'read this relayer'));
  else openWith(version, undefined, { note: 'The form has the last values of ' + inSentence(id) + '. Enter its RPC URLs and their headers again.' });
}));

// Returns the buttons of a change: the version after it can be restored, and a relayer that does not
// exist can be created again.
function buttonsOf(id, { action, relayer, revision, before }, isLatest, signal) {
  const version = action === 'delete' ? before : relayer;
  if (!version || isLatest !== (action === 'delete') || !(may('update') || may('create'))) return [];
  const title = action === 'delete' ? 'Create it again' : 'Restore';
  return [make('button', { type: 'button', class: 'plain', 'aria-label': title + (relayer ? ' revision ' + revision.text : ''), onclick: () => openVersion(id, version, revision.text, signal) }, title)];
}

function rowOf(entry, id, hasNames, isLatest, signal) {
  const { time, actor, reason, revision, action } = entry;
  const link = hasNames ? [make('a', { href: linkTo(id) }, id), ' '] : [];
  const outside = entry.relayer || action === 'delete' ? '' : ', after which this token may not see it';
  return make('li', { 'data-id': id + ' ' + revision.text }, [
    make('span', { class: 'text' }, [...link, whatOf(textsOf(entry, entry.before)), ' ' + (actor ? 'by ' + inSentence(actor) : '') + outside + (reason ? ': ' + reason : '')]),
    make('span', { class: 'quiet' }, [...(hasNames ? [] : buttonsOf(id, entry, isLatest, signal)), ' ', time ? timeOf(time) : 'Time unknown']),
  ]);
}

// Returns the version before a change, if it is still stored and the user may see it.
async function readBefore(id, { revision }, signal) {
  const { data } = await call(pathOf(id) + '/history?' + new URLSearchParams({ before: revision.text, per_page: 1 }), { signal });
  return data[0]?.relayer ?? undefined;
}

// A search examines a part of the history. The page asks again this often for a full page.
const attempts = 10;
const pageSize = 20;

// The latest read of each element, which alone may show its changes, and how many it wants. An earlier
// response may arrive later.
const latest = new Map();

// Shows the changes of a relayer, or those of all that the filters select, in the element with the
// ID holder: as many as the user has asked for, but at least a page.
export function showHistory(holder, { id, filters = [] }, signal) {
  const terms = [...filters].map(([name, value]) => [name, ['since', 'until'].includes(name) ? exactTime(value) : value]);
  const hasNames = id === undefined;
  const entries = [];
  let next; // the revision before which the next page ends
  const mine = { wanted: document.querySelector('#' + holder + ' [data-id]') ? latest.get(holder).wanted : pageSize };
  latest.set(holder, mine);
  const show = (text, more) => latest.get(holder) === mine && update(holder, [
    make('ol', { class: 'history', 'aria-label': 'Changes' }, entries.slice(0, mine.wanted).map((entry, index) => rowOf(entry, entry.id ?? id, hasNames, index === 0, signal))),
    make('p', { class: 'quiet', role: 'status' }, text),
    ...(more ? [make('button', { type: 'button', onclick: more.act }, more.title)] : []),
  ]);
  // The version before a change is that after the next older one, which may be on the next page or
  // before the time in since. Filters by actor and action leave out changes in between.
  const leavesOut = terms.some(([name]) => name === 'actor' || name === 'action');
  const findBefore = async (entry, index) => {
    const about = entry.id ?? id;
    const older = !leavesOut && entries.slice(index + 1).find((other) => (other.id ?? id) === about);
    const isMissing = !older && (next || terms.length > 0) && ['update', 'delete'].includes(entry.action);
    entry.before ??= isMissing ? await readBefore(about, entry, signal) : older?.relayer ?? undefined;
  };
  const read = async () => {
    for (let attempt = 0; attempt < attempts && entries.length < mine.wanted; attempt++) {
      const query = new URLSearchParams([...terms, ['per_page', mine.wanted - entries.length], ...(next ? [['before', next]] : [])]);
      const page = await call((hasNames ? ':history' : pathOf(id) + '/history') + '?' + query, { signal });
      entries.push(...page.data);
      next = page.next;
      if (!next) break;
    }
    await Promise.all(entries.map(findBefore));
    show(entries.length > 0 ? '' : (next ? 'No change found yet.' : 'No change matches.'), next && { title: 'Older changes', act: readMore });
  };
  const readOrExplain = oneAtATime(() => attempt(read, (refusal) => (refusal.status === 404 ? show('No history is stored.') : show(explain(refusal, 'read the history'), { title: 'Try again', act: readOrExplain }))));
  const readMore = () => {
    latest.get(holder).wanted += pageSize;
    return readOrExplain();
  };
  return readOrExplain();
}
