// Follows a registry with an ordinary library for server-sent events. It prints, after each
// event, the view and the time up to which the view is complete.
import { EventSource } from 'eventsource';

const { SERVER, TOKEN } = process.env;
const authorized = (headers) => ({ headers: { ...headers, Authorization: `Bearer ${TOKEN}` } });

let view, position, sent, complete;

async function readAll() {
  view = {};
  let page, after = '', first;
  do {
    const response = await fetch(`${SERVER}/api/v1/relayers?per_page=2&after=${encodeURIComponent(after)}`, authorized());
    page = await response.json();
    first ??= page.position;
    for (const { id, name } of page.data) view[id] = name;
    after = page.next;
  } while (after);
  return first;
}

function report(kind, data) {
  if (data.complete_ms !== undefined) complete = sent + data.complete_ms;
  console.log(JSON.stringify({ kind, complete, view }));
}

position = await readAll();
const source = new EventSource(`${SERVER}/api/v1/relayers:watch`, {
  fetch(url, options) {
    sent = performance.timeOrigin + performance.now(); // its own clock, before the request
    return fetch(url, { ...options, ...authorized({ 'Last-Event-ID': position, ...options.headers }) });
  },
});
const on = (kind, change) => source.addEventListener(kind, (event) => {
  const data = JSON.parse(event.data);
  change?.(data.relayer);
  report(kind, data);
});
on('created', ({ id, name }) => { view[id] = name; });
on('updated', ({ id, name }) => { view[id] = name; });
on('deleted', ({ id }) => { delete view[id]; });
on('heartbeat');
on('resync', async () => {
  source.close();
  throw new Error('the stream has a gap');
});
