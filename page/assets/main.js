import { actions } from './actions.js';
import { attempt, call, callOne, explain, hasToken, host, isTrusted, may, pollTimeout, principal, readAccess, restoreToken, scope, setToken } from './api.js';
import { byId, make, onSubmit, say, update, write } from './dom.js';
import { drop, dropAll, hasUnsaved, noteChange, noticeOfLeaving, openWith, showEditor } from './editor.js';
import { loadFields } from './fields.js';
import { showHistory } from './history.js';
import { fragmentOf, showList } from './list.js';
import { sleep } from './live.js';
import { forgetSuggestions, historyKeys, parse, suggestions } from './search.js';
import { cardsOf, causeOf, inSentence, nameInSentence, nameOf, sentenceOf, statusPills } from './view.js';

// Views. A view is a section of the document; the others are hidden.

const isShown = (view) => !byId(view).hidden;
let listHash = '#page=1'; // the page of the list that the user saw last

function show(view) {
  const wasShown = isShown(view);
  for (const section of document.querySelectorAll('main > section')) section.hidden = section.id !== view;
  byId('menu').hidden = view === 'enter';
  const heading = byId(view + '-title');
  const title = view === 'one' ? nameInSentence(shown.data) : heading.textContent;
  write('title', (view === 'enter' || view === 'list' ? '' : title + ' – ') + (host.name ? host.name + ' – ' : '') + 'Relayers');
  const focused = document.activeElement;
  if (!wasShown || focused.matches('body, a:not([href])') || !focused.checkVisibility()) heading.focus();
}

// The name of the registry has a color of its own. Production is red.
function showName() {
  if (!host.name) return;
  const hue = /prod|live|main/i.test(host.name) ? 0 : [...host.name].reduce((sum, letter) => (31 * sum + letter.codePointAt(0)) % 240, 0) + 60;
  write('registry', host.name);
  byId('registry').hidden = false;
  byId('registry').style.setProperty('--hue', hue);
}

async function openList(asked, signal) {
  listHash = location.hash || '#page=1';
  byId('search').value = asked.get('q') ?? ''; // before the request: the user may enter the next one meanwhile
  showWrong('search', await showList(asked, signal));
  show('list');
  if (byId('search').ariaInvalid) byId('search').focus();
  if (byId('status').textContent === '') say(byId('range').textContent, true);
}

// Shows what is wrong with the text in an input.
function showWrong(box, text) {
  write(box + '-wrong', text);
  byId(box).ariaInvalid = text ? 'true' : null;
}

const searchList = () => goTo(fragmentOf({ q: byId('search').value.trim() }));
const searchChanges = () => goTo('#' + new URLSearchParams({ changes: '', q: byId('changes-search').value.trim() }));
let shown; // the relayer, its last change, and the ETag of the revision that the user sees

function setOne(relayer) {
  shown = relayer;
  const { data, change } = relayer;
  write('one-title', nameOf(data));
  update('one-state', [statusPills(data), ' ', causeOf(data, change)]);
  update('one-cards', cardsOf(data));
  write('pause', data.paused ? 'Resume' : 'Pause');
  byId('disable').hidden = !may('disable') || data.system_disabled;
  byId('enable').hidden = !may('enable') || !data.system_disabled;
  byId('more').hidden = [...document.querySelectorAll('#more-menu button')].every((button) => button.hidden);
  byId('back').href = listHash;
}

async function openOne(id, signal) {
  setOne(await callOne(id, { signal }));
  byId('one-history').replaceChildren();
  showHistory('one-history', { id }, signal);
  show('one');
}

function openChanges(asked, signal) {
  const text = asked.get('q') ?? '';
  const { filters, problem = '' } = parse(text, historyKeys);
  byId('changes-search').value = text;
  showWrong('changes-search', problem);
  byId('changes-rows').replaceChildren();
  show('changes');
  return problem || showHistory('changes-rows', { filters }, signal);
}

function showProblem(title, text, canRetry = false) {
  byId('problem-history').replaceChildren();
  write('problem-title', title);
  write('problem-text', text);
  byId('again').hidden = !canRetry;
  show('problem');
}

function showGone(id) {
  const lost = drop(id) ? ' Your changes are not saved.' : '';
  const outside = scope('get') ? ' Or it is outside of what this token may see: ' + inSentence(scope('get')) + '.' : '';
  showProblem('There is no relayer ' + inSentence(id), 'It was deleted, or the ID in the address is wrong.' + outside + lost);
  showHistory('problem-history', { id }, waiting.signal);
}

// Navigation. The fragment of the URL names the view. It never contains the token, because the
// browser history keeps it.

