// The changes of a stored relayer: edit, pause, resume and delete. Except for those of an
// emergency, each sends the ETag of the revision that the user saw. If another client has
// changed the relayer since, the API returns 412, and the user compares the revisions.

import { callOne, explain } from './api.js';
import { conflictTable } from './conflict.js';
import { byId, onSubmit, say, write } from './dom.js';
import { editForm, restoreForm } from './forms.js';
import { removeEmptied, writeJSON } from './json.js';
import { reasonField } from './reason.js';
import { nameInSentence } from './view.js';

// The views that show the result of a write. main.js sets them.
export const views = {};

let isSending = false;
export const isBusy = () => isSending;

function setSending(sending) {
  isSending = sending;
  document.body.classList.toggle('busy', sending);
  byId('edit-fields').inert = sending; // what is entered now would be lost with the form
}

// The response to a change closes all dialogs, so that none may open before it.
function isStillSending() {
  if (isSending) say('The last change is still being sent');
  return isSending;
}

let editing; // the edit that is open
const drafts = new Map(); // the edits with changes whose form is closed, by the ID of their relayer
let deleting;
let disabling; // a relayer
let conflict;

const dialogs = ['edit', 'delete', 'disable', 'conflict'].map((name) => byId(name + '-dialog'));

function closeDialogs() {
  for (const dialog of dialogs) if (dialog.open) dialog.close();
}

// The reasons for changes without a dialog, and for those of each dialog.
export const oneReason = reasonField(byId('one-wrong'));
const reasons = Object.fromEntries(['edit', 'delete', 'disable'].map((name) => [name, reasonField(byId(name + '-dialog').querySelector('.foot'))]));

const isAnyOpen = () => dialogs.some((dialog) => dialog.open);

// Closes all dialogs and discards what was entered in them.
function dropDialogs() {
  editing = deleting = conflict = undefined;
  closeDialogs();
  for (const reason of Object.values(reasons)) reason.fill('');
}

// Closes all dialogs. Changes that are not saved are kept until the user opens the
// relayer again. Returns the name of their relayer.
export function suspendDialogs() {
  const kept = hasChanges() ? editing : undefined;
  if (kept) drafts.set(kept.base.id, kept);
  dropDialogs();
  return kept && nameInSentence(kept.base);
}

// Opens the form with the changes of a relayer that are not saved, if there are any.
export function resumeEdit({ data, etag }) {
  if (isSending || !drafts.has(data.id)) return;
  editing = drafts.get(data.id);
  drafts.delete(data.id);
  showEdit();
  noteEdit(unsaved);
  noteChange(data.id, etag, false);
}

export const dropEdit = (id) => drafts.delete(id);

export function dropEdits() {
  drafts.clear();
  dropDialogs();
}

const hasChanges = () => editing !== undefined && editing.form.isChanged();

export const hasUnsavedEdits = () => drafts.size > 0 || hasChanges();

// Returns the problems of a refusal as the API lists them.
export function problemsOf(refusal, doing, id) {
  if (refusal.errors.length > 0) return refusal.errors;
  if (refusal.status === 409) return [{ field: 'id', message: refusal.message }];
  return [{ message: explain(refusal, doing, id) }];
}

// Returns a function that shows problems in an open dialog or, if the user has closed it,
// in the page.
function inDialog(name, id, show) {
  return (problems, isUnknown) => {
    if (byId(name + '-dialog').open) show(problems, isUnknown);
    else views.refused(id, failureOf('changed', problems, isUnknown));
  };
}

// Returns why a relayer was not changed, or that it is not known whether it was.
function failureOf(done, problems, isUnknown) {
  const outcome = isUnknown ? 'It is not known whether the relayer was ' + done : 'Not ' + done;
  return outcome + ': ' + problems.map(textOf).join('; ');
}

const textOf = ({ field, message }) => (field ? field + ' ' + message : message);

// Sends a change of the stored revision. Without fields to change it is a delete.
async function send(change) {
  if (isSending) return;
  setSending(true);
  const { id } = change.base;
  try {
    const request = change.request ?? (change.fields ? { method: 'PATCH', body: writeJSON(removeEmptied(change.stored, change.fields)) } : { method: 'DELETE' });
    const result = await callOne(id, { ...request, etag: change.etag, reason: change.reason }, change.below);
    dropEdit(id);
    dropDialogs();
    oneReason.fill('');
    if (change.fields) views.changed(result, change.notice(result.data));
    else views.deleted(id, nameInSentence(change.base) + ' was deleted');
  } catch (refusal) {
    if (refusal.status === 412) await showConflict(change);
    else refuse(change, refusal);
  } finally {
    setSending(false);
  }
}

