// Requests to the API, the token, and what the user may do.

import { write } from './dom.js';
import { isSame, tryJSON } from './json.js';
import { lost, now, reached } from './live.js';
import { expired } from './main.js';

// The token is stored only here, unless the user keeps it in the tab: other scripts
// of the page cannot read the variables of a module.
let token = '';

// What the host has set: the path of the API, the name of the registry, and whether the host
// authenticates the requests of the page, so that they need no token.
export const host = document.documentElement.dataset;
export const isTrusted = host.trustHost === 'true';
const storageKey = 'relayerd-token';

// The browser may block storage. The token is then kept in memory only.
function inStorage(act) {
  try {
    return act(sessionStorage);
  } catch {
    return null;
  }
}

export const hasToken = () => isTrusted || token !== '';

export function setToken(given, isKept) {
  token = given;
  running.clear();
  inStorage((storage) => (isKept ? storage.setItem(storageKey, given) : storage.removeItem(storageKey)));
}

export function restoreToken() { token = inStorage((storage) => storage.getItem(storageKey)) ?? ''; }

export class Refusal extends Error {
  constructor({ status, message, errors, wait, requestID, isWrite }) {
    super(message);
    Object.assign(this, { status, errors: errors ?? [], wait, requestID, isWrite });
  }

  // Reports whether a write may have taken effect. A rejection is a 3xx, a 4xx or a 503.
  isUnknown() { return this.isWrite && (this.status < 300 || this.status >= 500) && this.status !== 503; }
}

// A server or a network that is gone may not close the connection.
const timeout = 30000;
export const pollTimeout = 8000; // of what shows whether the page is live

// A header has bytes. The server reads those of UTF-8.
const bytesOf = (text) => String.fromCharCode(...new TextEncoder().encode(text));

// Returns the ID of a write and of its repetitions: crypto.randomUUID needs HTTPS.
export const newRequestID = () => crypto.getRandomValues(new Uint32Array(4)).join('-');

// Sends a request and returns the members of its response, and its ETag. It throws a
// Refusal if the request fails, and an AbortError if it is canceled or the user has signed
// out. A silent request does not show that the page waits for the server.
export const call = (path, more) => callAPI('/relayers' + path, more);

const running = new Set(); // when the requests of this sign-in were sent that are not silent

export async function callAPI(path, { method = 'GET', body, etag, reason, requestID, signal, patience = timeout, isSilent = false } = {}) {
  const isWrite = method !== 'GET';
  const headers = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (etag) headers['If-Match'] = etag;
  if (reason) headers['X-Change-Reason'] = bytesOf(reason);
  if (requestID) headers['X-Request-Id'] = requestID;
  const used = token;
  const sent = now();
  const waiting = isSilent ? 0 : setTimeout(() => token === used && write('waiting', 'Waiting for the server'), 1000);
  if (!isSilent) running.add(sent);
  const signals = [AbortSignal.timeout(patience), ...(signal ? [signal] : [])];
  let response, envelope, failure;
  try {
    response = await fetch(host.api + path, {
      method, body, signal: AbortSignal.any(signals),
      headers: isTrusted ? headers : { ...headers, Authorization: 'Bearer ' + bytesOf(used) },
      cache: 'no-store', credentials: isTrusted ? 'same-origin' : 'omit', redirect: 'error', referrerPolicy: 'no-referrer',
    });
    envelope = tryJSON(await response.text()) ?? {}; // a proxy in front of the API may respond in another format
    if (response.status >= 500 && envelope.success !== false) throw new Error('a proxy has lost the server');
  } catch (error) {
    failure = error.name === 'AbortError' ? error : new Refusal({ status: 0, isWrite });
  }
  clearTimeout(waiting);
  if (running.delete(sent) && running.size === 0) write('waiting', '');
  if (failure instanceof Refusal) lost();
  const isExpired = token === used && response?.status === 401;
  if (isExpired) expired();
  if (isExpired || token !== used) throw new DOMException('The user has signed out', 'AbortError');
  if (failure) throw failure;
  reached(sent);
  const isDone = envelope.success === true || envelope.openapi; // the OpenAPI document has no envelope
  if (response.ok && isDone) return { ...envelope, etag: response.headers.get('ETag') };
  throw new Refusal({
    status: response.status, message: envelope.message, errors: envelope.errors, isWrite,
    wait: response.headers.get('Retry-After'), requestID: response.headers.get('X-Request-Id'),
  });
}

// Calls refused with the cause if a request of act fails. A request that was canceled needs no
// answer.
export async function attempt(act, refused) {
  try {
    await act();
  } catch (error) {
    if (error.name === 'AbortError') return;
    if (!(error instanceof Refusal)) throw error;
    await refused(error);
  }
}

export const pathOf = (id) => '/' + encodeURIComponent(id);

// Sends a request about one relayer, or below it, and returns its last change too. A relayer that a write
// does not find, and a read does, is one that the user may not change.
export async function callOne(id, more, below = '') {
  const send = (path, given) => call(pathOf(id) + path + '?changes=true', given);
  try {
    return await send(below, more);
  } catch (error) {
    if (error.status !== 404 || !error.isWrite) throw error;
    await send('');
    throw new Refusal({ status: 403, isWrite: true });
  }
}

// What the user may do. The API decides: the page only hides what it would refuse.

let access = { actions: [], principal: '', selector: '', selectors: {} };

// Returns whether it has changed.
export async function readAccess() {
  const before = access;
  access = (await callAPI('/access', { patience: pollTimeout })).data;
  return !isSame(before, access);
}

export const principal = () => access.principal;

export const may = (action) => access.actions.includes(action);

// The relayers of an action that the user may do, as a selector; empty if these are all.
export const scope = (action) => access.selectors?.[action] ?? access.selector;

// Texts of refusals.

export const textOfProblems = (problems) => problems.map(({ field, message }) => (field ? field + ' ' : '') + message).join('; ');

// Returns what is wrong and what to do next. doing completes "This token may not".
export function explain(refusal, doing) {
  const again = refusal.wait ? ' Try again in ' + refusal.wait + ' s.' : ' Try again later.';
  switch (refusal.status) {
    case 0: return 'The server cannot be reached.';
    case 403: return 'This token may not ' + doing + '.' + (refusal.isWrite ? ' Nothing was changed.' : '');
    case 429: return 'Too many requests.' + again;
    case 500: return 'The server had an internal error. Its log has the cause under the request ID ' + refusal.requestID + '.';
    case 503: return 'The server is not available now.' + again;
    default: return (textOfProblems(refusal.errors) || refusal.message || 'The server returned status ' + refusal.status) + '.';
  }
}