let notice = ''; // the status text of the next view
let waiting = new AbortController();
let routing; // ends when the view is shown

export function goTo(hash, text = '', isReplacing = false) {
  notice = text;
  if (location.hash !== hash) history[isReplacing ? 'replaceState' : 'pushState'](null, '', hash);
  onNavigation();
}

const askedView = () => new URLSearchParams(location.hash.slice(1));

function onNavigation() {
  byId('act-dialog').close();
  for (const menu of document.querySelectorAll(':popover-open')) menu.hidePopover();
  say(notice || noticeOfLeaving());
  notice = '';
  waiting.abort();
  waiting = new AbortController();
  if (hasToken()) routing = isFollowing ? route(askedView(), waiting.signal) : start();
}

const route = (asked, signal) => attempt(async () => {
  if (asked.has('changes')) await openChanges(asked, signal);
  else if (asked.has('new') || asked.has('edit')) {
    await showEditor(asked.get('edit') ?? '', signal);
    show('edit');
  } else if (asked.has('relayer')) await openOne(asked.get('relayer'), signal);
  else await openList(asked, signal);
}, (refusal) => {
  const id = asked.get('relayer') ?? asked.get('edit');
  const doing = asked.has('new') ? 'create relayers' : asked.has('edit') ? 'change relayers' : id ? 'read this relayer' : 'list relayers';
  if (refusal.status === 404 && id) showGone(id);
  else if (refusal.status === 403) showProblem('Not permitted', explain(refusal, doing));
  else showProblem('The request failed', explain(refusal, doing), true);
});

// The user may have opened another view before the response of a write arrives.
const isAt = (id) => isShown('one') && shown.data.id === id;

export function noteChanged(relayer, text = '') {
  if (text) say(text);
  if (isAt(relayer.data.id)) setOne(relayer);
  refreshSoon(); // the history
}

export function noteDeleted(id, text) {
  drop(id);
  if (askedView().get('relayer') === id) goTo(listHash, text); // a refresh may have found it gone
  else say(text);
}

export function noteGone(id) {
  if ([askedView().get('relayer'), askedView().get('edit')].includes(id)) showGone(id);
  else say('There is no relayer ' + inSentence(id));
}

// Changes by other clients.

let position; // the point of the change feed that the page has seen
let isBehind = false; // the last refresh has not succeeded, or not yet

async function refresh() {
  isBehind = true;
  await routing;
  const { signal } = waiting;
  const before = shown;
  let hasFailed = false;
  await attempt(async () => {
    if (isShown('list')) await showList(askedView(), signal);
    if (isShown('edit')) await noteChange();
    if (!isShown('one')) return;
    const current = await callOne(before.data.id, { signal });
    if (!isShown('one') || shown !== before) return;
    if (current.etag !== before.etag) say(nameInSentence(current.data) + ': ' + sentenceOf(current.change));
    setOne(current);
    await showHistory('one-history', { id: current.data.id }, signal);
  }, ({ status }) => {
    if (status === 404 && isShown('one')) {
      showGone(shown.data.id);
      return;
    }
    position = undefined; // refreshes again
    hasFailed = true;
  });
  isBehind = hasFailed;
}

let outdated = Promise.withResolvers(); // resolved if the view may be older than a change
export function refreshSoon() { outdated.resolve(); }

// Refreshes the view at once, and then at most twice a second (throttle): more changes do not
// delay it.
async function keepFresh() {
  for (;;) {
    await outdated.promise;
    outdated = Promise.withResolvers();
    await refresh().catch(reportError);
    await sleep(500);
  }
}

function showLive(state) {
  byId('live').hidden = state === 'off';
  byId('live').className = 'live ' + state;
  write('live', state === 'live' ? 'Live' : 'Reconnecting');
}

let isFollowing = false; // from a sign-in on
let sinceAccess = 0; // the reads since it was read what the user may do

// Once a second, while the tab is visible, it reads the position of the change feed, and refreshes the view
// if it has moved. What the user may do can change too: it is read each 30 seconds, and when the tab is shown.
async function keepLive() {
  for (;;) {
    await sleep(1000);
    if (!isFollowing || document.hidden) continue;
    await attempt(async () => {
      if (++sinceAccess >= 30) {
        await showAccess();
        sinceAccess = 0;
      }
      const current = await call('?after=&per_page=0', { patience: pollTimeout, isSilent: true });
      if (isFollowing && !document.hidden) showLive(isBehind ? 'waiting' : 'live');
      if (current.position !== position) refreshSoon();
      position = current.position;
    }, ({ status }) => showLive(status === 403 ? 'off' : 'waiting')).catch(reportError);
  }
}