function refuse(change, refusal) {
  setSending(false);
  if (refusal.name === 'AbortError') return;
  if (refusal.status === 401) {
    views.signOut();
  } else if (refusal.status === 404) {
    suspendDialogs();
    views.gone(change.base.id);
  } else {
    const isUnknown = refusal.isUnknown();
    change.refuse(problemsOf(refusal, change.fields ? 'change relayers' : 'delete relayers', change.base.id), isUnknown);
    if (isUnknown) views.unknown(change.base.id);
  }
}

// Pause and resume.

// A pause is an emergency switch: it is sent without a condition.
export function setPaused({ data, etag }, paused) {
  return send({
    base: data, stored: data, etag: paused ? undefined : etag, fields: { paused }, reason: oneReason.text(),
    notice: (relayer) => nameInSentence(relayer) + (paused ? ' is paused' : ' is resumed'),
    refuse: (problems, isUnknown) => views.refused(data.id, failureOf(paused ? 'paused' : 'resumed', problems, isUnknown)),
  });
}

// Disable and enable. Both are sent without a condition, as emergency switches.

const healthChange = (base, request, reason, done, refuse) => ({
  base, stored: base, fields: {}, below: '/disabled_reason', request, reason, refuse,
  notice: (relayer) => nameInSentence(relayer) + ' is ' + done,
});

export function enable({ data }) {
  return send(healthChange(data, { method: 'DELETE' }, oneReason.text(), 'enabled', (problems, isUnknown) => views.refused(data.id, failureOf('enabled', problems, isUnknown))));
}

function refuseDisable(text) {
  write('disable-wrong', text);
  if (text) byId('disable-type').focus();
}

export function openDisable({ data }) {
  if (isStillSending()) return;
  disabling = data;
  write('disable-title', 'Disable ' + nameInSentence(data) + '?');
  for (const name of ['type', 'details']) byId('disable-' + name).value = '';
  refuseDisable('');
  byId('disable-dialog').showModal();
}

onSubmit(byId('disable-form'), () => {
  const disabledReason = { type: byId('disable-type').value.trim(), details: byId('disable-details').value.trim() };
  const refuse = inDialog('disable', disabling.id, (problems, isUnknown) => refuseDisable(failureOf('disabled', problems, isUnknown)));
  send(healthChange(disabling, { method: 'PUT', body: writeJSON(disabledReason) }, reasons.disable.text(), 'disabled', refuse));
});

// Edit.

const unsaved = 'You have changes that are not saved. Save them, or press Cancel to discard them.';

function showEdit() {
  write('edit-title', 'Edit ' + nameInSentence(editing.base));
  byId('edit-fields').replaceChildren(...editing.form.elements);
  noteEdit('');
  byId('edit-dialog').showModal();
}

function noteEdit(text) { write('edit-note', text); }

export function openEdit(relayer) {
  if (isStillSending()) return;
  resumeEdit(relayer);
  if (editing) return;
  const { data, etag } = relayer;
  editing = { base: data, stored: data, etag, form: editForm(data) };
  showEdit();
}

// Opens the form with the values of an earlier version as changes of the current one.
export function openRestore({ data, etag }, version, revision) {
  if (isStillSending()) return;
  if (version.network_type !== data.network_type) {
    say('This version has the network type ' + version.network_type + ', which cannot be changed');
    return;
  }
  const form = restoreForm(data, version);
  if (!form.isChanged()) {
    say('Every field that can be edited has the value of revision ' + revision);
    return;
  }
  editing = { base: data, stored: data, etag, form };
  showEdit();
  noteEdit('The form has the values of revision ' + revision + '. RPC URLs and states stay as they are now. Save to restore the values.');
  reasons.edit.fill('Restore revision ' + revision);
}

function save() {
  const { base, stored, etag, form } = editing;
  form.clearErrors();
  const fields = form.changes();
  if (Object.keys(fields).length === 0) {
    dropDialogs();
    say('Nothing was changed');
    return;
  }
  if (!isSending) noteEdit('Saving');
  send({
    base, stored, etag, fields, reason: reasons.edit.text(),
    notice: (relayer) => nameInSentence(relayer) + ' was changed',
    refuse: inDialog('edit', base.id, (problems, isUnknown) => {
      noteEdit('');
      form.showErrors(isUnknown ? 'It is not known whether the relayer was changed' : 'The relayer was not changed', problems);
    }),
  });
}

