// Whether the server can be reached. While it cannot, the states that the page shows are
// the last known ones, which may be wrong.

import { byId, write } from './dom.js';

let last; // when the server was reached

// Returns the local date and time to the second, or '' if there is no such time.
export function localTime(time) {
  const local = new Date(time - time.getTimezoneOffset() * 60000);
  return Number.isNaN(local.getTime()) ? '' : local.toISOString().slice(0, 19).replace('T', ' ');
}

export function reached() {
  last = new Date();
  document.body.classList.remove('stale');
  write('stale', '');
}

export function lost() {
  const showsStates = byId('enter').hidden;
  if (!showsStates || !last || document.body.classList.contains('stale')) return;
  document.body.classList.add('stale');
  write('stale', 'The server cannot be reached. The states are those of ' + localTime(last) + '.');
}
