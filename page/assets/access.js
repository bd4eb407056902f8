// What the user may do. The API decides: the page only hides what it would refuse.

import { readAccess } from './api.js';
import { byId, write } from './dom.js';
import { inSentence } from './view.js';

// The controls of each action.
const controls = {
  create: ['create', 'create-first'],
  update: ['edit', 'pause', 'bulk'],
  delete: ['delete'],
};

let access = { actions: [], principal: '', selector: '' };

export const may = (action) => access.actions.includes(action);

export const principal = () => access.principal;

// The relayers that the user may see, as a selector; empty if these are all.
export const scope = () => access.selector;

export async function showAccess() {
  access = await readAccess();
  for (const [action, ids] of Object.entries(controls)) for (const id of ids) byId(id).hidden = !may(action);
  write('principal', inSentence(access.principal) + ' on ' + location.host);
  write('scope', access.selector && 'Only relayers with ' + inSentence(access.selector));
}
