// Whether the page shows the current state of the server: the change feed, in the format of
// Server-Sent Events, and the time up to which the page is complete. EventSource cannot send the
// Authorization header, so this reads the stream of a fetch.

import { openFeed } from './api.js';
import { byId, write } from './dom.js';
import { readJSON } from './json.js';
import { expired } from './main.js';
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

export const sleep = (milliseconds, signal) => new Promise((resolve) => {
  setTimeout(resolve, milliseconds);
  signal?.addEventListener('abort', resolve, { once: true });
});

// The server sends at least a heartbeat every 5 seconds. A server or a network that is gone
// may not close the connection.
const longestSilence = 10000;

// Calls onEvent for each event of a stream, with its id, event and data. Each is one line.
async function readEvents(stream, onEvent) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const blocks = (rest + part.value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) onEvent(Object.fromEntries(Array.from(block.matchAll(/^(\w+): ?(.*)$/gm), ([, name, value]) => [name, value])));
  }
}

// Calls on.event for each event until the signal is aborted, and on.state with live, waiting or off.
// It reconnects after the last event with exponential backoff and jitter. A server without a feed,
// or a token that may not read it, ends it.
export async function follow(signal, on) {
  let lastEvent;
  for (let failures = 0; !signal.aborted; failures++) {
    const silence = new AbortController();
    const sent = Date.now();
    const watchdog = setInterval(() => {
      if (Date.now() - Math.max(sent, last) < longestSilence) return;
      silence.abort();
      lost();
    }, 500);
    let wait = Math.min(30000, 500 * 2 ** Math.min(failures, 6)) * (0.5 + Math.random() / 2);
    try {
      const response = await openFeed(lastEvent, AbortSignal.any([signal, silence.signal]));
      if (response.status === 401) expired();
      if ([400, 401, 403, 404, 405].includes(response.status)) break;
      wait = Math.max(wait, 1000 * (Number(response.headers.get('Retry-After')) || 0));
      if (response.ok) {
        on.state('live');
        await readEvents(response.body, ({ id, event, data }) => {
          failures = 0;
          lastEvent = id ?? lastEvent;
          const change = readJSON(data ?? '{}');
          // A heartbeat without progress does not make the page newer.
          if (change.complete_ms) reached(sent + Number(change.complete_ms.text));
          // An error of the page must not look like a lost connection.
          queueMicrotask(() => on.event(event, change));
        });
      }
    } catch {
      // The connection is lost or the signal is aborted.
    } finally {
      clearInterval(watchdog);
      silence.abort();
    }
    if (signal.aborted) return;
    on.state('waiting');
    await sleep(wait, signal);
  }
  if (!signal.aborted) on.state('off');
}
