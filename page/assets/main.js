import { may, scope, showAccess } from './access.js';
import { isBusy, openDelete, openDisable, openEnable, openPause, openResume, setSending, views } from './actions.js';
import { call, callOne, expired, explain, hasToken, host, isTrusted, Refusal, removeToken, restoreToken, setToken, unloadToken } from './api.js';
import { byId, make, morph, onSubmit, say, write } from './dom.js';
import { dropEdit, dropEdits, hasUnsavedEdits, noteChange, openEdit, openRestore, problemsOf, resumeEdit, suspendDialogs } from './edit.js';
import { loadFields, valuesOf } from './fields.js';
import { copyForm, newRelayerForm } from './forms.js';
import { restore, showHistory } from './history.js';
import { isSame, writeJSON } from './json.js';
import { ask, fragmentOf, markDeleted, readList, setInvalidList, setList, showProblem as showSearchProblem, updateList, updateRow } from './list.js';
import { follow, sleep } from './live.js';
import { forgetSuggestions, noteValues, parse, suggestions } from './search.js';
import { localTime } from './time.js';
import { cardsOf, causeOf, inSentence, nameInSentence, nameOf, statusPills } from './view.js';

const names = ['enter', 'list', 'one', 'new', 'changes', 'problem'];

const isShown = (view) => !byId(view).hidden;

let listHash = '#page=1'; // the page of the list that the user saw last

function show(view) {
  const wasShown = isShown(view);
  for (const name of names) byId(name).hidden = name !== view;
  byId('menu').hidden = view === 'enter';
  byId('account').open = byId('more').open = false;
  const heading = byId(view + '-title');
  const title = view === 'one' ? nameInSentence(shown.data) : heading.textContent;
  write('title', (view === 'enter' || view === 'list' ? '' : title + ' – ') + (host.name ? host.name + ' – ' : '') + 'Relayers');
  const { activeElement: focused, body } = document;
  const lostFocus = focused === null || focused === body || !focused.checkVisibility();
  if (!wasShown || lostFocus) heading.focus();
}

// The name of the registry has a color of its own. Production is red.
function showName() {
  if (!host.name) return;
  const hue = /prod|live|main/i.test(host.name) ? 0 : [...host.name].reduce((sum, letter) => (31 * sum + letter.codePointAt(0)) % 240, 0) + 60;
  write('registry', host.name);
  byId('registry').hidden = false;
  byId('registry').style.setProperty('--hue', hue);
}

// The list.

async function showList(asked, signal) {
  listHash = location.hash || '#page=1';
  const before = changes;
  ask(asked);
  try {
    setList(await readList(asked, signal));
  } catch (error) {
    if (!(error.errors?.length > 0)) throw error;
    setInvalidList(asked, error.errors);
  }
  show('list');
  if (byId('search').matches('[aria-invalid]')) byId('search').focus();
  if (byId('status').textContent === '') say(byId('range').textContent, true);
  if (changes !== before) refreshSoon(); // the list may be older than a row that a change updated
}

function search() {
  const text = byId('search').value.trim();
  const { problem } = parse(text);
  if (problem) showSearchProblem(problem);
  else goTo(fragmentOf({ q: text }));
}

// One relayer.

let shown; // its data, its last change, and the ETag of the revision that the user sees

function setOne(relayer) {
  shown = relayer;
  const { data, change } = relayer;
  write('one-title', nameOf(data));
  morph(byId('one-state'), make('p', { id: 'one-state' }, [statusPills(data), ' ', causeOf(data, change)]));
  morph(byId('one-cards'), cardsOf(data));
  write('pause', data.paused ? 'Resume' : 'Pause');
  byId('disable').hidden = !may('disable') || data.system_disabled;
  byId('enable').hidden = !may('enable') || !data.system_disabled;
  byId('more').hidden = [...byId('more').querySelectorAll('button')].every((button) => button.hidden);
  byId('back').href = listHash;
}

