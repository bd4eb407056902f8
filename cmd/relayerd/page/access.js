// What the user may do. The API decides: the page only hides what it would refuse.

import { readAccess } from './api.js';
import { byId } from './dom.js';
import { inSentence } from './view.js';

// The controls of each action.
const controls = {
  create: ['create', 'create-first'],
  update: ['edit', 'pause', 'bulk'],
  delete: ['delete'],
};

let actions = [];

export const mayCreate = () => actions.includes('create');

export async function showAccess() {
  const access = await readAccess();
  ({ actions } = access);
  for (const [action, ids] of Object.entries(controls)) for (const id of ids) byId(id).hidden = !actions.includes(action);
  byId('principal').textContent = inSentence(access.principal) + ' on ' + location.host;
  byId('scope').textContent = access.selector && 'Only relayers with ' + inSentence(access.selector);
}