// A hidden tab sends no requests.
document.addEventListener('visibilitychange', () => {
  if (isFollowing) showLive('off');
  sinceAccess = 30;
});

// The token.

let isSigningIn = false; // the token was not accepted yet

// Shows what the user may do. If that has changed, the view may have to offer something else.
async function showAccess() {
  if (await readAccess()) refreshSoon();
  for (const element of document.querySelectorAll('[data-needs]')) element.hidden = !may(element.dataset.needs);
  byId('leave').hidden = isTrusted;
  write('principal', inSentence(principal()));
  write('access', 'On ' + (host.name ? host.name + ', ' : '') + location.host + '. ' + (scope('list') && 'Only relayers with ' + inSentence(scope('list'))));
}

// Each element of the document with its attributes and children before anybody has signed in.
const initial = [...document.querySelectorAll('body, body *')].map((element) => [element, element.cloneNode(false), [...element.childNodes]]);

// Removes from the document all that was loaded or entered since. What is not saved yet survives an
// expired token.
function signOut(why) {
  setToken('', false);
  waiting.abort();
  isFollowing = false;
  byId('act-dialog').close();
  for (const [element, { attributes }, children] of initial) {
    for (const { name } of [...element.attributes]) element.removeAttribute(name);
    for (const { name, value } of attributes) element.setAttribute(name, value);
    element.replaceChildren(...children);
    if (element.matches('input:not([type=checkbox])')) element.value = '';
  }
  showName();
  forgetSuggestions();
  listHash = '#page=1';
  shown = undefined;
  if (isTrusted) {
    showProblem('Signed out', 'Sign in to the application that has this page, and reload the page.');
    return;
  }
  show('enter');
  showWrong('token', why);
  byId('token').focus();
}

export function expired() {
  signOut(isSigningIn ? 'The server does not accept this token' : 'The server no longer accepts this token: it has expired or was revoked. Sign in with another token.');
}

function leave() {
  if (hasUnsaved() && !confirm('You have changes that are not saved. Discard them and sign out?')) return;
  dropAll();
  byId('keep').checked = false;
  signOut('');
}

async function start() {
  await attempt(async () => {
    await showAccess();
    await loadFields();
    isSigningIn = false;
    isFollowing = true;
    onNavigation();
    await routing;
  }, (refusal) => showProblem('The request failed', explain(refusal, 'sign in'), true));
}

function signIn() {
  const given = byId('token').value.trim();
  byId('token').value = '';
  showWrong('token', given ? '' : 'Enter the bearer token');
  byId('token').focus();
  if (!given) return;
  isSigningIn = true;
  setToken(given, byId('keep').checked);
  start();
}

onSubmit(byId('enter-form'), signIn);
onSubmit(byId('changes-form'), searchChanges);
onSubmit(byId('search-form'), searchList);
for (const event of ['input', 'focus']) {
  byId('search').addEventListener(event, ({ target }) => update('suggestions', suggestions(target.value).map((value) => make('option', { value }))));
}
byId('search').addEventListener('search', ({ target }) => target.value === '' && searchList()); // the user has cleared it

const duplicate = ({ id, ...values }) => openWith({ ...values, paused: false }, undefined, { note: 'The form has the values of ' + inSentence(id) + '. Enter its RPC URLs and their headers again.' });

// A click does what the button showed when the mouse was pressed, even if another client has paused or
// resumed the relayer since.
let wasPaused;
byId('pause').addEventListener('mousedown', () => { wasPaused = shown.data.paused; });

for (const [id, act] of Object.entries({
  'edit-one': () => goTo('#' + new URLSearchParams({ edit: shown.data.id })),
  pause: ({ detail: isMouse }) => actions[(isMouse ? wasPaused : shown.data.paused) ? 'resume' : 'pause'](shown),
  duplicate: () => duplicate(shown.data),
  disable: () => actions.disable(shown),
  enable: () => actions.enable(shown),
  delete: () => actions.delete(shown),
  leave,
  again: start,
})) byId(id).addEventListener('click', act);

// A menu closes with a click in it. A dialog that opens then gives the focus back to its button.
for (const menu of document.querySelectorAll('[popover]')) menu.addEventListener('click', () => menu.hidePopover(), true);

addEventListener('hashchange', onNavigation);

// The browser asks the user before it leaves the page.
addEventListener('beforeunload', (event) => {
  if (hasUnsaved()) event.preventDefault();
});

// The browser may keep the page for its back button. It must not keep what it shows.
addEventListener('pagehide', () => {
  isFollowing = false;
  document.body.replaceChildren();
});
addEventListener('pageshow', ({ persisted }) => persisted && location.reload());

showName();
keepFresh();
keepLive();
restoreToken();
if (hasToken()) start();
else signOut('');