async function showOne(id, signal) {
  setOne(await callOne(id, { signal }));
  byId('one-history').replaceChildren();
  historyOf = undefined;
  showOneHistory(id, signal);
  refused('');
  show('one');
  resumeEdit(shown);
}

let historyOf; // the relayer and its revision whose history is shown

// Reads the changes again if there are newer ones, unless the focus is in them.
function showOneHistory(id, signal) {
  const wanted = id + ' ' + shown.etag;
  if (historyOf === wanted || byId('one-history').contains(document.activeElement)) return undefined;
  historyOf = wanted;
  return showHistory(byId('one-history'), { id }, signal);
}

function refused(text) { write('one-wrong', text); }

// The changes of all relayers.

const historyFilters = ['actor', 'action', 'since', 'until'];

const isTimeFilter = (name) => name === 'since' || name === 'until';

function showChanges(asked, signal) {
  const filters = historyFilters.filter((name) => asked.get(name)).map((name) => [name, asked.get(name)]);
  for (const name of historyFilters) {
    const value = asked.get(name) ?? '';
    byId('changes-' + name).value = value && isTimeFilter(name) ? localTime(new Date(value)).replace(' ', 'T').slice(0, 16) : value;
  }
  byId('changes-rows').replaceChildren();
  const id = asked.get('of') ?? undefined;
  write('changes-title', id === undefined ? 'History' : 'History of ' + inSentence(id));
  byId('changes-filter').hidden = id !== undefined;
  byId('changes-filter').open = filters.length > 0;
  show('changes');
  return showHistory(byId('changes-rows'), { id, filters }, signal);
}

function filterChanges() {
  const entered = historyFilters.map((name) => [name, byId('changes-' + name).value.trim()]).filter(([, value]) => value !== '');
  const asked = entered.map(([name, value]) => [name, isTimeFilter(name) ? new Date(value).toISOString() : value]);
  goTo('#' + new URLSearchParams([['changes', ''], ...asked]));
}

// A problem.

function showProblem(title, text, canRetry, hasHistory = false) {
  byId('problem-history').hidden = !hasHistory;
  write('problem-title', title);
  write('problem-text', text);
  byId('again').hidden = !canRetry;
  show('problem');
}

function showGone(id) {
  const lost = dropEdit(id) ? ' Your changes are not saved.' : '';
  const outside = scope() ? ' Or it is outside of what this token may see: ' + inSentence(scope()) + '.' : '';
  byId('problem-history').href = '#' + new URLSearchParams({ changes: '', of: id });
  showProblem('There is no relayer ' + inSentence(id), 'It was deleted, or the ID in the address is wrong.' + outside + lost, false, true);
}

function showRefusal(refusal, doing, id) {
  if (refusal.status === 401) signOut(expired);
  else if (refusal.status === 404 && id !== undefined) showGone(id);
  else if (refusal.status === 403) showProblem('Not permitted', explain(refusal, doing), false);
  else showProblem('The request failed', explain(refusal, doing), true);
}

// A new relayer.

let newForm;

// The form begins with what every relayer of a narrowed token has.
function buildNewForm() {
  setNewForm(newRelayerForm(scope() ? valuesOf(parse(scope()).filters) : {}));
}

function setNewForm(form) {
  newForm = form;
  write('new-scope', scope() && 'This token may create only relayers with ' + inSentence(scope()) + '.');
  byId('new-form').replaceChildren(...newForm.elements, make('button', { class: 'main' }, 'Create the relayer'));
}

// Opens the form with the values of another relayer.
function createFrom(values, text) {
  if (newForm.isChanged() && !confirm('You have a new relayer that is not created. Discard it?')) return;
  setNewForm(copyForm(values));
  goTo('#new', text + (values.custom_rpc_urls ? ' Enter its RPC URLs and their headers again.' : ''));
}

const duplicate = ({ data: { id, ...values } }) => createFrom({ ...values, paused: false }, 'The form has the values of ' + inSentence(id) + '.');

