// What the user may do. The API decides: the page only hides what it would refuse.

import { host, isTrusted, readAccess } from './api.js';
import { byId, write } from './dom.js';
import { inSentence } from './view.js';

let access = { actions: [], principal: '', selector: '' };

export const may = (action) => access.actions.includes(action);

// The relayers that the user may see, as a selector; empty if these are all.
export const scope = () => access.selector;

export async function showAccess() {
  access = await readAccess();
  for (const id of ['create', 'create-first', 'duplicate']) byId(id).hidden = !may('create');
  byId('edit').hidden = byId('pause').hidden = !may('update');
  byId('delete').hidden = !may('delete');
  byId('leave').hidden = isTrusted;
  write('principal', inSentence(access.principal));
  write('access', 'On ' + (host.name ? host.name + ', ' : '') + location.host + '. ' + (access.selector && 'Only relayers with ' + inSentence(access.selector)));
}
