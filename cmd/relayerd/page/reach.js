// Whether the server can be reached. While it cannot, the states that the page shows are
// the last known ones, which may be wrong.

import { byId } from './dom.js';

let last; // when the server was reached

// Returns the local date and time to the second.
export function localTime(time) {
  const local = new Date(time - time.getTimezoneOffset() * 60000);
  return local.toISOString().slice(0, 19).replace('T', ' ');
}

export function clearStale() {
  document.body.classList.remove('stale');
  byId('stale').textContent = '';
}

export function reached() {
  last = new Date();
  clearStale();
}

export function lost() {
  const showsStates = byId('enter').hidden;
  if (!showsStates || !last || document.body.classList.contains('stale')) return;
  document.body.classList.add('stale');
  byId('stale').textContent = 'The server cannot be reached. The states are those of ' + localTime(last) + '.';
}