Object.assign(restore, {
  edit: openRestore,
  create: (version) => createFrom(version, 'The form has the last values of ' + inSentence(version.id) + '.'),
});

let notice = ''; // the status text of the next view

async function create() {
  if (isBusy()) return;
  setSending(true);
  newForm.clearErrors();
  say('Sending');
  try {
    const { data } = await call('', { method: 'POST', body: writeJSON(newForm.collect()) });
    buildNewForm();
    const created = nameInSentence(data) + ' was created';
    if (isShown('new')) goTo('#relayer=' + encodeURIComponent(data.id), created);
    else say(created); // the user has opened another view
  } catch (refusal) {
    setSending(false);
    if (refusal.name === 'AbortError') return;
    if (!(refusal instanceof Refusal)) throw refusal;
    say('');
    const title = refusal.isUnknown() ? 'It is not known whether the relayer was created' : 'The relayer was not created';
    if (refusal.status === 401) signOut(expired);
    else newForm.showErrors(title, problemsOf(refusal, 'create relayers'));
    if (!isShown('new') && !isShown('enter')) say(title + '. The form shows why.');
  } finally {
    setSending(false);
  }
}

// Navigation.

let waiting = new AbortController();

function goTo(hash, text = '') {
  notice = text;
  if (location.hash === hash) onNavigation();
  else location.hash = hash;
}

function onNavigation() {
  const kept = suspendDialogs();
  say(notice || (kept ? 'Your changes to ' + kept + ' are not saved. Open it again to save or discard them.' : ''));
  notice = '';
  route();
}

// Returns the view that the fragment of the URL names. The fragment never contains the
// token, because the browser history keeps it.
const askedView = () => new URLSearchParams(location.hash.slice(1));

async function route() {
  waiting.abort();
  waiting = new AbortController();
  if (!hasToken()) return;
  const { signal } = waiting;
  const asked = askedView();
  const id = asked.get('relayer') ?? undefined;
  try {
    if (asked.has('changes')) await showChanges(asked, signal);
    else if (asked.has('new') && may('create')) show('new');
    else if (asked.has('new')) showProblem('Not permitted', 'This token may not create relayers.', false);
    else if (id !== undefined) await showOne(id, signal);
    else await showList(asked, signal);
  } catch (error) {
    if (error.name === 'AbortError') return;
    if (!(error instanceof Refusal)) throw error;
    showRefusal(error, id === undefined ? 'list relayers' : 'read this relayer', id);
  }
}

// The user may have opened another view before the response of a write arrives.
const isAt = (id) => askedView().get('relayer') === id;

Object.assign(views, {
  changed(relayer, text) {
    if (text) say(text);
    if (!isAt(relayer.data.id)) return;
    setOne(relayer);
    refused('');
    show('one');
    refreshSoon(); // its history
  },
  deleted: (id, text) => (isAt(id) ? goTo(listHash, text) : say(text)),
  gone(id) {
    if (isAt(id)) showGone(id);
    else say('There is no relayer ' + inSentence(id) + (dropEdit(id) ? '. Your changes are not saved.' : ''));
  },
  refused: (id, text) => (isAt(id) ? refused(text) : say(text)),
  refresh: () => refreshSoon(),
  signOut: () => signOut(expired),
});

// Changes by other clients.

let feed = new AbortController();
let connection = feed.signal; // aborted when the connection of the feed is lost
let changes = 0;

async function refreshOne(signal) {
  const before = shown;
  const current = await callOne(before.data.id, { signal });
  if (!isShown('one')) return;
  if (shown === before) setOne(current);
  await showOneHistory(shown.data.id, waiting.signal);
}

async function refresh() {
  const signal = AbortSignal.any([waiting.signal, connection]);
  try {
    if (isShown('list')) updateList(await readList(askedView(), signal));
    else if (isShown('one') && !isBusy()) await refreshOne(signal);
  } catch (error) {
    if (error.status === 401) signOut(expired);
    else if (error.status === 404 && isShown('one')) showGone(shown.data.id);
    else if (error.name !== 'AbortError' && !(error instanceof Refusal)) throw error;
    if (!error.wait) return;
    await sleep(1000 * error.wait);
    isOutdated = true;
  }
}