// Notes in the open form that its relayer has another revision.
export function noteChange(id, etag, isDeleted) {
  if (editing?.base.id !== id || (editing.etag === etag && !isDeleted) || isSending) return;
  noteEdit(isDeleted
    ? 'This relayer was deleted since you opened the form.'
    : 'This relayer was changed since you opened the form. When you save, the page shows what changed.');
}

onSubmit(byId('edit-form'), save);

function cancelEdit() {
  if (!hasChanges()) {
    dropDialogs();
    return;
  }
  if (!byId('edit-dialog').open) showEdit();
  noteEdit(unsaved);
}

byId('edit-dialog').addEventListener('cancel', (event) => {
  event.preventDefault();
  cancelEdit();
});
// A browser closes a dialog without asking if Escape is pressed repeatedly.
byId('edit-dialog').addEventListener('close', () => {
  if (editing && !isAnyOpen()) cancelEdit();
});

// Delete.

function refuseDelete(text) {
  write('delete-wrong', text);
  byId('delete-id').toggleAttribute('aria-invalid', false);
  if (!text) return;
  byId('delete-id').setAttribute('aria-invalid', 'true');
  byId('delete-id').focus();
}

export function openDelete({ data, etag }) {
  if (isStillSending()) return;
  deleting = { base: data, etag };
  write('delete-title', 'Delete ' + nameInSentence(data) + '?');
  write('delete-expected', data.id);
  byId('delete-id').value = '';
  refuseDelete('');
  byId('delete-dialog').showModal();
}

onSubmit(byId('delete-form'), () => {
  if (byId('delete-id').value.trim() !== deleting.base.id) {
    refuseDelete('This is not the ID of the relayer');
    return;
  }
  send({ ...deleting, reason: reasons.delete.text(), refuse: inDialog('delete', deleting.base.id, (problems, isUnknown) => refuseDelete(failureOf('deleted', problems, isUnknown))) });
});

// Conflict.

async function showConflict(change) {
  const { base, fields } = change;
  let current;
  try {
    current = await callOne(base.id);
  } catch (refusal) {
    refuse(change, refusal);
    return;
  }
  const refuseAgain = inDialog('conflict', base.id, (problems, isUnknown) => {
    write('conflict-wrong', failureOf('changed', problems, isUnknown));
    byId('conflict-apply').focus();
  });
  conflict = { current, change: { ...change, stored: current.data, etag: current.etag, refuse: refuseAgain } };
  write('conflict-wrong', '');
  write('conflict-text', fields
    ? 'Your change is not stored. If you apply it, it is sent again for the current revision: fields that you did not change keep their current value.'
    : 'The relayer is not deleted. Compare before you delete the current revision.');
  byId('conflict-masked').hidden = !base.custom_rpc_urls && !current.data.custom_rpc_urls;
  byId('conflict-table').replaceChildren(conflictTable(base, current.data, fields));
  write('conflict-apply', fields ? 'Apply my change' : 'Delete the current revision');
  byId('conflict-apply').classList.toggle('danger', !fields);
  write('conflict-discard', fields ? 'Discard my change' : 'Keep the relayer');
  byId('conflict-edit').hidden = !editing;
  closeDialogs();
  byId('conflict-dialog').showModal();
}

function discard() {
  const { current, change } = conflict;
  dropEdit(change.base.id);
  dropDialogs();
  views.changed(current, change.fields ? 'Your change was discarded' : 'The relayer was not deleted');
}

byId('conflict-apply').addEventListener('click', () => send(conflict.change));
byId('conflict-discard').addEventListener('click', discard);
byId('conflict-edit').addEventListener('click', () => {
  editing.stored = conflict.current.data;
  editing.etag = conflict.current.etag;
  conflict = undefined;
  closeDialogs();
  showEdit();
});
byId('conflict-dialog').addEventListener('close', () => {
  if (conflict && !isAnyOpen()) discard();
});

for (const name of ['delete', 'disable']) byId(name + '-dialog').addEventListener('cancel', dropDialogs);
for (const button of document.querySelectorAll('dialog .cancel')) button.addEventListener('click', dropDialogs);
