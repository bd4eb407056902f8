// Whether the page shows the current state of the server, and if not since when.

import { byId, write } from './dom.js';
import { localTime } from './time.js';

// Returns the time of a request, and its place in the order of all requests: the clock may step back.
export const now = () => ({ time: new Date(), order: performance.now() });

let last; // when the last request was sent up to which the page is complete

// Notes that the page is complete up to a request.
export function reached(sent) {
  if (sent.order < last?.order) return;
  last = sent;
  document.body.classList.remove('stale');
  write('stale', '');
}

// Shows that the page may have old states, and since when.
export function lost() {
  if (!byId('enter').hidden || !last || document.body.classList.contains('stale')) return;
  document.body.classList.add('stale');
  write('stale', 'The server cannot be reached since ' + localTime(last.time) + '. What you see may be out of date.');
}

export const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