let isOutdated = false; // the view may be older than a change
let isRefreshing = false;

// Refreshes the view at most twice a second (throttle): more changes do not delay it.
async function refreshSoon() {
  isOutdated = true;
  if (isRefreshing) return;
  isRefreshing = true;
  try {
    while (isOutdated) {
      await sleep(500);
      isOutdated = false;
      await refresh();
    }
  } finally {
    isRefreshing = false;
  }
}

function onChange(event, { relayer, etag, change }) {
  changes++;
  const isDeleted = event === 'deleted';
  noteChange(relayer.id, etag, isDeleted);
  if (isDeleted) {
    markDeleted(relayer.id);
  } else {
    updateRow(relayer, change);
    noteValues(relayer);
  }
  // A change of one relayer can change the counts, and make it match the filters or no longer.
  if (event !== 'updated' || isShown('list')) refreshSoon();
  else if (isShown('one') && shown.data.id === relayer.id && shown.etag !== etag && !isBusy()) {
    setOne({ data: relayer, etag, change });
    refused('');
    say(nameInSentence(relayer) + ' was changed by another client');
    refreshSoon(); // its history
  }
}

// The server asks for it if changes are missing, also because the user may see others now.
function resync() {
  forgetSuggestions();
  refreshSoon();
  readAccess();
}

function startFeed() {
  feed.abort();
  feed = new AbortController();
  connection = feed.signal;
  follow(feed.signal, {
    event(event, change) {
      if (event === 'resync') resync();
      else if (change.relayer) onChange(event, change);
    },
    expired: () => signOut(expired),
    state(state, signal) {
      if (state === 'live') {
        connection = signal;
        refreshSoon(); // a refresh may have failed with the last connection
      }
      byId('live').hidden = state === 'off';
      byId('live').className = 'live ' + state;
      write('live', state === 'live' ? 'Live' : 'Reconnecting');
    },
  });
}

function stopFeed() {
  feed.abort();
  byId('live').hidden = true;
}

// A browser opens six connections to a server over HTTP/1.1. Hidden tabs must not use
// them up.
document.addEventListener('visibilitychange', () => {
  if (document.hidden) stopFeed();
  else if (hasToken()) startFeed();
});

// The token.

function refuseToken(why) {
  write('token-wrong', why);
  byId('token').toggleAttribute('aria-invalid', false);
  if (why) byId('token').setAttribute('aria-invalid', 'true');
  byId('token').focus();
}

showName();

// Each element of the document with its attributes and children before anybody has signed in.
const initial = [...document.querySelectorAll('body, body *')].map((element) => [element, element.cloneNode(false), [...element.childNodes]]);

// Removes from the document all that was loaded or entered since.
function clearViews() {
  waiting.abort();
  stopFeed();
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
  for (const [element, { attributes }, children] of initial) {
    for (const { name } of [...element.attributes]) element.removeAttribute(name);
    for (const { name, value } of attributes) element.setAttribute(name, value);
    element.replaceChildren(...children);
    if (element.matches('input:not([type=checkbox])')) element.value = '';
    if (element.matches('select')) element.selectedIndex = 0;
  }
  forgetSuggestions();
  listHash = '#page=1';
  shown = historyOf = undefined;
}

// An edit and the form of a new relayer survive an expired token.
function signOut(why) {
  removeToken();
  suspendDialogs();
  clearViews();
  if (isTrusted) {
    showProblem('Signed out', 'Sign in to the application that has this page, and reload the page.', false);
    return;
  }
  show('enter');
  refuseToken(why);
}

const hasUnsaved = () => hasUnsavedEdits() || newForm?.isChanged();

