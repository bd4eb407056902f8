// What the user has paused with bulk actions and not yet resumed, so that exactly this can be
// resumed after an incident. The browser keeps the name of the token, and the ID and the
// revision of each paused relayer, also after it was closed.

const storageKey = 'relayerd-pauses';

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

// Returns the revision of each pause by the ID of its relayer. It is empty if the outcome of
// the pause is unknown.
export const pausedBy = (principal) => new Map(Object.entries(readAll()[principal] ?? {}));

function write(principal, pauses) {
  const all = readAll();
  if (pauses.size > 0) all[principal] = Object.fromEntries(pauses);
  else delete all[principal];
  const isEmpty = Object.keys(all).length === 0;
  inStorage((storage) => (isEmpty ? storage.removeItem(storageKey) : storage.setItem(storageKey, JSON.stringify(all))));
}

export function rememberPaused(principal, pauses) {
  write(principal, new Map([...pausedBy(principal), ...pauses]));
}

export function forgetPaused(principal, ids) {
  const pauses = pausedBy(principal);
  for (const id of ids) pauses.delete(id);
  write(principal, pauses);
}
