// What the user has paused with bulk actions and not yet resumed, so that exactly this can be
// resumed after an incident. The browser keeps the IDs of the relayers, and nothing else, also
// after it was closed.

const storageKey = 'relayerd-paused';

// The browser may block storage. Nothing is remembered then.
function inStorage(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}

function readAll() {
  try {
    return Object.assign(Object.create(null), JSON.parse(inStorage((storage) => storage.getItem(storageKey))));
  } catch {
    return Object.create(null);
  }
}

export const pausedBy = (principal) => readAll()[principal] ?? [];

function write(principal, ids) {
  const all = readAll();
  if (ids.length > 0) all[principal] = ids;
  else delete all[principal];
  const isEmpty = Object.keys(all).length === 0;
  inStorage((storage) => (isEmpty ? storage.removeItem(storageKey) : storage.setItem(storageKey, JSON.stringify(all))));
}

export function rememberPaused(principal, ids) {
  write(principal, [...new Set([...pausedBy(principal), ...ids])]);
}

export function forgetPaused(principal, ids) {
  const gone = new Set(ids);
  write(principal, pausedBy(principal).filter((id) => !gone.has(id)));
}