function leave() {
  if (hasUnsaved() && !confirm('You have changes that are not saved. Discard them and sign out?')) return;
  dropEdits();
  newForm = undefined;
  byId('keep').checked = false;
  signOut('');
}

// Reads what the user may do. It returns false if the user has to sign in.
async function readAccess() {
  const before = scope();
  try {
    await Promise.all([loadFields(), showAccess()]);
    if (shown && isShown('one')) setOne(shown);
    if (!newForm || (scope() !== before && !newForm.isChanged())) buildNewForm();
    else setNewForm(newForm);
  } catch (error) {
    if (error.name === 'AbortError') return false;
    if (error.status === 401) signOut(expired);
    else showProblem('The request failed', error instanceof Refusal ? explain(error, 'sign in') : 'The server cannot be reached.', true);
    return false;
  }
  return true;
}

async function start() {
  say('');
  if (!await readAccess()) return;
  startFeed();
  await route();
}

async function signIn() {
  const given = byId('token').value.trim();
  byId('token').value = '';
  refuseToken('');
  if (!/^[\x21-\x7e]+$/.test(given)) {
    refuseToken(given === '' ? 'Enter the bearer token' : 'A token consists of ASCII letters, digits and symbols, without spaces');
    return;
  }
  setToken(given, false);
  try {
    await showAccess();
  } catch (refusal) {
    if (refusal.name === 'AbortError') return; // another sign-in was faster
    removeToken();
    refuseToken(refusal.status === 401 ? 'The server does not accept this token' : explain(refusal, 'sign in'));
    return;
  }
  setToken(given, byId('keep').checked);
  await start();
}

onSubmit(byId('enter-form'), signIn);
onSubmit(byId('new-form'), create);
onSubmit(byId('changes-form'), filterChanges);
onSubmit(byId('search-form'), search);
for (const event of ['input', 'focus']) {
  byId('search').addEventListener(event, ({ target }) => {
    const values = suggestions(target.value);
    if (!isSame(values, [...byId('suggestions').options].map(({ value }) => value))) byId('suggestions').replaceChildren(...values.map((value) => make('option', { value })));
  });
}
byId('search').addEventListener('search', search); // the user has cleared it
byId('edit').addEventListener('click', () => openEdit(shown));
byId('pause').addEventListener('click', () => (shown.data.paused ? openResume : openPause)(shown));
byId('duplicate').addEventListener('click', () => duplicate(shown));
byId('disable').addEventListener('click', () => openDisable(shown));
byId('enable').addEventListener('click', () => openEnable(shown));
byId('delete').addEventListener('click', () => openDelete(shown));
byId('leave').addEventListener('click', leave);
byId('again').addEventListener('click', () => (newForm ? onNavigation() : start()));
byId('refresh').addEventListener('click', () => {
  byId('list-title').focus();
  refresh();
});
addEventListener('hashchange', onNavigation);

// A menu closes with Escape, and with a click next to it.
for (const menu of [byId('account'), byId('more')]) {
  const summary = menu.firstElementChild;
  const close = (hasFocus) => {
    menu.open = false;
    if (hasFocus) summary.focus(); // a dialog that opens now gives it back
  };
  addEventListener('click', ({ target }) => { if (menu.open && !summary.contains(target)) close(menu.contains(target)); }, true);
  menu.addEventListener('keydown', ({ key }) => { if (key === 'Escape') close(true); });
}

// The browser asks the user before it leaves the page.
addEventListener('beforeunload', (event) => {
  if (hasUnsaved() || isBusy()) event.preventDefault();
});

// The browser may keep the state of the page for its back button.
addEventListener('pagehide', () => {
  dropEdits();
  newForm = undefined;
  clearViews();
  unloadToken();
  show('enter');
});

function open() {
  restoreToken();
  if (hasToken()) {
    start();
    return;
  }
  show('enter');
  byId('token').focus();
}

addEventListener('pageshow', (event) => {
  if (event.persisted) open();
});

open();
