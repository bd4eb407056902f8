// Whether the page shows the current state of the server, and if not since when.

import { byId, write } from './dom.js';
import { localTime } from './time.js';

let last = 0; // the time up to which the page is complete

// Notes that the page is complete up to a time.
export function reached(time) {
  if (time < last) return;
  last = time;
  document.body.classList.remove('stale');
  write('stale', '');
}

// Shows that the page may have old states, and since when.
export function lost() {
  if (!byId('enter').hidden || !last || document.body.classList.contains('stale')) return;
  document.body.classList.add('stale');
  write('stale', 'The server cannot be reached since ' + localTime(new Date(last)) + '. What you see may be out of date.');
}

export const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
