// The form of a stored relayer. It sends the ETag of the revision that the user saw. If another
// client has changed the relayer since, it shows what has changed, and saves again for the
// current revision: fields that the user did not change keep their current value.

import { closeAction, isBusy, isStillSending, lineOf, setSending, views } from './actions.js';
import { callOne, explain, Refusal, textOfProblems } from './api.js';
import { differences } from './differences.js';
import { byId, onSubmit, say, write } from './dom.js';
import { editForm, restoreForm } from './forms.js';
import { removeEmptied, writeJSON } from './json.js';
import { nameInSentence, sentenceOf } from './view.js';

const dialog = byId('edit-dialog');

let editing; // the edit that is open
const drafts = new Map(); // the edits with changes whose form is closed, by the ID of their relayer

const hasChanges = () => editing !== undefined && editing.form.isChanged();

export const hasUnsavedEdits = () => drafts.size > 0 || hasChanges();

export const dropEdit = (id) => drafts.delete(id);

function drop() {
  editing = undefined;
  dialog.close();
  byId('edit-reason').value = '';
}

export function dropEdits() {
  drafts.clear();
  drop();
}

// Closes the dialogs. Changes that are not saved are kept until the user opens the relayer
// again. Returns the name of their relayer.
export function suspendDialogs() {
  closeAction();
  const kept = hasChanges() ? editing : undefined;
  if (kept) drafts.set(kept.base.id, kept);
  drop();
  return kept && nameInSentence(kept.base);
}

// Opens the form with the changes of a relayer that are not saved, if there are any.
export function resumeEdit({ data, etag }) {
  if (isBusy() || !drafts.has(data.id)) return;
  editing = drafts.get(data.id);
  drafts.delete(data.id);
  show(unsaved);
  noteChange(data.id, etag, false);
}

// Returns the problems of a refusal as the API lists them.
export function problemsOf(refusal, doing, id) {
  if (refusal.errors.length > 0) return refusal.errors;
  if (refusal.status === 409) return [{ field: 'id', message: refusal.message }];
  return [{ message: explain(refusal, doing, id) }];
}

const unsaved = 'You have changes that are not saved. Save them, or press Cancel to discard them.';

function show(note) {
  write('edit-title', 'Edit ' + nameInSentence(editing.base));
  byId('edit-fields').replaceChildren(...editing.form.elements);
  write('edit-note', note);
  dialog.showModal();
}

export function openEdit(relayer) {
  if (isStillSending()) return;
  resumeEdit(relayer);
  if (editing) return;
  const { data, etag } = relayer;
  editing = { base: data, stored: data, etag, form: editForm(data) };
  show('');
}

// Opens the form with the values of an earlier version as changes of the current one.
export function openRestore({ data, etag }, version, revision) {
  if (isStillSending()) return;
  const form = version.network_type === data.network_type ? restoreForm(data, version) : undefined;
  if (!form?.isChanged()) {
    say(form ? 'Every field that can be edited has the value of revision ' + revision : 'This version has another network type, which cannot be changed');
    return;
  }
  editing = { base: data, stored: data, etag, form };
  show('The form has the values of revision ' + revision + '. RPC URLs and states stay as they are now. Save to restore the values.');
  byId('edit-reason').value = 'Restore revision ' + revision;
}

onSubmit(byId('edit-form'), async () => {
  const mine = editing;
  if (isBusy() || !mine) return;
  const { base, form } = mine;
  form.clearErrors();
  const fields = form.changes();
  if (Object.keys(fields).length === 0) {
    drop();
    say('Nothing was changed');
    return;
  }
  write('edit-note', 'Saving');
  setSending(true);
  try {
    // The settings are the host's: an empty object in them is a value.
    const patch = { ...removeEmptied(mine.stored, fields), ...(fields.settings ? { settings: fields.settings } : {}) };
    const result = await callOne(base.id, { method: 'PATCH', body: writeJSON(patch), etag: mine.etag, reason: lineOf('edit-reason') });
    dropEdit(base.id);
    if (editing === mine) drop();
    views.changed(result, nameInSentence(result.data) + ' was changed');
  } catch (refusal) {
    setSending(false);
    if (refusal.name !== 'AbortError') await refuse(mine, refusal);
  } finally {
    setSending(false);
  }
});

async function refuse(mine, refusal) {
  const { id } = mine.base;
  if (!(refusal instanceof Refusal)) throw refusal;
  write('edit-note', '');
  if (refusal.status === 401) return views.signOut();
  if (refusal.status === 404) {
    suspendDialogs();
    return views.gone(id);
  }
  if (refusal.status === 412) return showConflict(mine);
  const title = refusal.isUnknown() ? 'It is not known whether the relayer was changed' : 'The relayer was not changed';
  const problems = problemsOf(refusal, 'change relayers', id);
  if (editing === mine) mine.form.showErrors(title, problems);
  else views.refused(id, title + ': ' + textOfProblems(problems));
  return refusal.isUnknown() && views.refresh();
}

async function showConflict(mine) {
  try {
    const { data, etag, change } = await callOne(mine.base.id);
    const changed = differences(mine.stored, data).join('; ') || 'no visible field';
    Object.assign(mine, { stored: data, etag });
    const note = 'Another client changed this relayer: ' + sentenceOf(change) + ' (' + changed + '). Your changes are not saved. Save again to apply them to the current revision.';
    if (editing === mine) write('edit-note', note);
    else views.refused(data.id, note);
    views.changed({ data, etag, change }, '');
  } catch (refusal) {
    await refuse(mine, refusal);
  }
}

// Notes in the open form that its relayer has another revision.
export function noteChange(id, etag, isDeleted) {
  if (editing?.base.id !== id || (editing.etag === etag && !isDeleted) || isBusy()) return;
  write('edit-note', isDeleted
    ? 'This relayer was deleted since you opened the form.'
    : 'This relayer was changed since you opened the form. When you save, the page shows what changed.');
}

byId('edit-cancel').addEventListener('click', drop);
dialog.addEventListener('cancel', (event) => {
  event.preventDefault();
  if (hasChanges()) write('edit-note', unsaved);
  else drop();
});
// A browser closes a dialog without asking if Escape is pressed repeatedly.
dialog.addEventListener('close', () => {
  if (editing && !dialog.open) show(unsaved);
});
